"""Notebooks: the answer first, what proves it folded away; accounts and ledgers that print."""

from __future__ import annotations

import pytest

from dphh import Corpus, Ledger, items, ldp_trie, ngrams, trie
from dphh.corpus import replace_corpus
from dphh.ledger import Request, source, source_of
from dphh.ledger.source import files_of
from tests.report.made import items as released
from tests.report.made import ladder
from tests.report.test_page import Seen


@pytest.fixture
def corpus(written) -> Corpus:
    made: Corpus = written([("ann", "hello")])
    return made


def plans(corpus):
    yield items(corpus, epsilon=1.0, delta=1e-8)
    yield ngrams(corpus, max_n=3, epsilon=1.0, delta=1e-8)
    yield trie(corpus, epsilon=1.0, delta=1e-8, max_length=4)
    yield ldp_trie(corpus, local_epsilon=8.0, delta=1e-8, users_per_level=1000, contributions=1,
                   max_length=4, keep=100)  # fmt: skip


def test_a_plan_says_first_what_it_finds_and_what_is_left(corpus, ledger):
    ledger.add("survey", source_of(corpus), 3.0, 1e-6)
    for plan in plans(corpus):
        card = plan._repr_html_()
        Seen(card)
        open_part, _, folded = card.partition("<details>")
        assert f"{plan.finds.users:,} users" in open_part
        assert "survey" in open_part
        assert plan.privacy.theorem.split("(")[0][:20] not in open_part
        assert plan.privacy.theorem.split("(")[0][:20] in folded


def test_a_plan_says_that_the_ledger_would_refuse_it(corpus, ledger):
    ledger.add("survey", source_of(corpus), 0.5, 1e-6)
    plan = items(corpus, epsilon=1.0, delta=1e-8)
    assert "would refuse" in plan._repr_html_()
    assert "would refuse" in plan.describe(ledger)
    assert "would refuse" not in items(corpus, epsilon=0.4, delta=1e-8).describe(ledger)
    other_user = Corpus(corpus.where[0], user="what", text="what")
    assert "counts them by" in items(other_user, epsilon=0.4, delta=1e-8).describe(ledger)
    assert ledger.runs() == []


@pytest.mark.parametrize("shown", [lambda p, book: p.describe(book), lambda p, _: p._repr_html_()])
def test_a_plan_walks_its_files_once_for_all_that_the_ledger_says(
    corpus, ledger, shown, monkeypatch
):
    ledger.add("survey", source_of(corpus), 3.0, 1e-6)
    walked = []
    monkeypatch.setattr(source, "files_of", lambda of: walked.append(of) or files_of(of))
    assert "survey" in shown(items(corpus, epsilon=1.0, delta=1e-8), ledger)
    assert len(walked) == 1


def test_a_plan_with_an_account_that_is_not_there_still_shows(corpus):
    plan = items(replace_corpus(corpus, account="nobody"), epsilon=1.0, delta=1e-8)
    assert "nobody" in plan._repr_html_()
    assert "no corpus yet" in items(epsilon=1.0, delta=1e-8)._repr_html_()


@pytest.mark.parametrize(("epsilon", "delta", "said"), [(11.0, 1e-8, "e^11"), (1.0, 1e-3, "1,000")])
def test_a_promise_beyond_reason_is_warned_of(epsilon, delta, said):
    plan = items(epsilon=epsilon, delta=delta)
    assert said in plan.describe()
    assert said in plan._repr_html_()


def test_a_promise_within_reason_is_not():
    assert "warning" not in items(epsilon=10.0, delta=1e-5).describe().lower()


def test_a_release_shows_bars_and_its_promise_folded():
    card = ladder()._repr_html_()
    Seen(card)
    assert card.count("class='fill'") == 5 + 5 + 1
    assert "at most 2.719 times" in card.partition("<details>")[2]
    assert "41 users" in released(())._repr_html_()


def test_accounts_and_ledgers_print_what_is_left(corpus, ledger):
    account = ledger.add("survey", source_of(corpus), 3.0, 1e-6)
    for text in (repr(account), repr(ledger)):
        assert "promised to each user: (3, 1e-06)" in " ".join(text.split())
        assert "nothing of it is used" in " ".join(text.split())
    for card in (account._repr_html_(), ledger._repr_html_()):
        Seen(card)
        assert "survey" in card
        assert "aria-label='0% is used'" in card
    ledger.remove("survey")
    assert "empty" in repr(ledger)
    assert "There is no ledger" in repr(Ledger(ledger.path.with_name("none.sqlite")))


def test_a_ledger_that_cannot_be_read_still_has_a_name(tmp_path):
    (tmp_path / "not-one").write_text("x" * 100)
    assert "not a dphh ledger" in repr(Ledger(tmp_path / "not-one"))


def test_what_would_be_refused_is_what_is_refused(corpus, ledger):
    ledger.add("survey", source_of(corpus), 1.0, 1e-6)
    for epsilon in (0.3, 0.6, 0.9, 1.2):
        plan = items(corpus, epsilon=epsilon, delta=1e-8)
        request = Request(source_of(corpus), "items", {}, plan.events, epsilon, 1e-8)
        would = ledger.outlook(request).refusal
        try:
            ledger.book(request, {})
        except Exception as problem:
            assert str(problem) == would
        else:
            assert would is None
    assert 0 < len(ledger.runs()) < 4
