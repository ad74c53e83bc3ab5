"""LDP TrieHH in Spark: users' words, and the reports of some of the users at each level.

Drawn rows (draws, reports) are written to a table before they are shuffled or sorted: otherwise a
repeated task could give two readers different draws.
"""

from __future__ import annotations

from typing import Any

from dphh.engines.answering import draws, holds
from dphh.engines.declared_users import fewer_users_than
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.run import SparkRun
from dphh.levels.ldp_trie import LocalOn, Seats
from dphh.udfs.draws.randomness import SEATS
from dphh.udfs.spark.functions import register_report, register_word


@holds(SparkRun, Seats)
def hold_words_in_seats(session: SparkRun, asked: Seats) -> None:
    session.load()
    session.execute("ldp_local_words", characters=list(asked.characters))
    session.refuse_null_users("local_words")
    if not asked.pad and session.fetch("fewer_users", seats=asked.seats).num_rows:
        raise fewer_users_than(asked.seats)
    with engine_errors("dphh_word"):
        register_word(session.spark, session.randomness)
    session.execute("ldp_draws", seats=asked.seats, purpose=SEATS)
    session.execute("ldp_seats", seats=asked.seats)
    session.execute("ldp_words_in_seats")
    for done in ("local_words", "draws", "seats"):
        session.drop(done)


@draws(SparkRun, LocalOn)
def local_level(session: SparkRun, asked: LocalOn, purpose: str) -> Any:
    level = asked.level
    seats = {"first_seat": level.first_seat, "last_seat": level.first_seat + level.users}
    session.show("prefixes", asked.prefixes)
    session.show("known", asked.known)
    with engine_errors("dphh_word"):
        register_word(session.spark, session.randomness)
    session.execute(
        "ldp_choice_draws",
        **seats,
        level=level.level,
        characters=level.characters,
        purpose=purpose,
    )
    session.execute("ldp_choice", sampling=level.sampling, contributions=level.contributions)
    with engine_errors("dphh_report"):
        register_report(session.spark, session.randomness)
    session.execute(
        "ldp_messages",
        **seats,
        contributions=level.contributions,
        domain=level.domain,
        size=level.size,
        numerator=level.numerator,
        purpose=purpose,
    )
    session.execute("ldp_reports")
    values = asked.prefixes.num_rows * (level.characters + 1)
    kept = session.fetch("ldp_kept", values=values, keep=level.keep)
    for done in ("prefixes", "known", "choice_draws", "chosen", "messages", "reports"):
        session.drop(done)
    return kept
