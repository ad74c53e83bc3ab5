"""Finds given public token sequences in texts, and what whole users add to their counts.

The sequences form a tree of prefixes, whose nodes at depth k are the distinct beginnings of k
tokens, numbered. From each position of a text the search walks down the tree, one step for each
word: a step looks up (node, next word). So each sequence is found wherever it starts. A text ends
with -1, which is no word, so no sequence spans two texts. With `beginnings` (for `trie`) the
search starts at the first position only, and a text's end is a word of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dphh.privacy.counts import Weighing
from dphh.udfs.kernel.contributions import distinct_pairs
from dphh.udfs.kernel.positions import KeyIndex, positions_of_texts

Integers = NDArray[np.int64]
#: The token that stands for a text's end, where the end counts as a token. No other is empty.
END = ""
#: A step is a prefix and its next token. If at most so many steps are possible, they have a plain
#: table of four bytes each, which stays in the processor's cache.
LARGEST_STEP_TABLE = 1 << 20


@dataclass(frozen=True, eq=False)
class _PrefixesOfLength:
    """The prefixes of one length: the steps that reach them, and which of them are sequences."""

    #: The step to each prefix, as a key: (number of the prefix that is one word shorter) * (how
    #: many words there are) + (number of the last word). `table`, if it is small enough: the prefix
    #: that each possible step reaches.
    steps: KeyIndex
    table: NDArray[np.int32] | None
    #: For each prefix, the number of the sequence that it is, or -1.
    sequences: Integers

    def indices(self, steps: Integers) -> NDArray[np.int32]:
        return self.steps.indices(steps) if self.table is None else self.table[steps]


def _prefixes_of_length(
    prefixes: list[int], sequences: Integers, possible_steps: int
) -> _PrefixesOfLength:
    table = None
    if possible_steps <= LARGEST_STEP_TABLE:
        table = np.full(possible_steps, -1, dtype=np.int32)
        table[prefixes] = np.arange(len(prefixes))
    return _PrefixesOfLength(KeyIndex(prefixes), table, sequences)


class GivenGrams:
    """Given sequences to find in texts: distinct, of a token or more; counted in `groups` groups.

    A text holds the sequences that occur in it. With `beginnings`, it holds those that it begins
    with; a sequence whose last token is `END` must be the whole text.
    """

    def __init__(
        self, sequences: Sequence[Sequence[str]], groups: int = 1, *, beginnings: bool = False
    ) -> None:
        self.groups = groups
        self.beginnings = beginnings
        words = sorted({word for sequence in sequences for word in sequence})
        number = {word: position for position, word in enumerate(words)}
        self._end = number.get(END, -1)
        self._words = pa.array(words, pa.large_string())
        self._depths: list[_PrefixesOfLength] = []
        before = 1
        at = [0] * len(sequences)  # the number of each sequence's prefix of this length
        for depth in range(1, max(map(len, sequences), default=0) + 1):
            prefixes: dict[int, int] = {}
            ends: dict[int, int] = {}
            for position, sequence in enumerate(sequences):
                if len(sequence) < depth:
                    continue
                step = at[position] * len(words) + number[sequence[depth - 1]]
                at[position] = prefixes.setdefault(step, len(prefixes))
                if len(sequence) == depth:
                    ends[at[position]] = position
            wholes = np.array([ends.get(node, -1) for node in range(len(prefixes))], np.int64)
            possible_steps, before = before * len(words), len(prefixes)
            self._depths.append(_prefixes_of_length([*prefixes], wholes, possible_steps))

    def keys(self, tokens: Any, group: Any = None) -> tuple[Integers, Integers]:
        """The distinct sequences of each text, as keys: how many a text has, and all keys in order.

        `tokens` is an Arrow array of lists; `group` has a number for each text, from 0. A key is
        the sequence's number times the number of groups, plus the group's number.
        """
        lengths, words = self._numbers_of_words(tokens)
        text = np.repeat(np.arange(len(lengths)), lengths)
        found = [*self._matches_by_length(words, lengths)]
        owner = text[np.concatenate([at for at, _ in found])]
        keys = np.concatenate([sequences for _, sequences in found]) * self.groups
        if group is not None:
            keys += group[owner]
        owner, keys = distinct_pairs(owner, keys)
        return np.bincount(owner, minlength=len(lengths)), keys

    def _numbers_of_words(self, tokens: Any) -> tuple[Integers, Integers]:
        """How many positions each text has, and the number of the word at each: -1 for a word that
        no sequence has; at the end of the text, END's number with `beginnings`, else -1."""
        spelled = tokens.flatten().cast(pa.large_string())
        unknown = len(self._words)
        ids = pc.index_in(spelled, value_set=self._words).fill_null(unknown)
        is_token = pc.not_equal(spelled, "").fill_null(False)
        ids = pc.if_else(is_token, ids, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        lengths = pc.list_value_length(tokens).fill_null(0)
        lengths = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
        lengths, positions = positions_of_texts(lengths, ids)
        if self.beginnings:
            positions[np.cumsum(lengths) - 1] = self._end
        return lengths, np.where(positions == unknown, -1, positions)

    def _matches_by_length(
        self, words: Integers, lengths: Integers
    ) -> Iterator[tuple[Integers, Integers]]:
        """The positions and the sequences of all matches, one length after the other."""
        at = np.cumsum(lengths) - lengths if self.beginnings else np.flatnonzero(words >= 0)
        nodes = np.zeros(len(at), dtype=np.int64)
        for ahead, depth in enumerate(self._depths):
            reach = np.searchsorted(at, len(words) - ahead)
            at, nodes = at[:reach], nodes[:reach]
            ends = words[at + ahead]
            words_alone = np.flatnonzero(ends >= 0)
            at, steps = at[words_alone], (nodes * len(self._words) + ends)[words_alone]
            positions = depth.indices(steps)
            on = np.flatnonzero(positions >= 0)
            at, nodes = at[on], positions[on].astype(np.int64)
            sequences = depth.sequences[nodes]
            whole = np.flatnonzero(sequences >= 0)
            yield at[whole], sequences[whole]


def contributions_to_keys(
    weighing: Weighing, lengths: Integers, keys: Integers
) -> tuple[Integers, Integers]:
    """(key, weight): what whole users add to the counts, and to the octaves, whose keys come after
    (`dphh.privacy.counts`).

    `lengths` says how many of `keys` each user has; a key may repeat.
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)
    owner, keys = distinct_pairs(owner, keys)
    number = np.bincount(owner, minlength=len(lengths))
    over = number[number > weighing.most_in_full]
    keys = np.append(keys, weighing.keys + weighing.octave(over) - 1)
    weights = np.append(weighing.weights[number][owner], weighing.octave_weights[over])
    # Floats represent the sums of a batch exactly: a weight is at most 2^10.
    sums = np.bincount(keys, weights, minlength=weighing.keys + weighing.octaves)
    added_to = np.flatnonzero(sums)  # all other sums are 0; their keys get noise too
    return added_to, sums[added_to].astype(np.int64)
