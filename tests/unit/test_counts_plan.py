"""What `counts` is asked about, what it costs and says before it is paid, and its release."""

from __future__ import annotations

from math import sqrt

import polars as pl
import pytest

from dphh import Corpus, UsageError, counts, items, ngrams, trie
from dphh.privacy.accounting import compose
from dphh.privacy.events import DeltaEvent, GaussianEvent
from dphh.privacy.gaussian import gaussian_sigma
from dphh.testing import SeededRandomness

BUDGET = {"epsilon": 1.0, "delta": 1e-8}
WORDS = [["a"], ["b"], ["a", "b"]]


def corpus(**options):
    return Corpus("/not/there/*.parquet", user="who", **({"text": "what"} | options))


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.parquet"
    texts = ["new york is big", "york new", "new york new york", "san francisco", "x"]
    rows = [(user, texts[user % 5], ["DE", "FR", None, "IT"][user % 4]) for user in range(400)]
    frame = pl.DataFrame(rows, schema=["who", "what", "country"], orient="row")
    frame.write_parquet(path)
    return Corpus(str(path), user="who", text="what")


@pytest.mark.parametrize("epsilon, delta", [(0.1, 1e-5), (1.0, 1e-8), (8.0, 1e-12)])
@pytest.mark.parametrize("max_held", [1, 2, 100])
def test_one_gaussian_is_all_that_it_costs(epsilon, delta, max_held):
    plan = counts(of=WORDS, epsilon=epsilon, delta=delta, max_held=max_held)
    gaussian, arithmetic = plan.events
    assert isinstance(gaussian, GaussianEvent) and isinstance(arithmetic, DeltaEvent)
    assert arithmetic.delta < delta * 1e-6
    assert gaussian.sigma == pytest.approx(gaussian_sigma(epsilon, delta), rel=1e-6)
    assert compose(plan.events).delta(epsilon) <= delta
    # What is drawn is no less than what is priced, over the norm that whoever comes or goes moves.
    (level,) = plan.levels
    norm = sqrt(min(max_held, 3))
    assert level.sigma >= gaussian.sigma * norm * (1 - 1e-12)
    assert level.sigma <= gaussian.sigma * norm * 1.001 + 0.001


def test_no_more_than_all_items_are_anybodys_so_the_noise_goes_by_them():
    few = counts(of=WORDS, max_held=100, **BUDGET)
    assert few.levels == counts(of=WORDS, max_held=3, **BUDGET).levels
    assert "for less of each" not in repr(few)


@pytest.mark.parametrize("groups", [["FR", "DE"], "FR, DE", "DE,FR,DE", ("DE", "FR", "FR")])
def test_groups_are_a_set(groups):
    plan = counts(corpus(), of=WORDS, by="country", groups=["DE", "FR"], **BUDGET)
    assert counts(corpus(), of=WORDS, by="country", groups=groups, **BUDGET) == plan


def test_a_text_is_read_as_a_row_of_the_corpus_would_be():
    said = ["new york", "a"]
    assert counts(corpus(), of=said, **BUDGET)["of"] == (("new", "york"), ("a",))
    whole = corpus(text=None, item="what")
    assert counts(whole, of=said, **BUDGET)["of"] == (("new york",), ("a",))
    letters = counts(corpus(as_="characters"), of=["né"], **BUDGET)
    assert letters["of"] == (("n", "é"),)


def released(plan, **options):
    return plan.run(randomness=SeededRandomness(5), **options)


def test_of_a_release_the_first_of_each_level_come_first(people):
    found = released(ngrams(people, max_n=2, epsilon=8.0, delta=1e-4))
    by_level = {
        level: [tuple(row["tokens"]) for row in found if row["level"] == level] for level in (1, 2)
    }
    first = counts(people, of=found, top=3, **BUDGET)
    assert first["of"] == (by_level[1][0], by_level[2][0], by_level[1][1])
    assert set(counts(people, of=found, min_length=2, **BUDGET)["of"]) == set(by_level[2])


def test_a_release_is_named_by_itself_its_folder_or_its_run_id(people, tmp_path, ledger):
    found = released(items(people, epsilon=8.0, delta=1e-4), ledger=ledger)
    found.save(tmp_path / "found")
    plan = counts(people, of=found, **BUDGET)
    assert plan["of"] == tuple((row["item"],) for row in found)
    assert counts(people, of=tmp_path / "found", **BUDGET) == plan
    assert counts(people, of=str(found.run_id), **BUDGET) == plan
    (tmp_path / "list.txt").write_text("new york\nx\n")
    listed = counts(people, of=str(tmp_path / "list.txt"), **BUDGET)
    assert listed["of"] == (("new", "york"), ("x",))


def test_items_that_were_read_otherwise_than_the_corpus_are_refused(people):
    found = released(items(people, epsilon=8.0, delta=1e-4))
    written = Corpus(people.where[0], user="who", text="what", lower=False)
    with pytest.raises(UsageError, match="read with lower=True"):
        counts(written, of=found, **BUDGET)
    as_given = counts(written, of=[row["tokens"] for row in found], **BUDGET)
    assert len(as_given["of"]) == len(found)


def test_of_a_trie_the_whole_sequences_are_counted(people, tmp_path):
    whole = Corpus(people.where[0], user="who", item="what")
    found = released(trie(whole, epsilon=8.0, delta=1e-3, max_length=20))
    ended = {row["item"] for row in found if row["ended"]}
    assert ended and len(ended) < len(found)
    counted = released(counts(whole, of=found, epsilon=8.0, delta=1e-3))
    assert {row["item"] for row in counted} == ended
    (big,) = [row for row in counted if row["item"] == "new york is big"]
    assert big["low"] <= 80 <= big["high"]


def test_by_default_next_to_nobody_holds_more_than_counts_in_full():
    words = [[f"w{n}"] for n in range(500)]
    assert counts(of=words, **BUDGET)["max_held"] == 100
    assert counts(of=[*words, ["w1", "w2"]], **BUDGET)["max_held"] == 150
