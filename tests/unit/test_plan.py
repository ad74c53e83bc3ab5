"""Plans of every verb and method: priced from parameters alone, frozen, comparable, printable, and
the same through JSON and on the command line."""

import json
import math
import re
from functools import partial
from html import unescape
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import dphh
from dphh import Corpus, UsageError, items, ngrams, plan_from_json, trie
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.set_union.levels import price_rounds
from dphh.mechanisms.set_union.methods import METHODS as SET_UNION_METHODS
from dphh.price import warnings_of
from dphh.privacy.accounting import compose

#: facts.md: (epsilon, delta) -> sigma, and the thresholds at D0.
GOLDEN = [
    (1.0, 1e-5, 3.884, {1: 18.16, 10: 19.32, 50: 20.34, 100: 20.79, 300: 21.51}),
    (3.0, math.exp(-10), 1.333, {1: 6.44, 10: 6.44, 50: 6.69, 100: 6.82, 300: 7.06}),
    (4.0, 1e-7, 1.328, {1: 8.07, 10: 8.07, 50: 8.11, 100: 8.21, 300: 8.40}),
    (1.0, 1e-8, 5.222, {1: 30.92, 10: 32.22, 50: 33.36, 100: 33.87, 300: 34.68}),
]
#: The grid's own step, twice: sigma and the threshold are each rounded up to it.
GRID = 2 / 1024
#: Half a unit of what the table of facts.md prints, and what a rounded-up sigma moves rho by.
PRINTED_SIGMA, PRINTED_RHO = 0.0005, 0.005


def corpus(**options):
    return Corpus("/not/there/*.parquet", user="who", text="what", **options)


@pytest.mark.parametrize("epsilon, delta, sigma, thresholds", GOLDEN)
def test_noise_and_thresholds_are_below_the_papers(epsilon, delta, sigma, thresholds):
    """By pricing new items and others jointly. Half of delta for each gives the papers' own."""
    for max_items, rho in thresholds.items():
        (level,) = items(
            epsilon=epsilon, delta=delta, max_items=max_items, method="gaussian", counts=0
        ).levels
        assert 0.96 < level.sigma / sigma < 0.98
        assert 0.935 < level.threshold / rho < 0.965
        ((apart,), _, _) = price_rounds(epsilon, delta, [1.0], [max_items], CountsOptions())
        assert -PRINTED_SIGMA <= apart.sigma - sigma <= PRINTED_SIGMA + GRID
        # An excess of sigma by one step of the grid moves rho by rho / sigma such steps.
        assert (
            -PRINTED_RHO - GRID <= apart.threshold - rho <= PRINTED_RHO + GRID * (1 + rho / sigma)
        )


@pytest.mark.parametrize(
    ("verb", "options", "draws"),
    [
        (items, {"max_items": 30, "method": "gaussian", "counts": 0}, 30),
        (items, {"max_items": 30, "method": "sips", "counts": 0}, 3 * 30),
        (items, {"max_items": 30, "method": "adaptive", "counts": 0}, 3 * 30),
        (items, {"max_items": 30, "method": "auto", "counts": 0}, 3 * 30 + 1024),
        (items, {"counts": 0.3, "method": "gaussian"}, 10**6),
        (items, {"counts": 0.3, "method": "auto"}, 10**6),
        (dphh.counts, {"of": [["a"], ["b"], ["c"]]}, 3),
        (trie, {"max_length": 3, "counts": 0.3}, 10**6),
    ],
)
def test_the_noise_tables_distance_is_charged_for_every_draw_that_a_user_changes(
    verb, options, draws
):
    """Each draw's law is within 2^-232 of the exact one (tests/privacy/test_rounded_gaussian.py),
    for either neighbour; a run may count up to 10^6 items that it finds."""
    below_one = math.nextafter(1, 0)  # what is charged is rounded up to that of a whole epsilon
    *_, charged = verb(epsilon=below_one, delta=1e-7, **options).events
    assert charged.delta >= draws * 2.0**-232 * (1 + math.e)


