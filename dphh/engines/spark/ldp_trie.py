"""LDP TrieHH in Spark: devices that hold words, and reports from some of them at each level.

What is drawn (lots, reports) is a table of its own before anything shuffles or sorts it: a task
that runs again must not give one reader another draw than the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dphh.engines.aggregate import aggregate_reports
from dphh.engines.sources import users_wanting
from dphh.engines.spark.failures import engine_errors
from dphh.levels import LocalLevel
from dphh.udfs.spark import register_subset, register_word

if TYPE_CHECKING:
    from dphh.engines.spark.session import SparkRun


def hold_contributions(run: SparkRun, characters: Sequence[str], seats: int, pad: bool) -> None:
    run.load()
    run.execute("ldp_local_words", characters=list(characters))
    run.refuse_rows_of_nobody("local_words")
    with engine_errors("dphh_word"):
        register_word(run.spark, run.randomness)
    run.execute("ldp_lots", idle=_idle(run, seats, pad))
    run.execute("ldp_seats", seats=seats)
    run.execute("ldp_contributions")
    for done in ("local_words", "lots", "seats"):
        run.drop(done)


def local_level(run: SparkRun, level: LocalLevel, prefixes: Any, known: Any, purpose: str) -> Any:
    seats = {"first_seat": level.first_seat, "last_seat": level.first_seat + level.users}
    run.show("prefixes", prefixes)
    run.show("known", known)
    with engine_errors("dphh_word"):
        register_word(run.spark, run.randomness)
    run.execute(
        "ldp_choice_lots",
        **seats,
        level=level.level,
        characters=level.characters,
        purpose=purpose,
    )
    run.execute("ldp_choice", sampling=level.sampling, contributions=level.contributions)
    if level.mode == "messages":
        with engine_errors("dphh_subset"):
            register_subset(run.spark, run.randomness)
        run.execute(
            "ldp_messages",
            **seats,
            contributions=level.contributions,
            domain=level.domain,
            size=level.size,
            numerator=level.numerator,
            purpose=purpose,
        )
        run.execute("ldp_reports")
        run.drop("messages")
    else:
        held = run.fetch("ldp_held")
        run.show("reports", aggregate_reports(run.randomness, held, level, purpose))
    values = prefixes.num_rows * (level.characters + 1)
    kept = run.fetch("ldp_kept", values=values, keep=level.keep)
    for done in ("prefixes", "known", "choice_lots", "chosen", "reports"):
        run.drop(done)
    return kept


def _idle(run: SparkRun, seats: int, pad: bool) -> int:
    """How many users are wanting."""
    with engine_errors("local_words"):
        users = run.ask("local_words", "SELECT DISTINCT user_id FROM local_words", {}).count()
    return users_wanting(users, seats, pad)
