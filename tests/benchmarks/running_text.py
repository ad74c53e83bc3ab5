"""A corpus of running text that is nobody's: Zipf's words, phrases, long users and short ones.

    python tests/benchmarks/running_text.py FILE [--words 20_000_000] [--users 20_000]
        [--vocabulary 1_000_000] [--text 60]

A user's number of words is log-normal (most write little, a few write a hundred times as much), in
texts of up to 60 words. Blogs have longer texts and more kinds of words (200, and 4 million). Three
words in ten begin a phrase of two to six, which are as unevenly popular as words are. Texts lie in
no order of users.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

VOCABULARY, PHRASES, TEXT = 1_000_000, 20_000, 60
#: Words that are written at a time.
STRETCH = 4_000_000


@dataclass(frozen=True, eq=False)
class Language:
    """By rank: how likely words and phrases are, added up, and what they are."""

    spelled: pa.Array
    words: NDArray[np.float64]
    phrases: NDArray[np.float64]
    #: Where each phrase starts among `in_phrases`, and how many words it has.
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    in_phrases: NDArray[np.int64]


def drawn(rng: np.random.Generator, likelihood: NDArray[np.float64], count: int) -> Any:
    ranks = np.searchsorted(likelihood, likelihood[-1] * rng.random(count))
    return np.minimum(ranks, len(likelihood) - 1)


def language(rng: np.random.Generator, vocabulary: int) -> Language:
    words = np.cumsum(1 / (np.arange(1, vocabulary + 1) + 2.7) ** 1.05)
    lengths = rng.integers(2, 7, PHRASES)
    # As long as words are, frequent ones being shorter: "t3", "the3039".
    spelled = pa.array([f"{'abcdefgh'[: len(str(rank))]}{rank:x}" for rank in range(vocabulary)])
    return Language(
        spelled,
        words,
        np.cumsum(1 / np.arange(1, PHRASES + 1)),
        np.cumsum(lengths) - lengths,
        lengths,
        drawn(rng, words, int(lengths.sum())),
    )


def some_words(rng: np.random.Generator, spoken: Language, count: int) -> NDArray[np.int64]:
    draws = count // 2 + 10  # a draw comes to 1.9 words
    is_phrase = rng.random(draws) < 0.3
    phrase = drawn(rng, spoken.phrases, draws)
    length = np.where(is_phrase, spoken.lengths[phrase], 1)
    first = np.cumsum(length) - length
    within = np.arange(length.sum()) - np.repeat(first, length)
    found = spoken.in_phrases[np.repeat(spoken.starts[phrase], length) + within]
    found[first[~is_phrase]] = drawn(rng, spoken.words, int((~is_phrase).sum()))
    return np.resize(found, count)


def write(
    path: Path, words: int, users: int, vocabulary: int = VOCABULARY, text: int = TEXT
) -> None:
    rng = np.random.default_rng(1)
    spoken = language(rng, vocabulary)
    sizes = rng.lognormal(0, 1.2, users)
    sizes = np.maximum(1, sizes / sizes.sum() * words).astype(np.int64)
    ends = np.cumsum(sizes)
    schema = pa.schema({"author": pa.int64(), "body": pa.string()})
    with pq.ParquetWriter(path, schema) as writer:
        first = 0
        while first < users:
            before = int(ends[first - 1]) if first else 0
            last = max(int(np.searchsorted(ends, before + STRETCH)), first + 1)
            of_these = sizes[first:last]
            place = np.arange(of_these.sum()) - np.repeat(np.cumsum(of_these) - of_these, of_these)
            starts = np.flatnonzero(place % text == 0)
            codes = some_words(rng, spoken, len(place))
            offsets = pa.array(np.append(starts, len(place)).astype(np.int32))
            lists = pa.ListArray.from_arrays(offsets, spoken.spelled.take(pa.array(codes)))
            author = np.repeat(np.arange(first, last), of_these)[starts]
            texts = pa.table([pa.array(author), pc.binary_join(lists, " ")], schema=schema)
            writer.write_table(texts.take(pa.array(rng.permutation(len(texts)))))
            first = last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--words", type=int, default=20_000_000)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY)
    parser.add_argument("--text", type=int, default=TEXT, help="words in the longest texts")
    asked = parser.parse_args()
    write(asked.path, asked.words, asked.users, asked.vocabulary, asked.text)


if __name__ == "__main__":
    main()