@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-8), (4.0, 1e-5)])
def test_finds_are_the_smallest_numbers_found_with_nine_in_ten(epsilon, delta):
    plan = items(epsilon=epsilon, delta=delta, max_items=300, method="gaussian")
    (level,) = plan.levels
    assert [held for held, _ in plan.finds.users_by_held] == [1, 3, 10, 30, 100, 300]
    for held, users in plan.finds.users_by_held:
        weight = math.isqrt(4**level.grid_bits // held)

        def found(count, weight=weight, level=level):
            gap = level.threshold_grid - 0.5 - count * weight
            return norm.sf(gap / level.sigma_grid)

        assert found(users) >= 0.9 > found(users - 1)
    assert plan.finds.users == plan.finds.users_by_held[0][1]


def test_a_plan_on_a_table_in_memory_comes_back_without_it():
    frame = pl.DataFrame({"who": [1], "what": ["a"]})
    plan = items(Corpus(frame, user="who", text="what"), epsilon=1, delta=1e-7)
    back = plan_from_json(plan.dumps())
    assert back.corpus is None
    with pytest.raises(UsageError, match=r"pass run\(corpus="):
        back.run()


def test_whom_a_plan_protects_is_a_field_and_a_plan_without_it_is_refused():
    pairs = Corpus("x.parquet", user=("who", "day"), text="what")
    for plan, protects in (
        (items(corpus(), epsilon=1, delta=1e-7), "user"),
        (trie(pairs, epsilon=1, delta=1e-7, max_length=2), "combination"),
    ):
        found = plan.to_json()
        said = found["privacy"]
        assert said["protects"] == protects
        del said["protects"]
        with pytest.raises(UsageError, match="what it says of privacy differs"):
            plan_from_json(found)


@pytest.mark.parametrize("verb", [items, partial(ngrams, max_n=2)], ids=["items", "ngrams"])
def test_combinations_of_user_columns_are_counted_only_if_asked_for(verb):
    pairs, cost = Corpus("x.parquet", user=("who", "day"), text="what"), (1.0, 1e-7)
    ask = partial(verb, pairs, epsilon=cost[0], delta=cost[1])
    plan = ask()
    assert plan.counting is None
    assert plan == ask(counts=0) == ask(counts=None)
    assert plan_from_json(plan.dumps()) == plan
    assert "How many hold an item is not counted" in " ".join(plan.describe().split())
    for given in ({"counts": 0.3}, {"min_users": 20}, {"by": "day", "groups": "May"}):
        with pytest.raises(UsageError, match="a combination of columns is not a user"):
            ask(**given)


def test_a_print_never_fails_for_want_of_a_ledger(monkeypatch, tmp_path):
    broken = tmp_path / "broken.sqlite"
    broken.write_text("this is no ledger, but long enough to be looked at" * 10)
    monkeypatch.setenv("DPHH_LEDGER", str(broken))
    said = " ".join(repr(items(corpus(), epsilon=1, delta=1e-7)).split())
    assert "broken.sqlite" in said and "forgets what was spent" in said
    assert "no corpus yet" in repr(items(epsilon=1, delta=1e-7))


def test_a_plan_names_the_ledger_that_it_asked(monkeypatch, tmp_path):
    monkeypatch.setenv("DPHH_LEDGER", str(tmp_path / "usual.sqlite"))
    usual, other = (dphh.Ledger(tmp_path / f"{name}.sqlite", create=True)
                    for name in ("usual", "other"))  # fmt: skip
    other.add("small", corpus(), 0.5, 1e-7)
    plan = items(corpus(), epsilon=1, delta=1e-7)
    said, of_other = (" ".join(each.split()) for each in (repr(plan), plan.describe(other)))
    assert f"file {usual.path}; of another: plan.describe(ledger=...) no cap" in said
    assert f"file {other.path} would refuse" in of_other and "no cap" not in of_other
    frame = items(
        Corpus(pl.DataFrame({"u": [1], "t": ["a"]}), user="u", text="t"), epsilon=1, delta=1e-7
    )
    of_frame = frame.describe(other)
    assert "which account pays?" in of_frame and "no cap" not in of_frame


def test_a_notebook_has_every_word_of_a_print():
    plan = ngrams(corpus(), max_n=3, epsilon=1, delta=1e-7)
    *printed, _ = repr(plan).removeprefix("plan:").splitlines()
    shown = unescape(re.sub("<[^>]*>", " ", plan._repr_html_())).split()
    assert "\n".join(printed).split() == shown[1 : len(" ".join(printed).split()) + 1]
    assert "∅" not in shown  # an empty cell is empty


def test_a_print_escapes_what_html_would_read(tmp_path):
    plan = items(Corpus("/a.parquet", user="u", text="t", account="<b>"), epsilon=1, delta=1e-7)
    assert "<b>&lt;" not in plan._repr_html_().replace("&lt;b&gt;", "")
    assert "'<b>'" not in plan._repr_html_()


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
    "dpne": ("ngrams", {**COST, "max_n": 3, "method": "dpne"}),
    "shares": ("ngrams", {**COST, "max_n": 2, "method": "dpne", "shares": (3, 1)}),
    "trie": ("trie", {**COST, "max_length": 4}),
    "by hand": ("trie", {**COST, "max_length": 4, "theta": 40, "p": 0.2, "unit": 3}),
    "counts": ("counts", {**COST, "of": [["at"], ["tea"]], "by": "week", "groups": ["1", "2"]}),
    "reports": ("ldp_trie", REPORTS),
    "tokens": ("ldp_trie", {**REPORTS, "character_set": ["home", "x"], "known": [["home", "x"]]}),
}


