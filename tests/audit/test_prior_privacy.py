"""What `ngrams` with a prior promises, with the operating system's randomness."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dphh import Corpus, ngrams
from tests.audit.__main__ import engine_of
from tests.audit.cells_prior import PRIOR, READ, SMALL_CELLS, list_of
from tests.audit.measure import Cell, released_once, scores
from tests.audit.test_cells import check


@pytest.mark.parametrize("cell", SMALL_CELLS, ids=lambda cell: cell.__name__)
def test_a_user_who_alone_holds_something_shows_no_more_than_is_claimed(
    cell: Cell, tmp_path: Path
) -> None:
    check(cell(engine_of(cell), tmp_path, 1))


@pytest.mark.slow
def test_no_more_spurious_words_come_than_a_budget_above_one_says() -> None:
    """1,000 words of the list have many holders, 3,000 have none; b is 0.01 of those found."""
    held, nobodys = ([f"{kind}{i}" for i in range(n)] for kind, n in (("h", 1000), ("n", 3000)))
    plan = ngrams(
        READ, max_n=1, epsilon=4.0, delta=1e-6, max_items=10, spurious=0.01,
        prior=list_of(held + nobodys, []), **PRIOR,
    )  # fmt: skip
    texts = [" ".join(held[(10 * user + i) % 1000] for i in range(10)) for user in range(20_000)]
    frame = pl.DataFrame({"who": range(len(texts)), "what": texts})
    corpus = Corpus(frame, user="who", text="what")
    seen, budgets = [], []
    for _ in range(100):
        release = released_once(plan, corpus, "polars")
        seen.append(sum(word.startswith("n") for word in scores(release)))
        budgets.append(release.manifest["levels"][0]["spurious_words"])
    assert min(budgets) > 5
    error = np.std(np.array(seen) - budgets) / 10
    assert np.mean(seen) <= np.mean(budgets) + 4 * error
    assert np.mean(seen) > 0, "a check of nothing"
