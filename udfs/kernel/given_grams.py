"""Which public token sequences stand in texts, and what whole users add to their counts.

The sequences are a tree of prefixes: its nodes of depth k are the distinct beginnings of k tokens,
numbered. From each place of a text one walks down as far as the text goes along: a step looks up
(node, next word), so each sequence is found wherever it starts, and nothing else of a text is kept.
A text ends with -1, which is no word: no sequence runs from one text into the next. Of beginnings
(`trie`) one walks down from the first place alone, and a text's end is a word of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling, PythonUDFType
from numpy.typing import NDArray

from dphh.privacy.counts import Weighing
from dphh.udfs.kernel.blocks import END, places_of_texts
from dphh.udfs.kernel.contributions import distinct
from dphh.udfs.kernel.places import Released
from dphh.udfs.kernel.whole_users import in_first_row, one_array, values_of

Integers = NDArray[np.int64]
#: Steps that are looked up in a table, of four bytes each: it stays in the processor's cache.
TABLE = 1 << 20


@dataclass(frozen=True, eq=False)
class _Depth:
    """The prefixes of one length: how they are reached, and which of them are sequences."""

    #: (number of the prefix one shorter) * (how many words there are) + (number of the last word),
    #: in numbers' order; looked up in a table of all there can be, where that is small.
    steps: Released
    table: NDArray[np.int32] | None
    #: For each prefix the number of the sequence that it is, or -1.
    sequences: Integers

    def places(self, steps: Integers) -> NDArray[np.int32]:
        return self.steps.places(steps) if self.table is None else self.table[steps]


def _depth(prefixes: list[int], sequences: Integers, there_can_be: int) -> _Depth:
    table = None
    if there_can_be <= TABLE:
        table = np.full(there_can_be, -1, dtype=np.int32)
        table[prefixes] = np.arange(len(prefixes))
    return _Depth(Released(prefixes), table, sequences)


class GivenGrams:
    """Distinct sequences, of at least one token each, and in how many groups they are sought.

    A text holds those that stand in it; of `beginnings`, those that it begins with, and where their
    last token is `END`, is as a whole.
    """

    def __init__(
        self, sequences: Sequence[Sequence[str]], groups: int = 1, *, beginnings: bool = False
    ) -> None:
        self.groups = groups
        self.beginnings = beginnings
        words = sorted({word for sequence in sequences for word in sequence})
        number = {word: place for place, word in enumerate(words)}
        self._end = number.get(END, -1)
        self._words = pa.array(words, pa.large_string())
        self._depths: list[_Depth] = []
        before = 1
        at = [0] * len(sequences)  # the prefix of each, numbered among those of its length
        for depth in range(1, max(map(len, sequences), default=0) + 1):
            prefixes: dict[int, int] = {}
            ends: dict[int, int] = {}
            for place, sequence in enumerate(sequences):
                if len(sequence) < depth:
                    continue
                step = at[place] * len(words) + number[sequence[depth - 1]]
                at[place] = prefixes.setdefault(step, len(prefixes))
                if len(sequence) == depth:
                    ends[at[place]] = place
            wholes = np.array([ends.get(node, -1) for node in range(len(prefixes))], np.int64)
            there_can_be, before = before * len(words), len(prefixes)
            self._depths.append(_depth([*prefixes], wholes, there_can_be))

    def keys(self, tokens: Any, group: Any = None) -> tuple[Integers, Integers]:
        """The distinct sequences of each text, as keys: how many, and one text's after the other's.

        `tokens` is an Arrow array of lists; `group` has a number a text, from 0. A key is the
        sequence's number times the number of groups, and the group's.
        """
        lengths, words = self._places(tokens)
        text = np.repeat(np.arange(len(lengths)), lengths)
        found = [*self._found(words, lengths)]
        owner = text[np.concatenate([at for at, _ in found])]
        keys = np.concatenate([sequences for _, sequences in found]) * self.groups
        if group is not None:
            keys += group[owner]
        owner, keys = distinct(owner, keys)
        return np.bincount(owner, minlength=len(lengths)), keys

    def _places(self, tokens: Any) -> tuple[Integers, Integers]:
        """Each text's words by number, -1 for any that no sequence has; where it ends, -1 or the
        number of the end."""
        spelled = tokens.flatten().cast(pa.large_string())
        unknown = len(self._words)
        codes = pc.index_in(spelled, value_set=self._words).fill_null(unknown)
        is_token = pc.not_equal(spelled, "").fill_null(False)
        codes = pc.if_else(is_token, codes, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        lengths = pc.list_value_length(tokens).fill_null(0)
        lengths = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
        lengths, places = places_of_texts(lengths, codes)
        if self.beginnings:
            places[np.cumsum(lengths) - 1] = self._end
        return lengths, np.where(places == unknown, -1, places)

    def _found(self, words: Integers, lengths: Integers) -> Iterator[tuple[Integers, Integers]]:
        """(place, sequence), wherever one may start, length by length."""
        at = np.cumsum(lengths) - lengths if self.beginnings else np.flatnonzero(words >= 0)
        nodes = np.zeros(len(at), dtype=np.int64)
        for ahead, depth in enumerate(self._depths):
            reach = np.searchsorted(at, len(words) - ahead)
            at, nodes = at[:reach], nodes[:reach]
            ends = words[at + ahead]
            words_alone = np.flatnonzero(ends >= 0)
            at, steps = at[words_alone], (nodes * len(self._words) + ends)[words_alone]
            places = depth.places(steps)
            on = np.flatnonzero(places >= 0)
            at, nodes = at[on], places[on].astype(np.int64)
            sequences = depth.sequences[nodes]
            whole = np.flatnonzero(sequences >= 0)
            yield at[whole], sequences[whole]


def counted(weighing: Weighing, lengths: Integers, keys: Integers) -> tuple[Integers, Integers]:
    """What whole users add together, key by key: to the counts, and to the octaves behind them
    (`dphh.privacy.counts`).

    `lengths` says how many of `keys` each user holds, some maybe several times.
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)
    owner, keys = distinct(owner, keys)
    number = np.bincount(owner, minlength=len(lengths))
    over = number[number > weighing.most]
    keys = np.append(keys, weighing.keys + weighing.octave(over) - 1)
    weights = np.append(weighing.weights[number][owner], weighing.reports[over])
    # Floats hold the sums of a batch exactly: a weight is at most 2^10.
    sums = np.bincount(keys, weights, minlength=weighing.keys + weighing.octaves)
    added_to = np.flatnonzero(sums)  # all others are 0 when noise is added to every key
    return added_to, sums[added_to].astype(np.int64)


def register_counted(con: duckdb.DuckDBPyConnection, weighing: Weighing) -> None:
    """Teach a DuckDB connection `dphh_counted(lengths, codes)`: what the users of a batch add, in
    its first row."""
    con.create_function(
        "dphh_counted",
        counted_at_first(weighing),
        ["INTEGER[]", "INTEGER[]"],
        "STRUCT(key BIGINT, weight BIGINT)[]",
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
        side_effects=True,  # or it would be called for some rows' sake twice
    )


def counted_at_first(weighing: Weighing) -> Callable[[Any, Any], Any]:
    """Of users' keys, how many each has and which: what all of them add together in the first row,
    and no more."""

    def of_rows(lengths: Any, keys: Any) -> Any:
        rows = one_array(keys)
        key, weight = counted(weighing, values_of(one_array(lengths)), values_of(rows))
        return in_first_row(len(rows), key, weight)

    return of_rows
