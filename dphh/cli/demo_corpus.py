"""A corpus with known truth in it: what many share must be found, what few hold must not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from dphh.corpora.quoted import literal
from dphh.release import Release
from dphh.sql import query

USERS, WORDS = 100_000, 5_000


def write_corpus(path: Path, users: int = USERS, words: int = WORDS) -> None:
    """Write the corpus (author, body) as Parquet."""
    with duckdb.connect() as con:
        corpus = con.sql(query("demo_corpus"), params={"users": users, "words": words})
        corpus.write_parquet(str(path))


@dataclass(frozen=True)
class Outcome:
    """One kind of word of the demo's corpus, and how many of them the release holds."""

    kind: str
    there: int
    found: int


def outcomes(path: Path, release: Release) -> list[Outcome]:
    """Release against truth. Only a corpus without real people may be looked at like this."""
    with duckdb.connect() as con:
        con.register("release", release.table)
        rows = con.execute(
            f"""
            WITH words AS (
                SELECT author, unnest(string_split(body, ' ')) AS word FROM {literal(str(path))}
            ),
            truth AS (SELECT word, count(DISTINCT author) AS users FROM words GROUP BY word)
            SELECT
                CASE
                    WHEN users = 1 THEN 'held by one person alone'
                    WHEN users <= 5 THEN 'held by 2 to 5 people'
                    WHEN users < 100 THEN 'held by 6 to 99 people'
                    WHEN users < 1000 THEN 'held by 100 to 999 people'
                    ELSE 'held by 1,000 people or more'
                END AS kind,
                count(*),
                count(release.item)
            FROM truth LEFT JOIN release ON truth.word = release.item
            GROUP BY kind ORDER BY max(users) DESC
            """
        ).fetchall()
    return [Outcome(*row) for row in rows]
