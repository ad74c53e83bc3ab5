"""TrieHH in Polars: one sequence per user, walking down the trie level by level."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from dphh.engines.answering import holds
from dphh.engines.declared_users import idle_users_of_trie
from dphh.engines.polars.queries import tries
from dphh.engines.polars.run import PolarsRun
from dphh.engines.walking import Walking
from dphh.levels.trie import BatchLevel, VoteLevel
from dphh.session.trie import OneSequence, Trie
from dphh.udfs.draws.randomness import ONE_SEQUENCE, wants_keys
from dphh.udfs.draws.votes import draw_votes

NAME_SEPARATOR = "\x1f"


class Tries(PolarsRun, Walking):
    """The methods of a Polars session for TrieHH."""

    def hold_sequences(self, asked: OneSequence) -> None:
        self.make("sequences", tries.sequences_of_rows(self.load()))
        self.refuse_null_users(self.tables["sequences"]["user_id"])
        sequences = self.table("sequences")
        if asked.choice == "drawn":
            one_each = tries.sequences_drawn(sequences, self._draws_of_sequences().lazy())
        else:
            one_each = tries.sequences_most_frequent(sequences)
        self.make("one_each", one_each, step=f"sequences_{asked.choice.replace('-', '_')}")
        self.drop("sequences")

    def _draws_of_sequences(self) -> pl.DataFrame:
        """Which of their sorted rows each user with several rows gets: a random word, modulo."""
        several = tries.users_of_several(self.table("sequences"))
        users = self.fetch("sequences_drawn", several)
        names = self.names(users["user_id"], ONE_SEQUENCE)
        words = self.randomness.words(users.height, ONE_SEQUENCE, names)
        return users.select("user_id", place=pl.Series(words, dtype=pl.UInt64) % pl.col("rows"))

    def _vote_level(self, level: VoteLevel, trie: Trie, purpose: str) -> Any:
        self._walk_down(trie)
        eligible = self.fetch("trie_level", tries.trie_level(self.table("walkers"), level.level))
        # Each eligible user tosses a new coin at this level; heads are votes. One draw gives how
        # many of those with the same next prefix toss heads, as far as theta asks (`draw_votes`).
        votes = draw_votes(
            self.randomness,
            eligible["users"].to_numpy(),
            level.numerator,
            level.theta,
            purpose,
            _names_of_prefixes(eligible) if wants_keys(self.randomness, purpose) else None,
        )
        return _grown_prefixes(
            eligible.with_columns(votes=pl.Series(votes, dtype=pl.Int64)), level.theta
        )

    def _batch_level(self, level: BatchLevel, trie: Trie, purpose: str) -> Any:
        one_each = self.tables["one_each"]
        idle = idle_users_of_trie(one_each.height, level.users)
        names = self.names(one_each["user_id"], purpose)
        if names is not None:
            nobody = pa.array([f"{NAME_SEPARATOR}{number}" for number in range(idle)], pa.string())
            names = pa.concat_arrays([names, nobody])
        # Every user, with a sequence or not, gets a random word; the lowest form the batch.
        draws = self.randomness.words(one_each.height + idle, purpose, names)
        drawn = np.argsort(draws, kind="stable")[: level.batch]
        batch = one_each[drawn[drawn < one_each.height]]
        below = pl.DataFrame(trie.nodes()).with_columns(pl.col("tokens").cast(pl.List(pl.String)))
        votes = self.fetch(
            "trie_batch_level", tries.trie_batch_level(batch.lazy(), below.lazy(), level.level)
        )
        return _grown_prefixes(votes, level.theta)

    def _move_walkers(self, level: int, step: Any) -> None:
        found = pl.DataFrame(step).with_columns(pl.col("token").cast(pl.String))
        walkers = tries.walk_on(self.table("walkers"), found.lazy(), level)
        self.make("walkers", walkers, step="walk_on")

    def _start_at_root(self) -> None:
        self.make("walkers", tries.walkers(self.table("one_each")))
        self.drop("one_each")


def _names_of_prefixes(eligible: pl.DataFrame) -> Any:
    spelled = pl.concat_str(
        pl.col("node"), pl.col("ended"), pl.col("token").fill_null(""), separator=NAME_SEPARATOR
    )
    return eligible.select(spelled).to_series().to_arrow()


def _grown_prefixes(votes: pl.DataFrame, theta: int) -> Any:
    """The prefixes that grow on the trie: those with at least theta votes, without the votes."""
    grown = votes.filter(pl.col("votes") >= theta).select("node", "token", "ended")
    return grown.sort("node", "ended", "token").to_arrow()


holds(Tries, OneSequence)(Tries.hold_sequences)
