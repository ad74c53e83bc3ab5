"""What holds of a plan of any verb and method: objects, JSON, the command line."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dphh as api
from dphh import Corpus, UsageError, plan_from_json
from dphh.privacy.accounting import compose

COST = {"epsilon": 1.0, "delta": 1e-7}
REPORTS = {
    "local_epsilon": 6.0, "delta": 1e-6, "users_per_level": 2_000, "contributions": 1,
    "max_length": 2, "keep": 5, "character_set": "aet",
}  # fmt: skip
#: A plan of each method, and of what changes how a method is priced.
PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "items": ("items", COST),
    "sips": ("items", {**COST, "method": "sips", "max_items": 3, "counts": 0.3}),
    "forecast": ("ngrams", {**COST, "max_n": 2, "max_items": 5}),
    "dpne": ("ngrams", {**COST, "max_n": 3, "method": "dpne", "decay": 0.8, "pruning": "single"}),
    "shares": ("ngrams", {**COST, "max_n": 2, "method": "dpne", "shares": (3, 1)}),
    "trie": ("trie", {**COST, "max_length": 4}),
    "by hand": ("trie", {**COST, "max_length": 4, "theta": 40, "p": 0.2, "unit": 3}),
    "paper": ("trie", {**COST, "max_length": 4, "accounting": "paper", "users": 100_000}),
    "counts": ("counts", {**COST, "of": [["at"], ["tea"]], "by": "week", "groups": ["1", "2"]}),
    "reports": ("ldp_trie", REPORTS),
    "tokens": ("ldp_trie", {**REPORTS, "character_set": ["home", "x"], "known": [["home", "x"]]}),
}


def planned(name, corpus=None, **more):
    verb, asked = PLANS[name]
    if corpus is None:
        content = {"item": "what"} if verb.endswith("trie") else {"text": "what"}
        corpus = Corpus("/not/there/*.parquet", user="who", account="n", lower=True, **content)
    return getattr(api, verb)(corpus, **{**asked, **more})


@pytest.mark.parametrize("name", PLANS)
def test_plans_go_through_json_and_back_and_are_not_edited_there(name):
    plan = planned(name)
    found = json.loads(json.dumps(plan.to_json()))
    assert plan_from_json(plan.dumps()) == plan_from_json(found) == plan
    assert {plan, plan_from_json(plan.dumps())} == {plan}
    assert found.keys() >= {"verb", "parameters", "privacy", "levels", "finds"}
    assert found["privacy"].keys() >= {"epsilon", "delta", "unit", "adjacency", "theorem"}
    last = found["levels"][-1]
    number = next(name for name, value in last.items() if name != "level" and type(value) is int)
    last[number] += 1
    with pytest.raises(UsageError, match="edited, or written by another version"):
        plan_from_json(found)


@pytest.mark.parametrize("name", [name for name in PLANS if PLANS[name][0] != "ldp_trie"])
def test_whole_numbers_and_floats_ask_for_the_same(name):
    told = planned(name, epsilon=1).dumps()
    assert told == planned(name, epsilon=1.0).dumps() == planned(name, epsilon=np.int64(1)).dumps()


METHODS = {
    "items": ("auto", "gaussian", "sips", "adaptive"),
    "ngrams": ("forecast", "dpne"),
}


@pytest.mark.parametrize(
    ("verb", "method"), [(verb, method) for verb in METHODS for method in METHODS[verb]]
)
@pytest.mark.parametrize("epsilon, delta", [(0.5, 1e-5), (8.0, 1e-30), (60.0, 1e-4)])
@pytest.mark.parametrize("max_items", [1, 4, 100])
def test_what_is_done_costs_no_more_than_what_is_claimed(verb, method, epsilon, delta, max_items):
    more = {"max_n": 3} if verb == "ngrams" else {}
    asked = {"epsilon": epsilon, "delta": delta, "max_items": max_items, "method": method}
    plan = getattr(api, verb)(**asked, **more)
    assert 0.4 * delta < compose(plan.events).delta(epsilon) <= delta
    # Of one round no user pays all the shares; of several, the sum.
    shares = [share for _, share in plan.privacy.delta_shares]
    together = max if method in ("auto", "gaussian") else sum
    assert together(shares) <= delta * (1 + 1e-12)


@pytest.mark.parametrize("name", ["sips", "dpne", "by hand", "paper", "reports"])
def test_the_command_line_makes_the_same_plan(dphh, written, name):
    verb, asked = PLANS[name]
    content = {"text": None, "item": "what"} if verb.endswith("trie") else {}
    corpus = written([("ann", "at")], **content)
    command = [verb.replace("_", "-"), corpus.where[0], "--user", "who"]
    command += ["--item" if content else "--text", "what"]
    for option, value in asked.items():
        said = ",".join(value) if isinstance(value, list) else value
        command += [f"--{option.replace('_', '-')}", said]
    code, out, err = dphh(*command, "--plan", "--json")
    assert (code, err) == (0, "")
    assert plan_from_json(out) == planned(name, corpus)
