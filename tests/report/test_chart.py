"""Charts: people where people were counted; else a score that nobody mistakes for them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from dphh import Release, UsageError
from dphh.report.page import page_of
from tests.report.made import PHRASES, counted, items, ladder, trie

HOSTILE = [
    "<script>alert(1)</script>", "</svg>&amp;\"'", "\x1b[31mred\x07", "\u202eevil", "a\0b",
    "line\nbreak\r", "日本🙂", "شكرا", "x" * 500, "\uffff", "]]>",
]  # fmt: skip


def test_each_length_has_a_panel_and_a_scale_of_its_own():
    chart = ladder().chart(2)
    assert [panel.title for panel in chart.panels] == ["1 word", "2 words", "3 words"]
    assert [bar.text for bar in chart.panels[0].bars] == ["see", "you"]
    assert [panel.more for panel in chart.panels] == [3, 3, 0]
    assert chart._repr_html_().count("width='100.00%'") == 3


def test_a_score_is_never_called_people():
    for shown in (ladder().chart()._repr_html_(), ladder().chart()._repr_svg_(),
                  repr(ladder().chart())):  # fmt: skip
        assert "Noised weights" in shown
        assert "no numbers of people" in " ".join(shown.split())
    local = items()
    local.manifest["verb"] = "ldp_trie"
    assert "reports" in local.chart().measure


def test_people_have_intervals_and_decide_the_order():
    counts = counted({"see": (200, 150, 260), "you": (900, 850, 960), "see you": (70, 20, 130)})
    chart = ladder().chart(counts=counts)
    assert "People" in chart.measure
    assert [panel.title for panel in chart.panels] == ["2 words and more", "1 word"]
    assert [(bar.text, bar.value) for bar in chart.panels[1].bars] == [("you", 900), ("see", 200)]
    # What was not counted has no bar, and no panel of its own before what was.
    assert "8 were not counted" in chart.measure
    assert "850–960" in chart._repr_html_()
    assert counts.chart().panels[1].bars[0].text == "you"


def test_a_longer_phrase_goes_before_what_only_repeats_it():
    counts = counted(
        {
            "has not arrived": (2_900, 2_850, 2_950),
            "order has not arrived": (2_927, 2_880, 2_980),
            "not arrived": (4_000, 3_950, 4_050),
        }
    )
    (panel,) = counts.chart().panels
    assert [bar.text for bar in panel.bars] == ["not arrived", "order has not arrived"]
    # Counts that noise drowns do not hide what many people hold.
    noisy = counted({"order lost": (495, 219, 770), "thanks order lost": (119, 0, 394)})
    bars = noisy.chart().panels[0].bars
    assert [bar.text for bar in bars] == ["order lost", "thanks order lost"]
    half = counted({"order lost": (1_000, 600, 1_400), "my order lost": (500, 100, 900)})
    assert len(half.chart().panels[0].bars) == 2
    noisy = counted({"a b": (1_500, 500, 2_500), "a b c": (0, 0, 1_000)})
    assert [bar.text for bar in noisy.chart().panels[0].bars] == ["a b", "a b c"]


def test_an_interval_says_how_often_it_holds_and_what_it_is_for():
    counts = counted({"see": (0, 0, 0)})
    counts.manifest["levels"] = [{"level": 1, "confidence": 0.95, "simultaneous": False}]
    for shown in (repr(counts), counts.chart().measure):
        said = " ".join(shown.split())
        assert "holds the true number with probability 0.95, by itself" in said
        assert "allows for the noise that was added, and is no certainty" in said
    counts.manifest["levels"][0]["simultaneous"] = True
    assert "All intervals hold the true numbers together" in counts.chart().measure


def test_a_trie_without_weights_has_its_sequences_and_no_bars():
    chart = trie().chart()
    assert "no weights" in chart.measure
    assert "<rect class" not in chart._repr_html_()
    assert [[bar.text for bar in panel.bars] for panel in chart.panels] == [
        ["a"], ["ab"],
    ]  # fmt: skip


def test_hostile_items_are_text_in_every_picture(tmp_path):
    chart = items(HOSTILE).chart()
    picture = ElementTree.parse(chart.save(tmp_path / "chart.svg")).getroot()
    texts = [element.text or "" for element in picture.iter() if element.tag.endswith("text")]
    assert "<script>alert(1)</script>" in texts
    assert "␛[31mred␇" in texts
    page = chart.save(tmp_path / "chart.html").read_text()
    for shown in (page, repr(chart)):
        assert not set(shown) & set("\x1b\x07\0\u202e\r")
    assert "<script>" not in page
    assert "x" * 61 not in page


def test_a_chart_of_nothing_and_of_nonsense(tmp_path):
    assert "Nothing was found" in items(()).chart()._repr_html_()
    ElementTree.fromstring(items(()).chart()._repr_svg_())
    for top in (0, True, "many"):
        with pytest.raises(UsageError, match="top"):
            items().chart(top)
    with pytest.raises(UsageError, match=r"ends in \.svg or \.html"):
        items().chart().save(tmp_path / "chart.png")
    with pytest.raises(UsageError, match="could not be written"):
        items().chart().save(tmp_path / "no" / "chart.svg")


def test_a_terminals_chart_keeps_to_a_line_an_item():
    lines = repr(ladder().chart()).splitlines()
    assert len([line for line in lines if "█" in line]) == len(PHRASES)
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.parametrize("where", [None, "land = 'FR'"])
def test_people_who_were_counted_of_other_rows_are_said_to_be(where):
    counts = counted({"see you": (40, 30, 50), "see": (50, 40, 60)})
    counts = Release(counts.table, {**counts.manifest, "parameters": {"content": {"where": where}}})
    said = " ".join(repr(ladder().chart(counts=counts)).split())
    assert ("People were counted of the rows alone for which land = 'FR'" in said) == bool(where)
    assert "People were counted" not in repr(counts.chart())
    page = page_of(ladder(), counts=counts)
    assert page.count("land = &#x27;FR&#x27;") == (2 if where else 0)
