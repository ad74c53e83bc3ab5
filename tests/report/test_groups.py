"""Counts within groups: no group's number is taken for all people's, and no item for several."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import polars as pl
import pytest

from dphh import Corpus, UsageError, counts, items, ngrams, plan_from_json, trie
from dphh.columns import OTHER
from dphh.report.chart import within_groups
from dphh.report.page import page_of
from dphh.testing import SeededRandomness
from tests.report.made import ladder, within_country
from tests.report.test_page import Seen

#: How many users hold a phrase, by country. FR was not declared.
TRUTH = {"see you": {"DE": 300, "US": 50, "other": 7}, "see": {"DE": 310, "US": 700, "other": 90}}


def counted():
    return within_country(
        {
            text: {group: (n, max(0, n - 9), n + 9) for group, n in of_groups.items()}
            for text, of_groups in TRUTH.items()
        }
    )


@pytest.mark.parametrize("release", [counted(), ladder()])
def test_a_chart_has_each_groups_own_numbers_and_no_total(release):
    chart = release.chart(counts=counted())
    shown = {
        (text, bar.text): bar.value
        for grid in chart.panels
        for text, bars in grid.rows
        for bar in bars
    }
    assert shown == {(text, group): n for text, each in TRUTH.items() for group, n in each.items()}
    assert [grid.groups for grid in chart.panels] == [("DE", "US", "other")] * 2
    assert "do not add up" in chart.measure


def test_html_picture_and_text_name_the_groups_and_their_intervals():
    chart = counted().chart()
    picture = ElementTree.fromstring(chart._repr_svg_())
    drawn = [element.text for element in picture.iter() if element.tag.endswith("text")]
    assert drawn.count("300 (291–309)") == drawn.count("see you") == 1
    for shown in (chart._repr_html_(), repr(chart), " ".join(map(str, drawn))):
        for said in ("2 words and more, by country", "DE", "US", "other", "291–309"):
            assert said in shown


def test_the_page_has_a_part_for_each_country_in_its_own_order():
    page = page_of(ladder(), counts=counted())
    _, _, by_country = page.partition("<h2>By <bdi>country</bdi></h2>")
    titles = re.findall("<caption><bdi>(country: [^<]+)</bdi>", by_country)
    assert titles == ["country: DE", "country: US", "country: other"]
    assert "291–309" in by_country
    assert "By country" not in Seen(page_of(ladder())).text


def test_what_may_have_nobody_is_not_listed_in_a_country():
    release = within_country(
        {"login lost": {"DE": (145, 0, 420), "US": (9, 0, 284)},
         "order lost": {"DE": (120, 80, 160), "US": (700, 660, 740)}}
    )  # fmt: skip
    chart = within_groups(release, 10)
    assert [bar.text for bar in chart.panels[0].bars] == ["order lost"]
    assert [panel.in_noise for panel in chart.panels] == [1, 1]
    assert "and 1 that does not stand out of the noise" in repr(chart)


def test_many_groups_are_several_tables_each_as_wide_as_paper():
    groups = [f"country {i}" for i in range(12)]
    of_groups = {group: (100 + i, 90, 110 + i) for i, group in enumerate([*groups, OTHER])}
    page = within_country({"order lost": of_groups}, groups).chart()._repr_html_()
    tables = page.split("<table>")[1:]
    assert [table.count("scope='col'") for table in tables] == [5, 5, 3]
    assert [table.count("order lost") for table in tables] == [1, 1, 1]
    heads = [table.partition("</tr>")[0] for table in tables]  # columns of one width: one scale
    assert [head.count("<th") + head.count("<td") for head in heads] == [6, 6, 6]
    assert all(page.count(f">{group}<") == 1 for group in groups)


def test_a_page_of_counts_by_group_names_each_phrase_once():
    text = Seen(page_of(counted())).text
    assert "2 items counted, within country: DE, US, other" in text
    assert "longest phrases" not in text
    assert "What was counted" in text


def test_a_page_of_counts_does_not_speak_of_finding():
    text = Seen(page_of(counted())).text
    assert "What is not here is not thereby absent" not in text
    assert (
        "A number by itself is told from 0 with probability 0.9 where at least 251 people" in text
    )
    assert "an item is found" not in text


def test_the_print_has_all_groups_of_an_item_together():
    lines = [line.split() for line in repr(counted()).splitlines() if " in " in line]
    assert [(line[1], line[-1]) for line in lines] == [
        ("see", "DE"), ("see", "US"), ("see", "other"),
    ] * 2  # fmt: skip
    assert "2 items counted, within country: DE, US, other" in repr(counted())


def test_the_top_is_of_items_with_all_their_groups():
    found = counted().top(1)
    assert [(row["item"], row["group"]) for row in found] == [
        ("see", "US"), ("see", "DE"), ("see", "other"),
    ]  # fmt: skip
    assert len(counted().top(2)) == 6


def test_why_says_that_it_was_not_asked_for():
    assert counted().why("see me").reason == "not asked for"
    assert counted().why("see you").reason == "released"


COUNTRIES = {"DE": 140, "US": 120, "FR": 90}


@pytest.fixture
def corpus(tmp_path):
    """Every user says the same, in one country."""
    rows = [country for country, users in COUNTRIES.items() for _ in range(users)]
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(
        {"who": range(len(rows)), "body": ["see you"] * len(rows), "country": rows}
    ).write_parquet(path)
    return Corpus(path, user="who", text="body")


@pytest.mark.parametrize("groups", ["DE, US", " DE ,US ", ["DE", "US"]])
def test_groups_are_read_without_the_spaces_around_them(groups, corpus):
    plan = counts(corpus, of=["see you"], by="country", groups=groups, epsilon=8, delta=1e-6)
    assert plan["groups"] == ("DE", "US")
    assert "within DE, US and other of country" in " ".join(repr(plan).split())
    found = {row["group"]: row for row in plan.run(randomness=SeededRandomness(1))}
    for group, truth in {"DE": 140, "US": 120, "other": 90}.items():
        assert found[group]["low"] <= truth <= found[group]["high"]


@pytest.mark.parametrize(
    "verb, options",
    [
        (items, {}),
        (ngrams, {"max_n": 2}),
        (ngrams, {"max_n": 2, "method": "dpne"}),
        (trie, {"max_length": 3}),
    ],
)
def test_a_run_counts_what_it_finds_within_groups(verb, options, corpus, engine):
    asked = {"counts": 0.3, "by": "country", "groups": "DE, US", "epsilon": 8.0, "delta": 1e-6}
    plan = verb(corpus, **options, **asked)
    without = verb(corpus, **options, **{**asked, "by": None, "groups": ()})
    assert plan.events == without.events  # one budget, and the same noise
    assert "within DE, US and other of country" in " ".join(repr(plan).split())
    assert plan_from_json(plan.dumps()) == plan
    release = plan.run(engine=engine, randomness=SeededRandomness(2))
    rows = [row for row in release if row["users"] is not None]
    truth = {"DE": 140, "US": 120, "other": 90}
    for item in {tuple(row["tokens"]) for row in rows}:
        of_item = {row["group"]: row for row in rows if tuple(row["tokens"]) == item}
        assert of_item.keys() == truth.keys()
        for group, users in truth.items():
            assert of_item[group]["low"] - 30 <= users <= of_item[group]["high"] + 30
    assert rows
    assert "counted within country: DE, US, other" in " ".join(repr(release).split())
    assert release.manifest["counting"]["groups"] == ["DE", "US"]
    assert "By <bdi>country" in page_of(release)


def test_groups_of_what_is_found_go_with_counts(corpus):
    with pytest.raises(UsageError, match=r"by: .* needs the option counts"):
        ngrams(corpus, max_n=2, epsilon=1, delta=1e-6, by="country", groups="DE")
    with pytest.raises(UsageError, match="groups: needs by="):
        items(corpus, counts=0.3, epsilon=1, delta=1e-6, groups="DE")


def test_a_request_without_groups_is_recorded_as_before_there_were_any(corpus):
    plan = items(corpus, counts=0.3, epsilon=1, delta=1e-6)
    assert "by" not in dict(plan.parameters) and "groups" not in plan.to_json()["counting"]


@pytest.mark.parametrize(("in_us", "silent"), [(0, "DE, US"), (50, "DE")])
def test_groups_without_a_count_that_stands_out_are_named(in_us, silent):
    seen = {"DE": (4, 0, 13), "US": (in_us, max(0, in_us - 9), in_us + 9), OTHER: (900, 891, 909)}
    release = within_country({f"word {n}": seen for n in range(9)})
    for said in (repr(release), release.chart()._repr_html_()):
        assert f"within {silent}: check that the column country spells it so" in " ".join(
            said.split()
        )


def test_groups_that_all_have_counts_are_not_named():
    assert "spells it so" not in repr(counted())
    nobody = within_country({"see": {"DE": (0, 0, 9), "US": (0, 0, 9), OTHER: (0, 0, 9)}})
    assert "spells it so" not in repr(nobody)
