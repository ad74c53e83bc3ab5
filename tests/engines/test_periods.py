"""A unit of one period: (user, period) on every engine, by an oracle of Python's own calendar."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from math import isqrt
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dphh import Corpus, CorpusError, UsageError, counts, items, ngrams, trie
from dphh.plan import plan_from_json
from tests.engines.levels import histogram
from tests.engines.tries import grown, prefixes

FEW = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
#: About the ends of weeks, months, quarters and years, before 1970 too.
DATES = st.sampled_from(
    [
        dt.date(*each)
        for each in [
            (2026, 11, 22), (2026, 11, 23), (2026, 11, 29), (2026, 11, 30), (2026, 12, 31),
            (2027, 1, 1), (2027, 1, 3), (2027, 1, 4), (2021, 1, 1), (2020, 2, 29), (1970, 1, 1),
            (1969, 12, 28), (1969, 12, 29), (1900, 1, 1), (1899, 12, 31),
        ]
    ]
)  # fmt: skip
ROWS = st.lists(
    st.tuples(st.sampled_from(["", "1", "11", "é", "1:1"]), DATES, st.sampled_from("xyz")),
    min_size=1,
    max_size=20,
)
PERIODS = {
    "day": lambda day: day,
    "week": lambda day: day.isocalendar()[:2],
    "month": lambda day: (day.year, day.month),
    "quarter": lambda day: (day.year, (day.month - 1) // 3),
    "year": lambda day: day.year,
}


def written(tmp_path, rows, period="date by week", schema=("who", "date", "what"), **options):
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(path)
    if "item" not in options:
        options["text"] = "what"
    return Corpus(path, user="who", period=period, **options)


def plain_histogram(units, max_items):
    """What each unit's words weigh, where no unit holds more than it may."""
    held = defaultdict(set)
    for unit, text in units:
        held[unit] |= set(text.split())
    weights = defaultdict(int)
    for words in held.values():
        assert len(words) <= max_items
        for word in words:
            weights[word] += isqrt(4**10 // len(words))
    return dict(weights)


@pytest.mark.on_spark
@pytest.mark.parametrize("by", PERIODS)
@given(rows=ROWS)
@example(rows=[("1", dt.date(2026, 11, 29), "x"), ("1", dt.date(2026, 11, 30), "y")])
@example(rows=[("1", dt.date(1969, 12, 28), "x"), ("1", dt.date(1969, 12, 29), "y")])
@FEW
def test_a_users_rows_of_each_period_are_one_unit(engine, tmp_path, no_noise, by, rows):
    corpus = written(tmp_path, rows, f"date by {by}")
    units = [((who, PERIODS[by](day)), what) for who, day, what in rows]
    assert histogram(engine, corpus, no_noise, 10) == plain_histogram(units, 10)


@pytest.mark.on_spark
@given(rows=ROWS)
@FEW
def test_a_run_reads_the_rows_of_its_periods_alone(engine, tmp_path, no_noise, rows):
    corpus = written(tmp_path, rows, periods="2026-W47..2026-W48,2026-W53")
    read = {(2026, 47), (2026, 48), (2026, 53)}
    units = [
        ((who, week), what) for who, day, what in rows if (week := day.isocalendar()[:2]) in read
    ]
    assert histogram(engine, corpus, no_noise, 10) == plain_histogram(units, 10)


@pytest.mark.on_spark
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Los_Angeles"])
def test_an_instant_has_its_date_in_the_zone_that_is_said(engine, tmp_path, no_noise, zone):
    start = dt.datetime(2026, 3, 28, 22, 30, tzinfo=dt.UTC)  # about a change of clocks, too
    moments = [start + dt.timedelta(hours=hour) for hour in range(0, 48, 3)]
    rows = [("ann", moment, f"w{place}") for place, moment in enumerate(moments)]
    schema = {"who": pl.String, "date": pl.Datetime("us", "Asia/Tokyo"), "what": pl.String}
    rows = [(who, moment.astimezone(ZoneInfo("Asia/Tokyo")), what) for who, moment, what in rows]
    said = "" if zone == "UTC" else f" in {zone}"
    corpus = written(tmp_path, rows, f"date by day{said}", schema)
    units = [(moment.astimezone(ZoneInfo(zone)).date(), what) for _, moment, what in rows]
    assert histogram(engine, corpus, no_noise, 100) == plain_histogram(units, 100)


@pytest.mark.on_spark
def test_a_timestamp_without_a_zone_has_the_date_that_it_is_written_with(
    engine, tmp_path, no_noise
):
    rows = [
        ("ann", dt.datetime(2026, 11, 29, 23, 59), "x"),
        ("ann", dt.datetime(2026, 11, 30, 0, 0), "y"),
        ("ann", dt.datetime(2026, 11, 30, 23, 59), "z"),
    ]
    corpus = written(tmp_path, rows, "date by day in Asia/Tokyo")
    units = [(moment.date(), what) for _, moment, what in rows]
    assert histogram(engine, corpus, no_noise, 10) == plain_histogram(units, 10)


@pytest.mark.on_spark
@pytest.mark.parametrize("spelled", [False, True])
def test_whole_numbers_are_periods_as_they_are(engine, tmp_path, no_noise, spelled):
    rows = [("ann", number, word) for number, word in [(47, "x"), (-1, "y"), (47, "z"), (5, "u")]]
    if spelled:
        rows = [(who, str(number), word) for who, number, word in rows]
    corpus = written(tmp_path, rows, "date")
    units = [(number, what) for _, number, what in rows]
    assert histogram(engine, corpus, no_noise, 10) == plain_histogram(units, 10)
    some = corpus.in_periods("-1..5")
    units = [(number, what) for number, what in units if int(number) < 6]
    assert histogram(engine, some, no_noise, 10) == plain_histogram(units, 10)


@pytest.mark.on_spark
def test_dates_that_folders_and_files_of_text_spell_are_dates(engine, tmp_path, no_noise):
    for day, word in (("2026-11-29", "x"), ("2026-11-30", "y"), ("2026-12-01", "z")):
        folder = tmp_path / "days" / f"date={day}"
        folder.mkdir(parents=True)
        pl.DataFrame({"who": ["ann"], "what": [word]}).write_parquet(folder / "part.parquet")
    options = {"user": "who", "period": "date by week", "text": "what"}
    expected = plain_histogram([(47, "x"), (48, "y"), (48, "z")], 10)
    assert histogram(engine, Corpus(tmp_path / "days", **options), no_noise, 10) == expected
    path = tmp_path / "days.csv"
    path.write_text("who,date,what\nann,2026-11-29,x\nann,2026-11-30,y\nann,2026-12-01,z\n")
    assert histogram(engine, Corpus(path, **options), no_noise, 10) == expected


@pytest.mark.parametrize("chosen", [None, "2026-W47"])
@pytest.mark.parametrize("date", [None, "2026-11-31", "yesterday", "2026-11-23\n", "11/23/2026"])
def test_a_row_without_a_date_is_refused_before_anything_is_paid(
    engine, tmp_path, ledger, date, chosen
):
    rows = [("ann", "2026-11-23", "x"), ("bob", date, "secret")]
    corpus = written(tmp_path, rows, periods=chosen)
    with pytest.raises(CorpusError, match=r"with a date that is NULL, .*Nothing was spent"):
        items(corpus, epsilon=1, delta=1e-6).run(engine=engine, ledger=ledger)
    path = tmp_path / "corpus.csv"
    pl.DataFrame(rows, schema=["who", "date", "what"], orient="row").write_csv(path)
    corpus = Corpus(path, user="who", period="date by week", periods=chosen, text="what")
    with pytest.raises(CorpusError, match=r"with a date that is NULL, .*Nothing was spent"):
        items(corpus, epsilon=1, delta=1e-6).run(engine=engine, ledger=ledger)
    assert ledger.runs() == []


def test_an_infinite_date_is_none(tmp_path, ledger):
    import duckdb

    path = tmp_path / "corpus.parquet"
    for kind in ("DATE", "TIMESTAMP", "TIMESTAMPTZ"):
        duckdb.sql(f"SELECT 'ann' AS who, 'x' AS what, 'infinity'::{kind} AS date").write_parquet(
            str(path)
        )
        corpus = Corpus(path, user="who", period="date by month", text="what")
        with pytest.raises(CorpusError, match="infinite"):
            items(corpus, epsilon=1, delta=1e-6).run(ledger=ledger)
    assert ledger.runs() == []


def test_a_row_of_nobody_in_a_period_that_is_not_read_harms_nothing(engine, tmp_path, ledger):
    rows = [("ann", dt.date(2026, 11, 23), "x"), (None, dt.date(2026, 11, 30), "y")]
    corpus = written(tmp_path, rows, periods="2026-W48")
    items(corpus, epsilon=1, delta=1e-6).run(engine=engine, ledger=ledger)
    with pytest.raises(CorpusError, match="a NULL user id"):
        items(corpus.in_periods("2026-W49"), epsilon=1, delta=1e-6).run(
            engine=engine, ledger=ledger
        )


@pytest.mark.parametrize("values", [[1.5], [True], [["a"]], [b"2026-11-23"]])
def test_a_column_of_another_type_is_refused(engine, tmp_path, ledger, values):
    for period in ("date by week", "date"):
        corpus = written(tmp_path, [("ann", *values, "x")], period)
        with pytest.raises(CorpusError, match=rf"^period: {period}: the column is "):
            items(corpus, epsilon=1, delta=1e-6).run(engine=engine, ledger=ledger)
    missing = written(tmp_path, [("ann", 1, "x")], "when by week")
    with pytest.raises(CorpusError, match=r"^period: the corpus has no column 'when'"):
        items(missing, epsilon=1, delta=1e-6).run(engine=engine, ledger=ledger)
    assert ledger.runs() == []


@pytest.mark.on_spark
def test_a_user_is_bounded_in_each_period(engine, tmp_path, no_noise):
    weeks = [dt.date(2026, 11, 2) + dt.timedelta(weeks=week) for week in range(3)]
    rows = [("ann", week, f"{word}") for week in weeks for word in range(20)]
    found = histogram(engine, written(tmp_path, rows), no_noise, 4)
    assert sum(found.values()) == 3 * 4 * isqrt(4**10 // 4)


def test_in_a_trie_a_user_has_one_sequence_a_period(engine, tmp_path):
    days = [dt.date(2026, 11, 23), dt.date(2026, 11, 24), dt.date(2026, 11, 30)]
    rows = [("ann", day, word) for day, word in zip(days, ["ab", "ab", "ab"], strict=True)]
    found = grown(engine, written(tmp_path, rows, item="what"), 2, 2)
    assert [prefixes(level) for level in found] == [{(("a",), False)}, {(("a", "b"), False)}]
    within_one_week = written(tmp_path, rows[:2], item="what")
    assert [prefixes(level) for level in grown(engine, within_one_week, 2, 2)] == [set(), set()]


def test_people_are_counted_in_one_period_alone(tmp_path, ledger):
    monday = dt.date(2026, 11, 23)
    rows = [(str(user), monday + dt.timedelta(days=user % 14), "x") for user in range(400)]
    corpus = written(tmp_path, rows, item="what")
    asked = {"of": [["x"]], "epsilon": 5, "delta": 1e-6}
    for several in (corpus, corpus.in_periods("2026-W48..2026-W49")):
        with pytest.raises(UsageError, match="name one ISO week with periods="):
            counts(several, **asked)
    release = counts(corpus.in_periods("2026-W48"), **asked).run(ledger=ledger)
    assert abs(release.to_polars()["users"][0] - 203) < 30


def test_nobody_takes_it_for_a_promise_to_a_person(tmp_path, ledger):
    rows = [("ann", dt.date(2026, 11, 23), "x")] * 3
    corpus = written(tmp_path, rows, "date by week in Europe/Berlin", periods="2026-W48")
    plan = items(corpus, epsilon=1, delta=1e-6)
    privacy = plan.privacy
    assert privacy.protects == "period"
    assert privacy.unit == (
        "all rows of one user in one ISO week of date (Europe/Berlin where it has a time zone); "
        "NOT a person, who may be in many"
    )
    assert privacy.adjacency == "add or remove all rows of one user in one ISO week"
    assert [each.periods for each in privacy.of_periods.apart] == [1, 4, 52]
    said = " ".join(plan.describe(ledger).split())
    release = plan.run(ledger=ledger)
    page = release.report(tmp_path / "page.html")
    shown = " ".join(repr(release).split()), plan._repr_html_(), release._repr_html_()
    for text in (said, *shown, (tmp_path / "page.html").read_text() if page is None else str(page)):
        assert "NOT a promise to a person as a whole" in text or text == str(page)
        assert "k = 1: (1, 1e-06), 4: (" in text or text == str(page)
    assert release.manifest["privacy"] == privacy.to_json()
    assert release.manifest["parameters"]["periods"] == ["2026-W48"]
    assert plan_from_json(plan.dumps()) == plan


def test_a_run_over_several_periods_says_that_they_do_not_compose(tmp_path):
    corpus = written(tmp_path, [("ann", dt.date(2026, 11, 23), "x")])
    every = items(corpus, epsilon=1, delta=1e-7).privacy
    assert "reads all periods at once, and does not hide who is in several" in every.caveats[1]
    assert [each.periods for each in every.of_periods.at_once] == [4, 52]
    assert every.of_periods.at_once[1].epsilon is None
    some = ngrams(
        corpus.in_periods("2026-W40..2026-W42"), max_n=2, epsilon=1, delta=1e-7
    ).privacy.of_periods
    assert [each.periods for each in some.at_once] == [3]
    assert some.at_once[0].epsilon == pytest.approx(3)
    assert some.at_once[0].delta == pytest.approx(1e-7 * (1 + 2.718281828 + 7.389056099))


@pytest.mark.parametrize(
    ("period", "said"),
    [
        ("date by fortnight", "found 'date' by 'fortnight'"),
        ("date by week in Nowhere/City", "IANA"),
        ("", "write 'date by week'"),
        (7, "write 'date by week'"),
        *((name, "periods= .--periods. reads it") for name in ("2026-W47", "2026-11..2026-12")),
    ],
)
def test_a_period_that_there_is_not_is_refused(period, said):
    with pytest.raises(UsageError, match=said):
        Corpus("x.parquet", user="who", text="what", period=period)


@pytest.mark.parametrize(
    "periods", ["2026-W54", "2026-47", "W47", "2026-W47..2026-W46", "", [], [47], "2026-W47.."]
)
def test_periods_that_there_are_not_are_refused(periods):
    with pytest.raises(UsageError, match=r"^periods: found"):
        Corpus("x.parquet", user="who", text="what", period="date by week", periods=periods)
    with pytest.raises(UsageError, match=r"^periods: goes with"):
        Corpus("x.parquet", user="who", text="what", periods="2026-W47")


def test_a_trie_of_one_period_is_priced(tmp_path):
    corpus = written(tmp_path, [("ann", dt.date(2026, 11, 23), "x")], item="what")
    privacy = trie(corpus, epsilon=1, delta=1e-7, max_length=3).privacy
    assert privacy.protects == "period"
    # Steps of an epsilon of their own: 52 of them come to no less than their sum at this delta.
    assert privacy.of_periods.apart[2].epsilon == pytest.approx(52, rel=1e-3)
