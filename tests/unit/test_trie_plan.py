"""Plans of `trie`: what they cost, what they show, what they refuse."""

from __future__ import annotations

import json
import math

import polars as pl
import pytest
from scipy.stats import binom, hypergeom

from dphh import Corpus, UsageError, plan_from_json, trie
from dphh.levels.trie import BatchLevel, VoteLevel
from dphh.mechanisms.trie.path import path_delta, path_guarantee, removal_epsilon
from dphh.mechanisms.trie.triehh import published_delta, theorem_epsilon
from dphh.privacy.accounting import compose

ASK = {"epsilon": 1.0, "delta": 1e-8, "max_length": 10}
PAPER = {
    "epsilon": 4.0, "delta": 2.3e-12, "max_length": 10, "accounting": "paper", "users": 658_769,
}  # fmt: skip
BY_HAND = ASK | {"theta": 20, "p": 0.2}


# Prices


@pytest.mark.parametrize("epsilon, delta, levels", [(1.0, 1e-8, 10), (4.0, 1e-30, 3)])
def test_what_is_done_costs_no_more_than_what_is_claimed(epsilon, delta, levels):
    plan = trie(epsilon=epsilon, delta=delta, max_length=levels)
    assert [level.level for level in plan.levels] == list(range(1, levels + 1))
    first = plan.levels[0]
    assert isinstance(first, VoteLevel)
    assert {(level.numerator, level.theta) for level in plan.levels} == {
        (first.numerator, first.theta)
    }
    exact = path_guarantee(epsilon, first.numerator, first.theta, levels)
    assert exact.epsilon == epsilon
    assert 0.5 * delta < exact.delta <= delta
    ((spent,),) = ([event.to_json() for event in plan.events],)
    assert (spent["epsilon"], spent["delta"]) == (epsilon, delta)


def test_at_usual_settings_the_plan_is_that_of_the_docs():
    """docs/trie.md: theta 20, p .2502, 121 users."""
    plan = trie(**ASK)
    assert plan.levels[0].theta == 20
    assert plan.levels[0].p == pytest.approx(0.2502, abs=1e-4)
    assert plan.finds.users == pytest.approx(121, abs=1)


def test_so_many_users_are_found_with_nine_in_ten_and_no_fewer():
    for plan in (trie(**ASK), trie(**BY_HAND)):
        first = plan.levels[0]
        for users, enough in ((plan.finds.users, True), (plan.finds.users - 1, False)):
            assert (binom.sf(first.theta - 1, users, first.p) ** 10 >= 0.9) == enough


def test_the_papers_plan_is_the_authors():
    """facts.md: theta 15 and a batch of 0.02198 n."""
    plan = trie(**PAPER)
    first = plan.levels[0]
    assert isinstance(first, BatchLevel)
    assert (first.theta, first.users) == (15, 658_769)
    assert first.batch / first.users == pytest.approx(0.02198, abs=1e-5)
    assert theorem_epsilon(first.users, 15, first.batch, 10) <= 4.0
    assert published_delta(15) <= 2.3e-12
    for users, enough in ((plan.finds.users, True), (plan.finds.users - 1, False)):
        found = hypergeom.sf(14, first.users, users, first.batch) ** 10
        assert (found >= 0.9) == enough


# theta and p by hand


def test_theta_and_p_by_hand_are_priced():
    plan = trie(**BY_HAND)
    assert plan.levels[0].theta == 20
    assert plan.levels[0].numerator == int(0.2 * 2.0**64)
    assert path_delta(1.0, 0.2, 20, 10) <= 1e-8
    assert (plan.privacy.epsilon, plan.privacy.delta) == (1.0, 1e-8)


@pytest.mark.parametrize(
    "theta, p, said",
    [
        (12, 0.2, r"theta, p: \(12, 0.2\) over 10 levels costs \(1, 5.5\de-07\), more than the "
         r"\(1, 1e-08\) available; give a larger theta or a smaller p, or leave both out"),
        (60, 0.7, r"theta, p: \(60, 0.7\) over 10 levels costs \(1.204, .*\), more than the "),
    ],
)  # fmt: skip
def test_theta_and_p_that_cost_more_are_refused(theta, p, said):
    with pytest.raises(UsageError, match=said):
        trie(**ASK, theta=theta, p=p)


def test_the_direction_in_which_a_user_goes_is_priced_too():
    """However large theta is: a failing prefix shows that p was not 1."""
    epsilon = removal_epsilon(0.2)
    asked = {"delta": 1e-8, "max_length": 2, "theta": 500, "p": 0.2}
    assert trie(epsilon=epsilon, **asked).levels[0].theta == 500
    with pytest.raises(UsageError, match="costs"):
        trie(epsilon=epsilon * 0.999, **asked)


@pytest.mark.parametrize("p", [1e-4, 0.1, 1 / 3, 1e-9, 2.0**-64])
def test_a_rate_by_hand_is_rounded_down_to_what_is_drawn(p):
    plan = trie(epsilon=1, delta=1e-8, max_length=2, theta=60, p=p)
    assert plan.levels[0].numerator == math.floor(math.ldexp(p, 64))
    assert plan_from_json(plan.dumps()) == plan


