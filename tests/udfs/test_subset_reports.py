"""Counts drawn at once against exact laws and against messages; reports through DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, chi2, chisquare, hypergeom

from dphh.errors import UsageError
from dphh.privacy.subset_selection import estimate, subset_selection
from dphh.sql import query
from dphh.testing import SeededRandomness
from dphh.udfs.draws import subset_reports as module
from dphh.udfs.draws.noise import draw_binomial
from dphh.udfs.draws.randomness import SystemRandomness, Words
from dphh.udfs.draws.subset_reports import (
    draw_aggregate,
    draw_binomials,
    draw_common,
    register_reports,
)
from dphh.udfs.draws.subsets import draw_subsets

SYSTEM = SystemRandomness()
CHANCE = 1e-9  # how often a sound sampler may fail one statistical test
TOP = 2**64 - 1


def assert_law(drawn: NDArray[np.int64], law: NDArray[np.float64]) -> None:
    """Chi-squared of draws against the chances of 0, 1, ...; rare values are pooled."""
    seen = np.bincount(drawn, minlength=len(law)).astype(float)
    assert len(seen) == len(law)
    assert seen[law == 0].sum() == 0
    expected = law * len(drawn)
    common = expected >= 10
    cells = np.append(seen[common], seen[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    if wanted[-1] < 10:  # too few even together: with the largest
        largest = int(wanted.argmax())
        cells[largest] += cells[-1]
        wanted[largest] += wanted[-1]
        cells, wanted = cells[:-1], wanted[:-1]
    if len(cells) > 1:
        assert chisquare(cells, wanted * cells.sum() / wanted.sum()).pvalue > CHANCE


# Counts


COUNTS = np.array([0, 0, 1, 2, 3, 7, 12, 25, 50, 0])
USERS = 100


@pytest.fixture(scope="module")
def many_aggregates() -> NDArray[np.int64]:
    mechanism = subset_selection(10, 1.5, 3)
    return np.array([draw_aggregate(SYSTEM, COUNTS, USERS, mechanism, "x") for _ in range(3000)])


@pytest.mark.parametrize("value", range(10))
def test_each_count_is_the_sum_of_its_two_binomials(
    many_aggregates: NDArray[np.int64], value: int
) -> None:
    mechanism = subset_selection(10, 1.5, 3)
    held = COUNTS[value]
    law = np.convolve(
        binom.pmf(np.arange(held + 1), held, mechanism.p),
        binom.pmf(np.arange(USERS - held + 1), USERS - held, mechanism.q),
    )
    assert_law(many_aggregates[:, value], law)


def test_counts_are_independent_as_the_module_says(many_aggregates: NDArray[np.int64]) -> None:
    """Which messages' counts are not: three values a report make them go against each other."""
    runs = len(many_aggregates)
    correlations = np.corrcoef(many_aggregates.T)[np.triu_indices(10, 1)]
    statistic = runs * (correlations**2).sum()
    assert chi2.sf(statistic, len(correlations)) > CHANCE
    assert many_aggregates.sum(axis=1).std() > 1  # of messages it would be 300, always


def test_counts_have_the_mean_and_spread_of_messages() -> None:
    mechanism = subset_selection(3001, 4.0)
    rng = np.random.default_rng(5)
    values = np.minimum(rng.geometric(0.01, 40_000) - 1, 3000)
    counts = np.bincount(values, minlength=3001)
    messages = np.bincount(draw_subsets(SYSTEM, values, mechanism, "m").ravel(), minlength=3001)
    at_once = draw_aggregate(SYSTEM, counts, 40_000, mechanism, "a")
    deviation = np.sqrt(mechanism.variance(40_000, counts))
    for reports in (messages, at_once):
        squares = ((estimate(reports, 40_000, mechanism) - counts) / deviation) ** 2
        assert chi2.sf(squares.sum(), 3001) > CHANCE
        assert chi2.cdf(squares.sum(), 3001) > CHANCE


def test_the_price_of_independent_values_is_that_of_their_reports() -> None:
    """Enumerated: a report of independent coins, for all pairs of values and all reports."""
    for domain, size, epsilon in [(2, 1, 1.0), (4, 2, 0.7), (5, 2, 3.0)]:
        mechanism = subset_selection(domain, epsilon, size)
        p, q = mechanism.own_chance, mechanism.other_chance
        laws = []
        for value in range(domain):
            law = {}
            for size_of in range(domain + 1):
                for report in combinations(range(domain), size_of):
                    chance = Fraction(1)
                    for v in range(domain):
                        coin = p if v == value else q
                        chance *= coin if v in report else 1 - coin
                    law[report] = chance
            assert sum(law.values()) == 1
            laws.append(law)
        worst = max(float(a[r] / b[r]) for a in laws for b in laws for r in a)
        assert np.log(worst) == pytest.approx(mechanism.epsilon_of_independent_values, rel=1e-12)
        assert mechanism.epsilon_of_independent_values > mechanism.epsilon


