"""LDP TrieHH: `sql/ldp_trie`, whose comments explain the steps. What draws, draws on collected
frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from dphh.engines.polars.steps import SEPARATOR, Tables, step
from dphh.engines.polars.steps.tries import refuse_null_users
from dphh.udfs.rules.reports import SubsetSelection, draw_subsets

if TYPE_CHECKING:
    from dphh.engines.polars.host import PolarsHost

#: How many reports are drawn and counted at a time.
REPORTS_AT_A_TIME = 1 << 16


@step
def ldp_local_words(host: PolarsHost, *, characters: Sequence[str], codes: Sequence[str]) -> Tables:
    spelled = host.table("tokens_of_rows").select(
        "user_id",
        codes=pl.col("tokens").list.eval(
            pl.element().replace_strict(
                list(characters), list(codes), default=None, return_dtype=pl.String
            )
        ),
    )
    words = spelled.select(
        "user_id",
        word=pl.when(pl.col("codes").list.len() > 0).then(
            pl.col("codes").list.join("", ignore_nulls=False)
        ),
    )
    counted = words.group_by("user_id", "word").agg(row_count=pl.len().cast(pl.Int64))
    local_words = host.collect("ldp_local_words", counted)
    refuse_null_users(local_words["user_id"])
    return {"local_words": local_words}


@step
def fewer_users(host: PolarsHost, *, seats: int) -> pl.LazyFrame:
    users = host.table("local_words").select(fewer=pl.col("user_id").n_unique() < seats)
    return users.filter("fewer")


@step
def ldp_seats(host: PolarsHost, *, seats: int, purpose: str) -> Tables:
    """The words of the users in the first `seats` places of a secret random order, which also has
    made-up users if there are too few. From here on a user's seat replaces the user id."""
    one_row_a_user = host.table("local_words").select("user_id").unique()
    users = host.collect("ldp_seats", one_row_a_user)
    made_up = max(seats - users.height, 0)
    names = host.names_for_draws(users["user_id"], purpose, made_up)
    draws = host.randomness.random_words(users.height + made_up, purpose, names)
    nulls = pl.DataFrame({"user_id": [None] * made_up}, schema=users.schema)
    everyone = pl.concat([users, nulls]).with_columns(draw=pl.Series(draws, dtype=pl.UInt64))
    in_order = everyone.sort("draw", "user_id").with_columns(
        seat=pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
    )
    seated = in_order.filter(pl.col("seat") <= seats).drop_nulls("user_id")
    words = host.table("local_words").drop_nulls("word").join(seated.lazy(), on="user_id")
    return {"words_in_seats": words.select("seat", "word", "row_count")}


@step
def ldp_choice(
    host: PolarsHost,
    *,
    seats_before: int,
    last_seat: int,
    level: int,
    character_count: int,
    contributions: int,
    sampling: str,
    purpose: str,
) -> Tables:
    held = host.collect(
        "ldp_choice", _next_prefixes(host, seats_before, last_seat, level, character_count)
    )
    names = _names_of_reports(host, held["seat"], held["value"])
    draws = host.randomness.random_words(held.height, f"{purpose}/sample", names)
    rank = -pl.col("row_count") if sampling == "greedy" else pl.lit(0)
    drawn = held.with_columns(rank=rank, draw=pl.Series(draws, dtype=pl.UInt64))
    in_order = drawn.sort("seat", "rank", "draw", "value")
    ranked = in_order.with_columns(report=pl.int_range(1, pl.len() + 1).over("seat"))
    chosen = ranked.filter(pl.col("report") <= contributions)
    return {"chosen": chosen.select("seat", "report", "value")}


def _next_prefixes(
    host: PolarsHost, seats_before: int, last_seat: int, level: int, character_count: int
) -> pl.LazyFrame:
    """The next prefixes that each of the level's users holds, and in how many rows."""
    is_asked = (pl.col("seat") > seats_before) & (pl.col("seat") <= last_seat)
    words = host.table("words_in_seats").filter(is_asked)
    words = words.join(host.table("known"), on="word", how="anti")
    codes = [chr(number + 1) for number in range(character_count)]
    following = pl.col("word").str.slice(level, 1)
    numbers = [character_count, *range(character_count)]
    number = following.replace_strict(["", *codes], numbers)
    return (
        words.with_columns(prefix=pl.col("word").str.slice(0, level), number=number)
        .join(host.table("prefixes"), on="prefix")
        .group_by("seat", value=pl.col("value") + pl.col("number"))
        .agg(pl.col("row_count").sum())
    )


@step
def ldp_reports(
    host: PolarsHost,
    *,
    seats_before: int,
    last_seat: int,
    contributions: int,
    domain: int,
    subset_size: int,
    numerator: int,
    purpose: str,
) -> Tables:
    mechanism = SubsetSelection(domain, subset_size, numerator)
    chosen = host.tables["chosen"]
    nothing = domain - contributions + np.arange(contributions)
    said = np.tile(nothing, last_seat - seats_before)
    position = (chosen["seat"] - seats_before - 1) * contributions + chosen["report"] - 1
    said[position.to_numpy()] = chosen["value"].to_numpy()
    counted = np.zeros(domain, dtype=np.int64)
    for start in range(0, len(said), REPORTS_AT_A_TIME):
        block = said[start : start + REPORTS_AT_A_TIME]
        number = pl.Series(np.arange(start, start + len(block)))
        seats = seats_before + 1 + number // contributions
        names = _names_of_reports(host, seats, 1 + number % contributions)
        drawn = draw_subsets(host.randomness, block, mechanism, purpose, names)
        counted += np.bincount(drawn.ravel(), minlength=domain)
    values = np.arange(domain, dtype=np.int64)
    return {"reports": pl.DataFrame({"value": values, "reports": counted})}


def _names_of_reports(host: PolarsHost, seats: pl.Series, numbers_in_seats: pl.Series) -> Any:
    """The name of each report, on which a test's random words depend: its seat, and a number that
    is unique in the seat. None if this is no test."""
    if not host.randomness.is_test:
        return None
    spelled = pl.select(pl.concat_str(seats, numbers_in_seats, separator=SEPARATOR)).to_series()
    return spelled.to_arrow().cast(pa.string())


@step
def ldp_kept(host: PolarsHost, *, prefix_values: int, keep: int) -> pl.LazyFrame:
    reports = host.table("reports")
    of_prefixes = reports.filter(pl.col("value") < prefix_values, pl.col("reports") > 0)
    in_order = of_prefixes.sort("reports", "value", descending=[True, False]).head(keep)
    return in_order.select("value", "reports")