# As objects


@pytest.mark.parametrize("asked", [ASK, BY_HAND, PAPER, ASK | {"choice": "most-frequent"}])
@pytest.mark.parametrize("unit", [1, 3])
def test_plans_go_through_json_and_back(asked, unit):
    corpus = Corpus("/not/there/*.parquet", user="who", item="what", account="n", lower=True)
    plan = trie(corpus, **asked, unit=unit)
    assert plan.corpus.content.unit == unit
    assert plan_from_json(plan.dumps()) == plan
    assert plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan
    assert {plan, plan_from_json(plan.dumps())} == {plan}


@pytest.mark.parametrize(
    "asked, change",
    [(ASK, {"theta": 2}), (ASK, {"numerator": 2**63}), (PAPER, {"batch": 600_000}),
     (PAPER, {"users": 10})],
)  # fmt: skip
def test_a_plan_whose_levels_were_edited_is_refused(asked, change):
    found = trie(**asked).to_json()
    found["levels"][3] |= change
    with pytest.raises(UsageError, match="edited, or written by another version"):
        plan_from_json(found)


def test_whole_numbers_and_floats_ask_for_the_same():
    assert trie(epsilon=1, delta=1e-8, max_length=10).dumps() == trie(**ASK).dumps()


def test_a_plan_has_the_keys_of_the_design():
    for asked, keys in ((ASK, {"theta", "p"}), (PAPER, {"theta", "batch", "users"})):
        found = trie(**asked).to_json()
        assert found.keys() >= {"verb", "parameters", "privacy", "levels", "finds"}
        assert found["privacy"].keys() >= {"epsilon", "delta", "unit", "adjacency", "theorem"}
        assert all(level.keys() >= keys | {"level"} for level in found["levels"])
        assert found["finds"].keys() >= {"probability", "users"}
        assert found["finds"]["probability"] == 0.9
        assert found["parameters"].keys() == {
            "epsilon", "delta", "max_length", "unit", "choice", "accounting", "theta", "p", "users",
                "counts", "max_items",
        }  # fmt: skip


# What is shown


def test_a_plan_says_what_it_does_and_what_it_does_not():
    said = " ".join(trie(**ASK).describe().split())
    for part in (
        "(1, 1e-08)-differential privacy",
        "add or remove one user",
        "path accountant for TrieHH",
        "both directions",
        "`items` finds rarer ones at the same epsilon",
        "levels 1 to 10 each user votes with probability 0.2502",
        "20 votes are enough",
        "121 users",
        "with its end, that shares no prefix",
    ):
        assert part in said


def test_bounds_of_the_papers_one_direction_add_up():
    paper, path = trie(**PAPER), trie(**ASK | {"epsilon": 0.1})
    assert compose(40 * paper.events).epsilon(1e-9) == pytest.approx(40 * 4.0, rel=1e-8)
    assert compose(40 * path.events).epsilon(1e-6) < 0.9 * 40 * 0.1


def test_the_papers_plan_shows_its_direction():
    plan = trie(**PAPER)
    said = " ".join(plan.describe().split())
    for part in (
        "one user's data replaced by nothing, the number of users staying the same; one direction",
        "TrieHH, AISTATS 2020, Theorem 1",
        "the other direction is not proved",
        "The path accountant covers both directions",
        "14,478 of 658,769 users are drawn and vote; 15 votes are enough",
    ):
        assert part in said
    assert "both directions" not in plan.privacy.theorem


# The command line


COST = ["--epsilon", "4", "--delta", "1e-6", "--max-length", "4"]


def test_the_command_line_makes_the_same_plan(dphh, written):
    corpus = written([("ann", "at")], text=None, item="what")
    read = ["trie", corpus.where[0], "--user", "who", "--item", "what", "--plan", "--json"]
    code, out, err = dphh(*read, *COST)
    assert (code, err) == (0, "")
    assert json.loads(out) == trie(corpus, epsilon=4, delta=1e-6, max_length=4).to_json()
    code, out, _ = dphh(
        *read, *COST, "--unit", 2, "--choice", "most-frequent", "--theta", 30, "--p", 0.25
    )
    expected = trie(
        corpus, epsilon=4, delta=1e-6, max_length=4, unit=2, choice="most-frequent", theta=30,
        p=0.25,
    )  # fmt: skip
    assert code == 0
    assert plan_from_json(out) == expected
    code, out, _ = dphh(*read, *COST, "--accounting", "paper", "--users", 10**6)
    assert code == 0
    assert json.loads(out)["levels"][0]["kind"] == "batch"