# Its two draws


@pytest.mark.parametrize(
    "n, p",
    [
        (0, Fraction(1, 3)),
        (1, Fraction(1, 3)),
        (7, Fraction(9, 10)),
        (500_000, Fraction(1, 22_000)),
        (30_000_000, Fraction(12345, 2**64)),
    ],
)
def test_binomials_follow_their_law(n: int, p: Fraction) -> None:
    drawn = draw_binomials(SYSTEM, n, p, 200_000, "x")
    assert_law(drawn, binom.pmf(np.arange(min(n, 200) + 1), n, float(p)))


class Scripted:
    """Hands out the words it was given, in order."""

    is_test = True

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Words:
        given, self.left = self.left[:count], self.left[count:]
        assert len(given) == count
        return np.array(given, dtype=np.uint64)


@pytest.mark.parametrize(
    "n, p", [(2, Fraction(1, 3)), (5, Fraction(1, 2**64)), (300, Fraction(1, 7))]
)
def test_at_a_chances_edge_all_words_decide(n: int, p: Fraction) -> None:
    """Either side of every cumulative chance, with exact chances from fractions."""
    cumulative, below = Fraction(0), 0
    term = (1 - p) ** n
    for k in range(n):
        cumulative += term
        term = term * (n - k) * p / ((k + 1) * (1 - p))
        edge = int(cumulative * 2**256)
        if edge >= 2**256 - 2**200 or edge <= below + 2**60:
            break
        below = edge
        for uniform, expected in ((edge - 2**50, k), (edge + 2**50, k + 1)):
            words = [uniform >> shift & TOP for shift in (192, 128, 64, 0)]
            assert draw_binomials(Scripted(*words), n, p, 1, "x").tolist() == [expected]


def test_ones_own_draw_of_a_binomial_agrees() -> None:
    singles = [draw_binomial(SYSTEM, 40, Fraction(1, 9), "x") for _ in range(4000)]
    assert_law(np.array(singles), binom.pmf(np.arange(41), 40, 1 / 9))
    assert_law(
        draw_binomials(SYSTEM, 40, Fraction(1, 9), 4000, "x"), binom.pmf(range(41), 40, 1 / 9)
    )


@pytest.mark.parametrize(
    "n, one, other", [(10, 3, 4), (10, 10, 4), (10, 0, 4), (10, 5, 5), (1000, 90, 300), (1, 1, 1)]
)
def test_what_subsets_share_is_hypergeometric(n: int, one: int, other: int) -> None:
    runs = 40_000
    # Among others of many sizes, so that rows that stop early do not touch those that go on.
    ones = np.tile([one, n, 1, other], runs)
    others = np.tile([other, 1, n, one], runs)
    common = draw_common(SYSTEM, n, ones, others, "x").reshape(runs, 4)
    law = hypergeom.pmf(np.arange(n + 1), n, one, other)
    assert_law(common[:, 0], law)
    assert_law(common[:, 3], law)
    assert (common[:, 1:3] == 1).all()


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = subset_selection(500, 2.0)
    counts = np.arange(500)
    draw = draw_aggregate(SeededRandomness(3), counts, int(counts.sum()), mechanism, "x")
    monkeypatch.setattr(module, "_BLOCK", 37)
    again = draw_aggregate(SeededRandomness(3), counts, int(counts.sum()), mechanism, "x")
    assert (draw == again).all()
    other = draw_aggregate(SeededRandomness(3), counts, int(counts.sum()), mechanism, "level 2")
    assert (draw != other).any()


def test_counts_that_do_not_fit_are_refused() -> None:
    mechanism = subset_selection(4, 1.0)
    for counts in ([1, 2, 3, 2, 2], [1, 2, 3, 5], [-1, 5, 3, 3], []):
        with pytest.raises(UsageError, match="count"):
            draw_aggregate(SYSTEM, np.array(counts), 10, mechanism, "x")
    for n, p in ((-1, Fraction(1, 2)), (5, Fraction(0)), (5, Fraction(1)), (2**40, Fraction(1, 2))):
        with pytest.raises(UsageError, match="binomial"):
            draw_binomials(SYSTEM, n, p, 1, "x")
    assert draw_aggregate(SYSTEM, np.zeros(4, np.int64), 0, mechanism, "x").tolist() == [0] * 4


# In DuckDB


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        yield con


