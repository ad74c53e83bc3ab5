"""Tables of people: in which order; and an item has one interval, wherever it is shown."""

import pytest

from dphh.report.bar_tables import tables_of
from dphh.report.page import page_of, release_card
from dphh.report.terminal import release_text
from tests.report.every import COUNTED, release_of
from tests.report.made import Seen, counted, within_country

SHOWN = {
    "terminal": release_text,
    "page": lambda release: Seen(page_of(release)).text.replace("\0", "\n"),
    "card": lambda release: Seen(release_card(release)).text.replace("\0", "\n"),
}


@pytest.mark.parametrize("how", [how for how in COUNTED if how])
@pytest.mark.parametrize("where", SHOWN)
def test_an_item_has_one_interval_wherever_it_is_shown(how, where):
    release = release_of(900, f"{how}ngrams")
    said = SHOWN[where](release)
    tables = tables_of(release, 99)
    shown = [
        (item, group, bar)
        for table in tables
        for item, bars in table.rows
        for group, bar in zip(table.groups or (None,), bars, strict=True)
        if bar.value is not None
    ]
    assert len(shown) == len(release)
    found = {(row["item"], row.get("group")): row for row in release}
    for item, group, bar in shown:
        row = found[item, group]
        assert (bar.value, bar.low, bar.high) == (row["users"], row["low"], row["high"])
    _, _, first = shown[0]
    assert f"{first.low:,.0f}–{first.high:,.0f}" in said
    if where == "page":
        assert all(f"{bar.low:,.0f}–{bar.high:,.0f}" in said for _, _, bar in shown)


def test_people_are_in_the_order_of_where_their_lines_begin_on_one_scale():
    noise = {f"word {n}": (90 + n, 0, 200) for n in range(9)}
    people = {"see": (200, 150, 260), "you": (900, 850, 960), "my order": (80, 20, 140), **noise}
    phrases, words = tables_of(counted(people), 4)
    assert (phrases.title, words.title) == ("2 words and more", "1 word")
    assert phrases.scale == words.scale == 960
    assert [item for item, _ in words.rows] == ["you", "see"]
    assert [item for item, _ in phrases.rows] == ["my order", "word 8", "word 7", "word 6"]
    assert phrases.count == 10


def test_rows_by_country_go_by_the_sum_and_what_a_country_lacks_is_blank():
    noise = dict.fromkeys(("DE", "US", "other"), (390, 0, 800))
    release = within_country(
        {
            "in please": noise,
            "my order": {"DE": (600, 200, 1_000), "US": (390, 0, 800)},
            "hello you": noise | {"DE": (510, 110, 910), "US": (510, 110, 910)},
        }
    )
    (table,) = tables_of(release, 99)
    assert [item for item, _ in table.rows] == ["hello you", "my order", "in please"]
    assert (table.title, table.groups) == ("2 words and more, by country", ("DE", "US", "other"))
    assert [bar.number_text for bar in table.rows[1][1]] == ["600", "390", ""]
