"""Draws reports by subset selection: d of s values (`dphh.udfs.rules.subset_selection`).

The draws are exact: p is a multiple of 2^-64, and values come from random words by rejection. A
client draws d of the other s-1 values at once, and redraws each duplicate from the same s-1. The
procedure is symmetric under any permutation of the other values, so all sets of the final size are
equally likely.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.errors import UsageError
from dphh.udfs.arrays import Integers, lists_of
from dphh.udfs.noise.randomness import (
    Randomness,
    check_keys,
    keys_if_needed,
    numbered_keys,
    uniform_below,
)
from dphh.udfs.rules.subset_selection import SubsetSelection

_VALUES_AT_ONCE = 1 << 19  # so few that intermediate arrays stay in the processor's cache


def draw_subsets(
    randomness: Randomness,
    values: Integers,
    mechanism: SubsetSelection,
    purpose: str,
    keys: pa.Array | None = None,
) -> Integers:
    """One report for each value: row i has `size` different values, in ascending order.

    (Ascending, so that the own value's position discloses nothing.) `keys`, one for each value, are
    for tests: a test's randomness then draws each report from seed, purpose and key alone. The work
    is done in blocks of values; beyond the result itself, only some blocks are in memory.
    """
    own_values = np.asarray(values, dtype=np.int64)
    if own_values.ndim != 1:
        raise UsageError(f"values must be one array, found {own_values.ndim} dimensions")
    if len(own_values) and not (own_values.min() >= 0 and own_values.max() < mechanism.domain):
        raise UsageError(f"values must lie from 0 to {mechanism.domain - 1}; found others")
    check_keys(len(own_values), keys)
    reports = np.empty((len(own_values), mechanism.size), dtype=np.int64)
    rows = max(_VALUES_AT_ONCE // mechanism.size, 1)
    for start in range(0, len(own_values), rows):
        some = slice(start, start + rows)
        named = None if keys is None else keys[some]
        _fill_reports(randomness, own_values[some], mechanism, purpose, named, reports[some])
    return reports


def _fill_reports(
    randomness: Randomness,
    own_values: Integers,
    mechanism: SubsetSelection,
    purpose: str,
    keys: pa.Array | None,
    reports: Integers,
) -> None:
    """Draws one report for each of these values, into the rows of `reports`."""

    def other_values(rows: Integers, counts: Integers, attempt: int) -> Integers:
        """So many uniform values for each of the rows, none of which is the row's own value."""
        named = None if keys is None else numbered_keys(keys, rows, counts)
        total = int(counts.sum())
        drawn = uniform_below(
            randomness, mechanism.domain - 1, total, f"{purpose}/others {attempt}", named
        ).astype(np.int64)
        drawn += drawn >= np.repeat(own_values[rows], counts)
        return drawn

    rows = np.arange(len(own_values), dtype=np.int64)
    reports[:] = other_values(rows, np.full(len(rows), mechanism.size), 1).reshape(reports.shape)
    coins = randomness.random_words(len(own_values), f"{purpose}/own", keys)
    has_own = coins < np.uint64(mechanism.numerator)
    reports[has_own, 0] = own_values[has_own]
    reports.sort(axis=1)
    attempt = 1
    again = reports[:, 1:] == reports[:, :-1]
    rows = rows[again.any(axis=1)]
    while len(rows):
        attempt += 1
        mended = reports[rows]
        again = mended[:, 1:] == mended[:, :-1]
        mended[:, 1:][again] = other_values(rows, again.sum(axis=1), attempt)
        mended.sort(axis=1)
        reports[rows] = mended
        rows = rows[(mended[:, 1:] == mended[:, :-1]).any(axis=1)]


def reports_of_rows(
    randomness: Randomness,
    key: Any,
    value: Any,
    domain: int,
    report_size: int,
    numerator: Decimal,
    purpose: str,
) -> pa.Array:
    """`dphh_report(key, value, domain, size, numerator, purpose)`: one report for each row, a list
    of values in ascending order."""
    if value.null_count:
        raise UsageError("a value to report must not be NULL; give 'nothing' a value of its own")
    mechanism = SubsetSelection(domain, report_size, int(numerator))
    named = keys_if_needed(key, randomness, purpose)
    drawn = draw_subsets(randomness, value.to_numpy(), mechanism, purpose, named)
    return lists_of(np.full(len(drawn), mechanism.size), drawn.ravel())
