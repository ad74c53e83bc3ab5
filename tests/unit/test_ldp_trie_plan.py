"""What a plan of `ldp_trie` fixes, promises and costs."""

from __future__ import annotations

import json
import string

import pytest
from click.testing import CliRunner
from scipy.stats import binom

from dphh import Corpus, Ledger, ldp_trie, plan_from_json
from dphh.cli import cli
from dphh.ledger import Request, source_of
from dphh.mechanisms.ldp_trie.amplification import blanket_of_subsets, central_delta
from dphh.mechanisms.ldp_trie.sums import epsilon_of_subsets
from dphh.privacy.accounting import compose
from dphh.privacy.events import EpsilonDeltaEvent, LocalEvent, event_from_json
from dphh.privacy.subset_selection import Reports, subset_selection

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
    assert gboard["character_set"] == string.printable
    assert gboard.privacy.epsilon == 10
    assert 0.106 < gboard.privacy.central_epsilon < 0.107
    assert 0.890 < gboard.privacy.user_epsilon < 0.895
    assert 0.148 < gboard.privacy.shuffled_epsilon < 0.150
    assert 12.2 < gboard.privacy.shuffled_user_epsilon < 12.3
    assert any("of any local randomiser: 0.3075" in said for said in gboard.privacy.caveats)
    assert second.mechanism == subset_selection(second.domain, 10.0)
    assert 10 - 1e-9 < second.mechanism.epsilon <= 10


def test_level_1_is_not_the_dearest(gboard):
    """At the local epsilon of the others its few values would cost a user 1.5."""
    first, second, *_ = (level.mechanism for level in gboard.levels)
    who = Reports(500_000, 60, 1e-10)
    assert epsilon_of_subsets(subset_selection(first.domain, 10.0), who, 60) > 1.4
    prices = [epsilon_of_subsets(made, who, 60) for made in (first, second)]
    assert 0.98 * prices[1] <= prices[0] <= 1.002 * prices[1]
    assert first.epsilon < 10


def test_how_many_values_there_are_follows_from_the_plan_alone():
    plan = ldp_trie(**SMALL | {"max_length": 5, "keep": 20})
    assert [level.prefixes for level in plan.levels] == [3, 9, 20, 20, 20]
    assert [level.domain for level in plan.levels] == [14, 38, 82, 82, 82]


def test_the_statement_names_unit_and_both_epsilons(gboard):
    privacy = gboard.to_json()["privacy"]
    assert (privacy["epsilon"], privacy["delta"]) == (10, 1e-10)
    assert privacy["unit"].startswith("an item")
    assert privacy["central_epsilon"] < 0.2 < privacy["user_epsilon"] < 1
    assert privacy["shuffled_user_epsilon"] > 12
    assert "Ye & Barg" in privacy["theorem"] and "Theorem B" in privacy["theorem"]
    said = " ".join(repr(gboard).split())
    assert "10-local differential privacy, for one item" in said
    assert "for all of a user's items: what the ledger books" in " ".join(said.split())
    assert "to who sees them without senders" in " ".join(gboard.describe().split())


def test_what_is_booked_is_the_users_price_and_the_curators_view_beside_it(gboard):
    published, curators = gboard.events
    assert published == EpsilonDeltaEvent(gboard.privacy.user_epsilon, 1e-10, published.note)
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


def test_more_passes_find_rarer_words_of_more_users():
    one, two = (ldp_trie(**GBOARD | {"passes": passes}) for passes in (1, 2))
    assert one.finds.users < two.finds.users < 2 * one.finds.users


def test_a_local_event_costs_no_budget_and_comes_back_from_json():
    event = LocalEvent(600.0, "a user's reports")
    assert event_from_json(event.to_json()) == event
    assert compose([event]).epsilon(0.0) == 0
    both = compose([event, EpsilonDeltaEvent(1.0, 1e-6)])
    assert both == compose([EpsilonDeltaEvent(1.0, 1e-6)])


def test_a_run_that_books_nothing_published_is_priced_by_its_claim(ledger: Ledger, tmp_path):
    source = source_of(Corpus(str(tmp_path / "x.parquet"), user="u", item="w"))
    ledger.add("words", source, 2.0, 1e-6)
    ledger.book(Request(source, "ldp_trie", {}, [LocalEvent(5.0)], 1.5, 1e-7), {})
    assert ledger.status("words").spent.epsilon >= 1.49


def test_the_ledger_shows_what_the_curator_was_told_beside_the_price(
    ledger: Ledger, own_ledger, tmp_path
):
    source = source_of(Corpus(str(tmp_path / "x.parquet"), user="u", item="w"))
    ledger.add("words", source, 9.0, 1e-6)
    events = [LocalEvent(20.0), EpsilonDeltaEvent(2.0, 1e-7)]
    ledger.book(Request(source, "ldp_trie", {}, events, 2.0, 1e-7), {})
    ledger.book(Request(source, "items", {}, [EpsilonDeltaEvent(1.0, 1e-7)], 1.0, 1e-7), {})
    show = ["ledger", "show", "words", "--ledger", str(own_ledger)]
    said = CliRunner().invoke(cli, show).stdout
    assert said.count("to the curator") == 1
    assert "local epsilon 20 a user" in said
    runs = json.loads(CliRunner().invoke(cli, [*show, "--json"]).stdout)["runs"]
    assert [run["local_epsilon"] for run in runs] == [20.0, None]
