"""Tables of people: in which order, and intervals of what was chosen that hold together."""

import numpy as np

from dphh.columns import OTHER_GROUP
from dphh.level import CountsLevel
from dphh.privacy.counts import count_intervals
from dphh.release import Release
from dphh.report.bar_tables import tables_of
from tests.report.made import counted, within_country

ITEMS = 1_000
GROUPS = ("DE", "Malta", OTHER_GROUP)
#: Over the L2 norm of a user: each count has the noise of ten times as many users.
RELATIVE_SIGMA = 5.0
#: In DE, forty items are held by 100 users and more, all others by ten. In Malta nobody holds any.
TRUTH = {
    f"word {n}": {
        "DE": 100 + 20 * n if n < 40 else 10,
        "Malta": 0,
        OTHER_GROUP: 3 * n if n < 9 else 0,
    }
    for n in range(ITEMS)
}


def simulated(seed: int) -> Release:
    """A release of TRUTH by country, with the noise that its manifest states. No user of it is
    bounded, so its octaves are noise alone."""
    level = CountsLevel.of(RELATIVE_SIGMA, ITEMS * len(GROUPS), 100, 0.95, False)
    drawn = np.random.default_rng(seed).normal(
        0, level.sigma_grid, level.keys + level.weighing.octave_count
    )
    noise, lost = np.split(np.rint(drawn).astype(np.int64), [level.keys])
    truth = np.array([users for each in TRUTH.values() for users in each.values()])
    at = level.weighing, level.sigma_grid, level.confidence
    found = count_intervals(truth * level.weighing.unit + noise, lost, *at, simultaneous=False)
    rows = iter(list(zip(*(each.tolist() for each in found), strict=True)))
    people = {text: {group: next(rows) for group in GROUPS} for text in TRUTH}
    return within_country(people, GROUPS[:-1], {**level.to_json(), "lost_grid": lost.tolist()})


def test_intervals_of_what_is_chosen_miss_the_truth_as_rarely_as_is_said():
    missing, of_malta = 0, []
    for seed in range(20):
        release = simulated(seed)
        (table,) = tables_of(release, 25)
        first = [
            (bar, TRUTH[item][group])
            for item, bars in table.rows
            for group, bar in zip(GROUPS, bars, strict=True)
        ]
        missing += any(not bar.low <= truth <= bar.high for bar, truth in first)
        own = [row for row in release if row["group"] == "Malta"]
        of_malta += sorted(own, key=lambda row: -row["users"])[:15]
    assert missing <= 2  # of 20 pages, all intervals of a page together
    # The release's own intervals, of what has the most users by noise, all miss the truth, 0.
    assert all(row["low"] > 0 for row in of_malta)


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
