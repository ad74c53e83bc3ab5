"""Draws reports of independent values (`dphh.privacy.coin_reports`).

One draw, by inversion of a table of 320 bits, says whether the report has the own value and how
many others. Then the others are drawn, and duplicates redrawn, as in `dphh.udfs.draws.subsets`: all
sets of others of one size are equally likely.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dphh.privacy.coin_reports import Form, outcomes
from dphh.privacy.subset_selection import SubsetSelection
from dphh.udfs.draws.randomness import Randomness, Words, join, numbered_keys, uniform_below
from dphh.udfs.draws.subsets import checked_values, draw_subsets

if TYPE_CHECKING:  # a client on a device needs only NumPy
    import pyarrow as pa

Integers = NDArray[np.int64]

#: The "value" of a report that is for no value.
NOTHING = -1
_BITS_OF_TABLE = 320  # of a uniform number; the first 64 are nearly always enough
_BLOCK = 1 << 19  # values drawn at a time


def draw_reports(
    randomness: Randomness,
    values: Integers,
    mechanism: SubsetSelection,
    form: Form,
    purpose: str,
    keys: pa.Array | None = None,
) -> tuple[Integers, Integers]:
    """One report for each value, in either form: the values of all reports, one report after the
    other and each ascending, and the number of values in each. `keys` as in `draw_subsets`."""
    if form == "subsets":
        drawn = draw_subsets(randomness, values, mechanism, purpose, keys)
        return drawn.ravel(), np.full(len(drawn), mechanism.size, dtype=np.int64)
    return draw_coins(randomness, values, mechanism, purpose, keys)


def draw_coins(
    randomness: Randomness,
    values: Integers,
    mechanism: SubsetSelection,
    purpose: str,
    keys: pa.Array | None = None,
) -> tuple[Integers, Integers]:
    """One report of independent values for each of `values`; NOTHING is no value."""
    held = checked_values(values, NOTHING, mechanism, keys)
    # A row's index times the domain must fit an int64.
    rows = max(min(_BLOCK // (mechanism.size + 1), (1 << 62) // mechanism.domain), 1)
    blocks = []
    for start in range(0, len(held), rows):
        named = None if keys is None else keys[start : start + rows]
        blocks.append(
            _draw_block_of_coins(randomness, held[start : start + rows], mechanism, purpose, named)
        )
    none = np.empty(0, dtype=np.int64)
    return (
        np.concatenate([none, *(reports for reports, _ in blocks)]),
        np.concatenate([none, *(sizes for _, sizes in blocks)]),
    )


def _draw_block_of_coins(
    randomness: Randomness,
    held: Integers,
    mechanism: SubsetSelection,
    purpose: str,
    keys: pa.Array | None,
) -> tuple[Integers, Integers]:
    own = np.zeros(len(held), dtype=np.bool_)
    others = np.zeros(len(held), dtype=np.int64)
    for nothing in (False, True):
        rows = np.flatnonzero((held == NOTHING) == nothing)
        if len(rows):
            drawn = _draw_outcomes(randomness, mechanism, nothing, rows, purpose, keys)
            own[rows], others[rows] = drawn
    # A report's index and a value are packed into one number, so sorting keeps reports in order.
    first = np.arange(len(held), dtype=np.int64) * mechanism.domain
    owners = np.repeat(np.arange(len(held), dtype=np.int64), others)
    reports = np.concatenate([
        first[owners] + _draw_other_values(
            randomness, held, owners, mechanism, f"{purpose}/others 1", keys
        ),
        (first + held)[own],
    ])  # fmt: skip
    reports.sort()
    sizes = others + own
    ends = np.cumsum(sizes)
    attempt = 1
    places = np.arange(len(reports))
    while True:
        # All duplicates but the first are redrawn; the own value is never a duplicate.
        part = reports[places]
        again = np.flatnonzero(part[1:] == part[:-1]) + 1
        if not len(again):
            return reports % mechanism.domain, sizes
        attempt += 1
        owners = part[again] // mechanism.domain
        part[again] = first[owners] + _draw_other_values(
            randomness, held, owners, mechanism, f"{purpose}/others {attempt}", keys
        )
        reports[places] = part
        mended = np.unique(owners)
        places = _consecutive_integers(ends[mended] - sizes[mended], sizes[mended])
        reports[places] = np.sort(reports[places])


def _consecutive_integers(starts: Integers, counts: Integers) -> Integers:
    """For each pair, the `counts` integers from `starts` on."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


def _draw_other_values(
    randomness: Randomness,
    held: Integers,
    owners: Integers,
    mechanism: SubsetSelection,
    purpose: str,
    keys: pa.Array | None,
) -> Integers:
    """A uniform value for each of these ascending rows, other than the row's own value, if any."""
    drawn = np.empty(len(owners), dtype=np.int64)
    of = held[owners]
    for nothing in (False, True):
        these = np.flatnonzero((of == NOTHING) == nothing)
        if not len(these):
            continue
        named = None
        if keys is not None:
            rows, counts = np.unique(owners[these], return_counts=True)
            named = numbered_keys(keys, rows, counts)
        bound = mechanism.domain if nothing else mechanism.domain - 1
        found = uniform_below(randomness, bound, len(these), purpose, named).astype(np.int64)
        if not nothing:
            found += found >= of[these]
        drawn[these] = found
    return drawn


def _draw_outcomes(
    randomness: Randomness,
    mechanism: SubsetSelection,
    nothing: bool,
    rows: Integers,
    purpose: str,
    keys: pa.Array | None,
) -> tuple[NDArray[np.bool_], Integers]:
    """For each of these rows, whether the report has the own value, and how many others.

    Inversion by the number of cumulative probabilities, in units of 2^-320, that are at most a
    uniform 320-bit integer. Its further words are drawn only if the first equals the top word of a
    probability.
    """
    own, others, tops, chances = _table_of_outcomes(mechanism, nothing)
    named = None if keys is None else keys.take(rows)
    words = randomness.words(len(rows), f"{purpose}/own", named)
    passed = np.searchsorted(tops, words, side="right")
    tied = passed > 0
    tied[tied] = tops[passed[tied] - 1] == words[tied]
    for i in np.flatnonzero(tied):
        one = None if named is None else numbered_keys(named, [int(i)], [_BITS_OF_TABLE // 64 - 1])
        rest = randomness.words(_BITS_OF_TABLE // 64 - 1, f"{purpose}/own, the rest", one)
        passed[i] = bisect_right(chances, join(np.append(words[i], rest)))
    return own[passed], others[passed]


@lru_cache(maxsize=8)
def _table_of_outcomes(
    mechanism: SubsetSelection, nothing: bool
) -> tuple[NDArray[np.bool_], Integers, Words, list[int]]:
    of = outcomes(mechanism, nothing)
    total = sum(of.weights)
    chances = [(below << _BITS_OF_TABLE) // total for below in accumulate(of.weights[:-1])]
    tops = np.fromiter(
        (chance >> (_BITS_OF_TABLE - 64) for chance in chances), np.uint64, len(chances)
    )
    return np.array(of.own, dtype=np.bool_), np.array(of.others, dtype=np.int64), tops, chances
