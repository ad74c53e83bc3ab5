"""`where`, `since` and `until`: rows are left out one by one.

DuckDB chooses rows for Polars too, and Spark has a `where` of its own.
"""

import datetime as dt
import json
import time
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dphh
from dphh import Corpus, Ledger
from dphh.errors import CorpusError, UsageError
from dphh.reader.corpus import corpus_from_json
from tests.engines.test_same_data import digest

ROWS = {
    "who": list(range(400)),
    "what": [["red", "blue"][n % 2] for n in range(400)],
    "country": [["DE", "US", None, "o'x"][n // 2 % 4] for n in range(400)],
    "day": [dt.date(2026, 1, 1) + dt.timedelta(n % 10) for n in range(400)],
    "age": [str(n % 50) if n % 7 else "none of your business" for n in range(400)],
    "tags": [["a", "b"] if n % 3 else ["c"] for n in range(400)],
}
#: A condition, and the same in Python: no code is shared.
CONDITIONS: dict[str, Any] = {
    "country = 'DE'": lambda r: r["country"] == "DE",
    "country <> 'DE'": lambda r: r["country"] is not None and r["country"] != "DE",
    "country IS NULL OR country IN ('US', 'FR')": lambda r: r["country"] in (None, "US"),
    "country LIKE 'o''%' -- a comment": lambda r: r["country"] == "o'x",
    "day BETWEEN '2026-01-03' AND DATE '2026-01-04'": lambda r: 3 <= r["day"].day <= 4,
    "date_part('day', day) % 2 = 0 AND NOT starts_with(what, 'r')": (
        lambda r: r["day"].day % 2 == 0 and r["what"] == "blue"
    ),
    "CAST(age AS INTEGER) > 40": lambda r: r["age"].isdigit() and int(r["age"]) > 40,
    "CAST(age AS INTEGER) <= 3": lambda r: r["age"].isdigit() and int(r["age"]) <= 3,
    "list_contains(tags, 'a')": lambda r: "a" in r["tags"],
    "CASE WHEN country = 'US' THEN who < 90 ELSE who < 50 END": (
        lambda r: r["who"] < (90 if r["country"] == "US" else 50)
    ),
}


def users(corpus: Corpus) -> dict[str, int]:
    """How many hold each word, without noise to speak of."""
    plan = dphh.counts(corpus, of=["red", "blue"], epsilon=90.0, delta=1e-3, max_held=2)
    table = plan.run(again=True).table
    return dict(zip(table["item"].to_pylist(), table["users"].to_pylist(), strict=True))


def expected(keeps: Any) -> dict[str, int]:
    rows = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    return {w: sum(r["what"] == w and bool(keeps(r)) for r in rows) for w in ("red", "blue")}


def near(found: dict[str, int], wanted: dict[str, int]) -> bool:
    return all(abs(found[word] - wanted[word]) <= 2 for word in wanted)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pl.DataFrame(ROWS).write_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


@pytest.mark.parametrize("where", CONDITIONS)
def test_the_rows_count_of_which_a_condition_is_true(path: Path, where: str) -> None:
    corpus = Corpus(path, user="who", text="what", where=where)
    wanted = expected(CONDITIONS[where])
    assert sum(wanted.values()) > 5
    assert near(users(corpus), wanted)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("who = (SELECT max(who) FROM corpus)", "a subquery"),
        ("sum(who) OVER () > 3", "WINDOW"),
        ("random() > 0.5", "the function 'random'"),
        ("dphh_noise(who) > 1", "the function 'dphh_noise'"),
        ("main.lower(what) = 'a'", "the function 'lower'"),
        ("corpus.what = 'a'", "the name corpus.what"),
        ("what = ?", "PARAMETER"),
        ("COLUMNS(*) = 'a'", "STAR"),
        ("list_filter(tags, lambda t: t = 'a') = tags", "the function 'list_filter'"),
        ("what COLLATE nocase = 'a'", "COLLATE"),
        ("true UNION ALL SELECT 1", "more than a condition"),
        ("true; SELECT 1", "more than one statement"),
        ("true) OR (true", "syntax error"),
        ("1 = 1", "the condition names no column"),
        ("", "syntax error"),
        ("'" + "a" * 20_000 + "' = what", "20,009 characters"),
    ],
)
def test_what_asks_more_than_one_row_is_refused(where: str, said: str) -> None:
    with pytest.raises(UsageError, match=r"^where: ") as refused:
        Corpus("a.parquet", user="who", text="what", where=where)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"where": "contry = 'DE'"}, "no column 'contry'; did you mean 'country'"),
        ({"where": "Country = 'DE'"}, "no column 'Country'; did you mean 'country'"),
        ({"where": "current_date > day"}, "no column 'current_date'"),
        ({"where": "day > 'yesterday'"}, "where: Conversion Error"),
        ({"since": "day=yesterday"}, "since, until: found 'yesterday'"),
        ({"where": "tags > 3"}, "where: "),
        ({"where": "length(what)"}, "the condition gives BIGINT"),
    ],
)
def test_what_does_not_go_with_the_columns_is_refused_before_payment(
    path: Path, ledger: Ledger, asked: dict[str, str], said: str
) -> None:
    corpus = Corpus(path, user="who", text="what", **asked)
    with pytest.raises((UsageError, CorpusError)) as refused:
        dphh.items(corpus, epsilon=1.0, delta=1e-6).run(ledger=ledger)
    assert said in str(refused.value)
    assert ledger.runs() == []


