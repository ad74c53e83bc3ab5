"""The two halves of LDP TrieHH: what a device says, and what a server makes of what it is told."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import UsageError, ldp_trie
from dphh.devices.reports.device import answer, next_prefixes, sample
from dphh.devices.reports.round import broadcast_from_json, coded, decoded, numbers
from dphh.mechanisms.ldp_trie import collector
from dphh.mechanisms.ldp_trie.collector import MESSAGES, tally
from dphh.testing import SeededRandomness
from dphh.udfs.draws.randomness import SystemRandomness
from tests.engines.local_tries import plan_of

ROOT = Path(__file__).parents[2]
PLAN = plan_of(10, 3, truthful=False, character_set="abc", max_length=2, keep=5, local_epsilon=1.5)
LEVEL = PLAN.levels[0]
GROWTH = collector.planted(PLAN)
SAID = collector.broadcast(GROWTH, LEVEL)


# What is broadcast


def test_a_broadcast_comes_back_from_json():
    assert broadcast_from_json(SAID.dumps()) == SAID
    assert collector.growth_from_json(GROWTH.dumps()) == GROWTH
    assert SAID.domain == 3 * 4 + 3
    assert [SAID.nothing_value(report) for report in range(3)] == [12, 13, 14]


@pytest.mark.parametrize(
    "change",
    [
        {"level": 0}, {"contributions": 0}, {"contributions": "3"}, {"domain": 14}, {"size": True},
        {"prefixes": list("abcd")}, {"prefixes": ["a", "a"]},
        {"characters": "abc"}, {"known": [1]}, {"sampling": "all"},
        {"round": 3}, {"numerator": 1.5},
    ],
    ids=str,
)  # fmt: skip
def test_a_device_takes_no_broadcast_that_cannot_be(change):
    ((name, asked),) = json.loads(SAID.dumps()).items()
    with pytest.raises(UsageError, match="broadcast: not what a server's"):
        broadcast_from_json(json.dumps({name: asked | change}))
    with pytest.raises(UsageError, match="broadcast: not what a server's"):
        broadcast_from_json("{}")


def test_devices_of_before_find_nothing_that_they_would_answer():
    """They would say "nothing" by one value, again and again. They look for each field by name."""
    assert not {"round", "domain", "contributions"} & set(json.loads(SAID.dumps()))


def test_words_are_coded_with_one_code_point_a_character():
    characters = ("home", "\0", "\ud7ff", "a", "é")
    number = numbers(characters)
    word = coded(["a", "home", "\0", "é"], number)
    assert word == "\x04\x01\x02\x05"
    assert decoded(word, characters) == ["a", "home", "\0", "é"]
    assert coded(["a", "b"], number) is None


# What a device says


def assert_sets_in_their_own_order(message, domain):
    assert all((np.diff(report) > 0).all() for report in message)
    told = [report.tolist() for report in message]
    assert told == sorted(told)  # no set's place tells of its value
    assert all(0 <= value < domain for report in told for value in report)


def test_a_message_has_the_same_form_whatever_the_device_holds():
    for words in (
        [],
        [""],
        ["ab"],
        ["abc"] * 1000,
        ["é", "zzz"],
        list("abcabc"),
    ):
        message = answer(SAID, words, local_epsilon=1.5, contributions=3)
        assert [len(report) for report in message] == [SAID.size] * SAID.contributions
        assert_sets_in_their_own_order(message, SAID.domain)


def test_a_device_refuses_to_tell_more_than_it_allows():
    with pytest.raises(UsageError, match="and this device allows 1"):
        answer(SAID, ["ab"], local_epsilon=1.0, contributions=3)
    greedy = replace(SAID, size=1, numerator=2**64 - 1)
    with pytest.raises(UsageError, match="nothing is sent"):
        answer(greedy, ["ab"], local_epsilon=10.0, contributions=3)


def test_a_device_refuses_to_send_more_reports_than_it_allows():
    most = SAID.contributions
    assert len(answer(SAID, ["ab"], local_epsilon=1.5, contributions=most)) == most
    with pytest.raises(
        UsageError, match=f"asks for {most + 1} reports, and this device allows {most}"
    ):
        more = replace(SAID, contributions=most + 1)
        answer(more, ["ab"], local_epsilon=1.5, contributions=most)
    with pytest.raises(TypeError, match="contributions"):  # what it allows, a device must say
        answer(SAID, ["ab"], local_epsilon=1.5)  # type: ignore[call-arg]


def test_a_limit_that_is_no_number_allows_nothing():
    for allowed in ({"local_epsilon": nan, "contributions": 3}, {"contributions": 0}):
        with pytest.raises(UsageError, match="nothing is sent"):
            answer(SAID, ["ab"], **({"local_epsilon": 1.5} | allowed))


def test_a_device_looks_at_the_prefixes_that_its_words_continue():
    said = replace(SAID, level=2, prefixes=("\x01\x02", "\x02\x02"), known=("\x01\x02\x03",))
    words = ["ab", "ab", "aba", "abcc", "abc", "bb", "b", "", "ba", "abé", "éab"]
    assert next_prefixes(said, words) == {3: 2, 0: 1, 2: 1, 7: 1}


def test_known_words_are_left_out_whole_and_not_as_beginnings():
    said = replace(SAID, known=("\x01\x02",))
    assert next_prefixes(said, ["ab", "abc"]) == {1: 1}


def test_greedy_and_random_sampling_fill_up_with_nothing():
    held = {5: 2, 1: 9, 3: 2, 7: 3}
    greedy = replace(SAID, sampling="greedy", contributions=2)
    assert sample(greedy, held, SystemRandomness(), "").tolist() == [1, 7]
    six = replace(SAID, contributions=6, domain=18)
    few = sample(six, held, SystemRandomness(), "").tolist()
    assert sorted(few) == [1, 3, 5, 7, 16, 17]
    drawn = {
        tuple(sorted(sample(replace(SAID, contributions=2), held, SeededRandomness(seed), "")))
        for seed in range(100)
    }
    assert drawn == {(1, 3), (1, 5), (1, 7), (3, 5), (3, 7), (5, 7)}


def test_no_user_reports_a_value_twice_whatever_they_hold():
    """Neither of theirs nor of nothing's: what a whole user costs in sums rests on it."""
    for seed in range(60):
        words = ["ab", "ab", "ac", "b", "cc"][: seed % 6]
        for sampling in ("random", "greedy"):
            said = replace(SAID, sampling=sampling)
            held = next_prefixes(said, words)
            values = sample(said, held, SeededRandomness(seed), "").tolist()
            assert len(set(values)) == said.contributions
            assert set(values) - set(held) <= set(range(12, 15))


