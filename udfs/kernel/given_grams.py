"""Finds given public token sequences in texts.

The sequences form a tree of prefixes, whose nodes at depth k are the distinct beginnings of k
tokens, numbered. From each position of a text the search walks down the tree, one step for each
word: a step looks up (node, next word). So each sequence is found wherever it starts. A text ends
with -1, which is no word, so no sequence spans two texts. With `beginnings` (for `trie`) the
search starts at the first position only, and a text's end is a word of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.udfs.arrays import Integers
from dphh.udfs.kernel.contributions import distinct_pairs
from dphh.udfs.kernel.lists import lengths_of
from dphh.udfs.kernel.positions import KeyIndex, positions_of_texts

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
        words = sorted({word for sequence in sequences for word in sequence})
        number = {word: position for position, word in enumerate(words)}
        self._end = number.get(END_OF_TEXT, -1)
        self._vocabulary = pa.array(words, pa.large_string())
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
                step = at[position] * len(words) + number[sequence[depth - 1]]
                at[position] = prefixes.setdefault(step, len(prefixes))
                if len(sequence) == depth:
                    ends[at[position]] = position
            wholes = np.array([ends.get(node, -1) for node in range(len(prefixes))], np.int64)
            self._steps.append((KeyIndex([*prefixes]), wholes))

    def keys_in_texts(self, tokens: Any, group_numbers: Any) -> tuple[Integers, Integers]:
        """The distinct sequences of each text, as keys: how many a text has, and all keys in order.

        `tokens` is an Arrow array of lists; `group_numbers` has the number of each text's group,
        from 0 (None: all are 0). A key is the sequence's number times the number of groups, plus
        the group's number.
        """
        lengths, words = self._vocabulary_indices(tokens)
        text = np.repeat(np.arange(len(lengths)), lengths)
        found = [*self._matches_by_length(words, lengths)]
        owner = text[np.concatenate([at for at, _ in found])]
        keys = np.concatenate([sequences for _, sequences in found]) * self.groups
        if group_numbers is not None:
            keys += group_numbers[owner]
        owner, keys = distinct_pairs(owner, keys)
        return np.bincount(owner, minlength=len(lengths)), keys

    def _vocabulary_indices(self, tokens: Any) -> tuple[Integers, Integers]:
        """How many positions each text has, and the index of the word at each: -1 for a word that
        no sequence has; at a text's end that of END_OF_TEXT with `beginnings`, else -1."""
        spelled = tokens.flatten().cast(pa.large_string())
        unknown = len(self._vocabulary)
        ids = pc.index_in(spelled, value_set=self._vocabulary).fill_null(unknown)
        is_token = pc.not_equal(spelled, "").fill_null(False)
        ids = pc.if_else(is_token, ids, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        lengths, positions = positions_of_texts(lengths_of(tokens), ids)
        if self.beginnings:
            positions[np.cumsum(lengths) - 1] = self._end
        return lengths, np.where(positions == unknown, -1, positions)

    def _matches_by_length(
        self, vocabulary_indices: Integers, lengths: Integers
    ) -> Iterator[tuple[Integers, Integers]]:
        """For each length: the positions where a given sequence of this length begins, and the
        number of that sequence. `lengths` says how many positions each text has."""
        at = np.flatnonzero(vocabulary_indices >= 0)
        if self.beginnings:
            at = np.cumsum(lengths) - lengths
        nodes = np.zeros(len(at), dtype=np.int64)
        for ahead, (prefixes_by_step, wholes) in enumerate(self._steps):
            reach = np.searchsorted(at, len(vocabulary_indices) - ahead)
            at, nodes = at[:reach], nodes[:reach]
            next_words = vocabulary_indices[at + ahead]
            on = np.flatnonzero(next_words >= 0)
            at, steps = at[on], (nodes * len(self._vocabulary) + next_words)[on]
            reached = prefixes_by_step.indices(steps)
            on = np.flatnonzero(reached >= 0)
            at, nodes = at[on], reached[on].astype(np.int64)
            sequences = wholes[nodes]
            whole = np.flatnonzero(sequences >= 0)
            yield at[whole], sequences[whole]
