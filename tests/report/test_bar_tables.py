"""Tables: people where people were counted; else a score that nobody mistakes for them."""

from __future__ import annotations

import pytest

from dphh.report.bar_tables import people_tables, score_tables, tables_of
from tests.report.made import PHRASES, counted, ladder, trie, within_country


def names(table):
    """The items that are worth showing at once, and the others."""
    items = [row.item for row in table.rows]
    return items[: table.telling], items[table.telling :]


def test_each_length_has_a_table_and_a_scale_of_its_own_and_the_longest_comes_first():
    tables = score_tables(ladder(), 2)
    assert [table.title for table in tables] == ["3 words", "2 words", "1 word"]
    assert [table.scale for table in tables] == [15, 60, 90]
    assert names(tables[2])[0] == ["see", "you"]
    assert sum(table.count for table in tables) == len(PHRASES)
    longer = score_tables(ladder(), 9, least=2, without={("see", "you", "later")})
    assert [table.title for table in longer] == ["2 words"]


def test_without_scores_a_table_has_whole_sequences_first():
    (table,) = tables_of(trie(), 99)
    assert table.title == "sequences"
    assert names(table) == (["a", "ab"], ["b", "bc", "bcd"])


def test_people_are_in_the_order_of_where_their_lines_begin_on_one_scale():
    noise = {f"word {n}": (90 + n, 0, 200) for n in range(9)}
    people = {"see": (200, 150, 260), "you": (900, 850, 960), "my order": (80, 20, 140), **noise}
    phrases, words = people_tables([counted(people)], 4)
    assert (phrases.title, words.title) == ("2 words and more", "1 word")
    assert phrases.scale == words.scale == 960
    assert [row.item for row in words.rows] == ["you", "see"]
    assert [row.item for row in phrases.rows] == ["my order", "word 8", "word 7", "word 6"]
    assert phrases.count == 10


@pytest.mark.parametrize(
    ("people", "first", "rest"),
    [
        (
            {
                "has not arrived": (2_900, 2_850, 2_950),
                "order has not arrived": (2_927, 2_880, 2_980),
                "not arrived": (4_000, 3_950, 4_050),
            },
            ["not arrived", "order has not arrived"],
            ["has not arrived"],
        ),
        # Counts that noise drowns do not hide what many people hold.
        ({"a b": (500, 0, 1_500), "a b c": (600, 0, 1_600)}, ["a b c", "a b"], []),
        ({"a b": (1_000, 600, 1_400), "x a b": (500, 100, 900)}, ["a b", "x a b"], []),
    ],
)
def test_a_part_goes_behind_a_longer_phrase_that_as_many_hold(people, first, rest):
    (table,) = people_tables([counted(people)], 99)
    assert names(table) == (first, rest)


def test_rows_by_country_go_by_the_sum_of_where_their_lines_begin():
    noise = dict.fromkeys(("DE", "US", "other"), (390, 0, 800))
    release = within_country(
        {
            "in please": noise,
            "my order": noise | {"DE": (600, 200, 1_000)},
            "hello you": noise | {"DE": (510, 110, 910), "US": (510, 110, 910)},
        }
    )
    (table,) = people_tables([release], 99)
    assert names(table) == (["hello you", "my order", "in please"], [])
    assert (table.title, table.columns) == ("2 words and more, by country", ("DE", "US", "other"))
    assert [bar.value for bar in table.rows[1].bars] == [600, 390, 390]


def test_totals_and_groups_stand_in_one_table_and_what_one_lacks_is_blank():
    totals = counted({"see you": (370, 340, 400), "me": (9, 2, 16)})
    groups = within_country({"see you": {"DE": (300, 291, 309), "US": (50, 41, 59)}})
    phrases, words = people_tables([totals, groups], 99)
    assert phrases.columns == words.columns == ("all", "DE", "US", "other")
    assert [bar.said for bar in phrases.rows[0].bars] == ["370", "300", "50", ""]
    assert [bar.said for bar in words.rows[0].bars] == ["9", "", "", ""]
