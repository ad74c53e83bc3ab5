"""A private DuckDB instance for one run. Nobody else can name its tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from dphh.corpus import Corpus
from dphh.engines.duckdb import ldp_trie, ngrams, trie
from dphh.engines.duckdb.content import open_corpus
from dphh.engines.duckdb.failures import engine_errors
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
from dphh.private_folder import PrivateFolder
from dphh.sql import query
from dphh.udfs.noise import register_noise
from dphh.udfs.randomness import Randomness
from dphh.udfs.subset_reports import register_subsets
from dphh.udfs.votes import register_votes


def open_session(corpus: Corpus, randomness: Randomness, limits: Limits) -> DuckDBSession:
    return DuckDBSession(corpus, randomness, limits)


class DuckDBSession:
    name = "duckdb"
    version: str = duckdb.__version__

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        self.randomness = randomness
        self.whole_length = 0
        self.choice: Choice = "drawn"
        self.walking = False
        self.chosen = False
        #: A relation's stream is spent by one reading.
        self.read_once = corpus.kind == "table"
        self._spill = PrivateFolder()
        try:
            self.con = duckdb.connect(":memory:", config=_config(limits, self._spill.path))
            # DuckDB's own bar would tell how much of the data each step reads.
            self.con.execute("SET enable_progress_bar = false")
            register_noise(self.con, randomness)
            register_votes(self.con, randomness)
            register_subsets(self.con, randomness)
            self.con.execute(query("text_units"))
            self.con.execute(query("names"))
            self.con.execute(query("text"))
            self.load = open_corpus(self.con, corpus)
        except duckdb.Error as problem:
            self._spill.close()
            raise UsageError(_setting_problem(problem, limits)) from None
        except BaseException:
            self._spill.close()
            raise

    def hold_items(self) -> None:
        self.load()
        self.execute("held_items")
        self.refuse_rows_of_nobody("held")

    def set_union_level(self, level: SetUnionLevel, purpose: str) -> Any:
        self.noise_level(level, purpose)
        released = self.fetch("released", threshold=level.threshold_grid)
        self.drop("noised")
        return released

    def forget_released(self, released: Any) -> None:
        self.con.register("released", released)
        self.execute("forget_released")
        self.rename("still_held", "held")
        self.con.unregister("released")

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
        self.con.close()
        self._spill.close()

    def execute(self, name: str, **parameters: Any) -> None:
        """Run one file of `sql/`."""
        with engine_errors(name):
            self.con.execute(query(name), parameters or None)

    def fetch(self, name: str, **parameters: Any) -> Any:
        """Run one file of `sql/` that asks, and give its answer as an Arrow table."""
        with engine_errors(name):
            return self.con.sql(query(name), params=parameters or None).to_arrow_table()

    def noise_level(self, level: SetUnionLevel | PrunedLevel, purpose: str) -> None:
        """From `held` to `noised`: bound, weigh, sum, and draw the noise once."""
        users = list(range(1, level.max_items + 1))
        self.drop("weights")
        with engine_errors("weights"):
            # As Arrow: DuckDB 1.5 takes seconds to bind a list of 10,000 numbers.
            of_users = pa.table({"t": users, "weight": weights(level.grid_bits, level.max_items)})
            self.con.register("weights_of_users", of_users)
            self.con.execute("CREATE TEMP TABLE weights AS FROM weights_of_users")
            self.con.unregister("weights_of_users")
        salt = int(self.randomness.words(1, f"{purpose}/salt")[0])
        self.execute("holders")
        self.drop("cuts")
        self.execute("cuts", max_items=level.max_items, salt=salt)
        self.execute(
            "set_union_level",
            max_items=level.max_items,
            salt=salt,
            sigma=level.sigma_grid,
            purpose=purpose,
        )
        self.drop("holders")

    def refuse_rows_of_nobody(self, table: str) -> None:
        # Such rows belong to no user, so both of two neighbouring corpora hold them or neither
        # does: refusing them says nothing of anyone.
        with engine_errors(table):
            found = self.con.execute(f"FROM {table} WHERE user_id IS NULL LIMIT 1").fetchall()
        if found:
            raise CorpusError(ROWS_OF_NOBODY)

    def rename(self, table: str, name: str) -> None:
        self.drop(name)
        self.con.execute(f"ALTER TABLE {table} RENAME TO {name}")

    def empty(self, table: str, columns_of: str) -> None:
        self.drop(table)
        self.con.execute(f"CREATE TEMP TABLE {table} AS SELECT {columns_of} WITH NO DATA")

    def drop(self, table: str) -> None:
        self.con.execute(f"DROP TABLE IF EXISTS {table}")


def _config(limits: Limits, spill: str) -> dict[str, Any]:
    # Private rows spill here: the folder is the run's own, readable by its user alone, and goes
    # with the session.
    config: dict[str, Any] = {
        "temp_directory": spill,
        "preserve_insertion_order": True,
    }
    if limits.memory is not None:
        config["memory_limit"] = limits.memory
    if limits.threads is not None:
        config["threads"] = limits.threads
    return config


def _setting_problem(problem: duckdb.Error, limits: Limits) -> str:
    if limits.memory is not None and re.search("memory", str(problem), re.IGNORECASE):
        return f"memory_limit: found {limits.memory!r}; write it as 500MB or 4GB"
    return f"DuckDB could not be opened ({type(problem).__name__}: {problem})"
