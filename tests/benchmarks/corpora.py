"""Corpora that are made for benchmarks: users `who`, texts or items `what`, in one Parquet file.

Each takes the file, a size, a number of users where it asks for one, and the folder of public data.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
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


def running_text(path: Path, words: int, users: int, *_: Any) -> None:
    """Zipf's words, phrases, long users and short ones.

    A user's number of words is log-normal (most write little, a few write a hundred times as much),
    in texts of up to 60 words. Three words in ten begin a phrase of two to six, which are as
    unevenly popular as words are. Texts lie in no order of users.
    """
    rng = np.random.default_rng(1)
    spoken = language(rng, VOCABULARY)
    sizes = rng.lognormal(0, 1.2, users)
    sizes = np.maximum(1, sizes / sizes.sum() * words).astype(np.int64)
    ends = np.cumsum(sizes)
    schema = pa.schema({"who": pa.int64(), "what": pa.string()})
    with pq.ParquetWriter(path, schema) as writer:
        first = 0
        while first < users:
            before = int(ends[first - 1]) if first else 0
            last = max(int(np.searchsorted(ends, before + STRETCH)), first + 1)
            of_these = sizes[first:last]
            place = np.arange(of_these.sum()) - np.repeat(np.cumsum(of_these) - of_these, of_these)
            starts = np.flatnonzero(place % TEXT == 0)
            codes = some_words(rng, spoken, len(place))
            offsets = pa.array(np.append(starts, len(place)).astype(np.int32))
            lists = pa.ListArray.from_arrays(offsets, spoken.spelled.take(pa.array(codes)))
            author = np.repeat(np.arange(first, last), of_these)[starts]
            texts = pa.table([pa.array(author), pc.binary_join(lists, " ")], schema=schema)
            writer.write_table(texts.take(pa.array(rng.permutation(len(texts)))))
            first = last


def of_query(path: Path, query: str) -> None:
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false; SET preserve_insertion_order = false")
        con.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def msnbc(path: Path, times: int, _users: int, data: Path) -> None:
    """MSNBC so many times over: each copy of a user is a user of its own."""
    of_query(
        path,
        f"SELECT user_id + 1_000_000 * copy AS who, text AS what FROM '{data}/msnbc.parquet', "
        f"range({times}) AS c(copy)",
    )


def ranked(kinds: int | str, *keys: str) -> str:
    """A number below `kinds` by a long-tailed law: n comes with probability about 1/n."""
    hashed = f"hash({', '.join(keys)})"
    return f"CAST(floor(pow({kinds}, {hashed} / 18446744073709551616.0)) AS BIGINT)"


def items_of_ten(path: Path, rows: int, *_: Any) -> None:
    """One item a row, ten rows a user, items of as many kinds as there are rows."""
    item, user = ranked(rows, "i", "'item'"), f"hash(i, 'user') % {rows // 10}"
    of_query(path, f"SELECT {user} AS who, 'item-' || {item} AS what FROM range({rows}) AS r(i)")


def items_by_name(path: Path, rows: int, *_: Any) -> None:
    """One item a row and one row a user, who has a name; items of 50,000 kinds."""
    user, item = "printf('user-%09d', i)", ranked(50_000, "i", "'item'")
    of_query(path, f"SELECT {user} AS who, 'item-' || {item} AS what FROM range({rows}) AS r(i)")


def one_word_each(path: Path, users: int, *_: Any) -> None:
    """Words of 2 to 9 letters by a long-tailed law over a million of them."""
    spelled = "translate(CAST(hash(word) AS VARCHAR), '0123456789', 'etaoinshrd')"
    of_query(
        path,
        f"SELECT i AS who, left({spelled}, CAST(2 + hash(word, 'length') % 8 AS INTEGER)) AS what "
        f"FROM (SELECT i, {ranked('1e6', 'i')} AS word FROM range({users}) AS r(i))",
    )


def short_texts(path: Path, users: int, words: int) -> None:
    """A text a user, of so many words of 100,000 kinds."""
    _texts(path, "t", users, words)


def texts_of_users(path: Path, texts: int, users: int) -> None:
    """Texts of 10 words of 100,000 kinds, by users of any number of them."""
    _texts(path, f"hash(t, 'user') % {users}", texts, 10)


def _texts(path: Path, user: str, texts: int, words: int) -> None:
    word = f"'w' || {ranked(100_000, 't', 'i')}"
    of_query(
        path,
        f"SELECT {user} AS who, string_agg({word}, ' ') AS what "
        f"FROM range({texts}) AS a(t), range({words}) AS b(i) GROUP BY t",
    )
