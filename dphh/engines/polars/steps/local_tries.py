"""LDP TrieHH: the words on devices, and what the devices of one level report: `sql/ldp_trie`. What
draws, draws on collected frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from dphh.engines.polars.steps import step
from dphh.engines.polars.steps.tries import SEPARATOR, refuse_null_users
from dphh.privacy.subset_selection import SubsetSelection
from dphh.udfs.draws.subsets import draw_subsets

if TYPE_CHECKING:
    from dphh.engines.polars.host import PolarsHost

Tables = dict[str, pl.DataFrame | pl.LazyFrame]
#: How many reports are drawn and counted at a time.
REPORTS_AT_A_TIME = 1 << 16


@step
def ldp_local_words(host: PolarsHost, *, characters: Sequence[str], codes: Sequence[str]) -> Tables:
    """Every user's distinct words, with the number of the user's rows that hold each. A word has
    one code point a character; a word with a character outside the set becomes NULL."""
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
    counted = words.group_by("user_id", "word").agg(times=pl.len().cast(pl.Int64))
    local_words = host.collect("ldp_local_words", counted)
    refuse_null_users(local_words["user_id"])
    return {"local_words": local_words}


@step
def fewer_users(host: PolarsHost, *, seats: int) -> pl.LazyFrame:
    users = host.table("local_words").select(fewer=pl.col("user_id").n_unique() < seats)
    return users.filter("fewer")


@step
def ldp_seats(host: PolarsHost, *, seats: int, purpose: str) -> Tables:
    """Users in a secret random order, with made-up users where there are too few; and the words of
    those who have a seat, which replaces the user id from here on."""
    one_row_a_user = host.table("local_words").select("user_id").unique()
    users = host.collect("ldp_seats", one_row_a_user)
    made_up = max(seats - users.height, 0)
    names = host.draw_names(users["user_id"], purpose)
    if names is not None:
        named = [f"{SEPARATOR}{number}" for number in range(made_up)]
        names = pa.concat_arrays([names, pa.array(named, pa.string())])
    draws = host.randomness.random_words(users.height + made_up, purpose, names)
    nulls = pl.DataFrame({"user_id": [None] * made_up}, schema=users.schema)
    everyone = pl.concat([users, nulls]).with_columns(draw=pl.Series(draws, dtype=pl.UInt64))
    in_order = everyone.sort("draw", "user_id").with_columns(
        seat=pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
    )
    seated = in_order.filter(pl.col("seat") <= seats).drop_nulls("user_id")
    words = host.table("local_words").drop_nulls("word").join(seated.lazy(), on="user_id")
    return {"words_in_seats": words.select("seat", "word", "times")}


@step
def ldp_choice(
    host: PolarsHost,
    *,
    first_seat: int,
    last_seat: int,
    level: int,
    characters: int,
    contributions: int,
    sampling: str,
    purpose: str,
) -> Tables:
    """At most `contributions` of the next prefixes that a user holds, chosen by random numbers that
    are drawn anew at every level."""
    held = host.collect(
        "ldp_choice", _next_prefixes(host, first_seat, last_seat, level, characters)
    )
    names = _names_of_reports(host, held["seat"], held["value"])
    draws = host.randomness.random_words(held.height, f"{purpose}/sample", names)
    rank = -pl.col("times") if sampling == "greedy" else pl.lit(0)
    drawn = held.with_columns(rank=rank, draw=pl.Series(draws, dtype=pl.UInt64))
    in_order = drawn.sort("seat", "rank", "draw", "value")
    ranked = in_order.with_columns(report=pl.int_range(1, pl.len() + 1).over("seat"))
    chosen = ranked.filter(pl.col("report") <= contributions)
    return {"chosen": chosen.select("seat", "report", "value")}


def _next_prefixes(
    host: PolarsHost, first_seat: int, last_seat: int, level: int, characters: int
) -> pl.LazyFrame:
    """The next prefixes that each of the level's users holds, and how many rows hold them."""
    is_asked = (pl.col("seat") > first_seat) & (pl.col("seat") <= last_seat)
    words = host.table("words_in_seats").filter(is_asked)
    words = words.join(host.table("known"), on="word", how="anti")
    codes = [chr(number + 1) for number in range(characters)]
    following = pl.col("word").str.slice(level, 1)
    number = following.replace_strict(["", *codes], [characters, *range(characters)])
    return (
        words.with_columns(prefix=pl.col("word").str.slice(0, level), number=number)
        .join(host.table("prefixes"), on="prefix")
        .group_by("seat", value=pl.col("value") + pl.col("number"))
        .agg(pl.col("times").sum())
    )


@step
def ldp_messages(
    host: PolarsHost,
    *,
    first_seat: int,
    last_seat: int,
    contributions: int,
    domain: int,
    size: int,
    numerator: int,
    purpose: str,
) -> Tables:
    """Every user of the level sends all reports; one without a value says "nothing", a separate
    value for each report of a user. Returns how many reports contain each value."""
    mechanism = SubsetSelection(domain, size, numerator)
    chosen = host.tables["chosen"]
    nothing = domain - contributions + np.arange(contributions)
    said = np.tile(nothing, last_seat - first_seat)
    position = (chosen["seat"] - first_seat - 1) * contributions + chosen["report"] - 1
    said[position.to_numpy()] = chosen["value"].to_numpy()
    counted = np.zeros(domain, dtype=np.int64)
    for start in range(0, len(said), REPORTS_AT_A_TIME):
        block = said[start : start + REPORTS_AT_A_TIME]
        number = pl.Series(np.arange(start, start + len(block)))
        seats = first_seat + 1 + number // contributions
        names = _names_of_reports(host, seats, 1 + number % contributions)
        drawn = draw_subsets(host.randomness, block, mechanism, purpose, names)
        counted += np.bincount(drawn.ravel(), minlength=domain)
    values = np.arange(domain, dtype=np.int64)
    return {"reports": pl.DataFrame({"value": values, "reports": counted})}


def _names_of_reports(host: PolarsHost, seats: pl.Series, numbers: pl.Series) -> Any:
    """Names of reports, on which a test's random numbers depend; None if this is no test."""
    if not host.randomness.is_test:
        return None
    spelled = pl.select(pl.concat_str(seats, numbers, separator=SEPARATOR)).to_series()
    return spelled.to_arrow().cast(pa.string())


@step
def ldp_kept(host: PolarsHost, *, values: int, keep: int) -> pl.LazyFrame:
    """The values that the most reports contain, which grow on the trie; of those that tie, the
    first (the paper keeps all of them)."""
    of_prefixes = host.table("reports").filter(pl.col("value") < values, pl.col("reports") > 0)
    in_order = of_prefixes.sort("reports", "value", descending=[True, False]).head(keep)
    return in_order.select("value", "reports")
