"""Devices that vote by file, against users in a corpus: the same votes, the same trie."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import BudgetRefused, Corpus, CorpusError, Ledger, UsageError, trie
from dphh.collecting import Collection, one_sequence, read_ballot, vote, votes_of_corpus
from dphh.devices.votes import VOTES_SCHEMA, Ballot
from dphh.ledger import source_of
from dphh.testing import SeededRandomness
from dphh.udfs.draws.randomness import SystemRandomness
from tests.engines.tries import Heads, brute_force

WORDS = ["ab", "abc", "a\x1fb", "b", "日本", "abcd", "ab"]
PLAN = trie(epsilon=12, delta=0.9, max_length=5, theta=2, p=0.5)
EXAMPLE = Path(__file__).parents[2] / "examples" / "federated_trie.py"


@pytest.fixture
def begun(tmp_path, ledger):
    def begin(name="c", plan=PLAN, **options):
        asked = {"devices": "phones", "ledger": ledger, "is_test": True} | options
        return Collection.begin(tmp_path / name, plan, **asked)

    return begin


def votes_of(ballot, held, source):
    return pa.concat_tables(
        [vote(ballot, [*word], randomness=source, name=str(who)) for who, word in held]
    )


def rows(table):
    return sorted(map(str, table.to_pylist()))


def prefixes(release):
    return {
        (row["level"], tuple(row["tokens"]), row["ended"]) for row in release.to_arrow().to_pylist()
    }


def hand_made(collection, changes):
    """Votes for node 0 of the open round, each with its own ticket and these changes."""
    ballot = read_ballot(collection.open_round())
    usual = {
        "run_id": collection.run_id, "level": ballot.level, "node": 0, "token": "a",
        "ended": False,
    }  # fmt: skip
    return pa.Table.from_pylist(
        [usual | {"ticket": f"t{number}"} | own for number, own in enumerate(changes)],
        schema=VOTES_SCHEMA,
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_devices_and_a_corpus_cast_the_same_votes_and_grow_the_same_trie(begun, written, seed):
    rng = np.random.default_rng(seed)
    held = [(who, WORDS[i]) for who, i in enumerate(rng.integers(0, len(WORDS), 60))]
    corpus = written(held, text=None, item="what")
    source = SeededRandomness(seed)
    collected, simulated = begun("collected"), begun("simulated", run_id="simulated")
    cast = 0
    while (path := collected.open_round()) is not None:
        votes = votes_of(read_ballot(path), held, source)
        users = votes_of_corpus(read_ballot(simulated.open_round()), corpus, source)
        assert rows(votes.drop_columns("run_id")) == rows(users.drop_columns("run_id"))
        assert collected.close_round(votes) == simulated.close_round(users)
        cast += len(votes)
    assert 0 < cast < 60 * 5
    release = collected.release()
    assert release.to_arrow() == simulated.release().to_arrow()
    assert len(release) > 0


def test_where_every_coin_shows_heads_it_is_the_engines_trie(begun, engine, written):
    held = list(enumerate(WORDS * 3))
    collection = begun()
    while (path := collection.open_round()) is not None:
        collection.close_round(votes_of(read_ballot(path), held, Heads()))
    expected = brute_force([word for _, word in held], 5, 2)
    assert prefixes(collection.release()) == {
        (level, tokens, ended)
        for level, found in enumerate(expected, start=1)
        for tokens, ended in found
    }
    corpus = written(held, text=None, item="what")
    of_engine = PLAN.run(corpus=corpus, engine=engine, randomness=Heads())
    assert of_engine.to_arrow() == collection.release().to_arrow()


@pytest.mark.parametrize("seed", range(4))
def test_a_device_draws_the_sequence_that_the_engine_draws(begun, written, seed):
    own = [["b"], ["a", "b"], ["a", "b"], [], ["a\x1fb"]]
    source = SeededRandomness(seed)
    mine = one_sequence(own, randomness=source, name="7")
    ballot = read_ballot(begun().open_round())
    corpus = written([(7, tokens) for tokens in own], text="what", as_="list")
    (cast,) = votes_of_corpus(ballot, corpus, Heads(source), choice="drawn").to_pylist()
    assert cast["token"] == mine[0]
    assert one_sequence([[], []]) == []


@pytest.mark.slow
def test_the_processes_of_a_collection_share_files_alone(tmp_path):
    command = [sys.executable, str(EXAMPLE), "rehearse", str(tmp_path), "--devices", "600"]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")
    assert {"2 a.", "3 an.", "3 at.", "3 to."} <= set(said)
    assert [entry.state for entry in Ledger(tmp_path / "ledger.sqlite").runs()] == ["settled"]


# What comes in


def test_what_is_no_vote_is_rejected_and_counted(begun):
    collection = begun()
    votes = hand_made(
        collection,
        [
            {}, {}, {"ticket": "t1"}, {"ticket": "t0"},  # the two sent once more
            {"ticket": "x"}, {"ticket": "x", "token": "b"},
            {"node": 1}, {"node": -1}, {"ended": True, "token": None},
            {"token": None}, {"ended": True}, {"token": ""}, {"node": None}, {"ended": None},
            {"ticket": None}, {"run_id": None}, {"level": None},
            {"run_id": "another"}, {"level": 2},
        ],
    )  # fmt: skip
    received = collection.close_round(votes)
    assert received.counted == 2
    assert received.rejected == {
        "repeated": 2, "contradictory": 2, "out of range": 3, "malformed": 8, "of another round": 2,
    }  # fmt: skip
    assert repr(received) == "Received()"
    assert read_ballot(collection.open_round()).ways == (("a",),)


def test_rejected_votes_grow_nothing(begun):
    collection = begun()
    collection.close_round(hand_made(collection, [{}, {"ticket": "t0"}, {"level": 7}]))
    assert collection.open_round() is None
    assert len(collection.release()) == 0


def test_a_ticket_may_contradict_itself_by_the_end_alone(begun):
    collection = begun()
    collection.close_round(hand_made(collection, [{}, {}]))
    end = {"ended": True, "token": None}
    votes = hand_made(collection, [{"ticket": "x"}, {"ticket": "x"} | end, end, end])
    assert collection.close_round(votes).rejected == {"contradictory": 2}


def test_votes_of_other_types_are_malformed_and_no_error(begun, tmp_path):
    collection = begun()
    collection.open_round()
    pl.DataFrame(
        {"run_id": ["x"], "level": ["one"], "node": [1.5], "token": [3], "ended": ["maybe"],
         "ticket": [9]}
    ).write_parquet(tmp_path / "odd.parquet")  # fmt: skip
    assert collection.close_round(tmp_path / "odd.parquet").rejected == {"malformed": 1}


def test_a_table_that_is_none_of_votes_is_refused_and_the_round_stays_open(begun, tmp_path):
    collection = begun()
    path = collection.open_round()
    with pytest.raises(CorpusError, match="votes: the table has no column ended, level"):
        collection.close_round(pa.table({"node": [0], "token": ["a"], "run_id": ["a"]}))
    with pytest.raises(CorpusError, match="votes: found no Parquet file"):
        collection.close_round(tmp_path / "nothing.parquet")
    assert collection.open_round() == path


# Rounds


def test_a_round_is_closed_once(begun, tmp_path, monkeypatch):
    collection = begun()
    votes = hand_made(collection, [{}, {}])
    other = Collection.load(tmp_path / "c", ledger=collection.ledger)
    path = other.open_round()
    collection.close_round(votes)
    monkeypatch.setattr(Collection, "open_round", lambda _: path)  # it saw the round open still
    with pytest.raises(UsageError, match="another process has closed round 1"):
        other.close_round(hand_made(collection, [{"token": "b"}] * 2))


def test_a_collection_goes_on_in_another_process(begun, tmp_path):
    collection = begun()
    collection.close_round(hand_made(collection, [{}, {}]))
    again = Collection.load(tmp_path / "c", ledger=collection.ledger)
    assert again == collection
    assert again.open_round() == collection.open_round()
    with pytest.raises(UsageError, match="has a collection already"):
        begun()
    with pytest.raises(UsageError, match=r"no collection\.json"):
        Collection.load(tmp_path)


def test_a_ballot_says_what_a_device_needs_and_no_count(begun):
    collection = begun()
    collection.close_round(hand_made(collection, [{}, {}, {}]))
    table = pq.read_table(collection.open_round())
    assert table.to_pylist() == [{"node": 0, "tokens": ["a"]}]
    assert {key.decode(): value.decode() for key, value in table.schema.metadata.items()} == {
        "dphh.run_id": collection.run_id,
        "dphh.level": "2",
        "dphh.numerator": str(1 << 63),
        "dphh.is_test": "1",
    }


def test_a_device_is_silent_as_often_as_its_coin_says(begun):
    ballot = read_ballot(begun(is_test=False).open_round())
    cast = sum(len(vote(ballot, ["a"])) for _ in range(2000))
    assert 1000 - 6 * 22.4 < cast < 1000 + 6 * 22.4
    assert len(vote(ballot, [], randomness=SystemRandomness())) == 0


@pytest.mark.parametrize(
    "numerator, epsilon, refused",
    [
        (2**64 - 1, 10.0, True),
        (2**64 - 2**40, 10.0, True),
        (2**64 - 2**50, 10.0, False),  # ln 2^14 = 9.7
        (2**64 - 2**50, 9.0, True),
        (2**63, 0.7, False),
        (2**63, 0.6, True),
        (2**63, float("nan"), True),
        (2**64 - 1, 45.0, False),  # who allows as much is asked for as much
    ],
)
def test_a_device_refuses_a_coin_that_shows_more_than_it_allows(numerator, epsilon, refused):
    said = Ballot("run", 1, numerator, False, ((),))
    if refused:
        with pytest.raises(UsageError, match="this device allows"):
            vote(said, ["a"], epsilon=epsilon)
    else:
        vote(said, ["a"], epsilon=epsilon)


def test_a_device_that_was_told_nothing_refuses_a_sure_coin():
    with pytest.raises(UsageError, match="this device allows"):
        vote(Ballot("run", 1, 2**64 - 1, False, ((),)), ["a"])


@pytest.mark.parametrize("tokens", [["SENTINEL", 7], [b"SENTINEL"], [None], [["SENTINEL"]], 7])
def test_tokens_that_are_no_texts_are_refused_whatever_the_coin_shows(begun, tokens):
    ballot = read_ballot(begun().open_round())
    with pytest.raises(UsageError, match=r"^tokens: found \w+ where a text was expected") as said:
        vote(ballot, tokens)
    with pytest.raises(UsageError, match=r"^tokens: found") as of_all:
        one_sequence([["a"], tokens])
    assert "SENTINEL" not in f"{said.value}{of_all.value}"


def test_a_ballot_that_is_not_there_or_not_whole_is_refused(begun, tmp_path):
    with pytest.raises(UsageError, match=r"none\.parquet is not there"):
        read_ballot(tmp_path / "none.parquet")
    good = pq.read_table(begun().open_round())
    notes = good.schema.metadata
    told = {
        "rate": {b"dphh.numerator": b"%d" % 2**64}, "level": {b"dphh.level": b"0"},
        "number": {b"dphh.level": b"one"}, "text": {b"dphh.run_id": b"\xff"},
    }  # fmt: skip
    bad = [good.replace_schema_metadata(notes | change) for change in told.values()]
    bad += [good.replace_schema_metadata({}), good.drop_columns("tokens")]
    for ways in ([None], [["a"]], [[None]]):
        table = pa.table({"node": [0], "tokens": pa.array(ways, pa.list_(pa.string()))})
        bad.append(table.replace_schema_metadata(notes))
    for table in bad:
        pq.write_table(table, tmp_path / "bad.parquet")
        with pytest.raises(UsageError, match=r"bad\.parquet is not what Collection"):
            read_ballot(tmp_path / "bad.parquet")
    for junk in (b"", b"PAR1 and no more"):
        (tmp_path / "bad.parquet").write_bytes(junk)
        with pytest.raises(UsageError, match=r"bad\.parquet is not what"):
            read_ballot(tmp_path / "bad.parquet")
    with pytest.raises(UsageError, match="is not what"):
        read_ballot(tmp_path)  # a folder


def test_a_tests_coins_go_with_a_tests_collection_alone(begun, written):
    ballot = read_ballot(begun(is_test=False).open_round())
    with pytest.raises(UsageError, match="a test's"):
        vote(ballot, ["a"], randomness=SeededRandomness(1))
    with pytest.raises(UsageError, match="a test's"):
        votes_of_corpus(ballot, written([(1, "a")]), SeededRandomness(1))


# The ledger


def test_the_price_is_spent_as_the_first_round_opens_and_settled_with_the_last(begun, ledger):
    phones = source_of(Corpus(pl.DataFrame({"w": [1]}), user="person", item="w"))
    ledger.add("phones", phones, 12.0, 0.9)
    collection = begun(account="phones", user="person", is_test=False)
    assert ledger.runs() == []
    collection.open_round()
    collection.open_round()
    (run,) = ledger.runs("phones")
    assert (run.state, run.epsilon, run.run_id) == ("running", 12.0, collection.run_id)
    with pytest.raises(UsageError, match="a round is still open"):
        collection.release()
    collection.close_round(hand_made(collection, []))
    release = collection.release()
    assert [run.state for run in ledger.runs()] == ["settled"]
    assert collection.release().manifest == release.manifest
    assert release.manifest["randomness"] == "operating system"
    assert release.privacy == PLAN.privacy.to_json()
    assert [level["released"] for level in release.manifest["levels"]] == [0] * 5
    with pytest.raises(BudgetRefused):
        begun("again", account="phones", user="person").open_round()


def test_a_tests_collection_says_so(begun):
    collection = begun()
    collection.close_round(hand_made(collection, []))
    assert "NOT private" in collection.release().manifest["randomness"]
    assert collection.release().is_test


def test_a_plan_that_was_edited_in_the_folder_is_refused(begun, tmp_path):
    begun()
    path = tmp_path / "c" / "collection.json"
    written = json.loads(path.read_text())
    written["plan"]["levels"][0]["theta"] = 1
    path.write_text(json.dumps(written))
    with pytest.raises(UsageError, match="it was edited"):
        Collection.load(tmp_path / "c")


@pytest.mark.parametrize(
    "asked, said",
    [
        ({"accounting": "paper", "users": 10**6, "delta": 1e-6}, "toss their own coins"),
        ({"corpus": Corpus("x.parquet", user="u", item="i")}, "found a corpus"),
    ],
)
def test_plans_that_devices_cannot_run_are_refused(begun, asked, said):
    plan = trie(**({"epsilon": 4, "delta": 1e-3, "max_length": 3} | asked))
    with pytest.raises(UsageError, match=said):
        begun(plan=plan)
