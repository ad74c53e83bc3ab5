"""How tokenised texts become integers, one for each position: word ids, or keys of given items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.udfs.arrays import Integers
from dphh.udfs.kernel.given_grams import GivenGrams
from dphh.udfs.kernel.lists import lengths_of, one_array
from dphh.udfs.kernel.positions import positions_of_texts

if TYPE_CHECKING:  # vocabulary.py imports Polars
    from dphh.udfs.text.vocabulary import Vocabulary

#: Reads texts (tokens, group_name): how many positions each takes, and the integer at each one.
TextReader = Callable[[pa.Table], tuple[Integers, Any]]


class Numbering(Protocol):
    """How the tokens of texts become integers: `ReadWords` or `ReadItems`."""

    def reader(self, vocabulary: Vocabulary) -> TextReader:
        """The function that reads texts; `vocabulary` gives words their ids."""


@dataclass(frozen=True)
class ReadWords:
    """Texts become word ids. A text without a word takes no position."""

    #: Whether -1 marks a text's end: needed where neighbouring words matter.
    marks_ends: bool = False

    def reader(self, vocabulary: Vocabulary) -> TextReader:
        vocabulary.open()

        def read(texts: pa.Table) -> tuple[Integers, Any]:
            tokens = one_array(texts.column("tokens"))
            ids = vocabulary.ids(tokens.flatten())
            lengths, positions = positions_of_texts(lengths_of(tokens), ids, self.marks_ends)
            if self.marks_ends and (lengths == 1).any():
                positions = positions[np.repeat(lengths > 1, lengths)]
                lengths = np.where(lengths > 1, lengths, 0)
            return lengths, positions

        return read


@dataclass(frozen=True, eq=False)
class ReadItems:
    """Texts become the keys of the given items in them, by the declared groups. Undeclared groups,
    and NULL, count as the last group. A key in several texts of a user appears several times."""

    given: GivenGrams
    groups: Sequence[str]

    def reader(self, _: Vocabulary) -> TextReader:
        def read(texts: pa.Table) -> tuple[Integers, Any]:
            numbers = None
            if self.given.groups > 1:
                names = one_array(texts.column("group_name")).cast(pa.large_string())
                declared = pc.index_in(names, value_set=pa.array(self.groups, pa.large_string()))
                numbers = declared.fill_null(len(self.groups)).to_numpy()
            lengths, keys = self.given.keys_in_texts(one_array(texts.column("tokens")), numbers)
            return lengths, keys.astype(np.int32)

        return read
