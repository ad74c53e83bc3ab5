"""Plans: priced from parameters alone, frozen, comparable, printable, through JSON and back."""

from __future__ import annotations

import json
import math
from functools import partial

import polars as pl
import pytest
from scipy.stats import norm

from dphh import (
    Corpus,
    Ledger,
    Plan,
    UsageError,
    items,
    ldp_trie,
    ngrams,
    plan_from_json,
    trie,
)
from dphh.ledger import source_of
from dphh.mechanisms.counts.of_found import Counting
from dphh.mechanisms.set_union.rounds import price_rounds
from dphh.privacy.accounting import compose
from dphh.privacy.gaussian import gaussian_sigma
from dphh.wording.lines import number

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
            epsilon=epsilon, delta=delta, max_items=max_items, method="gaussian"
        ).levels
        assert 0.96 < level.sigma / sigma < 0.98
        assert 0.935 < level.threshold / rho < 0.965
        ((apart,), _, _) = price_rounds(epsilon, delta, [1.0], [max_items], Counting())
        assert -PRINTED_SIGMA <= apart.sigma - sigma <= PRINTED_SIGMA + GRID
        # An excess of sigma by one step of the grid moves rho by rho / sigma such steps.
        assert (
            -PRINTED_RHO - GRID <= apart.threshold - rho <= PRINTED_RHO + GRID * (1 + rho / sigma)
        )


def test_the_noise_is_the_least_that_a_user_without_new_items_needs():
    (level,) = items(epsilon=1, delta=1e-7, method="gaussian").levels
    least = gaussian_sigma(1, 1e-7)
    assert least < level.sigma < 1.003 * least


@pytest.mark.parametrize("method", ["auto", "gaussian", "sips", "adaptive"])
@pytest.mark.parametrize("epsilon, delta", [(0.5, 1e-5), (1.0, 1e-8), (8.0, 1e-30), (100.0, 1e-4)])
@pytest.mark.parametrize("max_items", [1, 100])
def test_what_is_done_costs_no_more_than_what_is_claimed(method, epsilon, delta, max_items):
    plan = items(epsilon=epsilon, delta=delta, max_items=max_items, method=method)
    spent = compose(plan.events).delta(epsilon)
    assert 0.4 * delta < spent <= delta
    # Of one round no user pays all the shares; of several, the sum.
    shares = [share for _, share in plan.privacy.delta_shares]
    together = max if method in ("auto", "gaussian") else sum
    assert together(shares) <= delta * (1 + 1e-12)


def test_the_events_are_the_levels():
    plan = items(epsilon=1, delta=1e-7, method="sips")
    sigmas = [event.sigma for event in plan.events if event.kind == "gaussian"]
    assert sigmas == [level.sigma for level in plan.levels]
    joint = 1 / math.sqrt(sum(sigma**-2 for sigma in sigmas))
    assert gaussian_sigma(1, 5e-8) <= joint <= gaussian_sigma(1, 5e-8) + GRID


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


def test_sips_finds_what_a_single_round_of_it_finds():
    plan = items(epsilon=1, delta=1e-7, method="sips", max_items=1)
    last = plan.levels[-1]
    assert plan.finds.users == math.ceil(last.threshold + 1.2816 * last.sigma)


def test_plans_are_frozen_equal_and_hashable():
    one, two = (items(corpus(), epsilon=1, delta=1e-7) for _ in range(2))
    assert one == two
    assert {one, two} == {one}
    assert one != items(corpus(), epsilon=1, delta=1e-6)
    assert one != items(corpus(lower=False), epsilon=1, delta=1e-7)
    with pytest.raises(AttributeError):
        one.verb = "other"


def test_whole_numbers_and_floats_ask_for_the_same():
    assert items(epsilon=1, delta=1e-7).dumps() == items(epsilon=1.0, delta=1e-7).dumps()


@pytest.mark.parametrize("method", ["auto", "gaussian", "sips", "adaptive"])
def test_plans_go_through_json_and_back(method):
    plan = items(corpus(account="tweets", lower=True), epsilon=1, delta=1e-7, method=method)
    assert plan_from_json(plan.dumps()) == plan
    assert plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_a_plan_on_a_table_in_memory_comes_back_without_it():
    frame = pl.DataFrame({"who": [1], "what": ["a"]})
    plan = items(Corpus(frame, user="who", text="what"), epsilon=1, delta=1e-7)
    back = plan_from_json(plan.dumps())
    assert back.corpus is None
    with pytest.raises(UsageError, match=r"pass run\(corpus="):
        back.run()


def edited(**changes):
    found = items(corpus(), epsilon=1, delta=1e-7).to_json()
    for path, value in changes.items():
        *steps, last = path.split("__")
        part = found
        for step in steps:
            part = part[int(step) if step.isdigit() else step]
        part[last] = value
    return found


