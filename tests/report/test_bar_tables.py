"""Tables: people where people were counted; else a score that nobody mistakes for them."""

from __future__ import annotations

import pytest

from dphh.report.bar_tables import Rows, people_tables, score_tables, tables_of
from tests.report.made import PHRASES, counted, items, ladder, trie, within_country

TOP = Rows(25, 99)


def names(table):
    """The items that are open, and those that are folded."""
    items = [row.item for row in table.rows]
    return items[: table.opened], items[table.opened :]


def test_each_length_has_a_table_and_a_scale_of_its_own_and_the_longest_comes_first():
    tables = score_tables(ladder(), Rows(2, 99))
    assert [table.title for table in tables] == ["3 words", "2 words", "1 word"]
    assert [table.scale for table in tables] == [15, 60, 90]
    assert names(tables[2])[0] == ["see", "you"]
    assert [len(names(table)[1]) for table in tables] == [0, 3, 3]
    assert sum(table.count for table in tables) == len(PHRASES)
    assert [table.title for table in score_tables(ladder(), Rows(2, 2, least=2))] == [
        "3 words",
        "2 words",
    ]


def test_people_are_in_the_order_of_where_their_lines_begin_on_one_scale():
    tables = people_tables(
        [counted({"see": (200, 150, 260), "you": (900, 850, 960), "see you": (70, 20, 130)})], TOP
    )
    assert [table.title for table in tables] == ["2 words and more", "1 word"]
    assert [table.scale for table in tables] == [960, 960]
    (bar,) = tables[1].rows[0].bars
    assert names(tables[1])[0] == ["you", "see"]
    assert (bar.said, bar.interval) == ("900", "850–960")


def test_without_counts_a_table_has_scores_and_without_scores_a_list():
    assert tables_of(ladder(), TOP)[0].rows[0].bars[0].low is None
    (table,) = tables_of(trie(), TOP)
    assert table.title == "sequences"
    # Whole sequences are what users wrote.
    assert names(table) == (["a", "ab"], ["b", "bc", "bcd"])
    assert {bar.said for row in table.rows[2:] for bar in row.bars} == {"goes on"}


def test_what_stands_out_of_the_noise_comes_first():
    noise = {f"word {n}": (90 + n, 0, 200) for n in range(9)}
    (table,) = people_tables([counted({**noise, "my order": (80, 20, 140)})], Rows(1, 99))
    assert names(table)[0] == ["my order"]
    assert len(names(table)[1]) == 9


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
        (
            {"order lost": (495, 219, 770), "thanks order lost": (119, 0, 394)},
            ["order lost", "thanks order lost"],
            [],
        ),
        (
            {"a b": (1_000, 600, 1_400), "x a b": (500, 100, 900)},
            ["a b", "x a b"],
            [],
        ),
        ({"a b": (500, 0, 1_500), "a b c": (600, 0, 1_600)}, ["a b c", "a b"], []),
    ],
)
def test_a_part_goes_behind_a_longer_phrase_that_as_many_hold(people, first, rest):
    (table,) = people_tables([counted(people)], TOP)
    assert names(table) == (first, rest)


def test_an_item_has_each_groups_own_number_and_no_total():
    release = within_country(
        {"see you": {"DE": (300, 291, 309), "US": (50, 41, 59), "other": (7, 0, 16)}}
    )
    (table,) = people_tables([release], TOP)
    assert (table.title, table.columns) == ("2 words and more, by country", ("DE", "US", "other"))
    assert [bar.value for bar in table.rows[0].bars] == [300, 50, 7]


def test_rows_by_country_go_by_the_sum_of_where_their_lines_begin():
    noise = dict.fromkeys(("DE", "US", "other"), (390, 0, 800))
    release = within_country(
        {
            "in please": noise,
            "my order": noise | {"DE": (600, 200, 1_000)},
            "hello you": noise | {"DE": (510, 110, 910), "US": (510, 110, 910)},
        }
    )
    (table,) = people_tables([release], TOP)
    assert names(table) == (["hello you", "my order", "in please"], [])
    (table,) = people_tables([release], Rows(1, 99))
    assert names(table) == (["hello you"], ["my order", "in please"])


def test_totals_and_groups_stand_in_one_table_and_what_one_lacks_is_blank():
    totals = counted({"see you": (370, 340, 400), "me": (9, 2, 16)})
    groups = within_country({"see you": {"DE": (300, 291, 309), "US": (50, 41, 59)}})
    phrases, words = people_tables([totals, groups], TOP)
    assert phrases.columns == words.columns == ("all", "DE", "US")
    assert [bar.said for bar in phrases.rows[0].bars] == ["370", "300", "50"]
    assert [bar.said for bar in words.rows[0].bars] == ["9", "", ""]
    assert phrases.scale == words.scale == 400


def test_a_table_of_nothing():
    assert tables_of(items(()), TOP) == []
