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


def test_rounds_shares_noise_and_threshold_are_given_by_hand(engine, written, no_noise):
    corpus = written([(user, f"often{user % 3} own{user}") for user in range(300)])
    asked = {"epsilon": 1.0, "delta": 1e-6, "max_items": 20, "counts": 0}
    theirs = items(method="sips", **asked)
    mine = {"three": own_method.by_shares(0.09, 0.3, 1), "hand": own_method.by_hand(6.0, 40.0)}
    with patch.dict(METHODS, mine):
        assert items(method="three", **asked).levels == theirs.levels
        plan = items(corpus, method="hand", **asked)
        (level,) = plan.levels
        assert (level.sigma, level.threshold) == (6.0, 40.0)
        assert compose(plan.events).delta(1.0) <= 1e-6
        found = plan.run(engine=engine, randomness=no_noise).to_polars()
        with pytest.raises(UsageError, match=r"cost delta .* at epsilon 0.5, found 1e-06"):
            items(method="hand", **{**asked, "epsilon": 0.5})
    # 100 users of two words each: 100 / sqrt(2).
    assert dict(found.select("item", "score").rows()).keys() == {"often0", "often1", "often2"}
    assert found["score"].to_list() == pytest.approx([70.7] * 3, abs=0.1)


def test_a_method_that_nobody_wrote_is_refused():
    with pytest.raises(UsageError, match="method: found 'equal'; give one of auto, gaussian"):
        items(epsilon=1.0, delta=1e-7, method="equal")
