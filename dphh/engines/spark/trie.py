"""TrieHH in Spark: one sequence a user, walking down the trie level by level."""

from __future__ import annotations

from typing import Any

from dphh.engines.answering import holds
from dphh.engines.declared_users import more_users_than
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.run import SparkRun
from dphh.engines.walking import Walking
from dphh.levels.trie import BatchLevel, VoteLevel
from dphh.session.trie import OneSequence, Trie
from dphh.udfs.draws.randomness import ONE_SEQUENCE
from dphh.udfs.spark.functions import register_votes, register_word


class Tries(SparkRun, Walking):
    """The methods of a Spark session for TrieHH."""

    def hold_sequences(self, asked: OneSequence) -> None:
        self.load()
        with engine_errors("dphh_word"):
            register_word(self.spark, self.randomness)
        self.look("sequences_of_rows")
        with engine_errors("sequences_of_rows"):
            self.spark.table("sequences_of_rows").createOrReplaceTempView("choices")
        drawn = {"purpose": ONE_SEQUENCE} if asked.choice == "drawn" else {}
        self.execute(f"sequences_{asked.choice.replace('-', '_')}", **drawn)
        self.refuse_null_users("one_each")

    def _vote_level(self, level: VoteLevel, trie: Trie, purpose: str) -> Any:
        self._walk_down(trie)
        with engine_errors("dphh_votes"):
            register_votes(self.spark, self.randomness)
        self.execute(
            "trie_level",
            level=level.level,
            numerator=level.numerator,
            theta=level.theta,
            purpose=purpose,
        )
        return self._grown_prefixes(level.theta)

    def _batch_level(self, level: BatchLevel, trie: Trie, purpose: str) -> Any:
        if self.fetch("more_users", users=level.users).num_rows:
            raise more_users_than(level.users)
        self.show("trie", trie.nodes())
        # Written before they are sorted: sorting looks at them twice.
        self.execute("trie_batch_draws", users=level.users, purpose=purpose)
        self.execute("trie_batch_level", level=level.level, batch=level.batch)
        self.drop("draws")
        self.drop("trie")
        return self._grown_prefixes(level.theta)

    def _move_walkers(self, level: int, step: Any) -> None:
        self.show("grown", step)
        self.execute("walk_on", level=level)
        self.drop("grown")
        self.rename("next_walkers", "walkers")

    def _start_at_root(self) -> None:
        self.execute("walkers")
        self.drop("one_each")

    def _grown_prefixes(self, theta: int) -> Any:
        grown = self.fetch("grown", theta=theta)
        self.drop("votes")
        return grown


holds(Tries, OneSequence)(Tries.hold_sequences)
