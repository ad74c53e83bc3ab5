"""Every claim against what is seen from outside: tests/audit/audits.md, with small counts.

DPHH_FULL=1 has ten times the counts, and `python -m tests.audit --times 20` makes the table.
Bounds are so wide here that a right mechanism fails once in a hundred million times.
"""

from pathlib import Path

import pytest

from dphh.udfs.noise import sampler as noise
from tests.audit import cells_prior
from tests.audit.__main__ import CELLS, engine_of
from tests.audit.cells_prior import unlisted_words
from tests.audit.cells_union import (
    counts_within,
    dpne_all_levels,
    items_new,
    single_new,
    single_shared,
    sips_shared,
)
from tests.audit.measure import DAILY, Cell, Measured
from tests.conftest import full

#: Those whose trials stand side by side in few runs.
QUICK = {
    *cells_prior.CELLS,
    items_new,
    single_new,
    single_shared,
    sips_shared,
    dpne_all_levels,
    counts_within,
}


def check(found: Measured) -> None:
    low, high = found.bounds(DAILY)
    assert low <= found.delta, "neighbours differ by more than is claimed"
    if found.exact is not None:
        assert low <= found.exact <= high, "neighbours differ by more or less than they should"
        assert found.exact <= found.delta


@pytest.mark.parametrize(
    "cell",
    [pytest.param(cell, marks=() if cell in QUICK else pytest.mark.slow) for cell in CELLS],
    ids=lambda cell: cell.__name__,
)
def test_no_pair_of_neighbours_differs_by_more_than_is_claimed(cell: Cell, tmp_path: Path) -> None:
    check(cell(engine_of(cell), tmp_path, 10 if full() else 1))


@pytest.mark.parametrize("cell", [sips_shared, dpne_all_levels, counts_within, unlisted_words])
def test_half_the_noise_is_caught(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise_from = noise._Sampler.noise_from

    def halved(sampler, words, *rest):
        return noise_from(sampler, words, *rest) // 2

    monkeypatch.setattr(noise._Sampler, "noise_from", halved)
    with pytest.raises(AssertionError, match="neighbours differ"):
        check(cell("duckdb", tmp_path, 1))