def test_a_value_is_no_sql(path: Path) -> None:
    corpus = Corpus(path, user="who", text="what", since="country=o' OR 'a' = 'a")
    assert near(users(corpus), expected(lambda r: (r["country"] or "") >= "o' OR 'a' = 'a"))


def test_a_row_without_a_user_is_refused_though_the_condition_leaves_it_out(tmp_path: Path) -> None:
    pl.DataFrame({"who": ["ann", None], "what": ["a", "b"]}).write_parquet(tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", text="what", where="what = 'a'")
    with pytest.raises(CorpusError, match="NULL user id"):
        users(corpus)


def test_other_rows_are_another_request_and_the_manifest_says_which(
    path: Path, ledger: Ledger
) -> None:
    plans = [
        dphh.items(Corpus(path, user="who", text="what", where=where), epsilon=1.0, delta=1e-6)
        for where in (None, "country = 'DE'", "country = 'US'")
    ]
    _, german, _ = [plan.run(ledger=ledger) for plan in plans]
    assert len(ledger.runs()) == 3
    assert plans[1].run(ledger=ledger).run_id == german.run_id
    assert german.manifest["parameters"]["content"]["where"] == "country = 'DE'"
    assert corpus_from_json(json.loads(json.dumps(plans[1].corpus.to_json()))) == plans[1].corpus
    assert "where=\"country = 'DE'\"" in repr(plans[1].corpus)
    assert "country" in plans[1].sql()
    assert "of country DE" in repr(german)


def test_times_with_a_zone_are_compared_and_written_in_utc_wherever_the_machine_is(
    tmp_path, monkeypatch
):
    hours = pl.datetime_range(dt.datetime(2026, 11, 8), dt.datetime(2026, 11, 10), "1h")
    times = pl.select(at=hours.dt.replace_time_zone("UTC"))
    held = times.with_columns(what="at").with_row_index("who")
    held.write_parquet(tmp_path / "a.parquet")
    found = set()
    for zone in ("UTC", "America/New_York"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        for source in (held, tmp_path / "a.parquet"):
            berlin = dt.datetime(2026, 11, 9, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))
            same_moment = "at=2026-11-09", "at=2026-11-09 01:00:00+01", ("at", berlin)
            for since in same_moment:
                with warnings.catch_warnings(record=True, action="always") as told:
                    found.add(digest(source, text=None, item="what", since=since))
                assert ["of 'at' is that of UTC" in str(each.message) for each in told] == (
                    [True] if since == "at=2026-11-09" else []
                )
    monkeypatch.undo()
    time.tzset()
    midnight = held.filter(pl.col("at") >= dt.datetime(2026, 11, 9, tzinfo=dt.UTC))
    texts = midnight.with_columns(pl.col("what").dt.strftime("%Y-%m-%d %H:%M:%S+00"))
    assert found == {digest(texts, text=None, item="what")}
    unzoned = held.with_columns(pl.col("at").dt.replace_time_zone(None))
    for since in same_moment[1:]:
        with pytest.raises(UsageError, match="the times of 'at' have no zone, so '2026-11-09"):
            digest(unzoned, text=None, item="what", since=since)


@pytest.mark.parametrize("kind", [pl.Date, pl.Datetime, pl.String])
def test_since_and_until_take_dates(kind: Any) -> None:
    """In a column of texts too, where a midnight that is written out comes after its own day."""
    days = pl.DataFrame(ROWS).with_columns(pl.col("day").cast(kind))
    kept = days.filter(pl.col("day").cast(pl.String).str.slice(0, 10) == "2026-01-03")
    wanted = digest(kept, text=None, item="what")
    first, then = dt.date(2026, 1, 3), dt.datetime(2026, 1, 4)
    for since, until in ((first, then), (dt.datetime(2026, 1, 3), then.date())):
        rows = {"since": ("day", since), "until": ("day", str(until)[:10])}
        assert digest(days, text=None, item="what", **rows) == wanted


@pytest.mark.parametrize(
    ("since", "until"),
    [("2026-01-31", "2026-01-31"), ("2026-01-31", "2026-01-01"), ("2026-02", "2026-01"),
     ("2026-W05", "2026-W04")],
)  # fmt: skip
def test_days_between_which_nothing_lies_are_refused(since: str, until: str) -> None:
    """Such a run would be paid for. Of numbers and names nothing is known: 9 is before 10."""
    with pytest.raises(UsageError, match=rf"^until: found {until}, and since begins at {since}"):
        Corpus("a.csv", user="who", text="what", since=f"day={since}", until=f"day={until}")
    Corpus("a.csv", user="who", text="what", since=f"day={until}", until="day=2026-03")
    Corpus("a.csv", user="who", text="what", since="level=9", until="level=10")
    Corpus("a.csv", user="who", text="what", since="day=2026-01-31", until="made=2026-01-01")


@pytest.mark.parametrize(
    "value", [dt.date(2026, 1, 3), ("day", 3), ("", dt.date(2026, 1, 3)), "day>=2026"]
)
def test_a_date_needs_its_column(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^since: found .*a column and a date"):
        Corpus("a.csv", user="who", text="what", since=value)


@pytest.mark.parametrize("value", ["01.11.2026", "1/11/26", "01-11-2026 10:00"])
def test_a_day_whose_year_is_not_first_is_refused(value):
    """In a column of texts it would be compared letter by letter, and keep what it should not."""
    for option in ("since", "until"):
        with pytest.raises(UsageError, match=rf"^{option}: found '{value}', whose year is not"):
            Corpus("a.csv", user="who", text="what", **{option: f"day={value}"})
    Corpus("a.csv", user="who", text="what", since="version=1.26.3", until="week=2026-W46")