def planned(name, corpus=None, **more):
    verb, asked = PLANS[name]
    if corpus is None:
        content = {"item": "what"} if verb.endswith("trie") else {"text": "what"}
        corpus = Corpus("/not/there/*.parquet", user="who", account="n", lower=True, **content)
    return getattr(dphh, verb)(corpus, **{**asked, **more})


@pytest.mark.parametrize("name", PLANS)
def test_plans_go_through_json_and_back_and_are_not_edited_there(name):
    plan = planned(name)
    found = json.loads(json.dumps(plan.to_json()))
    assert plan_from_json(plan.dumps()) == plan_from_json(found) == plan
    assert {plan, plan_from_json(plan.dumps())} == {plan}
    assert plan_from_json(found).dumps() == plan.dumps()  # with the notes of its events
    assert found.keys() >= {"verb", "parameters", "privacy", "levels", "finds"}
    assert found["privacy"].keys() >= {"epsilon", "delta", "unit", "adjacency", "theorem"}
    last = found["levels"][-1]
    number = next(name for name, value in last.items() if name != "level" and type(value) is int)
    last[number] += 1
    with pytest.raises(UsageError, match="what it says of levels differs"):
        plan_from_json(found)


@pytest.mark.parametrize("name", [name for name in PLANS if PLANS[name][0] != "ldp_trie"])
def test_whole_numbers_and_floats_ask_for_the_same(name):
    told = planned(name, epsilon=1).dumps()
    assert told == planned(name, epsilon=1.0).dumps() == planned(name, epsilon=np.int64(1)).dumps()


METHODS = {"items": (*SET_UNION_METHODS,), "ngrams": ("forecast", "dpne")}


@pytest.mark.parametrize(
    ("verb", "method"), [(verb, method) for verb in METHODS for method in METHODS[verb]]
)
@pytest.mark.parametrize("epsilon, delta", [(0.5, 1e-5), (8.0, 1e-30), (60.0, 1e-4)])
@pytest.mark.parametrize("max_items", [1, 4, 100])
def test_what_is_done_costs_no_more_than_what_is_claimed(verb, method, epsilon, delta, max_items):
    more = {"max_n": 3} if verb == "ngrams" else {}
    asked = {"epsilon": epsilon, "delta": delta, "max_items": max_items, "method": method}
    if method == "single" and (max_items > 1 or delta < 1e-15 or epsilon > 20):
        with pytest.raises(UsageError, match="method"):
            items(**asked)
        return
    plan = getattr(dphh, verb)(**asked, **more)
    assert 0.4 * delta < compose(plan.events).delta(epsilon) <= delta
    # Of one round no user pays all the shares; of several, the sum.
    shares = [share for _, share in plan.privacy.delta_shares]
    together = max if method in ("auto", "gaussian") else sum
    assert together(shares) <= delta * (1 + 1e-12)


@pytest.mark.parametrize("name", ["sips", "dpne", "by hand", "reports"])
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


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (1.0, 1e-8, []),
        (10.0, 1e-5, []),
        (10.5, 1e-5, ["epsilon 10.5"]),
        (1.0, 2e-5, ["of every 100,000 users"]),
        (1.0, 0.5, ["about 500 of every 1,000"]),
        (1000.0, 0.01, ["e^1000 times as likely", "about 10 of every 1,000"]),
    ],
)
def test_each_of_the_two_that_is_large_is_said(epsilon, delta, said):
    found = warnings_of(epsilon, delta)
    assert len(found) == len(said)
    assert all(words in warning for words, warning in zip(said, found, strict=True))
