"""Altair charts have what the page's tables have, and intervals where people were counted."""

import sys

import pytest

from dphh import UsageError
from tests.report.every import COUNTED, release_of
from tests.report.made import PHRASES, counted, items, ladder, trie, within_country

pytest.importorskip("altair")


def drawn(chart):
    """The charts of a plot as Vega-Lite, and the rows of each."""
    spec = chart.to_dict()
    data = [each.get("data") or spec["data"] for each in spec["vconcat"]]
    rows = [spec["datasets"][each["name"]] for each in data]
    return list(zip(spec["vconcat"], rows, strict=True))


def test_people_have_bars_and_lines_from_low_to_high_on_a_scale():
    release = counted({"see you": (70, 20, 130), "hi": (200, 150, 260)})
    phrases, words = drawn(release.plot())
    for spec, (row,) in (phrases, words):
        assert [each["mark"]["type"] for each in spec["layer"]] == ["bar", "rule"]
        assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, row["high"]]
        assert row["low"] < row["value"] < row["high"]
    assert (phrases[0]["title"], words[0]["title"]) == ("phrases", "single words")


@pytest.mark.parametrize("how", [how for how in COUNTED if how])
def test_intervals_of_a_chart_are_those_of_the_table(how):
    release = release_of(900, f"{how}ngrams")
    seen = {
        (row["item"], row["group_name"], row["value"], row["low"], row["high"])
        for _, rows in drawn(release.plot(99))
        for row in rows
        if row["value"] is not None
    }
    columns = ("users", "low", "high")
    is_whole = release.to_polars()["item"].is_in(release.phrases()["item"].to_list())
    assert seen == {
        (row["item"], row.get("group_name", "all together"), *(row[name] for name in columns))
        for row, whole in zip(release, is_whole, strict=True)
        if whole and row.get("group_name") != "other"
    }
    assert seen


def test_weeks_are_a_line_in_a_band_in_their_order():
    weeks = ["2026-W45", "2026-W46", "2026-W47"]
    people = {"see you": dict.fromkeys(weeks, (70, 20, 130)) | {"other": (0, 0, 60)}}
    ((spec, rows),) = drawn(within_country(people, weeks).plot())
    assert [row["group_name"] for row in rows] == weeks
    assert [each["mark"]["type"] for each in spec["spec"]["layer"]] == ["area", "line"]
    band, line = (each["encoding"] for each in spec["spec"]["layer"])
    assert (band["y"]["field"], band["y2"]["field"], line["y"]["field"]) == ("low", "high", "value")
    assert line["x"]["sort"] is None and line["y"]["scale"]["domain"] == [0, 130]


def test_each_group_has_a_column_and_what_one_lacks_is_left_out():
    release = within_country({"see you": {"DE": (70, 20, 130)}, "hi": {"US": (9, 2, 16)}})
    (phrases, rows), _ = drawn(release.plot())
    assert phrases["facet"]["column"]["field"] == "group_name"
    assert [(row["group_name"], row["value"]) for row in rows] == [
        ("DE", 70),
        ("US", None),
    ]
    assert "rule" in {each["mark"]["type"] for each in phrases["spec"]["layer"]}


def test_scores_have_no_intervals_and_a_scale_for_each_length():
    charts = drawn(ladder({**PHRASES, "hi": 8.0}).plot(2))
    assert [[row["item"] for row in rows] for _, rows in charts] == [
        ["see you later"], ["see me", "you me"], ["hi"],
    ]  # fmt: skip
    assert [spec["encoding"]["x"]["scale"]["domain"][1] for spec, _ in charts] == [15, 20, 8]
    assert all(spec["mark"]["type"] == "bar" for spec, _ in charts)
    assert "no number of people" in charts[0][0]["encoding"]["x"]["title"]


def test_what_cannot_be_drawn_is_refused(monkeypatch):
    for nothing in (trie(), items(())):
        with pytest.raises(UsageError, match="plot: this release has neither counts nor scores"):
            nothing.plot()
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(UsageError, match=r"Altair is not installed; pip install 'dphh\[plot\]'"):
        ladder().plot()