@pytest.mark.parametrize(
    "changes",
    [
        {"levels__0__sigma_grid": 16},
        {"levels__0__threshold_grid": 1},
        {"levels__0__max_items": 10**6},
        {"privacy__epsilon": 0.1},
        {"events": []},
        {"parameters__max_items": 3},
    ],
)
def test_a_plan_that_was_edited_is_refused(changes):
    with pytest.raises(UsageError, match="edited, or written by another version"):
        plan_from_json(edited(**changes))


USERS, PAIRS = (Corpus("x.parquet", user=user, text="what") for user in ("who", ("who", "day")))


@pytest.mark.parametrize(
    "made, protects, both_directions",
    [
        (partial(items, USERS, epsilon=1, delta=1e-7), "user", True),
        (partial(items, PAIRS, epsilon=1, delta=1e-7), "combination", True),
        (partial(trie, USERS, epsilon=1, delta=1e-7, max_length=2), "user", True),
        (
            partial(
                trie, PAIRS, epsilon=1, delta=1e-7, max_length=2, accounting="paper", users=10_000
            ),
            "combination",
            False,
        ),
        (
            partial(
                ldp_trie, PAIRS, local_epsilon=2, delta=1e-7, users_per_level=100,
                contributions=1, max_length=2, keep=9,
            ),
            "contribution",
            True,
        ),
    ],
)  # fmt: skip
def test_whom_a_plan_protects_is_a_field_and_a_plan_without_it_is_refused(
    made, protects, both_directions
):
    plan = made()
    found = plan.to_json()
    said = found["privacy"]
    assert (said["protects"], said["both_directions"]) == (protects, both_directions)
    assert plan_from_json(found) == plan
    for field in ("protects", "both_directions"):
        without = {**found, "privacy": {k: v for k, v in said.items() if k != field}}
        with pytest.raises(UsageError, match=f"found '{field}' missing"):
            plan_from_json(without)


@pytest.mark.parametrize(
    "found",
    ["", "{", "[]", "1", "{}", '{"corpus": 1}', {"verb": "eval"}, {"verb": "Corpus"},
     {"levels__0__kind": "x"}, {"parameters__more": 1}, {"levels": None}],
)  # fmt: skip
def test_what_is_no_plan_is_refused(found):
    text = found if isinstance(found, str) else edited(**found)
    with pytest.raises(UsageError, match=r"^(plan|level)"):
        plan_from_json(text)


# Prints


def test_a_plan_prints_what_it_promises(ledger):
    plan = items(corpus(), epsilon=1, delta=1e-7, max_items=30, method="gaussian")
    (level,) = plan.levels
    text = plan.describe(ledger)
    for promised in (
        "(1, 1e-07)-differential privacy",
        "add or remove one user",
        "Balle", "Wang 2018",
        "Gopi et al. 2020",
        f"noise: {number(level.sigma)} users",
        f"threshold: {number(level.threshold)} users, so {math.ceil(level.threshold)} who hold",
        "probability 0.9",
        "no account holds this corpus",
    ):  # fmt: skip
        assert promised in text
    for _, users in plan.finds.users_by_held:
        assert f"{users:,} users" in text


def test_a_print_says_first_what_people_decide_by_and_leaves_the_proof_to_describe():
    for plan in (items(corpus(), epsilon=1, delta=1e-7), ngrams(max_n=5, epsilon=1, delta=1e-7)):
        said, whole = repr(plan), plan.describe()
        assert whole.startswith(said.rpartition("\n\n")[0])
        assert len(said.splitlines()) <= 20 and "threshold:" not in said
        assert plan.privacy.theorem[:20] not in said and plan.privacy.theorem[:20] in whole


def test_a_print_is_no_wider_than_a_terminal(ledger):
    for method in ("gaussian", "sips"):
        plan = items(corpus(), epsilon=0.5, delta=1e-9, max_items=1000, method=method)
        text = plan.describe(ledger)
        assert max(map(len, text.splitlines())) <= 100, text


@pytest.mark.parametrize(
    "value, said",
    [(0.3887, "0.3887"), (5.0, "5.000"), (33.87, "33.87"), (12942.3, "12,942")],
)
def test_numbers_are_written_out(value, said):
    assert number(value) == said


def test_a_print_says_what_the_ledger_has_left(tmp_path, ledger):
    named = Corpus(tmp_path / "a.parquet", user="who", text="what", account="tweets")
    ledger.add("tweets", source_of(named), 2.0, 1e-6)
    plan = items(named, epsilon=1, delta=1e-7)
    for text in (plan._repr_html_(), plan.describe(ledger)):
        assert "tweets" in text
        said = " ".join(text.split())  # lines end where a terminal does
        assert "nothing of its cap, epsilon 2, delta 1e-06, is used" in said
        assert "a first run may have epsilon 2 at delta 1e-06" in said


