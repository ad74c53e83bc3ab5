"""LDP TrieHH in DuckDB: devices that hold words, and reports from some of them at each level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dphh.engines.aggregate import aggregate_reports
from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.sources import users_wanting
from dphh.levels import LocalLevel

if TYPE_CHECKING:
    from dphh.engines.duckdb.session import DuckDBSession


def hold_contributions(
    session: DuckDBSession, characters: Sequence[str], seats: int, pad: bool
) -> None:
    session.load()
    session.execute("ldp_local_words", characters=list(characters))
    session.refuse_rows_of_nobody("local_words")
    session.execute("ldp_seats", seats=seats, idle=_idle(session, seats, pad))
    session.execute("ldp_contributions")
    session.drop("local_words")
    session.drop("seats")


def local_level(
    session: DuckDBSession, level: LocalLevel, prefixes: Any, known: Any, purpose: str
) -> Any:
    seats = {"first_seat": level.first_seat, "last_seat": level.first_seat + level.users}
    session.con.register("prefixes", prefixes)
    session.con.register("known", known)
    session.execute(
        "ldp_choice",
        **seats,
        level=level.level,
        characters=level.characters,
        contributions=level.contributions,
        sampling=level.sampling,
        purpose=purpose,
    )
    session.con.unregister("prefixes")
    session.con.unregister("known")
    if level.mode == "messages":
        session.execute(
            "ldp_messages",
            **seats,
            contributions=level.contributions,
            domain=level.domain,
            size=level.size,
            numerator=level.numerator,
            purpose=purpose,
        )
    else:
        held = session.fetch("ldp_held")
        drawn = aggregate_reports(session.randomness, held, level, purpose)
        session.con.register("drawn", drawn)
        session.con.execute("CREATE TEMP TABLE reports AS FROM drawn")
        session.con.unregister("drawn")
    session.drop("chosen")
    values = prefixes.num_rows * (level.characters + 1)
    kept = session.fetch("ldp_kept", values=values, keep=level.keep)
    session.drop("reports")
    return kept


def _idle(session: DuckDBSession, seats: int, pad: bool) -> int:
    with engine_errors("local_words"):
        ((users,),) = session.con.execute(
            "SELECT count(DISTINCT user_id) FROM local_words"
        ).fetchall()
    return users_wanting(users, seats, pad)
