"""TrieHH in DuckDB: one sequence per user, walking down the trie level by level."""

from __future__ import annotations

from typing import Any

from dphh.engines.answering import holds
from dphh.engines.declared_users import idle_users_of_trie
from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.duckdb.run import DuckDBRun
from dphh.engines.walking import Walking
from dphh.levels.trie import BatchLevel, Choice, VoteLevel
from dphh.session.trie import OneSequence, Trie
from dphh.udfs.draws.randomness import ONE_SEQUENCE

#: With more rows than this, users are processed in parts; a user takes about 60 bytes.
ROWS_OF_PART = 40_000_000


class Tries(DuckDBRun, Walking):
    """The methods of a DuckDB session for TrieHH."""

    choice: Choice = "drawn"
    chosen = False

    def hold_sequences(self, asked: OneSequence) -> None:
        """Make the rows available. Which users' sequences are needed depends on the level."""
        self.hold_rows()
        self.execute("sequences_of_rows")
        self.refuse_null_users("sequences_of_rows")
        self.choice = asked.choice

    def choose_for_each(self) -> None:
        """Fill `one_each` with every user's one sequence."""
        if not self.chosen:
            self._choose_rows("sequences_of_rows")
            self.chosen = True

    def _vote_level(self, level: VoteLevel, trie: Trie, purpose: str) -> Any:
        self._walk_down(trie)
        self.execute(
            "trie_level",
            level=level.level,
            numerator=level.numerator,
            theta=level.theta,
            purpose=purpose,
        )
        return self._grown_prefixes(level.theta)

    def _batch_level(self, level: BatchLevel, trie: Trie, purpose: str) -> Any:
        self.choose_for_each()
        self.con.register("trie", trie.nodes())
        self.execute(
            "trie_batch_level",
            level=level.level,
            batch=level.batch,
            idle=self._idle_users(level.users),
            purpose=purpose,
        )
        self.con.unregister("trie")
        return self._grown_prefixes(level.theta)

    def _move_walkers(self, level: int, step: Any) -> None:
        self.con.register("grown", step)
        self.execute("walk_on", level=level)
        self.con.unregister("grown")
        self.rename("next_walkers", "walkers")

    def _start_at_root(self) -> None:
        with engine_errors("contents_of_one_row"):
            ((rows,),) = self.con.execute("SELECT count(*) FROM rows_of_corpus").fetchall()
            self.con.execute(
                "CREATE TEMP TABLE contents AS "
                "SELECT content, CAST(0 AS BIGINT) AS users FROM rows_of_corpus WITH NO DATA"
            )
            self.con.execute(
                "CREATE TEMP TABLE several AS SELECT user_id FROM rows_of_corpus WITH NO DATA"
            )
        self._run_in_parts("contents_of_one_row", rows)
        with engine_errors("contents_of_one_row"):
            some = self.con.execute("FROM contents WHERE content IS NULL LIMIT 1").fetchall()
        if some:
            self._run_in_parts("users_of_several_rows", rows)
        self._choose_rows("sequences_of_rows SEMI JOIN several USING (user_id)")
        self.execute("walkers")
        for table in ("contents", "several", "one_each"):
            self.drop(table)

    def _run_in_parts(self, step: str, rows: int) -> None:
        parts = 1 + rows // ROWS_OF_PART
        for part in range(parts):
            self.execute(step, parts=parts, part=part)

    def _choose_rows(self, choices: str) -> None:
        """Fill `one_each` with one row of each user in `choices`."""
        with engine_errors("choices"):
            self.con.execute(f"CREATE OR REPLACE TEMP VIEW choices AS FROM {choices}")
        drawn = {"purpose": ONE_SEQUENCE} if self.choice == "drawn" else {}
        self.execute(f"sequences_{self.choice.replace('-', '_')}", **drawn)

    def _idle_users(self, users: int) -> int:
        with engine_errors("one_each"):
            ((holders,),) = self.con.execute("SELECT count(*) FROM one_each").fetchall()
        return idle_users_of_trie(holders, users)

    def _grown_prefixes(self, theta: int) -> Any:
        grown = self.fetch("grown", theta=theta)
        self.drop("votes")
        return grown


holds(Tries, OneSequence)(Tries.hold_sequences)
