"""People and what they wrote: the tweets by the papers' preprocessing, or a corpus that is made up.

Users are people drawn with replacement, by hash, as many as the papers have.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from dphh import TRIEHH_WORDS
from dphh.udfs.noise.randomness import Randomness

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MADE_UP = """
CREATE TABLE tweets AS
WITH said AS (
    SELECT
        i // 7 AS user_id,
        floor(pow(30000, hash(i, 'rank') / 18446744073709551616.0))::BIGINT AS rank
    FROM range($people * 7) AS r (i)
)

SELECT
    user_id,
    string_agg(
        left(translate(hash(rank)::VARCHAR, '0123456789', 'etaoinshrd'), 3 + (rank % 7)::INTEGER),
        ' ' ORDER BY rank
    ) AS text
FROM said GROUP BY user_id
"""

SPOKEN = r"""
CREATE TABLE spoken AS
WITH written AS (
    SELECT
        user_id,
        row_number() OVER (ORDER BY user_id, text) AS tweet,
        list_transform(
            string_split_regex(lower(text), '\s+'), lambda w: trim(w, $strip)
        ) AS words
    FROM tweets
),

said AS (
    SELECT user_id, tweet, unnest(words) AS word, generate_subscripts(words, 1) AS place
    FROM written
)

SELECT
    dense_rank() OVER (ORDER BY user_id) - 1 AS person,
    word,
    dense_rank() OVER (ORDER BY word) - 1 AS id,
    row_number() OVER (ORDER BY tweet, place) AS moment
FROM said
WHERE regexp_full_match(word, $keep) AND NOT regexp_full_match(word, $drop)
"""

MOST_FREQUENT = """
WITH counted AS (
    SELECT person, id, count(*) AS times, min(moment) AS moment FROM spoken GROUP BY person, id
)

SELECT person, first(id ORDER BY times DESC, moment) AS id
FROM counted GROUP BY person ORDER BY person
"""


@dataclass(frozen=True)
class Population:
    """People and what they wrote; users are people drawn with replacement."""

    words: list[str]  # sorted
    person: Integers  # by user
    favourite: Integers  # by person, the most frequent word
    first: Integers  # by person, where its words begin in `spoken`
    size: Integers  # by person, how many words it has in `spoken`
    spoken: Integers

    @property
    def users(self) -> int:
        return len(self.person)

    @cached_property
    def single(self) -> Integers:
        """The most frequent word of each user, users in the order of their words."""
        return np.sort(self.favourite[self.person])

    def several(self, randomness: Randomness) -> Integers:
        """A word a user, drawn in proportion to how often the user says it."""
        halves = randomness.random_words(-(-self.users // 2), "word of the run").view(np.uint32)
        size = self.size[self.person].astype(np.uint64)
        chosen = (halves[: self.users] * size) >> np.uint64(32)
        drawn: Integers = self.spoken[self.first[self.person] + chosen.astype(np.int64)]
        return drawn

    @cached_property
    def single_counts(self) -> Floats:
        return np.bincount(self.single, minlength=len(self.words)).astype(np.float64)

    @cached_property
    def expected_counts(self) -> Floats:
        """n F(w): users, each divided among its words."""
        people = np.bincount(self.person, minlength=len(self.size))
        share = np.repeat(people / self.size, self.size)
        counts = np.bincount(self.spoken, weights=share, minlength=len(self.words))
        return counts.astype(np.float64)


def load(folder: Path, users: int, people: int) -> tuple[Population, str]:
    path = folder / "tweets.parquet"
    with duckdb.connect() as con:
        if path.exists():
            con.read_parquet(str(path)).to_table("tweets")
            said = str(path)
        else:
            con.execute(MADE_UP, {"people": people})
            said = f"a corpus made up of {people:,} people (no {path})"
        con.execute(SPOKEN, {name: TRIEHH_WORDS[name] for name in ("strip", "keep", "drop")})
        words = [w for (w,) in con.sql("SELECT DISTINCT word FROM spoken ORDER BY word").fetchall()]
        spoken = _column(con, "SELECT id AS x FROM spoken ORDER BY person, moment")
        size = _column(con, "SELECT count(*) AS x FROM spoken GROUP BY person ORDER BY person")
        favourite = _column(con, f"SELECT id AS x FROM ({MOST_FREQUENT}) ORDER BY person")
        person = _column(
            con,
            f"SELECT (hash(i, 'draw') % {len(size)})::BIGINT AS x FROM range({users}) AS r (i) "
            "ORDER BY i",
        )
    return Population(words, person, favourite, np.cumsum(size) - size, size, spoken), said


def _column(con: duckdb.DuckDBPyConnection, query: str) -> Integers:
    column: Integers = np.asarray(con.execute(query).fetchnumpy()["x"], dtype=np.int64)
    return column
