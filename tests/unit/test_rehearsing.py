"""A rehearsal runs a plan on stand-in data, pays nothing, says what it is, and on nothing else."""

from __future__ import annotations

import polars as pl
import pytest

import dphh
from dphh import Corpus, UsageError
from dphh.ledger import source_of

ASK = {"epsilon": 4.0, "delta": 1e-6}


@pytest.fixture
def public():
    frame = pl.DataFrame({"who": range(300), "what": ["good morning"] * 300})
    return Corpus(frame, user="who", text="what")


@pytest.mark.parametrize(
    "plan",
    [
        dphh.items(**ASK),
        dphh.ngrams(max_n=2, max_items=4, method="dpne", **ASK),
        dphh.trie(max_length=2, **ASK),
    ],
)
def test_it_finds_what_stands_out_and_pays_nothing(plan, public, ledger):
    found = dphh.rehearse(plan, public, ledger=ledger)
    assert len(found) > 0
    assert ledger.runs() == []
    assert found.is_test
    assert "rehearsal on stand-in data" in repr(found)
    assert "rehearsal on stand-in data" in found._repr_html_()
    assert found.run_id.startswith("rehearsal-")


def test_it_draws_anew_each_time(public, ledger):
    one, other = (
        dphh.rehearse(dphh.items(**ASK), public, ledger=ledger).to_arrow() for _ in range(2)
    )
    assert one != other


def test_the_plans_own_data_are_no_stand_in(written, ledger, public):
    corpus = written([(1, "a")])
    again = Corpus(*corpus.where, user="what", text="who")
    with pytest.raises(UsageError, match="the plan's own data"):
        dphh.rehearse(dphh.items(corpus, **ASK), again, ledger=ledger)
    with pytest.raises(UsageError, match="the plan's own data"):
        dphh.rehearse(dphh.items(public, **ASK), public, ledger=ledger)


def test_the_plans_own_files_are_no_stand_in_by_a_query_either(written, ledger):
    corpus = written([(1, "a")])
    query = Corpus(pl.scan_parquet(corpus.where[0]), user="who", text="what")
    other = Corpus(pl.scan_parquet(corpus.where[0]).head(9), user="who", text="what")
    for plans, given in ((corpus, query), (query, corpus), (query, other)):
        with pytest.raises(UsageError, match="the plan's own data"):
            dphh.rehearse(dphh.items(plans, **ASK), given, ledger=ledger)
    dphh.items(query, **ASK).run(ledger=ledger)
    with pytest.raises(UsageError, match="they may be private"):
        dphh.rehearse(dphh.items(**ASK), corpus, ledger=ledger)


def test_what_the_ledger_knows_is_no_stand_in(written, ledger):
    corpus = written([(1, "a")])
    ledger.add("survey", source_of(corpus), 1.0, 1e-6)
    for given in (corpus, corpus.named("survey")):
        with pytest.raises(UsageError, match="they may be private"):
            dphh.rehearse(dphh.items(**ASK), given, ledger=ledger)


def test_what_was_ever_paid_for_is_no_stand_in(written, ledger):
    corpus = written([(1, "a")])
    dphh.items(corpus, **ASK).run(ledger=ledger)
    with pytest.raises(UsageError, match="they may be private"):
        dphh.rehearse(dphh.items(**ASK), corpus, ledger=ledger)
