"""Plans of `trie` and `ldp_trie`: what they fix, promise and cost, and what they find."""

import string

import pytest
from scipy.stats import binom

from dphh import UsageError, ldp_trie, plan_from_json, trie
from dphh.mechanisms.ldp_trie.amplification import blanket_of_subsets, central_delta
from dphh.mechanisms.trie.path import path_guarantee
from dphh.mechanisms.trie.price import VoteLevel
from dphh.privacy.accounting import compose
from dphh.privacy.events import EpsilonDeltaEvent, LocalEvent
from dphh.udfs.rules.reports import subset_selection

ASK = {"epsilon": 1.0, "delta": 1e-8, "max_length": 10}
BY_HAND = ASK | {"theta": 20, "p": 0.2}


@pytest.mark.parametrize("epsilon, delta, levels", [(1.0, 1e-8, 10), (4.0, 1e-30, 3)])
def test_what_is_done_costs_no_more_than_what_is_claimed(epsilon, delta, levels):
    plan = trie(epsilon=epsilon, delta=delta, max_length=levels)
    assert [level.level for level in plan.levels] == list(range(1, levels + 1))
    first = plan.levels[0]
    assert isinstance(first, VoteLevel)
    assert {(level.numerator, level.theta) for level in plan.levels} == {
        (first.numerator, first.theta)
    }
    exact_epsilon, exact_delta = path_guarantee(epsilon, first.p, first.theta, levels)
    assert exact_epsilon == epsilon
    assert 0.5 * delta < exact_delta <= delta
    ((spent,),) = ([event.to_json() for event in plan.events],)
    assert (spent["epsilon"], spent["delta"]) == (epsilon, delta)


def test_so_many_users_are_found_with_nine_in_ten_and_no_fewer():
    for plan in (trie(**ASK), trie(**BY_HAND)):
        first = plan.levels[0]
        for users, enough in ((plan.finds.users, True), (plan.finds.users - 1, False)):
            assert (binom.sf(first.theta - 1, users, first.p) ** 10 >= 0.9) == enough


GBOARD = {
    "local_epsilon": 10.0, "delta": 1e-10, "users_per_level": 500_000, "contributions": 60,
    "max_length": 15, "keep": 10_000, "sampling": "greedy", "passes": 2,
}  # fmt: skip
SMALL = {
    "local_epsilon": 4.0, "delta": 1e-6, "users_per_level": 2_000, "contributions": 2,
    "max_length": 3, "keep": 50, "character_set": "abc",
}  # fmt: skip


@pytest.fixture(scope="module")
def gboard():
    return ldp_trie(**GBOARD)


def test_gboards_plan_has_the_papers_numbers(gboard):
    assert len(gboard.levels) == 30
    assert [level.first_seat for level in gboard.levels] == [i * 500_000 for i in range(30)]
    first, second, *_, last = gboard.levels
    # P_0 is every character; after that eta_max prefixes, with 100 characters or the end.
    # To each of a user's 60 reports its own "nothing".
    assert first.domain == 100 * 101 + 60
    assert second.domain == last.domain == 10_000 * 101 + 60
    assert (last.level, last.pass_number, last.size) == (15, 2, 46)
    assert gboard["character_set"] == "".join(sorted(string.printable))
    assert gboard.privacy.epsilon == 10
    assert 0.106 < gboard.privacy.central_epsilon < 0.107
    assert 0.890 < gboard.privacy.user_epsilon < 0.895
    assert 0.148 < gboard.privacy.shuffled_epsilon < 0.150
    assert 12.2 < gboard.privacy.shuffled_user_epsilon < 12.3
    assert second.mechanism == subset_selection(second.domain, 10.0)
    assert 10 - 1e-9 < second.mechanism.epsilon <= 10


def test_known_words_may_be_a_file_with_one_a_line(tmp_path):
    (tmp_path / "known.txt").write_text("ca\nb\n")
    of_file = ldp_trie(**SMALL, known=tmp_path / "known.txt")
    assert of_file == ldp_trie(**SMALL, known=["ca", "b"])
    with pytest.raises(UsageError, match=r"known: .* is neither"):
        ldp_trie(**SMALL, known=str(tmp_path / "unknown.txt"))


def test_characters_and_known_words_in_another_order_are_the_same_request():
    first = ldp_trie(**SMALL, known=["ca", "b"])
    again = ldp_trie(**SMALL | {"character_set": ["c", "a", "b"]}, known=["b", ["c", "a"], "b"])
    assert again == first and first["known"] == (("b",), ("c", "a"))


def test_what_is_booked_is_the_users_price_and_the_curators_view_beside_it(gboard):
    published, curators = gboard.events
    assert published == EpsilonDeltaEvent(gboard.privacy.user_epsilon, 1e-10)
    assert isinstance(curators, LocalEvent)
    assert curators.epsilon == 600
    # Beside it, for messages: group privacy over 60 reports, at the delta that each of them leaves.
    each = gboard.privacy.shuffled_user_epsilon / 60
    growth = sum(2.718281828459045 ** (i * each) for i in range(60))
    for level in gboard.levels[:2]:
        hidden = blanket_of_subsets(level.mechanism)
        assert central_delta(hidden, 30_000_000, each, left_out=1e-32) <= 1e-10 / growth * 1.001
    assert compose(gboard.events).delta(gboard.privacy.booked_epsilon) <= 1e-10


def test_reports_that_tell_nearly_all_are_planned():
    plan = ldp_trie(**SMALL | {"local_epsilon": 45.0, "users_per_level": 300})
    assert 1 < plan.privacy.central_epsilon <= 45
    assert plan.privacy.user_epsilon <= 90


def test_one_contribution_costs_a_user_what_it_costs_an_item():
    plan = ldp_trie(**SMALL | {"contributions": 1})
    assert plan.privacy.user_epsilon == plan.privacy.central_epsilon


def test_a_central_epsilon_makes_the_largest_local_one_that_keeps_to_it():
    many = SMALL | {"users_per_level": 20_000, "max_length": 2}
    asked = {name: value for name, value in many.items() if name != "local_epsilon"}
    plan = ldp_trie(**asked, central_epsilon=0.5)
    assert 0.49 < plan.privacy.central_epsilon <= 0.5
    for_user = ldp_trie(**asked, user_epsilon=0.5)
    assert 0.49 < for_user.privacy.user_epsilon <= 0.5
    assert for_user.privacy.epsilon < plan.privacy.epsilon
    more = ldp_trie(**asked, local_epsilon=1.02 * plan.privacy.epsilon)
    assert more.privacy.central_epsilon > 0.5
    assert plan_from_json(plan.dumps()) == plan


def test_what_it_finds_is_found():
    """One level, one report a user: votes against the bar, by another sum."""
    plan = ldp_trie(**SMALL | {"max_length": 1, "contributions": 1, "keep": 4})
    (level,) = plan.levels
    n, p, q = level.users, level.mechanism.p, level.mechanism.q
    bar = binom.isf(4 / 12, n, q)

    def kept(holders):
        chance = holders / n * p + (1 - holders / n) * q
        return binom.sf(bar, n, chance)

    assert kept(plan.finds.users) >= 0.9 > kept(plan.finds.users - 1)
