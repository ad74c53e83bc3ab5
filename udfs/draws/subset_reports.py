"""Reports of simulated clients: one for each row, or only the number of reports of each value.

**What `draw_aggregate` draws.** A value that m of n clients hold is reported Binomial(m, p) +
Binomial(n - m, q) times. This distribution is drawn, to within 2^-210, for each value separately:
estimates, and the probability that a prefix is kept, are right. But a report no longer has exactly
d values. In messages the counts sum to n d and are slightly correlated (by about -1/s); here they
are independent.

So it is another mechanism, which is private too: its counts are the sums of n clients' reports if
every client reports each value by an independent coin, p for the own value and q for the others
(asymmetric unary encoding). Two values change two coins, hence its local epsilon is
ln(p (1-q) / ((1-p) q)), `epsilon_of_independent_values`: 10.011 where subset selection has 10.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from numpy.typing import NDArray

from dphh.errors import UsageError
from dphh.privacy.binomial_weights import BITS, binomial_weights
from dphh.privacy.subset_selection import SubsetSelection
from dphh.udfs.draws.coin_reports import draw_reports
from dphh.udfs.draws.randomness import Randomness, join, uniform_below, wants_keys
from dphh.udfs.draws.votes import toss_coins

Integers = NDArray[np.int64]

_BLOCK = 1 << 20  # draws at a time
_LARGEST_VARIANCE = 1 << 30  # a wider binomial's table would be too large


def draw_aggregate(
    randomness: Randomness,
    counts: Integers,
    users: int,
    mechanism: SubsetSelection,
    purpose: str,
) -> Integers:
    """How many of `users` reports contain each value, given how many are for it: a draw each.

    Reports for none of these values say "nothing", for which no count is drawn.

    First each count is drawn as if no report were for the value: Binomial(n, q). Then the part of
    its m holders is removed (hypergeometric: m of n without replacement), and their Binomial(m, p)
    is added.
    """
    held = np.asarray(counts, dtype=np.int64)
    if held.ndim != 1 or not 1 <= len(held) <= mechanism.domain:
        raise UsageError(
            f"one count for each value is needed, of {mechanism.domain} values at most"
        )
    if held.min() < 0 or int(held.sum()) > users:
        raise UsageError("the counts must be of reports, each for one value: they do not add up")
    reports = draw_binomials(
        randomness, users, mechanism.other_chance, len(held), f"{purpose}/others"
    )
    ours = np.flatnonzero(held)
    holders = held[ours]
    reports[ours] -= draw_common(randomness, users, reports[ours], holders, f"{purpose}/common")
    reports[ours] += toss_coins(randomness, holders, mechanism.numerator, f"{purpose}/own")
    return reports


def draw_binomials(
    randomness: Randomness, n: int, p: Fraction, count: int, purpose: str
) -> Integers:
    """`count` draws of Binomial(n, p), each within 2^-210 of it in total variation.

    Inversion: the result is the number of cumulative probabilities, in units of 2^-256, that are at
    most a uniform 256-bit integer. Its further words matter only if the first equals the top word
    of a probability, and are drawn only then. The weights' distance is that of `draw_binomial`,
    below 2^-212; scaling them to 2^256 adds less than 2^-256 for each of at most 2^22 entries.
    """
    if n < 0 or not 0 < p < 1 or n * p * (1 - p) > _LARGEST_VARIANCE:
        raise UsageError(
            "a table of a binomial needs n >= 0, a probability between 0 and 1 and a variance of "
            "at most 2^30"
        )
    weights = sorted(binomial_weights(n, p))
    smallest = weights[0][0]
    total = sum(weight for _, weight in weights)
    cumulative, chances = 0, []
    for _, weight in weights[:-1]:
        cumulative += weight
        chances.append((cumulative << BITS) // total)
    tops = np.fromiter((chance >> (BITS - 64) for chance in chances), np.uint64, len(chances))
    draws = np.empty(count, dtype=np.int64)
    for start in range(0, count, _BLOCK):
        words = randomness.words(min(_BLOCK, count - start), purpose)
        passed = np.searchsorted(tops, words, side="right")
        tied = passed > 0
        tied[tied] = tops[passed[tied] - 1] == words[tied]
        for i in np.flatnonzero(tied):
            rest = randomness.words(BITS // 64 - 1, f"{purpose}/rest")
            passed[i] = bisect_right(chances, join(np.append(words[i], rest)))
        draws[start : start + len(words)] = smallest + passed
    return draws


def draw_common(
    randomness: Randomness, n: int, ones: Integers, others: Integers, purpose: str
) -> Integers:
    """The size of the intersection of two independent uniform subsets of n, for pairs of sizes.

    Exact: draws the elements of the smaller set one by one. After i elements, h of which were among
    the l of the larger set, the next is in the larger set with probability (l - h) / (n - i).
    """
    smaller, larger = np.minimum(ones, others), np.maximum(ones, others)
    order = np.argsort(-smaller, kind="stable")  # pairs that need more draws stay in front
    left = larger[order]
    going_on = len(order) - np.searchsorted(
        np.sort(smaller), np.arange(1, smaller.max(initial=0) + 1)
    )
    for i, active in enumerate(going_on):
        drawn = uniform_below(randomness, n - i, int(active), purpose).astype(np.int64)
        left[:active] -= drawn < left[:active]
    common = np.empty_like(left)
    common[order] = larger[order] - left
    return common


def report_function(randomness: Randomness) -> Callable[..., Any]:
    """`dphh_report(key, value, domain, size, numerator, form, purpose)` over Arrow columns.

    One report for each row, a BIGINT[] of values in ascending order; all arguments but key and
    value are constant. Write the result to a table before anything reads it.
    """

    def report(
        key: pa.ChunkedArray,
        value: pa.ChunkedArray,
        domain: pa.ChunkedArray,
        size: pa.ChunkedArray,
        numerator: pa.ChunkedArray,
        form: pa.ChunkedArray,
        purpose: pa.ChunkedArray,
    ) -> pa.Array:
        if not len(value):
            return pa.array([], pa.list_(pa.int64()))
        drawn_at = int(numerator[0].as_py())
        mechanism = SubsetSelection(domain[0].as_py(), size[0].as_py(), drawn_at)
        what_for = purpose[0].as_py()
        wanted = wants_keys(randomness, what_for)
        named = pa.array(key.to_pylist(), pa.string()) if wanted else None
        if value.null_count:
            raise UsageError(
                "a value to report must not be NULL; give 'nothing' a value of its own"
            )
        drawn, sizes = draw_reports(
            randomness, value.to_numpy(), mechanism, form[0].as_py(), what_for, named
        )
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(ends), pa.array(drawn))

    return report


def aggregate_function(randomness: Randomness) -> Callable[..., Any]:
    """`dphh_aggregate(held, values, sent, domain, size, numerator, purpose)` over Arrow columns.

    For each row a BIGINT[]: how many of `sent` reports hold each of the values 0, ..., values - 1.
    held, a list of (value, holders), says how many of them are for a value; values that it leaves
    out are held by nobody. Write the result to a table before anything reads it.
    """

    def aggregate(
        held: pa.ChunkedArray,
        values: pa.ChunkedArray,
        sent: pa.ChunkedArray,
        domain: pa.ChunkedArray,
        size: pa.ChunkedArray,
        numerator: pa.ChunkedArray,
        purpose: pa.ChunkedArray,
    ) -> pa.Array:
        drawn = [np.empty(0, dtype=np.int64)]
        for row in range(len(held)):
            holders = np.zeros(values[row].as_py(), dtype=np.int64)
            if (counts := held[row].values) is not None:
                holders[counts.field("value").to_numpy()] = counts.field("holders").to_numpy()
            mechanism = SubsetSelection(
                domain[row].as_py(), size[row].as_py(), int(numerator[row].as_py())
            )
            drawn.append(
                draw_aggregate(
                    randomness, holders, sent[row].as_py(), mechanism, purpose[row].as_py()
                )
            )
        ends = np.cumsum([len(one) for one in drawn]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.concatenate(drawn)))

    return aggregate


def register_reports(con: duckdb.DuckDBPyConnection, randomness: Randomness) -> None:
    """Register `dphh_report` and `dphh_aggregate` in a DuckDB connection."""
    held = "STRUCT(value BIGINT, holders BIGINT)[]"
    mechanism = ["BIGINT", "BIGINT", "UBIGINT"]  # domain, size, numerator
    signatures: list[tuple[str, Any, list[Any]]] = [
        (
            "dphh_report",
            report_function(randomness),
            ["VARCHAR", "BIGINT", *mechanism, "VARCHAR", "VARCHAR"],
        ),
        (
            "dphh_aggregate",
            aggregate_function(randomness),
            [held, "BIGINT", "BIGINT", *mechanism, "VARCHAR"],
        ),
    ]
    for name, function, takes in signatures:
        con.create_function(
            name,
            function,
            takes,
            "BIGINT[]",
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=True,
        )
