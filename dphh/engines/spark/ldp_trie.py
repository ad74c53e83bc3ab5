"""LDP TrieHH in Spark: devices that hold words, and reports from some of them at each level.

What is drawn (lots, reports) is a table of its own before anything shuffles or sorts it: a task
that runs again must not give one reader another draw than the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dphh.engines.aggregate import aggregate_reports
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.run import SparkRun
from dphh.engines.users_said import users_wanting
from dphh.levels import LocalLevel
from dphh.udfs.draws.randomness import SEATS
from dphh.udfs.spark.functions import register_report, register_word


class LocalTries(SparkRun):
    def hold_contributions(self, characters: Sequence[str], seats: int, pad: bool) -> None:
        self.load()
        self.execute("ldp_local_words", characters=list(characters))
        self.refuse_rows_of_nobody("local_words")
        with engine_errors("dphh_word"):
            register_word(self.spark, self.randomness)
        self.execute("ldp_lots", idle=self._wanting(seats, pad), purpose=SEATS)
        self.execute("ldp_seats", seats=seats)
        self.execute("ldp_contributions")
        for done in ("local_words", "lots", "seats"):
            self.drop(done)

    def local_level(self, level: LocalLevel, prefixes: Any, known: Any, purpose: str) -> Any:
        seats = {"first_seat": level.first_seat, "last_seat": level.first_seat + level.users}
        self.show("prefixes", prefixes)
        self.show("known", known)
        with engine_errors("dphh_word"):
            register_word(self.spark, self.randomness)
        self.execute(
            "ldp_choice_lots",
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
        for done in ("prefixes", "known", "choice_lots", "chosen", "reports"):
            self.drop(done)
        return kept

    def _wanting(self, seats: int, pad: bool) -> int:
        """How many users are wanting."""
        with engine_errors("local_words"):
            users = self.ask("local_words", "SELECT DISTINCT user_id FROM local_words", {}).count()
        return users_wanting(users, seats, pad)
