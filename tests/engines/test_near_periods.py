"""A run of some periods passes over what cannot hold them, and that changes nothing else."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, CorpusError, items
from tests.engines.levels import histogram
from tests.engines.test_periods import PERIODS, plain_histogram

MONDAY = dt.date(2026, 11, 16)  # of 2026-W47
KINDS = {
    "date": pa.date32(),
    "written": pa.timestamp("us"),
    "instant": pa.timestamp("us", "UTC"),
    "of Tokyo": pa.timestamp("us", "Asia/Tokyo"),
}
#: Moments have the periods of each zone, whichever zone their column has; what has no zone has them
#: in none.
ZONES = ["UTC", "Pacific/Kiritimati", "America/Los_Angeles"]
KINDS_AND_ZONES = [
    *(("instant", zone) for zone in ZONES),
    ("of Tokyo", "America/Los_Angeles"),
    ("date", "Pacific/Kiritimati"),
    ("written", "America/Los_Angeles"),
]
EDGES = [
    dt.datetime(*day, hour, minute, tzinfo=dt.UTC)
    for day in [(2025, 12, 31), (2026, 1, 1), (2026, 11, 15), (2026, 11, 16), (2026, 11, 30)]
    for hour, minute in [(0, 0), (8, 59), (9, 0), (14, 59), (23, 59)]
]


def week(folder: Path, number: int, kind: pa.DataType, users: int = 200) -> Path:
    path = folder / f"week-{number}.parquet"
    start = dt.datetime.combine(MONDAY, dt.time(), dt.UTC) + dt.timedelta(weeks=number)
    moments = [start + dt.timedelta(hours=24 * (user % 7) + 1) for user in range(users)]
    if not (pa.types.is_timestamp(kind) and kind.tz):
        moments = [moment.replace(tzinfo=None) for moment in moments]
    dates = pa.array(moments, pa.timestamp("us", getattr(kind, "tz", None))).cast(kind)
    table = {"who": range(users), "date": dates, "what": [f"week {number}"] * users}
    pq.write_table(pa.table({**table, "who": pa.array(table["who"])}), path)
    return path


def spoil(path: Path) -> None:
    """All pages are damaged; the footer, with its statistics, stays."""
    found = bytearray(path.read_bytes())
    footer = len(found) - 8 - int.from_bytes(found[-8:-4], "little")
    found[4:footer] = b"\xff" * (footer - 4)
    path.write_bytes(found)


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("kind", KINDS)
def test_a_week_is_read_without_the_pages_of_other_weeks(engine, tmp_path, ledger, kind):
    if (engine, kind) == ("spark", "written"):
        pytest.skip("Spark skips nothing by timestamps without a zone")
    if engine == "duckdb" and duckdb.__version__ < "2":
        pytest.skip("DuckDB skips by such a condition from 2.0 on")
    paths = [week(tmp_path, number, KINDS[kind]) for number in range(5)]
    corpus = Corpus(tmp_path, user="who", item="what", period="date by week")
    for number in (0, 1, 4):
        spoil(paths[number])
    plan = items(corpus.in_periods("2026-W49..2026-W50"), epsilon=2, delta=1e-6)
    assert {row["item"] for row in plan.run(engine=engine, ledger=ledger)} == {"week 2", "week 3"}


@pytest.mark.on_spark
@pytest.mark.parametrize("by", PERIODS)
@pytest.mark.parametrize(("kind", "zone"), KINDS_AND_ZONES)
def test_no_row_of_a_period_is_passed_over(engine, tmp_path, no_noise, by, kind, zone):
    """About the ends of every kind of period, by the clocks 14 hours before and 8 after UTC."""
    zoned = kind in ("instant", "of Tokyo")
    moments = EDGES if zoned else [moment.replace(tzinfo=None) for moment in EDGES]
    stamps = pa.array(moments, pa.timestamp("us", "UTC" if zoned else None)).cast(KINDS[kind])
    words = [f"w{place}" for place in range(len(EDGES))]
    path = tmp_path / "corpus.parquet"
    rows = {"who": ["ann"] * len(EDGES), "date": stamps, "what": words}
    pq.write_table(pa.table(rows), path, row_group_size=1)
    period = f"date by {by}" + ("" if zone == "UTC" else f" in {zone}")
    corpus = Corpus(path, user="who", text="what", period=period)
    days = [
        moment.astimezone(ZoneInfo(zone)).date() if zoned else moment.date() for moment in EDGES
    ]
    looked_at = sorted(set(days))[:2] + sorted(set(days))[-2:]
    for name, day in {corpus.period.name(corpus.period.at(day)): day for day in looked_at}.items():
        units = [
            (PERIODS[by](of), word)
            for of, word in zip(days, words, strict=True)
            if PERIODS[by](of) == PERIODS[by](day)
        ]
        found = histogram(engine, corpus.in_periods(name), no_noise, 100)
        assert found == plain_histogram(units, 100)


def test_a_row_without_a_date_is_refused_wherever_it_is(engine, tmp_path, ledger):
    week(tmp_path, 0, pa.date32())
    pl.DataFrame({"who": [1], "date": [None], "what": ["x"]}).cast({"date": pl.Date}).write_parquet(
        tmp_path / "late.parquet"
    )
    corpus = Corpus(tmp_path, user="who", item="what", period="date by week", periods="2026-W47")
    with pytest.raises(CorpusError, match=r"with a date that is NULL, .*Nothing was spent"):
        items(corpus, epsilon=1, delta=1e-6).run(engine=engine, ledger=ledger)


def test_an_infinite_date_of_another_file_is_refused_too(tmp_path, ledger):
    import duckdb

    week(tmp_path, 0, pa.date32())
    for kind in ("DATE", "TIMESTAMP", "TIMESTAMPTZ"):
        for infinite in ("infinity", "-infinity"):
            duckdb.sql(f"SELECT 1 AS who, '{infinite}'::{kind} AS date, 'x' AS what").write_parquet(
                str(tmp_path / "late.parquet")
            )
            corpus = Corpus(
                tmp_path / "late.parquet", user="who", item="what", period="date by week",
                periods="2026-W47",
            )  # fmt: skip
            with pytest.raises(CorpusError, match="infinite"):
                items(corpus, epsilon=1, delta=1e-6).run(ledger=ledger)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])  # Spark refuses such files
def test_what_other_weeks_hold_does_not_change_how_a_week_is_read(engine, tmp_path, no_noise):
    """Types are those of all files, also of those that are passed over: 1 beside 1.5 is 1.0."""
    week(tmp_path, 0, pa.date32(), users=1)
    for number, value in ((1, 1), (2, 1.5)):
        day = MONDAY + dt.timedelta(weeks=number)
        pl.DataFrame({"who": ["ann"], "date": [day], "n": [value]}).write_parquet(
            tmp_path / f"n-{number}.parquet"
        )
    corpus = Corpus(tmp_path / "n-*.parquet", user="who", item="n", period="date by week")
    found = histogram(engine, corpus.in_periods("2026-W48"), no_noise, 10)
    assert list(found) == ["1.0"]


def of_int96(folder: Path) -> Path:
    path = folder / "corpus.parquet"
    moments = pa.array(EDGES, pa.timestamp("ns", "UTC"))
    rows = {"who": ["ann"] * len(EDGES), "date": moments, "what": [f"w{n}" for n in range(25)]}
    # As Spark writes it: no schema of Arrow beside it, which Polars would believe.
    pq.write_table(pa.table(rows), path, use_deprecated_int96_timestamps=True, store_schema=False)
    return path


@pytest.mark.on_spark
def test_int96_has_the_same_weeks_on_every_engine(engine, tmp_path, no_noise):
    path = of_int96(tmp_path)
    assert "int96" in str(pq.read_metadata(path).schema)
    corpus = Corpus(path, user="who", text="what", period="date by week")
    units = [(moment.isocalendar()[:2], f"w{n}") for n, moment in enumerate(EDGES)]
    assert histogram(engine, corpus, no_noise, 100) == plain_histogram(units, 100)
    of_47 = [(week, word) for week, word in units if week == (2026, 47)]
    found = histogram(engine, corpus.in_periods("2026-W47"), no_noise, 100)
    assert found == plain_histogram(of_47, 100)


@pytest.mark.on_spark
def test_int96_in_another_zone_is_refused_before_it_is_paid(engine, tmp_path, ledger):
    path = of_int96(tmp_path)
    corpus = Corpus(path, user="who", text="what", period="date by week in Europe/Berlin")
    with pytest.raises(CorpusError, match="is INT96, which does not say"):
        items(corpus, epsilon=1, delta=1e-6).run(engine=engine, ledger=ledger)
    assert ledger.runs() == []


def test_a_session_of_another_zone_has_the_same_weeks(spark, tmp_path, no_noise):
    """Spark's own time zone decides nothing: of files, and of a frame that is made in it."""
    moments = pa.array(EDGES, pa.timestamp("us", "UTC"))
    naive = moments.cast(pa.timestamp("us"))
    rows = {"who": ["ann"] * len(EDGES), "what": [f"w{n}" for n in range(25)]}
    path, before = tmp_path / "corpus.parquet", spark.conf.get("spark.sql.session.timeZone")
    pq.write_table(pa.table({**rows, "instant": moments, "written": naive}), path)
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
    try:
        frame = spark.read.parquet(str(path))
        for source in (path, frame):
            for column, zone in (("instant", "UTC"), ("instant", "Asia/Tokyo"), ("written", "UTC")):
                period = f"{column} by day" + ("" if zone == "UTC" else f" in {zone}")
                corpus = Corpus(source, user="who", text="what", period=period)
                days = [moment.astimezone(ZoneInfo(zone)).date() for moment in EDGES]
                units = [(day, f"w{n}") for n, day in enumerate(days)]
                assert histogram("spark", corpus, no_noise, 100) == plain_histogram(units, 100)
                some = [unit for unit in units if unit[0] == dt.date(2026, 11, 16)]
                found = histogram("spark", corpus.in_periods("2026-11-16"), no_noise, 100)
                assert found == plain_histogram(some, 100)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
