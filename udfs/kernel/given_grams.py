"""Finds given public token sequences in users' texts.

The sequences form a tree of prefixes, whose nodes at depth k are the distinct beginnings of k
tokens, numbered. From each position of a text the search walks down the tree, one step for each
word: a step looks up (node, next word). So each sequence is found wherever it starts. A text ends
with a negative number, which is no word, so no sequence spans two texts. With `beginnings` (for
`trie`) the search starts at the first position only, and a text's end is a word of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.udfs.arrays import Integers, lengths_of, lists_of, one_array, sums_of_runs, values_of
from dphh.udfs.kernel.contributions import distinct_pairs
from dphh.udfs.kernel.positions import KeyIndex, WordsWithIds, indices_by_word, values_of_ids

#: The token that stands for a text's end, where the end counts as a token. No other token is empty.
END_OF_TEXT = ""


class GivenGrams:
    """Given sequences to find in texts: distinct, of a token or more; counted in `groups` groups.

    A text holds the sequences that occur in it. With `beginnings`, it holds those that it begins
    with; a sequence whose last token is `END_OF_TEXT` must be the whole text.
    """

    def __init__(
        self, sequences: Sequence[Sequence[str]], groups: int, *, beginnings: bool
    ) -> None:
        self.groups = groups
        self.beginnings = beginnings
        #: The different tokens, sorted.
        self.words = sorted({word for sequence in sequences for word in sequence})
        number = {word: position for position, word in enumerate(self.words)}
        self._end = number.get(END_OF_TEXT, -1)
        #: For each length: an index of the steps to the prefixes of this length, and the number of
        #: the sequence that each prefix is, or -1. A step is a number: (number of the prefix that
        #: is one word shorter) * (how many words there are) + (number of the last word).
        self._steps: list[tuple[KeyIndex, Integers]] = []
        at = [0] * len(sequences)  # the number of each sequence's prefix of this length
        for depth in range(1, max(map(len, sequences), default=0) + 1):
            prefixes: dict[int, int] = {}
            ends: dict[int, int] = {}
            for position, sequence in enumerate(sequences):
                if len(sequence) < depth:
                    continue
                step = at[position] * len(self.words) + number[sequence[depth - 1]]
                at[position] = prefixes.setdefault(step, len(prefixes))
                if len(sequence) == depth:
                    ends[at[position]] = position
            wholes = np.array([ends.get(node, -1) for node in range(len(prefixes))], np.int64)
            self._steps.append((KeyIndex([*prefixes]), wholes))

    def by_id(self, words_with_ids: WordsWithIds) -> GivenGramsByWordId:
        """The same, to be found among word ids."""
        words = pa.array(self.words, pa.large_string())
        return GivenGramsByWordId(self, indices_by_word(words).by_id(words_with_ids))

    def matches(self, ids: Any, indices_by_id: Any) -> tuple[Integers, Integers]:
        """The positions where a given sequence begins, and the number of that sequence. `ids` are
        the word ids of whole texts; `indices_by_id` has the index in `words` of each."""
        indices = values_of_ids(indices_by_id, ids)
        if self.beginnings:
            ends = np.flatnonzero(ids < 0)
            indices[ends] = self._end
            starts = np.append(0, ends[:-1] + 1)
        else:
            starts = np.flatnonzero(indices >= 0)
        found = [*self._matches_by_length(indices, starts)]
        at, sequences = (np.concatenate(columns) for columns in zip(*found, strict=True))
        return at, sequences

    def _matches_by_length(self, indices: Any, at: Integers) -> Iterator[tuple[Integers, Integers]]:
        nodes = np.zeros(len(at), dtype=np.int64)
        for ahead, (prefixes_by_step, wholes) in enumerate(self._steps):
            reach = np.searchsorted(at, len(indices) - ahead)
            at, nodes = at[:reach], nodes[:reach]
            next_words = indices[at + ahead]
            on = np.flatnonzero(next_words >= 0)
            at, steps = at[on], (nodes * len(self.words) + next_words)[on]
            reached = prefixes_by_step.indices(steps)
            on = np.flatnonzero(reached >= 0)
            at, nodes = at[on], reached[on].astype(np.int64)
            sequences = wholes[nodes]
            whole = np.flatnonzero(sequences >= 0)
            yield at[whole], sequences[whole]


@dataclass(frozen=True, eq=False)
class GivenGramsByWordId:
    """Given sequences to be found among word ids."""

    given: GivenGrams
    #: For each word id, the index of the word among those of the sequences, or -1; one more element
    #: for no word.
    indices_by_id: NDArray[np.int32]

    def keys_of_users(self, lengths: Integers, ids: Any) -> tuple[Integers, Integers]:
        """The distinct sequences that each user holds, as keys: how many a user has, and all keys
        in order. A key is the sequence's number times the number of groups, plus the number of the
        group of a text with it.

        `lengths` says how many positions each user has. A text's end says the text's group: it is
        -1 - (the group's number). Texts without ends are found in as if each were a user's only
        one, so only sequences of one token may then be given.
        """
        groups = self.given.groups
        at, keys = self.given.matches(ids, self.indices_by_id)
        keys *= groups
        if groups > 1:
            ends = ids < 0
            keys += (-1 - ids[ends])[np.cumsum(ends)[at]]
        owner = np.repeat(np.arange(len(lengths)), lengths)[at]
        owner, keys = distinct_pairs(owner, keys)
        return np.bincount(owner, minlength=len(lengths)), keys.astype(np.int32)


def keys_of_given_items(
    lengths: Any, ids: Any, words: WordsWithIds, given: GivenGramsByWordId
) -> pa.Array:
    """`dphh_keys_of_items(lengths, ids, words, given)`: how many keys each user has, and the keys:
    one for each given item that the user holds, and each group of texts in which the user does. The
    engine makes `given` by word id, from `words`."""
    users, held = one_array(lengths), one_array(ids)
    counts, keys = given.keys_of_users(values_of(users), values_of(held))
    rows = lengths_of(users)
    found = lists_of(rows, counts.astype(np.int32)), lists_of(sums_of_runs(rows, counts), keys)
    return pa.StructArray.from_arrays(found, ["lengths", "ids"])
