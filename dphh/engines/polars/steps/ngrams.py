"""Ladders of n-grams: `sql/ngrams`, whose comments explain the steps. DPNE's levels come first,
then the rounds of the forecast ladder. Noise is drawn between queries, on collected frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from dphh.engines.polars.steps import Tables, step
from dphh.engines.polars.steps.histograms import USERS_COLUMNS, histogram, summed
from dphh.udfs.noise.table import Bins

if TYPE_CHECKING:
    from dphh.engines.polars.host import PolarsHost

POSITIONS_COLUMNS = ("user_hashes", "lengths", "keys")


@step
def numbers_of_words(host: PolarsHost, *, released: Any) -> Tables:
    return _numbered(host, "users", host.call("numbers_of_words", "ids", released))


@step
def numbers_of_grams(host: PolarsHost, *, released: Any) -> Tables:
    return _numbered(host, "positions", host.call("numbers_of_grams", "keys", released))


def _numbered(host: PolarsHost, table: str, grams: pl.Expr) -> Tables:
    return {"numbered": host.table(table).select("block", "user_hashes", "lengths", grams=grams)}


@step
def valid_grams(host: PolarsHost) -> Tables:
    pairs = host.call("pairs", "lengths", "grams")
    candidates = host.table("numbered").select("block", "user_hashes", pairs=pairs)
    return {"next_positions": candidates.unnest("pairs")}


@step
def finds(host: PolarsHost) -> Tables:
    held = host.table("numbered").join(host.table("purses"), on="block")
    purse = host.call("finds", "lengths", "grams", "purse")
    return {"next_purses": held.select("block", purse=purse)}


@step
def unlisted_words(host: PolarsHost, *, first_unlisted_key: int) -> Tables:
    ids = pl.Series(range(len(host.words)), dtype=pl.Int64)
    words = pl.LazyFrame({"word": host.spelled(ids), "key": first_unlisted_key + ids})
    listed = host.table("listed").with_columns(pl.col("word").cast(pl.String))
    return {"unlisted_words": words.join(listed, on="word", how="anti")}


@step
def keys_by_list(host: PolarsHost) -> pl.LazyFrame:
    words = [host.table(name).select("word", "key") for name in ("listed", "unlisted_words")]
    return pl.concat(words).select(key=pl.col("word").cast(pl.String), value="key")


@step
def positions_with_list(
    host: PolarsHost, *, keys: Any, first_unlisted_key: int, max_items: int, salt: int
) -> Tables:
    users = host.table("users")
    counting = host.call("keys_of_words", *USERS_COLUMNS, keys, first_unlisted_key, max_items, salt)
    return {"positions": users.select("block", "user_hashes", "lengths", keys=counting)}


@step
def grams_level(
    host: PolarsHost,
    *,
    max_items: int,
    grid_bits: int,
    salt: int,
    sigma: int,
    purpose: str,
) -> Tables:
    users = host.table("positions")
    sums = histogram(
        host, users, "contributions_of_grams", *POSITIONS_COLUMNS, max_items, grid_bits, salt
    )
    return {"noised": host.noised(host.collect("grams_level", sums), sigma, purpose)}


@step
def spurious(host: PolarsHost, *, valid: Any, sigma: int, threshold: int, purpose: str) -> Tables:
    kept = pa.array([host.tables["noised"].height])
    drawn = host.functions["spurious"].body(kept, valid, sigma, threshold, purpose)
    return {"spurious": pl.Series(drawn.flatten()).struct.unnest()}


@step
def released_grams(host: PolarsHost, *, threshold: int) -> pl.LazyFrame:
    noised, spurious = host.table("noised"), host.table("spurious")
    # Of the keys drawn for absent grams, drop those that users hold; number the rest from 0.
    absent = (
        spurious.join(noised, on="key", how="anti")
        .sort("position")
        .select("key", position=pl.int_range(pl.len()))
    )
    noise = spurious.select("position", "noisy").drop_nulls("noisy")
    passing = absent.join(noise, on="position")
    passed = noised.filter(pl.col("noisy") >= threshold)
    return pl.concat([passed.select("key", "noisy"), passing.select("key", "noisy")])


@step
def full_purses(host: PolarsHost, *, purse: int) -> Tables:
    full = host.call("full_purses", "user_hashes", purse)
    return {"purses": host.table("users").select("block", purse=full)}


@step
def forecast_round_1(
    host: PolarsHost,
    *,
    spending: Any,
    bins: int,
    first_unlisted_key: int,
    unlisted_threshold: int,
    sigma: int,
    purpose: str,
) -> Tables:
    held = host.table("positions").join(host.table("purses"), on="block")
    sums = histogram(host, held, "round_1_contributions", "lengths", "keys", "purse", spending)
    round_1_sums = host.collect("forecast_round_1", sums)

    grams = round_1_sums.lazy().filter(pl.col("key") >= 0)
    classed = _with_classes(host, grams, first_unlisted_key)
    named = host.collect("forecast_round_1", _with_names(host, classed))
    noised = host.noised(named, sigma, f"{purpose}/round 1", named["name"])
    in_bins = pl.Series(Bins(sigma).bin_of(noised["noisy"].to_numpy()))
    is_listed = pl.col("class") >= 0
    unlisted = -1 - (pl.col("noisy") >= unlisted_threshold).cast(pl.Int64)
    cell = pl.when(is_listed).then(pl.col("class") * bins + in_bins).otherwise(unlisted)
    absent = _drawn_absent_grams(host, noised, sigma, purpose)
    undecided = noised.select("key", "name", first="noisy", cell=cell)
    return {"round_1_sums": round_1_sums, "undecided": undecided, "absent": absent}


@step
def forecast_users(host: PolarsHost, *, user_bins: int, sigma: int, purpose: str) -> Tables:
    bins = pl.LazyFrame({"bin": range(user_bins)}).with_columns(key=-1 - pl.col("bin"))
    sums = host.table("round_1_sums")
    counted = bins.join(sums, on="key", how="left", maintain_order="left")
    weights = host.collect("forecast_users", counted.with_columns(pl.col("weight").fill_null(0)))
    noised = host.noised(weights, sigma, f"{purpose}/users")
    return {"user_counts": noised.select("bin", "noisy")}


def _with_classes(host: PolarsHost, grams: pl.LazyFrame, first_unlisted_key: int) -> pl.LazyFrame:
    """Add to each (key, weight) the gram's class, which follows from the forecasts of its two
    pieces and, with a prior, from the public text. Words that a list lacks are of class -1."""
    forecasts, lifts = host.table("forecasts"), host.table("lifts")
    pieces = grams.with_columns(
        first_piece=pl.col("key") // 2**32, last_piece=pl.col("key") % 2**32
    )
    of_first = forecasts.select("as_first", "expected_first", first_piece="gram")
    of_last = forecasts.select("as_last", "expected_last", last_piece="gram")
    foretold = pl.col("as_first") + pl.col("as_last") + pl.col("shift")
    is_unlisted = pl.lit(first_unlisted_key >= 0) & (pl.col("key") >= first_unlisted_key)
    return (
        pieces.join(of_first, on="first_piece", how="left")
        .join(of_last, on="last_piece", how="left")
        .with_columns(expected=pl.col("expected_first") + pl.col("expected_last"))
        .join(lifts, on="expected", how="left")
        .join(host.table("public_grams"), on="key", how="left")
        .select(
            "key",
            "weight",
            pl.when(is_unlisted).then(-1).otherwise(pl.coalesce("class", foretold)).alias("class"),
        )
    )


def _with_names(host: PolarsHost, classed: pl.LazyFrame) -> pl.LazyFrame:
    """Add the names of grams, on which a test's draws depend. In a run the names are NULL."""
    if not host.randomness.is_test:
        return classed.with_columns(name=pl.lit(None, pl.String))
    words = host.table("unlisted_words").select("key", pl.col("word").cast(pl.String))
    name = pl.coalesce("other " + pl.col("word"), pl.col("key").cast(pl.String))
    return classed.join(words, on="key", how="left").with_columns(name=name).drop("word")


