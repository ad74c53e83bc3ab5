"""LDP TrieHH in Spark: users' words, and the reports of some of the users at each level.

Drawn rows (draws, reports) are written to a table before they are shuffled or sorted: otherwise a
repeated task could give two readers different draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dphh.engines.aggregate import aggregate_reports
from dphh.engines.declared_users import missing_users_of_ldp_trie
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.run import SparkRun
from dphh.levels.ldp_trie import LocalLevel
from dphh.udfs.draws.randomness import SEATS
from dphh.udfs.spark.functions import register_report, register_word


class LocalTries(SparkRun):
    """The methods of a Spark session for LDP TrieHH."""

    def hold_contributions(self, characters: Sequence[str], seats: int, pad: bool) -> None:
        self.load()
        self.execute("ldp_local_words", characters=list(characters))
        self.refuse_null_users("local_words")
        with engine_errors("dphh_word"):
            register_word(self.spark, self.randomness)
        self.execute("ldp_draws", idle=self._missing_users(seats, pad), purpose=SEATS)
        self.execute("ldp_seats", seats=seats)
        self.execute("ldp_contributions")
        for done in ("local_words", "draws", "seats"):
            self.drop(done)

    def local_level(self, level: LocalLevel, prefixes: Any, known: Any, purpose: str) -> Any:
        seats = {"first_seat": level.first_seat, "last_seat": level.first_seat + level.users}
        self.show("prefixes", prefixes)
        self.show("known", known)
        with engine_errors("dphh_word"):
            register_word(self.spark, self.randomness)
        self.execute(
            "ldp_choice_draws",
            **seats,
            level=level.level,
            characters=level.characters,
            purpose=purpose,
        )
        self.execute("ldp_choice", sampling=level.sampling, contributions=level.contributions)
        if level.mode == "messages":
            with engine_errors("dphh_report"):
                register_report(self.spark, self.randomness)
            self.execute(
                "ldp_messages",
                **seats,
                contributions=level.contributions,
                domain=level.domain,
                nothings=level.nothings,
                size=level.size,
                numerator=level.numerator,
                form=level.form,
                purpose=purpose,
            )
            self.execute("ldp_reports")
            self.drop("messages")
        else:
            held = self.fetch("ldp_held")
            self.show("reports", aggregate_reports(self.randomness, held, level, purpose))
        values = prefixes.num_rows * (level.characters + 1)
        kept = self.fetch("ldp_kept", values=values, keep=level.keep)
        for done in ("prefixes", "known", "choice_draws", "chosen", "reports"):
            self.drop(done)
        return kept

    def _missing_users(self, seats: int, pad: bool) -> int:
        """How many idle users must be made up because the corpus has fewer users than seats."""
        with engine_errors("local_words"):
            users = self.ask("local_words", "SELECT DISTINCT user_id FROM local_words", {}).count()
        return missing_users_of_ldp_trie(users, seats, pad)