def test_a_print_never_fails_for_want_of_a_ledger(monkeypatch, tmp_path):
    broken = tmp_path / "broken.sqlite"
    broken.write_text("this is no ledger, but long enough to be looked at" * 10)
    monkeypatch.setenv("DPHH_LEDGER", str(broken))
    said = " ".join(repr(items(corpus(), epsilon=1, delta=1e-7)).split())
    assert "not a dphh ledger" in said
    assert "no corpus yet" in repr(items(epsilon=1, delta=1e-7))


def test_printing_and_pricing_write_nothing(own_ledger):
    repr(items(corpus(), epsilon=1, delta=1e-7))
    assert not own_ledger.exists()


def test_a_print_escapes_what_html_would_read(tmp_path):
    plan = items(Corpus("/a.parquet", user="u", text="t", account="<b>"), epsilon=1, delta=1e-7)
    assert "<b>&lt;" not in plan._repr_html_().replace("&lt;b&gt;", "")
    assert "'<b>'" not in plan._repr_html_()


# Errors, frozen

SAID = [
    ({"epsilon": 0}, "epsilon: found 0; give a number above 0, such as 1.0, and at most 100: "
     "a larger one protects no one. "
     "ngrams by its default method can be priced up to about 60"),
    ({"epsilon": -1}, "epsilon: found -1; give a number above 0, such as 1.0, and at most 100: "
     "a larger one protects no one. "
     "ngrams by its default method can be priced up to about 60"),
    ({"epsilon": 1e6}, "epsilon: found 1e+06; give a number above 0, such as 1.0, and at most "
     "100: a larger one protects no one. "
     "ngrams by its default method can be priced up to about 60"),
    ({"epsilon": math.nan}, "epsilon: found nan; give a number"),
    ({"epsilon": math.inf}, "epsilon: found inf; give a number"),
    ({"epsilon": "1"}, "epsilon: found '1'; give a number"),
    ({"epsilon": True}, "epsilon: found True; give a number"),
    ({"epsilon": None}, "epsilon: found None; give a number"),
    ({"delta": 0}, "delta: found 0; give a number between 0 and 1, well below one over the "
     "number of users, such as 1e-8"),
    ({"delta": 1}, "delta: found 1; give a number between 0 and 1, well below one over the "
     "number of users, such as 1e-8"),
    ({"delta": math.nan}, "delta: found nan; give a number"),
    ({"max_items": 0}, "max_items: found 0; give a whole number from 1, about as many different "
     "items as a typical user holds"),
    ({"max_items": 2.0}, "max_items: found 2.0; give a whole number from 1, about as many "
     "different items as a typical user holds"),
    ({"max_items": True}, "max_items: found True; give a whole number from 1, about as many "
     "different items as a typical user holds"),
    ({"max_items": 10**7}, "max_items: found 10,000,000, but with noise sigma = 4.682 "
     "weights are multiples of 2^-10, and a user's weight on one item would round to 0; "
     "give at most 1,048,576, or a larger epsilon"),
    ({"method": "magic"}, "method: found 'magic'; give one of auto, gaussian, sips, adaptive"),
]  # fmt: skip


@pytest.mark.parametrize("asked, said", SAID)
def test_errors_say_what_was_found_and_what_to_do(asked, said):
    with pytest.raises(UsageError) as caught:
        items(**{"epsilon": 1.0, "delta": 1e-7, **asked})
    assert str(caught.value) == said


@pytest.mark.parametrize("source", ["reviews.parquet", pl.DataFrame({"who": [1]})])
def test_a_source_that_is_no_corpus_is_refused_by_every_verb(source):
    cost = {"epsilon": 1.0, "delta": 1e-7}
    reports = {"local_epsilon": 1.0, "delta": 1e-7, "users_per_level": 9, "contributions": 1}
    for verb, options in (
        (items, cost),
        (ngrams, {"max_n": 2, **cost}),
        (trie, {"max_length": 2, **cost}),
        (ldp_trie, {"max_length": 2, "keep": 1, **reports}),
    ):
        with pytest.raises(UsageError, match=r"corpus: found a .*; make it a corpus with"):
            verb(source, **options)


def test_deltas_beyond_what_the_noise_can_vouch_for_are_refused():
    assert isinstance(items(epsilon=1, delta=1e-60), Plan)
    with pytest.raises(UsageError, match="proved down to delta"):
        items(epsilon=1, delta=1e-80)


def test_the_default_ledger_is_only_looked_at(own_ledger):
    assert Ledger().path == own_ledger