def _drawn_absent_grams(
    host: PolarsHost, noised: pl.DataFrame, sigma: int, purpose: str
) -> pl.DataFrame:
    """(cell, grams): how many absent grams each cell has, drawn for each class from the noise's
    distribution."""
    held = noised.lazy().group_by("class").agg(held=pl.len().cast(pl.Int64))
    grams = pl.col("valid") - pl.col("held").fill_null(0)
    classes = host.table("classes").join(held, on="class", how="left")
    absent = host.collect("forecast_round_1", classes.select("class", grams=grams).sort("class"))
    drawn = host.functions["absent_cells"].body(
        absent["class"].to_arrow(), absent["grams"].to_arrow(), sigma, purpose
    )
    return pl.Series(drawn.flatten()).struct.unnest()


@step
def forecast_cells(host: PolarsHost) -> pl.LazyFrame:
    in_classes = host.table("undecided").filter(pl.col("cell") >= 0)
    held = in_classes.group_by("cell").agg(grams=pl.len().cast(pl.Int64))
    parts = pl.concat([held, host.table("absent").select("cell", "grams")])
    return parts.group_by("cell").agg(pl.col("grams").sum())


@step
def user_counts(host: PolarsHost) -> pl.LazyFrame:
    return host.table("user_counts")


@step
def forecast_weights(host: PolarsHost) -> pl.LazyFrame:
    joined = host.table("undecided").join(host.table("planned"), on="cell")
    return joined.select("key", value="weight")


