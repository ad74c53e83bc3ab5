"""LDP TrieHH in DuckDB: users' words, and the reports of some of the users at each level."""

from __future__ import annotations

from typing import Any

from dphh.engines.answering import draws, holds
from dphh.engines.declared_users import missing_users_of_ldp_trie
from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.duckdb.run import DuckDBRun
from dphh.levels.ldp_trie import LocalOn, Seats
from dphh.udfs.draws.randomness import SEATS


@holds(DuckDBRun, Seats)
def hold_words_in_seats(session: DuckDBRun, asked: Seats) -> None:
    session.load()
    session.execute("ldp_local_words", characters=list(asked.characters))
    session.refuse_null_users("local_words")
    session.execute(
        "ldp_seats",
        seats=asked.seats,
        idle=_missing_users(session, asked.seats, asked.pad),
        purpose=SEATS,
    )
    session.execute("ldp_words_in_seats")
    session.drop("local_words")
    session.drop("seats")


@draws(DuckDBRun, LocalOn)
def local_level(session: DuckDBRun, asked: LocalOn, purpose: str) -> Any:
    level = asked.level
    seats = {"first_seat": level.first_seat, "last_seat": level.first_seat + level.users}
    session.con.register("prefixes", asked.prefixes)
    session.con.register("known", asked.known)
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
    session.execute(
        "ldp_messages",
        **seats,
        contributions=level.contributions,
        domain=level.domain,
        size=level.size,
        numerator=level.numerator,
        purpose=purpose,
    )
    session.drop("chosen")
    values = asked.prefixes.num_rows * (level.characters + 1)
    kept = session.fetch("ldp_kept", values=values, keep=level.keep)
    session.drop("reports")
    return kept


def _missing_users(session: DuckDBRun, seats: int, pad: bool) -> int:
    with engine_errors("local_words"):
        ((users,),) = session.con.execute(
            "SELECT count(DISTINCT user_id) FROM local_words"
        ).fetchall()
    return missing_users_of_ldp_trie(users, seats, pad)
