"""A plan as SQL: the queries that a run executes, and the specification that a bare shell runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import groupby
from pathlib import Path

import click.testing
import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphh
from dphh import Corpus, UsageError
from dphh.as_sql.query_text import filled, macros_called
from dphh.as_sql.running import parts_of
from dphh.cli import cli
from dphh.engines.duckdb.run import DuckDBRun
from dphh.levels.ngrams import PrunedLevel
from dphh.mechanisms.ngrams.dpne import spurious_threshold
from dphh.session.ladder.rungs import first_ladder
from dphh.sql import query
from dphh.testing import SeededRandomness
from tests.engines.ladders import brute_force, held_by_user, summed
from tests.engines.test_engines_agree import VERBS as ON_LISTS
from tests.engines.tries import brute_force as grown_by_all

BUDGET = {"epsilon": 8.0, "delta": 1e-3}
VERBS = {
    **ON_LISTS,
    "items counted": lambda c: dphh.items(c, counts=0.3, **BUDGET),
    "counts": lambda c: dphh.counts(c, of=[["w1"], ["w2", "w3"]], **BUDGET),
    "ngrams dpsu-single": lambda c: dphh.ngrams(c, max_n=2, method="dpsu-single", **BUDGET),
}
NOWHERE = Corpus("nowhere/*.parquet", user="who", text="what", as_="list")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(7)
    words = [f"w{i}" for i in range(12)]
    return [
        (user, [words[i] for i in rng.zipf(1.6, 8) % len(words)])
        for user in range(3000)
        for _ in range(1 + user % 3)
    ]


def corpus_of(rows, path):
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(path)
    return Corpus(path, user="who", text="what", as_="list")


@contextmanager
def watched(monkeypatch) -> Iterator[list]:
    """The queries that sessions execute, with their parameters."""
    seen = []
    with monkeypatch.context() as patched:
        for verb in ("execute", "fetch"):
            shipped = getattr(DuckDBRun, verb)

            def told(self, name, shipped=shipped, **parameters):
                seen.append((name, parameters))
                return shipped(self, name, **parameters)

            patched.setattr(DuckDBRun, verb, told)
        yield seen


def listed(value):
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_shown_is_what_a_run_executes(tmp_path, monkeypatch, rows, verb):
    plan = VERBS[verb](corpus_of(rows, tmp_path / "corpus.parquet"))
    shown = [step for _, steps in parts_of(plan.price) for step in steps]
    with watched(monkeypatch) as seen:
        plan.run(engine="duckdb", randomness=SeededRandomness(11))
    executed = [next(iter(same)) for _, same in groupby(seen, key=lambda one: one[0])]
    left = iter(step for step, _ in groupby(shown))
    # What released nothing may end a run; what is conditional may be left out.
    for name, parameters in executed:
        step = next((one for one in left if one.name == name), None)
        assert step is not None, f"{name} is executed and not shown there"
        for known, value in step.known.items():
            if known in parameters and known != "is_test":
                assert parameters[known] in (value, listed(value)), known
        assert parameters.keys() <= {*step.known, *step.later}
    must = {step.name for step in shown if not step.may_run}
    assert must <= {name for name, _ in executed}


@pytest.mark.parametrize("verb", VERBS)
def test_the_queries_of_a_run_are_free_and_leave_nothing_open_without_a_word(verb):
    """The files are not there: nothing is read. What stays a parameter has its comment."""
    text = VERBS[verb](NOWHERE).sql()
    without_comments = re.sub("--.*", "", text)
    opened = set(re.findall(r"\$([a-z_]\w*)", without_comments))
    assert opened <= set(re.findall(r"^-- \$(\w+): ", text, re.MULTILINE))
    assert "nowhere/*.parquet" in text


@pytest.mark.parametrize("verb", VERBS)
def test_each_query_says_which_file_it_is(verb):
    named = re.findall(r"^-- (sql/\S+\.sql)$", VERBS[verb](NOWHERE).sql(), re.MULTILINE)
    assert named
    house = Path(__file__).parents[2]
    assert [file for file in named if not (house / file).is_file()] == []


def test_a_text_cannot_leave_its_literal_nor_a_comment():
    spelled = filled("SELECT $what -- of $what, $n", {"what": "it's\nDROP", "n": 3})
    assert spelled == "SELECT 'it''s\nDROP' -- of $what, 3"


def test_macros_come_with_those_that_they_call_and_no_others():
    text = macros_called("SELECT dphh_even_weight(3, 10)", ["plain/functions", "plain/texts"])
    assert re.findall(r"MACRO (\w+)", text) == ["dphh_float_root", "dphh_isqrt", "dphh_even_weight"]


# The specification, pasted


def pasted(plan, rows):
    """In a stock DuckDB, over a table of theirs."""
    con = duckdb.connect()
    con.register("given", pl.DataFrame(rows, schema=["who", "what"], orient="row").to_arrow())
    con.execute("CREATE TABLE corpus_rows AS SELECT * FROM given")
    return con.execute(plan.sql(plain=True)).fetchall()


def own(rows, **said):
    """A corpus that is a table in memory."""
    frame = pl.DataFrame(rows, schema=["who", "what"], orient="row")
    return Corpus(frame, user="who", **said)


TEXTS = [(user % 900, f"the cat sat on the w{user % 11} x{user}") for user in range(2700)]


def by_tokens(found):
    return {tuple(tokens): score for _, tokens, score in found}


def test_items_can_be_pasted():
    plan = dphh.items(own(TEXTS, text="what"), method="gaussian", **BUDGET)
    (level,) = plan.levels
    expected = summed(held_by_user([(user, text.split()) for user, text in TEXTS], 1))
    assert by_tokens(pasted(plan, TEXTS)) == {
        item: weight / 2**level.grid_bits
        for item, weight in expected.items()
        if weight >= level.threshold_grid
    }


@pytest.mark.parametrize("pruning", ["both", "single"])
def test_dpne_can_be_pasted(pruning):
    corpus = own(TEXTS, text="what")
    plan = dphh.ngrams(corpus, max_n=4, method="dpne", pruning=pruning, **BUDGET)
    rows = [(user, text.split()) for user, text in TEXTS]
    thresholds = [plan.levels[0].threshold_grid]
    for level in plan.levels[1:]:
        *_, below = found = brute_force(rows, thresholds, pruning)
        valid = valid_of(found, pruning)
        thresholds.append(spurious_threshold(level, len(below), valid))
    found = brute_force(rows, thresholds, pruning)
    bits = plan.levels[0].grid_bits
    assert by_tokens(pasted(plan, TEXTS)) == {
        gram: weight / 2**bits for level in found for gram, weight in level.items()
    }
    assert all(found)


def valid_of(found, pruning):
    words, below = found[0], found[-1]
    if pruning == "single":
        return len(below) * len(words)
    return sum(gram[1:] == other[:-1] for gram in below for other in below)


@pytest.mark.parametrize("accounting", ["path", "paper"])
def test_tries_can_be_pasted(accounting):
    """Everybody votes."""
    rows = [(user, f"{'ab' * (user % 3)}{user % 2}") for user in range(1500)]
    more = {"users": 5000, "accounting": "paper"} if accounting == "paper" else {}
    plan = dphh.trie(own(rows, item="what"), max_length=4, **BUDGET, **more)
    thetas = {level.theta for level in plan.levels}
    found = {(tuple(tokens), ended) for _, tokens, ended in pasted(plan, rows)}
    assert found == set().union(*grown_by_all([word for _, word in rows], 4, min(thetas)))
    assert len(thetas) == 1


@given(
    below=st.sets(st.tuples(*[st.sampled_from("abcd")] * 2), max_size=12),
    pruning=st.sampled_from(["both", "single"]),
    sigma=st.integers(500, 4000),
    spurious=st.sampled_from([0.001, 0.01, 0.5]),
)
@settings(max_examples=20)
def test_the_threshold_of_a_level_follows_from_what_is_released_below(
    below, pruning, sigma, spurious
):
    words = sorted({word for gram in below for word in gram} | {"e"})
    level = PrunedLevel(3, 10, 10, sigma, spurious, pruning)
    ladder = first_ladder(words, pruning)
    keys = sorted((words.index(one) << 32) | words.index(other) for one, other in below)
    valid = len(ladder.with_next(np.array(keys, np.int64)).valid_grams())
    con = duckdb.connect()
    con.execute(macros_called("dphh_noise_quantile", ["plain/noise_quantile"]))
    con.execute(query("plain/nothing_released"))
    for gram in [*below, *((word,) for word in words)]:
        con.execute("INSERT INTO released VALUES (?, ?, 0)", [len(gram), list(gram)])
    asked = {"level": 3, "pruning": pruning, "sigma": sigma, "spurious": spurious}
    ((threshold,),) = con.execute(query("plain/dpne_threshold"), asked).fetchall()
    assert Fraction(spurious)
    assert threshold == spurious_threshold(level, len(below), valid)


def test_what_has_no_plain_form_says_so():
    plan = dphh.ngrams(NOWHERE, max_n=2, method="dpsu-all", **BUDGET)
    with pytest.raises(UsageError, match="plain: ngrams"):
        plan.sql(plain=True)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if "dpsu" not in verb])
def test_every_verb_has_a_plain_form(verb):
    """What the plan knows is filled in; what stays open has its comment."""
    text = VERBS[verb](NOWHERE).sql(plain=True)
    opened = set(re.findall(r"\$([a-z_]\w*)", re.sub("--.*", "", text)))
    assert opened <= set(re.findall(r"^-- \$(\w+): ", text, re.MULTILINE))
    left_open = verb in ("ngrams", "ngrams with a prior") or verb.startswith("ldp_trie")
    assert (opened != set()) == left_open
    assert "NOT PRIVATE" in text


def test_local_reports_can_be_pasted_query_by_query():
    """Its first level: 200 of 400 users are asked, who all hold two of the three words."""
    words = [(user, word) for user in range(400) for word in ("ab", "b")]
    plan = dphh.ldp_trie(
        own(words, item="what"), local_epsilon=6, delta=1e-6, users_per_level=200,
        contributions=3, max_length=2, keep=9, character_set="abc",
    )  # fmt: skip
    con = duckdb.connect()
    con.register("given", pl.DataFrame(words, schema=["who", "what"], orient="row").to_arrow())
    con.execute("CREATE TABLE corpus_rows AS SELECT * FROM given")
    con.execute("CREATE TABLE known (word VARCHAR[])")
    con.execute("CREATE TABLE prefixes (number INTEGER, tokens VARCHAR[])")
    con.execute("INSERT INTO prefixes VALUES (0, ['a']), (1, ['b']), (2, ['c'])")
    for shown in plan.queries(plain=True):
        con.execute(shown.sql.replace("$idle", "0"))
        if shown.section == "pass 1, level 1":
            break
    kept = con.execute("SELECT prefix, ended, reports FROM kept ORDER BY value").fetchall()
    assert kept == [(["a", "b"], False, 200), (["b"], True, 200)]


def test_counts_can_be_pasted():
    of = [("the", "cat"), ("w3",), ("never",)]
    rows = [(user, text.replace("never", "")) for user, text in TEXTS]
    plan = dphh.counts(own(rows, text="what"), of=of, **BUDGET)
    found = pasted(plan, rows)
    users = {user for user, text in rows if "w3 " in text}
    assert found == [(["the", "cat"], None, 900), (["w3"], None, len(users)), (["never"], None, 0)]


# Who asks


def test_the_command_line_shows_the_queries_and_spends_nothing(tmp_path, rows):
    corpus_of(rows, tmp_path / "corpus.parquet")
    asked = ["items", str(tmp_path / "corpus.parquet"), "--user", "who", "--text", "what",
             "--epsilon", "1", "--delta", "1e-6", "--ledger", str(tmp_path / "ledger")]  # fmt: skip
    runner = click.testing.CliRunner()
    shown, plain, alone = (
        runner.invoke(cli, [*asked, *more])
        for more in (["--sql"], ["--sql", "--plain"], ["--plain"])
    )
    assert "-- sql/set_union/words_level.sql" in shown.output
    assert "-- sql/plain/set_union.sql" in plain.output
    assert alone.exit_code == 2
    assert not dphh.Ledger(tmp_path / "ledger").runs()


def test_sql_shows_the_queries_and_spends_nothing(tmp_path):
    con = dphh.connect(tmp_path / "ledger")
    asked = "user_column := 'who', text_column := 'what', epsilon := 1.0, delta := 1e-6"
    plan = dphh.items(Corpus("nowhere/*.parquet", user="who", text="what"), epsilon=1.0, delta=1e-6)
    for more, plain in (("", False), (", plain := true", True)):
        found = con.execute(f"FROM dphh_sql_items('nowhere/*.parquet', {asked}{more})").fetchall()
        queries = enumerate(plan.queries(plain=plain), start=1)
        assert found == [(one.section, one.sql, line) for line, one in queries]
    assert con.execute("FROM dphh_ledger()").fetchall() == []