def test_the_command_line_runs(dphh, tmp_path):
    path = tmp_path / "words.parquet"
    pl.DataFrame({"who": range(900), "what": ["no", "yes", "no"] * 300}).write_parquet(path)
    read = ["trie", path, "--user", "who", "--item", "what"]
    code, out, _ = dphh(*read, *COST, "--json")
    assert code == 0
    found = json.loads(out)
    assert found.keys() >= {"verb", "parameters", "privacy", "levels", "finds", "run_id"}
    assert [level["released"] for level in found["levels"]] == [2, 2, 2, 1]
    code, out, _ = dphh(*read, *COST)
    assert (code, "7 found by trie" in out) == (0, True)


@pytest.mark.parametrize(
    "more, said",
    [
        (["--theta", "5"], "theta, p: found only one"),
        (["--accounting", "paper"], "users: missing; accounting='paper' draws a batch"),
        (["--accounting", "other"], "'other' is not one of"),
        (["--unit", "0"], "unit: found 0"),
        (["--as", "words", "--unit", "2"], "unit: cuts whole items into pieces of 2 characters"),
    ],
)
def test_the_command_line_refuses_as_python_does(dphh, more, said):
    code, out, err = dphh("trie", "/x.parquet", "--user", "who", "--item", "what", *COST, *more)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


# Errors, frozen

WHOLE = "max_length: found {}; give a whole number, such as 10"
RANGE = (
    "max_length: found {}; give a number from 1 to 1000. The end of a sequence counts as one: "
    "words of 9 letters need 10"
)
RATE = "p: found {}; give a number between 0 and 1, such as 0.2"
SAID = [
    ({"max_length": 0}, RANGE.format(0)),
    ({"max_length": 1001}, RANGE.format(1001)),
    ({"max_length": 2.0}, WHOLE.format(2.0)),
    ({"max_length": True}, WHOLE.format(True)),
    ({"max_length": None}, WHOLE.format(None)),
    ({"choice": "first"}, "choice: found 'first'; give one of drawn, most-frequent"),
    ({"accounting": "exact"}, "accounting: found 'exact'; give one of path, paper"),
    ({"theta": 20}, "theta, p: found only one of them; give both, or neither"),
    ({"p": 0.2}, "theta, p: found only one of them; give both, or neither"),
    ({"theta": 20, "p": 0}, RATE.format(0)),
    ({"theta": 20, "p": 1}, RATE.format(1)),
    ({"theta": 20, "p": 1.0}, RATE.format(1.0)),
    ({"theta": 20, "p": -0.1}, RATE.format(-0.1)),
    ({"theta": 20, "p": math.nan}, RATE.format("nan")),
    ({"theta": 20, "p": 1e-20}, RATE.format(1e-20)),
    ({"theta": 20, "p": "half"}, RATE.format("'half'")),
    ({"users": 1000}, "users: applies only to accounting='paper'; leave it out"),
    ({"accounting": "paper"}, "users: missing; accounting='paper' draws a batch of n users. Give "
     "n: a public upper bound of the number of users, not taken from the private data"),
    ({"accounting": "paper", "users": 10**6, "theta": 15},
     "theta, p: apply only to accounting='path'; the paper's theorem sets its own; leave them out"),
    ({"accounting": "paper", "users": 10**6, "theta": 15, "p": 0.1},
     "theta, p: apply only to accounting='path'; the paper's theorem sets its own; leave them out"),
    ({"delta": 1e-101}, "delta: found 1e-101; give a number from 1e-100"),
    ({"delta": 0}, "delta: found 0; give a number between 0 and 1, well below one over the number "
     "of users, such as 1e-8"),
    ({"epsilon": math.inf}, "epsilon: found inf; give a number"),
]  # fmt: skip


@pytest.mark.parametrize("options, said", SAID)
def test_what_cannot_be_planned_is_refused_in_these_words(options, said):
    with pytest.raises(UsageError) as refused:
        trie(**(ASK | options))
    assert str(refused.value) == said


@pytest.mark.parametrize(
    "options, said",
    [
        ({"theta": 0, "p": 0.2}, "theta"),
        ({"theta": 2.5, "p": 0.2}, "theta"),
        ({"theta": True, "p": 0.2}, "theta"),
        ({"accounting": "paper", "users": 0}, "users"),
        ({"accounting": "paper", "users": 10.0}, "users"),
        ({"accounting": "paper", "users": 50}, "users"),
    ],
)
def test_what_the_accountants_refuse_names_the_option(options, said):
    with pytest.raises(UsageError, match=said):
        trie(**(ASK | options))


def test_units_cut_whole_items_alone_and_are_said_once():
    text = Corpus("x.parquet", user="who", text="what")
    assert trie(text, **ASK).corpus == text
    with pytest.raises(UsageError, match="unit: cuts whole items into pieces of 2 characters, but"):
        trie(text, **ASK, unit=2)
    for unit in (0, True, 1.5):
        with pytest.raises(UsageError, match=r"unit: found .*; give a number of characters from 1"):
            trie(Corpus("x.parquet", user="who", item="what"), **ASK, unit=unit)
    with pytest.raises(
        UsageError, match="unit: found 3 in the corpus and 1 in the verb; give it to the"
    ):
        trie(Corpus("x.parquet", user="who", item="what", unit=3), **ASK)