def test_a_device_refuses_a_nothing_that_is_a_prefix_too():
    with pytest.raises(UsageError, match="stands for a prefix and also for"):
        answer(replace(SAID, domain=14), ["ab"], local_epsilon=9, contributions=3)


# What a server makes of it


def counted_of(messages, said=SAID, level=LEVEL):
    """However few they are."""
    return tally(messages, said, level, at_least=0)


def sent(*messages):
    names = MESSAGES.names
    return pa.Table.from_pylist(
        [dict(zip(names, message, strict=True)) for message in messages], schema=MESSAGES
    )


def counts(counted):
    return dict(zip(*(column.to_pylist() for column in counted.kept.columns), strict=True))


def subset(*values):
    """These values, filled up from the top, where only "nothing" and its neighbours are."""
    filling = [value for value in range(SAID.domain - 1, -1, -1) if value not in values]
    return sorted([*values, *filling[: SAID.size - len(values)]])


def test_messages_that_are_not_what_was_asked_for_are_counted_and_left_out():
    ok = subset(1)
    assert SAID.size == 3
    counted = counted_of(
        sent(
            ("a", SAID.round, 1, ok),
            ("a", SAID.round, 2, ok),
            ("a", SAID.round, 1, subset(2)),
            ("a", SAID.round, 1, ok),
            ("b", SAID.round, 1, subset(0)),
            ("b", "another round", 2, ok),
            ("b", None, 2, ok),
            (None, SAID.round, 1, ok),
            ("c", SAID.round, None, ok),
            ("c", SAID.round, 1, None),
            ("c", SAID.round, 0, ok),
            ("c", SAID.round, 4, ok),
            ("c", SAID.round, 1, []),
            ("c", SAID.round, 1, [1, 2]),
            ("c", SAID.round, 1, [1, 2, 3, 4]),
            ("c", SAID.round, 1, [1, 1, 2]),
            ("c", SAID.round, 1, [1, None, 2]),
            ("c", SAID.round, 1, [-1, 1, 2]),
            ("c", SAID.round, 1, [1, 2, SAID.domain]),
            ("c", SAID.round, 1, [1, 2, 2**62]),
        ),
        SAID,
        LEVEL,
    )
    assert counted.accepted == 3
    assert counted.rejected == {
        "repeated": 2, "of another round": 2, "malformed": 10, "out of range": 3,
    }  # fmt: skip
    expected: dict[int, int] = {}
    for message in (ok, ok, subset(0)):
        for value in message:
            if value < SAID.nothing_value(0):
                expected[value] = expected.get(value, 0) + 1
    best = sorted(expected, key=lambda value: (-expected[value], value))[: LEVEL.keep]
    assert counts(counted) == {value: expected[value] for value in best}


def test_a_tally_shows_no_count_unasked():
    counted = counted_of(sent(("a", SAID.round, 1, subset(1)), ("b", "x", 1, [])), SAID, LEVEL)
    assert repr(counted) == f"{counted}" == "Tally()"


