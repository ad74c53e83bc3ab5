"""Lists that choose items by their noised counts: noise alone is not listed, and intervals hold."""

from __future__ import annotations

import numpy as np

from dphh.columns import OTHER
from dphh.levels.counts import CountsLevel
from dphh.privacy.counts import count_intervals
from dphh.release import Release
from dphh.report.chart import within_groups
from dphh.report.page import page_of
from tests.report.made import counted, within_country
from tests.report.test_page import Seen

ITEMS = 1_000
GROUPS = ("DE", "Malta", OTHER)
#: Over the L2 norm of a user: each count has the noise of ten times as many users.
RELATIVE_SIGMA = 5.0
#: In DE, forty items are held by 100 users and more, all others by ten. In Malta nobody holds any.
TRUTH = {
    f"word {n}": {"DE": 100 + 20 * n if n < 40 else 10, "Malta": 0, OTHER: 3 * n if n < 9 else 0}
    for n in range(ITEMS)
}


def simulated(seed: int, *, simultaneous: bool = False) -> Release:
    """A release of TRUTH by country, with the noise that its manifest states. No user of it is
    bounded, so its octaves are noise alone."""
    level = CountsLevel.of(RELATIVE_SIGMA, ITEMS * len(GROUPS), 100, 0.95, simultaneous)
    drawn = np.random.default_rng(seed).normal(
        0, level.sigma_grid, level.keys + level.weighing.octaves
    )
    noise, lost = np.split(np.rint(drawn).astype(np.int64), [level.keys])
    truth = np.array([users for each in TRUTH.values() for users in each.values()])
    found = count_intervals(
        truth * level.weighing.unit + noise,
        lost,
        level.weighing,
        level.sigma_grid,
        level.confidence,
        simultaneous=simultaneous,
    )
    ends = (each.tolist() for each in (found.users, found.low, found.high))
    rows = iter(list(zip(*ends, strict=True)))
    people = {text: {group: next(rows) for group in GROUPS} for text in TRUTH}
    return within_country(people, GROUPS[:-1], {**level.to_json(), "lost_grid": lost.tolist()})


def lists_of(release: Release):
    """The list of each country."""
    chart = within_groups(release, 15)
    assert chart is not None
    return dict(zip(GROUPS, chart.panels, strict=True))


def test_of_a_country_where_nobody_holds_anything_nothing_is_listed():
    release = simulated(1)
    malta = lists_of(release)["Malta"]
    assert (malta.bars, malta.more, malta.in_noise) == ((), 0, ITEMS)
    chart = within_groups(release, 15)
    for shown in (Seen(page_of(release)).text, repr(chart), chart._repr_svg_()):
        assert "nothing stands out of the noise here: 1,000 left out" in shown


def test_intervals_of_what_is_chosen_miss_the_truth_as_rarely_as_is_said():
    shown, missing, of_malta = 0, 0, []
    for seed in range(20):
        release = simulated(seed)
        bars = [
            (bar, TRUTH[bar.text][group])
            for group, panel in lists_of(release).items()
            for bar in panel.bars
        ]
        (grid,) = release.chart(15).panels
        bars += [(bar, TRUTH[text][bar.text]) for text, row in grid.rows for bar in row]
        shown += len(bars)
        missing += sum(not bar.low <= truth <= bar.high for bar, truth in bars)
        own = [row for row in release if row["group"] == "Malta"]
        of_malta += sorted(own, key=lambda row: -row["users"])[:15]
    assert shown > 20 * 50
    assert missing <= 0.05 * shown
    # The release's own intervals, of what has the most users by noise, all miss the truth, 0.
    assert all(row["low"] > 0 for row in of_malta)


def test_a_list_goes_by_where_intervals_begin_and_says_how_many_others_there_are():
    germany = lists_of(simulated(2))["DE"]
    begins = [bar.low for bar in germany.bars]
    assert begins == sorted(begins, reverse=True)
    assert begins[-1] > 0 and len(begins) == 15 and germany.more > 0
    assert len(begins) + germany.more + germany.in_noise == ITEMS


def test_the_page_says_that_intervals_hold_together_and_why_they_are_wider():
    for release in (simulated(3), simulated(3, simultaneous=True)):
        widened = not release.manifest["levels"][0]["simultaneous"]
        for chart in (release.chart(15), within_groups(release, 15)):
            assert "together with probability 0.95" in chart.measure
            assert ("whichever of the 3,000 counts were chosen" in chart.measure) == widened
            assert "by itself" not in chart.measure
    unstated = within_country({"see": {"DE": (9, 4, 14)}}).chart().measure
    assert (
        "by itself" in unstated and "of what was chosen for a large count, more miss it" in unstated
    )


def test_where_a_releases_own_intervals_hold_together_they_are_shown():
    release = simulated(4, simultaneous=True)
    own = {(row["item"], row["group"]): (row["low"], row["high"]) for row in release}
    for group, panel in lists_of(release).items():
        assert all((bar.low, bar.high) == own[bar.text, group] for bar in panel.bars)
    # From the estimates of the same noise alone, intervals are about as wide.
    alone = {bar.text: bar for bar in lists_of(simulated(4))["DE"].bars}
    for bar in lists_of(release)["DE"].bars:
        assert 0 <= bar.low - alone[bar.text].low <= 1


def test_rows_of_a_table_by_country_go_by_the_sum_of_where_their_intervals_begin():
    noise = dict.fromkeys(GROUPS, (390, 0, 800))
    release = within_country(
        {
            "in please": noise,
            "my order": noise | {"DE": (600, 200, 1_000)},
            "hello you": noise | {"DE": (510, 110, 910), "Malta": (510, 110, 910)},
        },
        GROUPS[:-1],
    )
    (grid,) = release.chart().panels
    assert [text for text, _ in grid.rows] == ["hello you", "my order", "in please"]
    (grid,) = release.chart(1).panels
    assert [text for text, _ in grid.rows] == ["hello you"]
    assert (grid.more, grid.in_noise) == (1, 1)
    assert "and 1 more and 1 that does not stand out of the noise" in repr(release.chart(1))


def test_without_groups_too_what_is_chosen_stands_out_of_the_noise():
    noise = {f"word {n}": (90 + n, 0, 200) for n in range(9)}
    release = counted({**noise, "my order": (80, 20, 140)})
    (panel,) = release.chart(4).panels
    assert [bar.text for bar in panel.bars] == ["my order"]
    assert (panel.more, panel.in_noise) == (0, 9)
    # Where all are shown, nothing was chosen: what was asked for is there, and comes last.
    (panel,) = release.chart(10).panels
    assert panel.bars[0].text == "my order" and len(panel.bars) == 10
