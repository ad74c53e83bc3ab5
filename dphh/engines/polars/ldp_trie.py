"""LDP TrieHH in Polars: users' words, and the reports of some of the users at each level."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from dphh.engines.answering import draws, holds
from dphh.engines.declared_users import missing_users_of_ldp_trie
from dphh.engines.polars.queries import local_tries
from dphh.engines.polars.run import PolarsRun
from dphh.levels.ldp_trie import LocalLevel, LocalOn, Seats
from dphh.udfs.draws.randomness import SEATS
from dphh.udfs.draws.subsets import draw_subsets

NAME_SEPARATOR = "\x1f"
#: How many reports are drawn at a time.
BLOCK = 1 << 16


@holds(PolarsRun, Seats)
def hold_words_in_seats(session: PolarsRun, asked: Seats) -> None:
    session.make(
        "local_words",
        local_tries.ldp_local_words(session.load(), asked.characters),
        "ldp_local_words",
    )
    session.refuse_null_users(session.tables["local_words"]["user_id"])
    seated = _users_in_seats(session, asked.seats, asked.pad)
    held = local_tries.ldp_words_in_seats(session.table("local_words"), seated.lazy())
    session.make("words_in_seats", held, "ldp_words_in_seats")
    session.drop("local_words")


def _users_in_seats(session: PolarsRun, seats: int, pad: bool) -> pl.DataFrame:
    """The users in a secret random order, which includes made-up idle users."""
    users = session.fetch("ldp_seats", session.table("local_words").select("user_id").unique())
    idle = missing_users_of_ldp_trie(users.height, seats, pad)
    names = session.names(users["user_id"], SEATS)
    if names is not None:
        nobody = pa.array([f"{NAME_SEPARATOR}{number}" for number in range(idle)], pa.string())
        names = pa.concat_arrays([names.cast(pa.string()), nobody])
    draws = session.randomness.words(users.height + idle, SEATS, names)
    everyone = pl.concat([users, pl.DataFrame({"user_id": [None] * idle}, schema=users.schema)])
    in_order = everyone.with_columns(draw=pl.Series(draws, dtype=pl.UInt64)).sort("draw", "user_id")
    seated = in_order.with_columns(seat=pl.int_range(1, pl.len() + 1, dtype=pl.Int64))
    return seated.filter(pl.col("seat") <= seats).drop_nulls("user_id").select("user_id", "seat")


@draws(PolarsRun, LocalOn)
def local_level(session: PolarsRun, asked: LocalOn, purpose: str) -> Any:
    level = asked.level
    chosen = _chosen_prefixes(session, asked, purpose)
    reports = _reports_by_value(session, level, chosen, purpose)
    values = asked.prefixes.num_rows * (level.characters + 1)
    kept = session.fetch("ldp_kept", local_tries.ldp_kept(reports.lazy(), values, level.keep))
    return kept.select("value", "reports").to_arrow()


def _chosen_prefixes(session: PolarsRun, asked: LocalOn, purpose: str) -> pl.DataFrame:
    level = asked.level
    held = session.fetch(
        "ldp_choice",
        local_tries.next_prefixes(
            session.table("words_in_seats"),
            pl.DataFrame(asked.prefixes).lazy(),
            pl.DataFrame(asked.known).lazy(),
            (level.first_seat, level.first_seat + level.users),
            level.level,
            level.characters,
        ),
    )
    # A random number for each of a user's prefixes, drawn anew at every level.
    draws = session.randomness.words(
        held.height, f"{purpose}/sample", _names_of_reports(session, held["seat"], held["value"])
    )
    drawn = held.with_columns(draw=pl.Series(draws, dtype=pl.UInt64)).lazy()
    greedy = level.sampling == "greedy"
    return session.fetch("ldp_choice", local_tries.ldp_choice(drawn, level.contributions, greedy))


def _reports_by_value(
    session: PolarsRun, level: LocalLevel, chosen: pl.DataFrame, purpose: str
) -> pl.DataFrame:
    """Every user of the level sends all reports; a report without a value says "nothing", which is
    a separate value for each report of a user. Returns, for each value, the number of reports that
    contain it."""
    said = np.tile(level.values + np.arange(level.contributions), level.users)
    position = (chosen["seat"] - level.first_seat - 1) * level.contributions + chosen["report"] - 1
    said[position.to_numpy()] = chosen["value"].to_numpy()
    counted = np.zeros(level.domain, dtype=np.int64)
    for start in range(0, len(said), BLOCK):
        block = said[start : start + BLOCK]
        number = pl.Series(np.arange(start, start + len(block)))
        seats = level.first_seat + 1 + number // level.contributions
        names = _names_of_reports(session, seats, 1 + number % level.contributions)
        drawn = draw_subsets(session.randomness, block, level.mechanism, purpose, names)
        counted += np.bincount(drawn.ravel(), minlength=level.domain)
    return pl.DataFrame({"value": np.arange(level.domain, dtype=np.int64), "reports": counted})


def _names_of_reports(session: PolarsRun, seats: pl.Series, numbers: pl.Series) -> Any:
    """Names of reports for a test's randomness; None for the system's, which takes none."""
    if not session.randomness.is_test:
        return None
    spelled = pl.select(pl.concat_str(seats, numbers, separator=NAME_SEPARATOR)).to_series()
    return spelled.to_arrow().cast(pa.string())
