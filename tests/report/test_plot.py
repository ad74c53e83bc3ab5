"""Altair charts have what the page's tables have, and intervals where people were counted."""

from __future__ import annotations

import sys

import pytest

from dphh import UsageError
from tests.report.made import HOSTILE, counted, items, ladder, trie, within_country

pytest.importorskip("altair")


def drawn(chart):
    """The chart as Vega-Lite, and its rows."""
    spec = chart.to_dict()
    (rows,) = spec["datasets"].values()
    return spec, rows


def test_people_have_bars_and_lines_from_low_to_high_on_one_scale():
    release = counted({"see you": (70, 20, 130), "see": (200, 150, 260)})
    spec, rows = drawn(release.plot())
    assert [mark["mark"]["type"] for mark in spec["spec"]["layer"]] == ["bar", "rule"]
    assert [(row["item"], row["low"], row["value"], row["high"]) for row in rows] == [
        ("see you", 20, 70, 130), ("see", 150, 200, 260),
    ]  # fmt: skip
    assert spec["resolve"]["scale"]["x"] == "shared"


def test_scores_have_no_intervals_and_a_scale_for_each_length():
    spec, rows = drawn(ladder().plot(2))
    assert spec["spec"]["mark"]["type"] == "bar"
    assert "no number of people" in spec["spec"]["encoding"]["x"]["title"]
    assert [row["item"] for row in rows] == ["see you later", "see you", "you later", "see", "you"]
    assert spec["resolve"]["scale"]["x"] == "independent"


def test_groups_are_columns():
    spec, rows = drawn(within_country({"see": {"DE": (9, 4, 14), "other": (7, 2, 12)}}).plot())
    assert spec["facet"]["column"]["title"] == "country"
    assert [(row["group"], row["value"]) for row in rows] == [("DE", 9), ("other", 7)]


def test_hostile_items_are_text():
    _, rows = drawn(items(HOSTILE).plot())
    assert not set("".join(row["item"] for row in rows)) & set("\x1b\x07\0\u202e\r\uffff")


def test_what_cannot_be_drawn_is_refused(monkeypatch):
    for release in (trie(), items(())):
        with pytest.raises(UsageError, match="plot: this release has neither counts nor scores"):
            release.plot()
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(UsageError, match=r"Altair is not installed; pip install 'dphh\[plot\]'"):
        ladder().plot()
