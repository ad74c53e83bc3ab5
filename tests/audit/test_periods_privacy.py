"""What is promised to a user's rows of one week, by experiment: one week more, and all weeks more.

Thousands of copies of one situation stand in a corpus: an item that others hold in two weeks, and a
user who says it in neither, in one or in both. What comes out is compared event by event, in both
directions, with exact bounds (Clopper-Pearson) that fail a right mechanism with probability below
1e-6. The claim of one unit is also put to both weeks, and must be caught there.
"""

from __future__ import annotations

import datetime as dt
from math import exp
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta

from dphh import Corpus, Plan, items
from dphh.together import cost_of_separate_runs, in_one_run

pytestmark = pytest.mark.slow
COPIES, OTHERS = 6_000, 14
EPSILON, DELTA = 1.0, 0.02
FAILS = 1e-9
WEEKS = dt.date(2026, 11, 16), dt.date(2026, 11, 23)  # 2026-W47, 2026-W48
BOTH = "2026-W47..2026-W48"


def written(path: Path, said_in: int) -> Corpus:
    """`said_in`: in how many of the weeks the user who is compared says the item of their copy."""
    rows = []
    for week, monday in enumerate(WEEKS):
        # The one who is compared is user 0, the same person in both weeks.
        first = 0 if week < said_in else 1
        who, copy = np.meshgrid(np.arange(first, OTHERS + 1), np.arange(COPIES))
        rows.append(
            pl.DataFrame(
                {"who": (copy * 100 + who).ravel(), "what": copy.ravel().astype(str)}
            ).with_columns(date=pl.lit(monday))
        )
    pl.concat(rows).write_parquet(path)
    return Corpus(path, user="who", item="what", period="date by week")


def priced(corpus: Corpus, periods: str) -> Plan:
    """With method "gaussian": method "auto" chooses once for all copies, so they depend on it."""
    asked = corpus.in_periods(periods)
    return items(asked, epsilon=EPSILON, delta=DELTA, max_items=1, method="gaussian")


def scores(corpus: Corpus, periods: str, engine: str) -> np.ndarray:
    """Of each copy what was released; nothing is 0."""
    table = priced(corpus, periods).run(engine=engine).to_arrow()
    found = np.zeros(COPIES)
    found[table.column("item").to_numpy().astype(int)] = table.column("score").to_numpy()
    return found


def exceeded(more: np.ndarray, less: np.ndarray, epsilon: float, delta: float) -> bool:
    """Whether some event is, beyond doubt, likelier than (epsilon, delta) allows."""
    for one, other in ((more, less), (less, more)):
        for cut in np.quantile(np.concatenate([one, other]), np.linspace(0.02, 0.98, 49)):
            for often, seldom in ((one >= cut, other >= cut), (one < cut, other < cut)):
                high, low = int(often.sum()), int(seldom.sum())
                least = beta.ppf(FAILS, high, COPIES - high + 1) if high else 0.0
                most = beta.ppf(1 - FAILS, low + 1, COPIES - low) if low < COPIES else 1.0
                if least > exp(epsilon) * most + delta:
                    return True
    return False


@pytest.fixture
def corpora(tmp_path: Path) -> list[Corpus]:
    return [written(tmp_path / f"{weeks}.parquet", weeks) for weeks in range(3)]


def test_one_week_more_or_less_of_a_user_stays_within_the_promise(engine, corpora):
    none, one, both = (scores(each, BOTH, engine) for each in corpora)
    assert not exceeded(one, none, EPSILON, DELTA)
    assert not exceeded(both, one, EPSILON, DELTA)


def test_all_weeks_of_a_user_in_one_run_are_beyond_the_promise_to_one_and_within_their_own(
    engine, corpora
):
    none, _, both = (scores(each, BOTH, engine) for each in corpora)
    of_two = in_one_run(EPSILON, DELTA, 2)
    assert of_two is not None
    assert not exceeded(both, none, *of_two)
    assert exceeded(both, none, EPSILON / 2, DELTA / 2), "the experiment sees nothing"


def test_weeks_released_apart_compose_and_a_week_that_is_not_read_tells_nothing(engine, corpora):
    none, one, both = corpora
    apart = [
        sum(scores(each, week, engine) for week in ("2026-W47", "2026-W48"))
        for each in (none, both)
    ]
    events = priced(none, "2026-W47").events
    claimed = cost_of_separate_runs(events, EPSILON, DELTA, 2)
    assert claimed.epsilon is not None
    assert claimed.epsilon < 2 * EPSILON
    assert not exceeded(apart[1], apart[0], claimed.epsilon, claimed.delta)
    # The user says it in 2026-W47 alone: of the other week all is alike, at epsilon 0 and delta 0.
    assert not exceeded(scores(one, "2026-W48", engine), scores(none, "2026-W48", engine), 0, 0)
