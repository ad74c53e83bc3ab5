"""`dphh.schedule`: so many runs fit their cap, one more does not, and the ledger grants them."""

from __future__ import annotations

import pytest

import dphh
from dphh import BudgetRefused, UsageError
from dphh.ledger import Request, source_of
from dphh.ledger.remaining import share
from dphh.planning.scheduling import _booking

CAP = (3.0, 1e-5)
CHEAP = {"epsilon": 1.0, "delta": 1e-6, "max_items": 2}
#: A search prices a run dozens of times, and this method in a tenth of the time of the usual one.
QUICK = {"method": "gaussian", **CHEAP}


@pytest.mark.parametrize(
    "plan",
    [
        dphh.items(**QUICK),
        dphh.trie(epsilon=1.0, delta=1e-6, max_length=2),
    ],
)
def test_the_ledger_grants_so_many_runs_and_hardly_one_more(plan, written, ledger):
    corpus = written([(1, "a")])
    source = source_of(corpus)
    found = dphh.schedule(plan, times=4, cap=CAP)
    ledger.add("weekly", source, *CAP)
    price = found.plan.price
    claim = price.privacy.epsilon, price.privacy.delta
    request = Request(source, plan.verb, {}, price.events, *claim)
    for week in range(found.times):
        ledger.reserve(str(week), request)
    more = share([], ledger.status("weekly").cap, _booking(price))
    assert 1 / 4.1 < more <= 1 / 4
    with pytest.raises(BudgetRefused):
        ledger.reserve("more", request)
    assert found.delta <= CAP[1] / 4 * 2


def test_counts_whose_thresholds_take_next_to_nothing_are_scheduled_too():
    found = dphh.schedule(dphh.counts(of=[["a"]], epsilon=1.0, delta=1e-7), times=3, cap=CAP)
    assert CAP[1] / 3 <= found.delta <= CAP[1]
    assert CAP[0] / 3 < found.epsilon < CAP[0]
    assert (
        f"interval lies above 0 with probability 0.9 when held by at least {found.plan.finds.users}"
        in (" ".join(repr(found).split()))
    )


def test_gaussian_runs_gain_by_composing_and_others_add_up():
    gaussian = dphh.schedule(dphh.items(**QUICK), times=12, cap=CAP)
    assert gaussian.epsilon > 2 * CAP[0] / 12
    added = dphh.schedule(dphh.trie(epsilon=1.0, delta=1e-6, max_length=2), times=4, cap=CAP)
    assert (added.epsilon, added.delta) == (0.75, CAP[1] / 4)


def test_a_run_alone_may_take_all_of_a_cap():
    assert dphh.schedule(dphh.items(**CHEAP), times=1, cap=CAP).epsilon == 3.0


def test_it_says_what_each_finds_and_what_all_promise():
    plan = dphh.items(**CHEAP)
    found = dphh.schedule(plan, times=12, cap=CAP)
    said = " ".join(repr(found).split())  # as wide as the terminal is
    assert f"{found.plan.finds.users:,} users" in said
    assert "for a user with all that they have in any of the runs" in said
    assert "12 runs of items" in found._repr_html_()
    assert found.plan.finds.users > plan.finds.users


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"times": 0}, "times: found 0"),
        ({"times": 12, "cap": 3}, "cap: found 3"),
        ({"times": 12, "cap": (3, 0)}, "cap: found"),
    ],
)
def test_what_cannot_be_is_refused(asked, said):
    with pytest.raises(UsageError, match=said):
        dphh.schedule(dphh.items(**CHEAP), **{"cap": CAP, **asked})
    with pytest.raises(UsageError, match="plan: found a str; give a plan"):
        dphh.schedule("items", times=1, cap=CAP)


@pytest.mark.parametrize(
    "asked",
    [
        {"every": "fortnight", "cap_period": (1, 1e-7)},
        {"every": "week"},
        {"every": "week", "cap": (1, 1e-7)},
        {"every": "week", "cap_period": (1, 1e-7), "cap_person": (0.5, 1e-6)},
        {"cap_period": (1, 1e-7), "times": 2},
        {"times": 2},
        {},
    ],
)
def test_a_schedule_that_cannot_be_is_refused(asked):
    with pytest.raises(UsageError, match=r"every|cap_period|cap_person|times, cap"):
        dphh.schedule(dphh.items(**CHEAP), **asked)
