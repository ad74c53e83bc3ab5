"""Tables of people: in which order, and intervals of what was chosen that hold together."""

from __future__ import annotations

import numpy as np
import pytest

from dphh.columns import OTHER
from dphh.levels.counts import CountsLevel
from dphh.privacy.counts import count_intervals
from dphh.release import Release
from dphh.report.bar_tables import people_tables
from tests.report.made import counted, within_country

ITEMS = 1_000
GROUPS = ("DE", "Malta", OTHER)
#: Over the L2 norm of a user: each count has the noise of ten times as many users.
RELATIVE_SIGMA = 5.0
#: In DE, forty items are held by 100 users and more, all others by ten. In Malta nobody holds any.
TRUTH = {
    f"word {n}": {"DE": 100 + 20 * n if n < 40 else 10, "Malta": 0, OTHER: 3 * n if n < 9 else 0}
    for n in range(ITEMS)
}


def simulated(seed: int) -> Release:
    """A release of TRUTH by country, with the noise that its manifest states. No user of it is
    bounded, so its octaves are noise alone."""
    level = CountsLevel.of(RELATIVE_SIGMA, ITEMS * len(GROUPS), 100, 0.95, False)
    drawn = np.random.default_rng(seed).normal(
        0, level.sigma_grid, level.keys + level.weighing.octaves
    )
    noise, lost = np.split(np.rint(drawn).astype(np.int64), [level.keys])
    truth = np.array([users for each in TRUTH.values() for users in each.values()])
    at = level.weighing, level.sigma_grid, level.confidence
    found = count_intervals(truth * level.weighing.unit + noise, lost, *at, simultaneous=False)
    ends = (each.tolist() for each in (found.users, found.low, found.high))
    rows = iter(list(zip(*ends, strict=True)))
    people = {text: {group: next(rows) for group in GROUPS} for text in TRUTH}
    return within_country(people, GROUPS[:-1], {**level.to_json(), "lost_grid": lost.tolist()})


def test_intervals_of_what_is_chosen_miss_the_truth_as_rarely_as_is_said():
    missing, of_malta = 0, []
    for seed in range(20):
        release = simulated(seed)
        (table,) = people_tables([release], 25)
        first = [
            (bar, TRUTH[row.item][group])
            for row in table.rows
            for group, bar in zip(GROUPS, row.bars, strict=True)
        ]
        missing += any(not bar.low <= truth <= bar.high for bar, truth in first)
        own = [row for row in release if row["group"] == "Malta"]
        of_malta += sorted(own, key=lambda row: -row["users"])[:15]
    assert missing <= 2  # of 20 pages, all intervals of a page together
    # The release's own intervals, of what has the most users by noise, all miss the truth, 0.
    assert all(row["low"] > 0 for row in of_malta)


def names(table):
    """The items that are worth showing at once, and the others."""
    items = [row.item for row in table.rows]
    return items[: table.telling], items[table.telling :]


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
