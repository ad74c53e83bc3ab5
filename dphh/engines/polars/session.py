"""Frames in memory for one run. Queries are lazy; what holds noise is a frame that stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from dphh.corpus import Corpus
from dphh.engines.polars import ldp_trie, ngrams, trie
from dphh.engines.polars.content import open_corpus
from dphh.engines.polars.failures import engine_errors
from dphh.engines.polars.queries import set_union
from dphh.engines.session import Limits
from dphh.engines.sources import ROWS_OF_NOBODY
from dphh.errors import CorpusError, UsageError
from dphh.ladder import ValidGrams
from dphh.levels import (
    BatchLevel,
    Choice,
    LocalLevel,
    PrunedLevel,
    Pruning,
    SetUnionLevel,
    VoteLevel,
)
from dphh.privacy.set_union import weights
from dphh.udfs.noise import draw_rounded_gaussian
from dphh.udfs.randomness import Randomness, wants_keys


def open_session(corpus: Corpus, randomness: Randomness, limits: Limits) -> PolarsSession:
    return PolarsSession(corpus, randomness, limits)


class PolarsSession:
    name = "polars"
    version: str = pl.__version__

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        _refuse_limits(limits)
        self.randomness = randomness
        self.tables: dict[str, pl.DataFrame] = {}
        self.whole_length = 0
        self.walking = False
        self.load = open_corpus(corpus)

    def hold_items(self) -> None:
        self.make("held", set_union.held_items(self.load()), step="held_items")
        self.refuse_rows_of_nobody("held")

    def set_union_level(self, level: SetUnionLevel, purpose: str) -> Any:
        self.noise_level(level, purpose)
        released = self.released(level.threshold_grid)
        self.drop("noised")
        return released

    def forget_released(self, released: Any) -> None:
        gone = pl.DataFrame(released).lazy()
        still_held = set_union.forget_released(self.table("held"), gone)
        self.make("held", still_held, step="forget_released")

    def hold_words(self) -> None:
        ngrams.hold_words(self)

    def place_words(self, released: Any) -> None:
        ngrams.place_words(self, released)

    def hold_grams(self, level: int, pruning: Pruning) -> None:
        ngrams.hold_grams(self, level, pruning)

    def pruned_level(self, level: PrunedLevel, valid: ValidGrams, purpose: str) -> Any:
        return ngrams.pruned_level(self, level, valid, purpose)

    def place_grams(self, released: Any) -> None:
        ngrams.place_grams(self, released)

    def hold_sequences(self, choice: Choice) -> None:
        trie.hold_sequences(self, choice)

    def vote_level(self, level: VoteLevel, purpose: str) -> Any:
        return trie.vote_level(self, level, purpose)

    def batch_level(self, level: BatchLevel, trie_below: Any, purpose: str) -> Any:
        return trie.batch_level(self, level, trie_below, purpose)

    def walk_on(self, level: int, grown: Any) -> None:
        trie.walk_on(self, level, grown)

    def hold_contributions(self, characters: Sequence[str], seats: int, pad: bool) -> None:
        ldp_trie.hold_contributions(self, characters, seats, pad)

    def local_level(self, level: LocalLevel, prefixes: Any, known: Any, purpose: str) -> Any:
        return ldp_trie.local_level(self, level, prefixes, known, purpose)

    def hold_whole_grams(self, lengths: Sequence[int]) -> None:
        ngrams.hold_whole_grams(self, lengths)

    def exact_counts(self, at_least: int) -> Any:
        return ngrams.exact_counts(self, at_least)

    def close(self) -> None:
        self.tables.clear()

    def table(self, name: str) -> pl.LazyFrame:
        return self.tables[name].lazy()

    def make(self, name: str, rows: pl.LazyFrame, step: str | None = None) -> None:
        """Compute a query into a table; `step` is the query's name where the table's is another."""
        self.tables[name] = self.fetch(step or name, rows)

    def fetch(self, step: str, rows: pl.LazyFrame) -> pl.DataFrame:
        with engine_errors(step):
            return rows.collect(engine="streaming")

    def noise_level(self, level: SetUnionLevel | PrunedLevel, purpose: str) -> None:
        """From `held` to `noised`: bound, weigh, sum, and draw the noise once, on a frame."""
        users = range(1, level.max_items + 1)
        of_users = pl.DataFrame(
            {"t": users, "weight": weights(level.grid_bits, level.max_items)},
            schema={"t": pl.Int64, "weight": pl.Int64},
        )
        salt = int(self.randomness.words(1, f"{purpose}/salt")[0])
        bounded = set_union.set_union_level(
            self.table("held"), of_users.lazy(), level.max_items, salt
        )
        histogram = self.fetch("set_union_level", bounded)
        keys = histogram["key"].cast(pl.String).to_arrow() if self.randomness.is_test else None
        noise = draw_rounded_gaussian(
            self.randomness, level.sigma_grid, histogram.height, purpose, keys
        )
        noisy = histogram["weight"] + pl.Series(noise, dtype=pl.Int64)
        self.tables["noised"] = histogram.select("key", noisy=noisy)

    def released(self, threshold: int) -> Any:
        """What may leave: the keys whose noised weight reaches the threshold. Sorted by what is
        released itself, so that the order says nothing of how the rows arrived."""
        passed = self.tables["noised"].filter(pl.col("noisy") >= threshold)
        return passed.sort("noisy", "key", descending=[True, False]).to_arrow()

    def refuse_rows_of_nobody(self, table: str) -> None:
        # Such rows belong to no user, so both of two neighbouring corpora hold them or neither
        # does: refusing them says nothing of anyone.
        if self.tables[table]["user_id"].null_count():
            raise CorpusError(ROWS_OF_NOBODY)

    def names(self, users: pl.Series, purpose: str) -> Any:
        """Users' names, spelled as DuckDB spells them, for words that hang on them."""
        if not wants_keys(self.randomness, purpose):
            return None
        with duckdb.connect() as con:
            con.register("users", pa.table({"user_id": users.to_arrow()}))
            spelled = con.sql("SELECT CAST(user_id AS VARCHAR) AS name FROM users")
            return spelled.to_arrow_table().column("name").combine_chunks()

    def drop(self, table: str) -> None:
        self.tables.pop(table, None)


def _refuse_limits(limits: Limits) -> None:
    if limits.memory is not None:
        raise UsageError(
            f"memory_limit: found {limits.memory!r}, but Polars cannot be held to a limit; leave "
            "memory_limit out, or use engine='duckdb', which keeps to it and spills to disk"
        )
    if limits.threads is not None:
        raise UsageError(
            f"threads: found {limits.threads}, but Polars settles its threads when it is first "
            "imported; set POLARS_MAX_THREADS before Python starts and leave threads out, or use "
            "engine='duckdb'"
        )
