"""A method that somebody adds by one file and one line: `examples/own_method.py`."""

from unittest.mock import patch

import pytest

from dphh import UsageError, items
from dphh.mechanisms.set_union.methods import METHODS
from dphh.privacy.accounting import compose
from examples import own_method


def test_a_method_of_ones_own_is_priced_booked_run_and_verified(engine, capsys):
    with patch.dict(METHODS, {"by list": own_method.BY_LIST}):
        plan = items(epsilon=1.0, delta=1e-7, max_items=20, method="by list")
        assert 0.4e-7 < compose(plan.events).delta(1.0) <= 1e-7
        assert "dphh_contributions_of_words(" in plan.sql()
        release = own_method.main(engine)
    assert "'notes' paid for this run, within its cap" in capsys.readouterr().out
    # 355 users hold it, of ten words: four times any other's w gives it 4 / 5 of a norm.
    scores = dict(zip(*release.to_polars().select("item", "score"), strict=True))
    assert scores["fever"] == pytest.approx(355 * 0.8, abs=40)
    assert all(score < 150 for item, score in scores.items() if item != "fever")


def test_a_method_that_nobody_wrote_is_refused():
    with pytest.raises(UsageError, match="method: found 'equal'; give one of auto, gaussian"):
        items(epsilon=1.0, delta=1e-7, method="equal")
