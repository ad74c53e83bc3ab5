"""Method "auto" of `items`: a first round chooses, and releases nothing."""

from __future__ import annotations

from typing import Any

import pytest

from dphh import items
from dphh.levels.set_union import CHOICE_COMMON
from dphh.mechanisms.items.levels import items_levels
from tests.engines.levels import host_on, unstored

BUDGET: dict[str, Any] = {"epsilon": 8, "delta": 1e-3, "max_items": 10}


def run_on(engine: str, corpus: Any, randomness: Any, plan: Any) -> list[Any]:
    with host_on(engine, corpus, randomness) as host:
        return list(items_levels(plan.price, host, unstored, " "))


@pytest.mark.parametrize("common", [CHOICE_COMMON - 1, CHOICE_COMMON])
def test_common_items_choose_rounds_and_too_few_one_round(
    engine: str, written: Any, no_noise: Any, common: int
) -> None:
    plan = items(**BUDGET, method="auto")
    first, alone, *rounds = plan.levels
    popular = int(first.threshold) + 1
    rows = [(user, f"c{user % common}") for user in range(common * popular)]
    rows += [(-1 - user, "rare") for user in range(int(rounds[-1].threshold) + 1)]
    done = run_on(engine, written(rows), no_noise, plan)
    ways = {True: [alone], False: rounds}
    assert [step.level for step in done][:2] == [first, ways[common < CHOICE_COMMON][0]]
    assert done[0].rows.num_rows == 0
    found = [item for step in done for item in step.rows["item"].to_pylist()]
    assert sorted(found) == sorted([*(f"c{number}" for number in range(common)), "rare"])


def test_scores_are_not_cut_at_the_first_rounds_threshold(
    engine: str, written: Any, no_noise: Any
) -> None:
    plan = items(**BUDGET, method="auto")
    many = 3 * int(plan.levels[0].threshold)
    done = run_on(engine, written([(user, "one") for user in range(many)]), no_noise, plan)
    assert [step.rows["score"].to_pylist() for step in done] == [[], [many]]