def test_fewer_reports_than_the_plan_is_priced_for_are_refused():
    """A report hides among the others: the price is of so many."""
    enough = [
        (f"c{client}", SAID.round, report, subset(client % 5))
        for client in range(10)
        for report in (1, 2, 3)
    ]
    assert tally(sent(*enough), SAID, LEVEL).accepted == LEVEL.reports == 30
    for fewer in (enough[1:], [*enough[1:], ("c1", SAID.round, 1, subset(1))], []):
        with pytest.raises(UsageError, match="fewer reports than the plan is priced for, 30"):
            tally(sent(*fewer), SAID, LEVEL)


def test_one_client_adds_its_share_at_most_however_much_it_sends():
    honest = sent(*((f"c{i}", SAID.round, 1, subset(i % 5)) for i in range(50)))
    flood = sent(*(("x", SAID.round, report, subset(9)) for report in range(-5, 20)))
    again = pa.concat_tables([honest, flood, flood, flood])
    level = replace(LEVEL, keep=99)
    before, after = counts(counted_of(honest, SAID, level)), counts(counted_of(again, SAID, level))
    moved = [after.get(value, 0) - before.get(value, 0) for value in range(SAID.domain)]
    assert max(moved) == SAID.contributions
    assert sum(moved) <= SAID.contributions * SAID.size
    assert min(moved) == 0


def test_files_that_are_no_messages_are_counted_and_passed_over(tmp_path):
    pq.write_table(sent(("a", SAID.round, 1, subset(1))), tmp_path / "good.parquet")
    pq.write_table(sent(("a", SAID.round, 1, subset(2))), tmp_path / "same-name.parquet")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    pl.DataFrame({"client": ["x"], "round": [SAID.round]}).write_parquet(tmp_path / "short.parquet")
    pl.DataFrame(
        {"client": ["x"], "round": [SAID.round], "report": ["one"], "subset": ["1, 2, 3"]}
    ).write_parquet(tmp_path / "text.parquet")
    (tmp_path / "notes.txt").write_text("not looked at", encoding="utf-8")
    counted = counted_of(tmp_path, SAID, LEVEL)
    assert (counted.accepted, counted.rejected) == (1, {"repeated": 1, "unreadable file": 3})
    assert counted_of(tmp_path / "good.parquet", SAID, LEVEL).accepted == 1
    with pytest.raises(UsageError, match="is not there; give a Parquet file"):
        counted_of(tmp_path / "nowhere", SAID, LEVEL)


def test_no_messages_keep_nothing():
    counted = counted_of(MESSAGES.empty_table(), SAID, LEVEL)
    assert (counted.kept.num_rows, counted.accepted, counted.rejected) == (0, 0, {})
    growth, steps = collector.grown(GROWTH, PLAN.levels, counted.kept)
    assert (growth.prefixes, steps) == ((), [])
    assert collector.broadcast(growth, PLAN.levels[1]).prefixes == ()


def test_a_pass_begins_anew_with_what_was_found_known():
    plan = plan_of(10, 1, truthful=False, character_set="ab", max_length=1, passes=2, known=["b"])
    kept = pa.table({"value": [1, 2], "reports": [9, 5]})
    growth, steps = collector.grown(collector.planted(plan), plan.levels, kept)
    assert [("".join(step.tokens), step.ended) for step in steps] == [("ab", False), ("a", True)]
    assert growth.prefixes == ("\x01", "\x02")
    assert set(growth.known) == {"\x01", "\x02"}
    last, _ = collector.grown(growth, plan.levels, kept)
    assert last.done == 2


# Both, as programs that share files


@pytest.mark.slow
def test_a_server_and_devices_that_share_files_alone_find_the_words(tmp_path):
    program = [sys.executable, str(ROOT / "examples" / "ldp_federation.py")]

    def run(*arguments):
        return subprocess.run(
            [*program, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    plan = ldp_trie(
        local_epsilon=6.0, delta=1e-6, users_per_level=1500, contributions=1, max_length=3, keep=5,
        character_set="aeot",
    )  # fmt: skip
    (tmp_path / "plan.json").write_text(plan.dumps(), encoding="utf-8")
    folder = tmp_path / "shared"
    folder.mkdir()
    said = run("server", folder, "--plan", tmp_path / "plan.json")
    words = ["tea", "oat", "eat"]
    allowed = ("--local-epsilon", 6, "--contributions", 1)
    for level in plan.levels:
        devices = pl.DataFrame({
            "user": [f"{level.level}/{user}" for user in range(1500)],
            "word": [words[user % 3] for user in range(1500)],
        })  # fmt: skip
        devices.write_parquet(tmp_path / "words.parquet")
        run("devices", folder, tmp_path / "words.parquet", *allowed)
        said = run("server", folder)
        assert "1,500 reports counted, left out {}" in said
    assert said.endswith("done\n")
    found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    assert set(words) <= set(found)
    assert not (folder / "broadcast.json").exists()