@step
def forecast_later_round(
    host: PolarsHost, *, spending: Any, g: Any, sigma: int, purpose: str
) -> Tables:
    held = host.table("positions").join(host.table("purses"), on="block")
    made = host.call("later_round_contributions", "lengths", "keys", "purse", g, spending)
    users = host.collect("forecast_later_round", held.select("block", made=made).unnest("made"))
    sums = summed(users.lazy().select("contributions"))
    # Every gram of round 1 gets noise, also those to which no user adds weight here.
    joined = host.table("undecided").join(sums, on="key", how="left")
    given = joined.select("key", "name", "cell", "first", pl.col("weight").fill_null(0))
    weighed = host.collect("forecast_later_round", given)
    noised = host.noised(weighed, sigma, f"{purpose}/later round", weighed["name"])

    absent = host.tables["absent"]
    columns_of_absent = (absent[name].to_arrow() for name in ("cell", "grams"))
    draw = host.functions["absent_nonpositive"].body
    nonpositive = pl.Series(draw(*columns_of_absent, sigma, purpose), dtype=pl.Int64)
    return {
        "later_round": noised.rename({"noisy": "second"}),
        "absent_counts": absent.with_columns(nonpositive=nonpositive),
        "next_purses": users.select("block", "purse"),
    }


@step
def forecast_undecided(host: PolarsHost, *, bins: int, sigma: int, purpose: str) -> Tables:
    thresholds = host.table("thresholds")
    below = pl.col("second") < pl.col("threshold")
    left = host.table("later_round").join(thresholds, on="cell").filter(below)
    held = host.collect("forecast_undecided", left)
    in_bins = pl.Series(Bins(sigma).bin_of(held["second"].to_numpy()))
    undecided = held.select(
        "key", "name", first=pl.lit(0, pl.Int64), cell=pl.col("cell") * bins + in_bins
    )
    released = host.tables["released"].select(
        "key",
        name=pl.col("key").cast(pl.String) if host.randomness.is_test else pl.lit(None, pl.String),
        first=pl.lit(0, pl.Int64),
        cell=pl.lit(-1, pl.Int64),
    )
    passed = host.table("spurious").drop_nulls("cell").group_by("cell")
    counted = passed.agg(passed=pl.len().cast(pl.Int64))
    absent = (
        host.table("absent_counts").join(thresholds, on="cell").join(counted, on="cell", how="left")
    )
    cells = host.collect("forecast_undecided", absent.with_columns(pl.col("passed").fill_null(0)))
    columns = ("cell", "grams", "nonpositive", "passed", "threshold")
    drawn = host.functions["absent_undecided"].body(
        *(cells[name].to_arrow() for name in columns), sigma, purpose
    )
    fallen = pl.Series(drawn.flatten()).struct.unnest()
    return {
        "undecided": pl.concat([undecided, released]),
        "absent": fallen.filter(pl.col("grams") > 0),
    }


@step
def late_purses(host: PolarsHost, *, spending: Any) -> Tables:
    purses = host.table("purses")
    made = host.call("purse_counts", "purse", spending)
    users = host.collect("late_purses", purses.select("block", made=made).unnest("made"))
    sums = host.collect("late_purses", summed(users.lazy().select("contributions")))
    return {"round_1_sums": sums, "next_purses": users.select("block", "purse")}


@step
def forecast_nonpositive_counts(host: PolarsHost) -> pl.LazyFrame:
    in_classes = host.table("later_round").filter(pl.col("cell") >= 0)
    held = in_classes.filter(pl.col("second") <= 0).group_by("cell")
    some = host.table("absent_counts").filter(pl.col("nonpositive") > 0)
    absent = some.select("cell", "nonpositive")
    parts = pl.concat([held.agg(nonpositive=pl.len().cast(pl.Int64)), absent])
    return parts.group_by("cell").agg(pl.col("nonpositive").sum())


@step
def forecast_spurious(
    host: PolarsHost, *, valid: Any, bins: int, sigma: int, purpose: str
) -> Tables:
    cells = host.table("absent_counts").join(host.table("thresholds"), on="cell")
    of_classes = cells.group_by(pl.col("cell").floordiv(bins).alias("class")).agg(
        cells=pl.struct("cell", "grams", "nonpositive", "threshold")
    )
    absent = host.collect("forecast_spurious", of_classes)
    drawn = host.functions["spurious_of_class"].body(
        absent["class"].to_arrow(), pa.array(absent["cells"].to_list()), valid, bins, sigma, purpose
    )
    spurious = absent.select("class", gram=pl.Series(drawn)).explode("gram").drop_nulls("gram")
    return {"spurious": spurious.unnest("gram")}


@step
def forecast_released(host: PolarsHost) -> pl.LazyFrame:
    columns = ("key", "cell", "first", "second")
    later_round, spurious = host.table("later_round"), host.table("spurious")
    reaches = pl.col("second") >= pl.col("threshold")
    held = later_round.join(host.table("thresholds"), on="cell").filter(reaches).select(columns)
    # Of the keys drawn for absent grams, drop those that users hold; number the rest of each class.
    unheld = (
        spurious.join(later_round, on="key", how="anti")
        .sort("class", "position")
        .select("class", "key", position=pl.int_range(pl.len()).over("class"))
    )
    drawn = spurious.drop("key").drop_nulls("cell")
    absent = unheld.join(drawn, on=["class", "position"]).select(columns)
    words = host.table("unlisted_words").select("key", pl.col("word").cast(pl.String))
    passed = pl.concat([held, absent]).join(words, on="key", how="left")
    return passed.with_columns(key=pl.when(pl.col("word").is_null()).then("key"))
