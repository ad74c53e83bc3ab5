"""Write a Reddit-like corpus (author, body) as Parquet: DuckDB SQL alone, the same every time.

    python examples/reddit_like.py corpus.parquet [--users 30000] [--posts 6] [--words 3000]

Everything follows from hashes of row numbers, so equal sizes give equal corpora (of one DuckDB: its
hash may change between versions). Authors write a skewed number of posts. A post is 2 to 10 pieces
of phrases from a long-tailed book; a phrase is 9 words from a long-tailed vocabulary, and short
pieces of it are said more often than all of it. So a long tail of authors shares n-grams of every
length up to 9, while most n-grams, those across two pieces and those of rare phrases, are one
author's.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import duckdb

LONGEST_PHRASE = 9

#: Hashed twice, since one hash of several values leaves its bits in step. A number from 0 up to 1;
#: a draw from 0 to most - 1, P[n] about 1 / (flat + n); a word as it is said, from its rank.
MACROS = """
CREATE MACRO dice(a, b) AS hash(hash(a, b));
CREATE MACRO uniform(a, b) AS dice(a, b) / 18446744073709551616.0;
CREATE MACRO long_tailed(a, b, most, flat) AS
    least(floor(flat * (pow(1 + most / flat, uniform(a, b)) - 1))::BIGINT, most - 1);
CREATE MACRO syllable(digit) AS
    substr('bdfghjklmnprstvwyzcx', 1 + digit // 5, 1) || substr('aeiou', 1 + digit % 5, 1);
CREATE MACRO said(rank) AS concat(
    CASE WHEN rank >= 1000000 THEN syllable(rank // 1000000 % 100) END,
    CASE WHEN rank >= 10000 THEN syllable(rank // 10000 % 100) END,
    CASE WHEN rank >= 100 THEN syllable(rank // 100 % 100) END,
    syllable(rank % 100)
);
"""

CORPUS = """
COPY (
    WITH book AS (
        SELECT
            phrase,
            list_transform(
                range($longest),
                lambda place: said(long_tailed(phrase * $longest + place, 'word', $words, 1))
            ) AS words
        FROM range($phrases) AS pages (phrase)
    ),

    posts AS (
        -- A Pareto tail: most authors write a little, a few write very much.
        SELECT
            author,
            unnest(range(least(
                floor($posts * 0.5 / sqrt(1 - uniform(author, 'posts')) + uniform(author, 'more')),
                $posts * 50
            )::BIGINT)) AS post
        FROM range($users) AS people (author)
    ),

    slots AS (
        SELECT
            author,
            post,
            unnest(range(2 + (dice(author, post) % 9)::BIGINT)) AS slot,
            dice(dice(author, post), slot) AS seed
        FROM posts
    ),

    quotes AS (
        -- Short pieces of a phrase are said more often than all of it.
        SELECT
            author,
            post,
            slot,
            seed,
            long_tailed(seed, 'phrase', $phrases, 50) AS phrase,
            1 + least(
                floor($longest * pow(uniform(seed, 'length'), 2))::BIGINT, $longest - 1
            ) AS length
        FROM slots
    )

    SELECT
        'author-' || quotes.author AS author,
        string_agg(
            array_to_string(
                list_slice(
                    book.words,
                    1 + (dice(seed, 'begin') % (1 + $longest - length))::BIGINT,
                    (dice(seed, 'begin') % (1 + $longest - length))::BIGINT + length
                ),
                ' '
            ),
            ' ' ORDER BY slot
        ) AS body
    FROM quotes
    JOIN book USING (phrase)
    GROUP BY quotes.author, quotes.post
    ORDER BY quotes.author, quotes.post
) TO '$path' (FORMAT parquet, COMPRESSION zstd)
"""


@dataclass(frozen=True)
class Sizes:
    """How much to write: `posts` is the mean of an author, before the longest are cut."""

    users: int = 30_000
    posts: int = 6
    phrases: int = 100_000
    words: int = 3_000


def write_corpus(path: Path, sizes: Sizes) -> None:
    """Write the corpus of these sizes."""
    text = CORPUS.replace("$path", str(path).replace("'", "''"))
    for name in ("users", "posts", "phrases", "words"):
        text = text.replace(f"${name}", str(getattr(sizes, name)))
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false")
        con.execute(MACROS)
        con.execute(text.replace("$longest", str(LONGEST_PHRASE)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    for name, default in vars(Sizes()).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    sizes = Sizes(asked.users, asked.posts, asked.phrases, asked.words)
    write_corpus(asked.path, sizes)
    print(f"{asked.path}: {sizes}")


if __name__ == "__main__":
    main()
