"""A prepared corpus is read once. In all else its runs are those of the corpus itself."""

import pickle
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from dphh import Corpus, CorpusError, UsageError, counts, items, ldp_trie, ngrams, prepared, trie
from dphh.testing import SeededRandomness
from dphh.udfs.kernel.gathering import Gathering

pytestmark = pytest.mark.filterwarnings("ignore::dphh.errors.Notice")
BUDGET: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6}
LOCAL: dict[str, Any] = {"user_epsilon": 4.0, "max_length": 2, "keep": 3, "delta": 1e-6}
LOCAL |= {"users_per_level": 50, "contributions": 1}
VERBS = {
    "items": lambda corpus: items(corpus, **BUDGET, max_items=5),
    "by the first round": lambda corpus: items(corpus, **BUDGET, max_items=5, counts=0),
    "ngrams": lambda corpus: ngrams(corpus, **BUDGET, max_n=2, max_items=5),
    "counts": lambda corpus: counts(corpus, of=["see", "never said"], **BUDGET),
    "trie": lambda corpus: trie(corpus, epsilon=4.0, delta=1e-3, max_length=2),
    "ldp_trie": lambda corpus: ldp_trie(corpus, **LOCAL),
}


def frame(users: int = 400, said: str = "see you later") -> pl.DataFrame:
    texts = [f"{said} {user % 5} {user}" for user in range(users)]
    return pl.DataFrame({"who": range(users), "what": texts})


def corpus_of(source: Any, **options: Any) -> Corpus:
    return Corpus(source, user="who", text="what", **options)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_releases_what_it_releases_of_the_corpus_itself(verb, engine):
    corpus = corpus_of(frame())
    plan, of_memory = VERBS[verb](corpus), VERBS[verb](prepared(corpus))
    assert of_memory == plan
    assert of_memory.to_json() == plan.to_json()
    released = plan.run(engine=engine, randomness=SeededRandomness(3))
    for _ in range(2):  # read, and then known
        again = of_memory.run(engine=engine, randomness=SeededRandomness(3))
        assert again.to_arrow() == released.to_arrow()


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_rows_are_gathered_once_and_each_run_pays(ledger, engine, monkeypatch):
    gathered = []
    whole = Gathering.users
    monkeypatch.setattr(Gathering, "users", lambda self: gathered.append(1) or whole(self))
    corpus = prepared(corpus_of(frame()))
    for epsilon in (1.0, 2.0, 4.0):
        items(corpus, epsilon=epsilon, delta=1e-6, counts=0).run(engine=engine, ledger=ledger)
    assert len(gathered) == 1
    assert [run.epsilon for run in ledger.runs()] == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_replay_costs_nothing_whichever_of_the_two_ran_first(is_first, ledger, tmp_path, engine):
    frame().write_parquet(tmp_path / "a.parquet")
    corpus = corpus_of(tmp_path / "a.parquet")
    both = [prepared(corpus), corpus]
    first, second = (items(each, **BUDGET) for each in (both if is_first else both[::-1]))
    released = first.run(engine=engine, ledger=ledger)
    assert second.run(engine=engine, ledger=ledger).run_id == released.run_id
    assert len([*ledger.runs()]) == 1


def test_a_file_that_changes_later_is_another_corpus(ledger, tmp_path, engine):
    frame().write_parquet(path := tmp_path / "a.parquet")
    kept = prepared(corpus_of(path))
    frame(said="not that").write_parquet(path)
    old = items(kept, **BUDGET).run(engine=engine, ledger=ledger)
    new = items(corpus_of(path), **BUDGET).run(engine=engine, ledger=ledger)
    assert "later" in old.to_polars()["item"] and "later" not in new.to_polars()["item"]
    assert old.run_id != new.run_id
    assert items(kept, **BUDGET).run(engine=engine, ledger=ledger).run_id == old.run_id


def test_what_its_owner_writes_into_an_array_later_is_not_read(ledger, engine):
    """Arrow shares the memory of a NumPy array."""
    owned = np.full(400, 7)
    table = pa.table({"who": pa.array(np.arange(400)), "what": pa.array(owned)})
    kept = prepared(Corpus(table, user="who", item="what"))
    owned[:] = 8
    assert table["what"][0].as_py() == 8, "or the test shows nothing"
    plan = items(kept, **BUDGET, max_items=1)
    release = plan.run(engine=engine, ledger=ledger)
    assert release.to_polars()["item"].to_list() == ["7"]
    assert plan.run(engine=engine, ledger=ledger).run_id == release.run_id


def test_conditions_and_groups_of_a_plan_are_not_mixed_up(ledger, engine):
    with_lands = frame().with_columns(land=pl.Series(["de", "at"] * 200))
    corpus = corpus_of(with_lands, where="land <> 'fr'")
    kept = prepared(corpus)
    lands = {"by": "land", "groups": ["de", "at"]}
    for options in ({}, lands, {}):
        plans = [items(each, **BUDGET, counts=0.5, **options) for each in (kept, corpus)]
        of_memory, released = (
            plan.run(engine=engine, ledger=ledger, randomness=SeededRandomness(1)) for plan in plans
        )
        assert of_memory.to_arrow() == released.to_arrow()


def test_what_was_not_read_is_refused_before_it_is_paid_for(ledger, engine):
    kept = prepared(corpus_of(frame().with_columns(land=pl.lit("de"))))
    plan = items(kept, **BUDGET, by="land", groups=["de"])
    with pytest.raises(CorpusError, match="no column 'land'"):
        plan.run(engine=engine, ledger=ledger)
    without_user = prepared(corpus_of(pl.concat([frame(), frame(1).with_columns(who=None)])))
    for _ in range(2):
        with pytest.raises(CorpusError, match="NULL user"):
            items(without_user, **BUDGET).run(engine=engine, ledger=ledger)
    assert not [*ledger.runs()]


def test_a_copy_in_another_process_has_the_same_rows(ledger, engine):
    kept = prepared(corpus_of(frame()))
    released = items(kept, **BUDGET).run(engine=engine, ledger=ledger)
    sent = pickle.loads(pickle.dumps(kept))
    assert items(sent, **BUDGET).run(engine=engine, ledger=ledger).run_id == released.run_id


def test_a_spark_frame_stays_where_it_is():
    spark_frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})()
    with pytest.raises(UsageError, match="executors"):
        prepared(corpus_of(spark_frame))
