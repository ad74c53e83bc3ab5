"""What no verb can plan is refused before anything is read; the message begins with the option."""

from __future__ import annotations

import math
from typing import Any

import pytest

import dphh
from dphh import Corpus, UsageError

CORPUS = Corpus("/not/there.parquet", user="who", text="what")
ITEMS = Corpus("/not/there.parquet", user="who", item="what")
PAIRS = Corpus("/not/there.parquet", user=["who", "where"], text="what")
COST = {"epsilon": 1.0, "delta": 1e-7}
PAPER = {"accounting": "paper", "users": 10**6}
ASKED: dict[str, dict[str, Any]] = {
    "items": COST,
    "dpne": {**COST, "max_n": 3, "method": "dpne"},
    "forecast": {**COST, "max_n": 3},
    "trie": {**COST, "delta": 1e-8, "max_length": 10},
    "counts": {**COST, "of": [["a"], ["a", "b"]]},
    "ldp_trie": {
        "local_epsilon": 4.0, "delta": 1e-6, "users_per_level": 2_000, "contributions": 2,
        "max_length": 3, "keep": 50, "character_set": "abc",
    },
}  # fmt: skip
REFUSED = {
    "items": [
        ("counts: found", [{"counts": share} for share in (0, 1, -0.3, 0.9999, math.nan, "0.3")]),
        ("epsilon, max_items: ", [{"counts": 0.001, "max_items": 10**6}]),  # would hide every count
        ("user: ", [{"corpus": PAIRS, "counts": 0.3}]),
    ],
    "dpne": [
        ("max_n: found", [{"max_n": n} for n in (0, 101, True, 2.0)]),
        ("spurious: found", [{"spurious": share} for share in (0, 0.6, math.nan)]),
        ("decay: found", [{"decay": 0}, {"decay": "half"}]),
        ("shares: found", [{"shares": given} for given in ((1, 2), 0.5, (1, 0, 1), (1, "a", 1))]),
        ("decay, shares: found both", [{"shares": (1, 1, 1), "decay": 0.5}]),
        ("max_items: found", [{"max_items": m} for m in ((1, 2), 1.5, "all", (1, 0, 1))]),
    ],
    "forecast": [
        ("decay: does not apply to method='forecast'", [{"decay": 0.5}]),
        ("max_items, decay: does not apply", [{"decay": 0.5, "max_items": (1, 2, 3)}]),
    ],
    "trie": [
        ("max_length: found", [{"max_length": n} for n in (0, 1001, 2.0, True, None)]),
        ("theta, p: found only one of them", [{"theta": 20}, {"p": 0.2}]),
        ("theta", [{"theta": theta, "p": 0.2} for theta in (0, 2.5, True)]),
        ("p: found", [{"theta": 20, "p": p} for p in (0, 1, 1.0, -0.1, math.nan, 1e-20, "half")]),
        # What costs more than it may, in votes and in the direction in which a user goes.
        ("theta, p: (12, 0.2) over 10 levels costs (1, 5.5", [{"theta": 12, "p": 0.2}]),
        ("theta, p: (60, 0.7) over 10 levels costs (1.204, ", [{"theta": 60, "p": 0.7}]),
        ("users", [PAPER | {"users": users} for users in (None, 0, 10.0)]),
        ("no batch of sqrt(n) = 8 users or more keeps", [PAPER | {"users": 50}]),
        ("theta, p: apply only to accounting='path'", [PAPER | {"theta": 15, "p": 0.1}]),
        ("delta: found", [{"delta": 1e-101}, {"delta": 0}]),
        ("epsilon: found inf", [{"epsilon": math.inf}]),
        ("unit: cuts whole items into pieces of 2 characters, but", [{"unit": 2}]),
        ("unit: found", [{"unit": unit, "corpus": ITEMS} for unit in (0, True, 1.5)]),
        ("user: ", [{"corpus": PAIRS, "counts": 0.3}]),
    ],
    "counts": [
        ("of: ", [{"of": of} for of in ([], [[]], [["a"], [""]], [["a", None]], [3], "no run")]),
        ("of: ", [{"of": [["a"]], "min_length": 2}]),
        ("groups: ", [{"groups": ["DE"]}, {"by": "x"}]),
        ("groups: ", [{"by": "x", "groups": given} for given in
                      ("DE,,FR", ["DE", None], ["other"])]),
        ("confidence", [{"confidence": 1.0}]),
        ("epsilon", [{"epsilon": 0}, {"epsilon": 1e-9, "delta": 1e-30}]),
    ],
    "ldp_trie": [
        ("local_epsilon: found", [{"local_epsilon": 0}, {"local_epsilon": "ten"}]),
        ("local_epsilon, central_epsilon, user_epsilon: give exactly one",
         [{"local_epsilon": None}, {"central_epsilon": 0.5}]),
        ("delta: found 1", [{"delta": 1}]),
        ("users_per_level, contributions: found 200,000,000,000 reports",
         [{"users_per_level": 10**11}]),
        ("character_set: ", [{"character_set": given} for given in ("", ["a", ""], "aba")]),
        ("keep, character_set: ", [{"keep": 10**8, "max_length": 30}]),
        ("users_per_level: with 1 users per level, even an item",
         [{"users_per_level": 1, "contributions": 1, "local_epsilon": 0.5}]),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "how, begins, options",
    [
        pytest.param(how, begins, options, id=f"{how}-{options}")
        for how, kinds in REFUSED.items()
        for begins, several in kinds
        for options in several
    ],
)
def test_what_cannot_be_planned_is_refused_by_the_name_of_its_option(how, begins, options):
    asked = {"corpus": CORPUS, **ASKED[how], **options}
    corpus = asked.pop("corpus")
    verb = getattr(dphh, "ngrams" if how in ("dpne", "forecast") else how)
    with pytest.raises(UsageError) as refused:
        verb(corpus, **asked)
    assert str(refused.value).startswith(begins)
