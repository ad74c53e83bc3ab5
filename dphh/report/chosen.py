"""Intervals for lists of items that were chosen by their counts.

The largest of a thousand noised counts are largest because of their noise: an interval that holds
by itself with probability 0.95 misses most of them. Intervals that hold together, over all counts
among which a list chose, hold for whatever it chose. They follow from a release's table and
manifest, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dphh.privacy.counts import Weighing, simultaneous_intervals
from dphh.report.counted import about_counts, chosen_intervals_hold, counting_of
from dphh.report.people import Count, People, Tokens, people_of
from dphh.report.released import Released

#: What a manifest says of the noise of its counts.
_NOISE = ("sigma_grid", "grid_bits", "keys", "max_items", "confidence", "lost_grid")


def people_to_choose_from(release: Released) -> People:
    """The user counts of a release, with intervals that hold together over all that it counted.

    Where the release's own intervals do, or where its manifest does not state its noise, they are
    the release's own; `held` says which.
    """
    people = people_of(release)
    if not people:
        return people
    counting = counting_of(release.manifest)
    together = None if counting.get("simultaneous") else _widened(people.counts, counting)
    holds = chosen_intervals_hold(release.manifest, widened=together is not None)
    return replace(
        people,
        counts=people.counts if together is None else together,
        held=about_counts(release.table, release.manifest, holds),
    )


def _widened(
    counts: Mapping[Tokens, tuple[Count | None, ...]], counting: Mapping[str, Any]
) -> dict[Tokens, tuple[Count | None, ...]] | None:
    """The counts with simultaneous intervals; None if the noise is not stated."""
    if any(counting.get(name) is None for name in _NOISE):
        return None
    weighing = Weighing(counting["keys"], counting["max_items"], counting["grid_bits"])
    lost = np.array(counting["lost_grid"], np.int64)
    if len(lost) != weighing.octaves:
        return None
    known = [count for each in counts.values() for count in each if count is not None]
    users = np.array([count.users for count in known], np.int64)
    found = simultaneous_intervals(
        users, lost, weighing, counting["sigma_grid"], counting["confidence"]
    )
    ends = iter(zip(found.low.tolist(), found.high.tolist(), strict=True))
    return {
        tokens: tuple(count and Count(count.users, *next(ends)) for count in each)
        for tokens, each in counts.items()
    }
