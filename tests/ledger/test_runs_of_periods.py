"""Runs of one week of a named corpus, by Python and by commands: repeated, refused, told."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import dphh
from dphh.cli import cli
from dphh.errors import BudgetRefused, DphhError
from dphh.ledger.corpora import source_of
from dphh.ledger.files_of_periods import with_files_of_periods

MONDAY = dt.date(2026, 11, 16)  # of 2026-W47


def week(folder: Path, number: int, words: str = "thank you", name: str = "week") -> Path:
    path = folder / f"{name}-{number}.parquet"
    days = [MONDAY + dt.timedelta(days=7 * number + who % 7) for who in range(300)]
    frame = {"author": range(300), "date": days, "body": [words] * 300}
    pl.DataFrame(frame).write_parquet(path)
    os.utime(path, ns=(10**18 + number, 10**18 + number))
    return path


@pytest.fixture
def named(tmp_path: Path, ledger: dphh.Ledger) -> dphh.Ledger:
    week(tmp_path, 0)
    corpus = dphh.Corpus(
        tmp_path / "week-*.parquet", user="author", text="body", period="date by week"
    )
    ledger.add("remarks", corpus, 1.0, 1e-7, person=(2.0, 1e-6))
    return ledger


def run(ledger: dphh.Ledger, periods: str, **options: object) -> dphh.Release:
    corpus = ledger.corpus("remarks", periods=periods)
    return dphh.items(corpus, epsilon=1.0, delta=1e-7).run(ledger=ledger, **options)  # type: ignore[arg-type]


def test_a_weeks_run_is_the_same_release_when_the_next_weeks_file_is_there(
    tmp_path: Path, named: dphh.Ledger
) -> None:
    first = run(named, "2026-W47")
    assert set(first.to_polars()["item"]) == {"thank", "you"}
    week(tmp_path, 1, "good morning")
    with pytest.warns(dphh.errors.Notice, match="nothing is spent"):
        assert run(named, "2026-W47").run_id == first.run_id
    second = run(named, "2026-W48")
    assert set(second.to_polars()["item"]) == {"good", "morning"}
    assert len(named.runs()) == 2
    assert [entry.source.periods for entry in named.runs()] == [((2968, 2968),), ((2969, 2969),)]


def test_rows_that_come_late_are_other_data_and_told(tmp_path: Path, named: dphh.Ledger) -> None:
    first = run(named, "2026-W47")
    week(tmp_path, 0, "late", name="week-late")
    said: list[str] = []
    with pytest.raises(BudgetRefused, match="'remarks' in 2026-W47"):
        run(named, "2026-W47", progress=said.append)
    assert any("rows that came late?" in line and first.run_id in line for line in said)
    with pytest.warns(UserWarning, match="they have changed since"):
        assert run(named, "2026-W47", run_id=first.run_id).run_id == first.run_id
    assert len(named.runs()) == 1


def test_a_run_that_was_cut_short_goes_on_when_other_weeks_files_came(
    tmp_path: Path, named: dphh.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dphh import run as flow

    def broken(*_: object) -> None:
        raise DphhError("cut short")

    with monkeypatch.context() as patched:
        patched.setattr(flow, "released", broken)
        with pytest.raises(DphhError, match="cut short"):
            run(named, "2026-W47")
    week(tmp_path, 1)
    assert len(run(named, "2026-W47")) == 2
    assert len(named.runs()) == 1


def test_files_are_told_by_their_footers_and_by_their_folders(tmp_path: Path) -> None:
    here = [week(tmp_path, number) for number in range(3)]
    (tmp_path / "week-of-nothing.parquet").write_bytes(b"")
    day = tmp_path / "days" / "date=2026-11-17"
    other = tmp_path / "days" / "date=2026-11-24"
    for folder in (day, other):
        folder.mkdir(parents=True)
        pl.DataFrame({"author": [1], "body": ["x"]}).write_parquet(folder / "part.parquet")

    def files(where: object, periods: str) -> set[str]:
        corpus = dphh.Corpus(
            where, user="author", text="body", period="date by week", periods=periods
        )
        found = with_files_of_periods(source_of(corpus)).where
        return {str(Path(file).relative_to(tmp_path)) for file in found}

    some = [str(path) for path in here]
    assert files(some, "2026-W48") == {"week-1.parquet"}
    assert files(some, "2026-W47..2026-W48") == {"week-0.parquet", "week-1.parquet"}
    unknown = str(tmp_path / "week-of-nothing.parquet")
    assert files([*some, unknown], "2026-W48") == {"week-1.parquet", "week-of-nothing.parquet"}
    assert files(tmp_path / "days", "2026-W47") == {"days/date=2026-11-17/part.parquet"}


def test_one_week_of_a_named_corpus_by_a_line_of_cron(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPHH_LEDGER", str(tmp_path / "own.sqlite"))
    for number in range(2):
        week(tmp_path, number)

    def asked(*words: str) -> tuple[int, str]:
        found = CliRunner().invoke(cli, list(words))
        if isinstance(found.exception, DphhError):
            return found.exception.exit_code, str(found.exception)
        return found.exit_code, found.output

    files = str(tmp_path / "week-*.parquet")
    add = ["ledger", "add", "remarks", files, "--user", "author", "--text", "body", "--period",
           "date by week", "--epsilon", "1", "--delta", "1e-7"]  # fmt: skip
    assert asked(*add, "--person-epsilon", "8")[0] == 2
    assert asked(*add, "--periods", "2026-W47")[0] == 2
    code, said = asked(*add, "--person-epsilon", "8", "--person-delta", "1e-6")
    assert (code, "a person over all periods: cap epsilon 8" in said) == (0, True)
    assert "nothing of it is used; left epsilon 8" in " ".join(said.split())
    code, said = asked("items", "remarks", "--period", "2026-W47", *add[-4:])
    assert (code, "is a period; periods= (--periods) reads it" in said) == (2, True)
    items = ["items", "remarks", "--epsilon", "0.9", "--delta", "1e-7", "--json", "--quiet"]
    made = [json.loads(asked(*items, "--periods", "2026-W47")[1]) for _ in range(2)]
    assert made[0]["run_id"] == made[1]["run_id"]
    assert made[0]["parameters"]["periods"] == ["2026-W47"]
    assert made[0]["privacy"]["of_periods"]["named"] == ["2026-W47"]
    assert asked(*items, "--periods", "2026-W47", "--again")[0] == 3
    code, said = asked(*items, "--periods", "2026-W48..2027-W20")
    assert (code, "Read one period at a time" in said) == (3, True)
    assert asked(*items)[0] == 3  # all: 2026-W47 has nothing left
    code, said = asked(*items, "--period", "date by month")
    assert (code, "leave these out" in said) == (2, True)
    assert asked(*items, "--periods", "47")[0] == 2
    shown = json.loads(asked("ledger", "show", "remarks", "--json")[1])
    assert shown["fullest"] == "2026-W47"
    assert [each["periods"] for each in shown["a_user_in_periods"]] == [1, 4, 52, 1]
    assert shown["person"]["cap"]["epsilon"] == 8
    connection = dphh.connect(ledger=tmp_path / "own.sqlite")
    found = connection.execute(
        "FROM dphh_items('remarks', periods := '2026-W48', epsilon := 0.9, delta := 1e-7)"
    ).fetchall()
    assert {row[1] for row in found} == {"thank", "you"}
    assert [run.source.periods for run in dphh.Ledger(tmp_path / "own.sqlite").runs()] == [
        ((2968, 2968),), ((2969, 2969),)
    ]  # fmt: skip