SUBSETS = """
    CREATE OR REPLACE TABLE reports AS
    SELECT
        i,
        dphh_report(
            'user ' || i, i % 40, 40, 11, CAST($numerator AS UBIGINT), 'subsets', 'p'
        ) AS report
    FROM range(5000) AS r(i) ORDER BY i {direction}
"""


def test_in_duckdb_a_seeds_reports_are_those_of_python(con: duckdb.DuckDBPyConnection) -> None:
    mechanism = subset_selection(40, 1.0)
    keys = pa.array([f"user {i}" for i in range(5000)])
    expected = draw_subsets(SeededRandomness(4), np.arange(5000) % 40, mechanism, "p", keys)
    register_reports(con, SeededRandomness(4))
    for direction in ("ASC", "DESC"):
        con.execute(SUBSETS.format(direction=direction), {"numerator": mechanism.numerator})
        found = con.execute("SELECT report FROM reports ORDER BY i").fetchall()
        assert [report for (report,) in found] == expected.tolist()


def test_in_duckdb_rows_that_look_alike_report_on_their_own(con: duckdb.DuckDBPyConnection) -> None:
    register_reports(con, SYSTEM)
    con.execute(
        "CREATE TABLE reports AS SELECT dphh_report('same', 5, 100000, 40, "
        "CAST(1 AS UBIGINT) << 63, 'subsets', 'p') AS report FROM range(3000)"
    )
    found = {tuple(report) for (report,) in con.execute("FROM reports").fetchall()}
    assert len(found) == 3000
    held = sum(5 in report for report in found)
    low, high = binom.ppf([CHANCE, 1 - CHANCE], 3000, 0.5)
    assert low <= held <= high


AGGREGATE = """
    CREATE TABLE reports AS
    SELECT
        level,
        dphh_aggregate(
            list(struct_pack(value := value, holders := holders) ORDER BY value {direction})
            FILTER (value IS NOT NULL),
            40, 900, 41, 11, CAST($numerator AS UBIGINT), 'level ' || level
        ) AS reports
    FROM held GROUP BY level
"""


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_in_duckdb_a_seeds_counts_are_those_of_python(
    con: duckdb.DuckDBPyConnection, direction: str
) -> None:
    """In whatever order holders come; of all values, also of a level where nobody holds any."""
    mechanism = subset_selection(41, 1.0, 11)
    con.execute("CREATE TABLE held (level INTEGER, value BIGINT, holders BIGINT)")
    con.execute("INSERT INTO held VALUES (1, 0, 70), (1, 39, 5), (1, 7, 800), (2, NULL, NULL)")
    register_reports(con, SeededRandomness(4))
    con.execute(AGGREGATE.format(direction=direction), {"numerator": mechanism.numerator})
    found = dict(con.execute("FROM reports").fetchall())
    holders = np.zeros((2, 40), dtype=np.int64)
    holders[0, [0, 7, 39]] = 70, 800, 5
    assert found == {
        level: draw_aggregate(
            SeededRandomness(4), holders[level - 1], 900, mechanism, f"level {level}"
        ).tolist()
        for level in (1, 2)
    }


def test_in_duckdb_no_rows_and_no_value(con: duckdb.DuckDBPyConnection) -> None:
    register_reports(con, SeededRandomness(0))
    drawn = "dphh_report('a', {}, 10, 2, CAST(1 AS UBIGINT) << 63, 'subsets', 'p')"
    sql = f"SELECT {drawn} FROM range({{}})"
    assert con.execute(sql.format(3, 0)).fetchall() == []
    with pytest.raises(duckdb.Error, match="must not be NULL"):
        con.execute(sql.format("CAST(NULL AS BIGINT)", 1)).fetchall()


def test_more_reports_than_a_small_integer_counts_are_drawn() -> None:
    """Parameters come as integers of 32 bits."""
    con = duckdb.connect()
    held = "STRUCT(value BIGINT, holders BIGINT)[]"
    numbers = ["BIGINT", "BIGINT", "BIGINT", "BIGINT", "UBIGINT"]
    con.create_function(
        "dphh_aggregate",
        lambda held, values, sent, domain, size, numerator, purpose: [sent],
        [held, *numbers, "VARCHAR"],  # type: ignore[list-item]
        "BIGINT[]",  # type: ignore[arg-type]
    )
    con.execute("CREATE TABLE chosen AS SELECT 0 AS seat, 0 AS report, 0 AS value")
    level = {"first_seat": 0, "last_seat": 40_000_000, "contributions": 60, "domain": 9}
    randomiser = {"nothings": 1, "size": 2, "numerator": 1 << 62, "purpose": "level 1"}
    con.execute(query("ldp_aggregate"), {**level, **randomiser})
    assert con.sql("SELECT reports FROM reports").fetchall() == [(2_400_000_000,)]
