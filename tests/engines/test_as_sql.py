"""A plan as SQL: the queries that a run executes."""

import re
from fractions import Fraction

import click.testing
import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh import Corpus
from dphh.as_sql import PLAN_SQL_HEADING, with_values
from dphh.cli import cli
from dphh.engines.host import Lookup
from dphh.mechanisms.ngrams.dpne import spurious_threshold
from dphh.mechanisms.ngrams.ladder.rungs import first_ladder
from dphh.mechanisms.ngrams.levels import PrunedLevel
from dphh.registry import draws_of
from dphh.sql import query
from dphh.udfs.noise.table import rounded_gaussian
from tests.engines.recorded_runs import CASES, corpus_of, seeded_on_duckdb
from tests.specification import specified

NOWHERE = Corpus("nowhere/*.parquet", user="who", text="what", as_="list")


def _comments(text: str) -> str:
    """What the text, and the heading of all queries, say in comments."""
    return "\n".join(re.findall("--.*", f"{PLAN_SQL_HEADING}\n{text}"))


#: Of a run that ends early some steps are left out.
WHOLE = [name for name in CASES if not re.search("nothing|one round|ends|alone|stops", name)]


@pytest.mark.parametrize("case", WHOLE)
def test_what_is_shown_is_what_a_run_executes(case):
    """In the same order, with the same values: no list stays behind the run that it is beside."""
    plan, _, executed = seeded_on_duckdb(case)
    sections = dict(draws_of(plan.price))
    # These runs find much. What released nothing may end a run; what is conditional may be absent.
    much = (asked for title, asked in sections.items() if "if little" not in title)
    left = iter([step for asked in much for step in asked])
    for name, parameters in executed:
        known = next((known for step, known in left if step == name), None)
        assert known is not None, f"{name} is executed and not shown there"
        for parameter, value in parameters.items():
            if parameter in known:
                found = value.value if isinstance(value, Lookup) else value
                assert known[parameter] == found, parameter
            assert parameter in known or f"${parameter}" in _comments(query(name))
    always = {step for title, asked in sections.items() if " if " not in title for step, _ in asked}
    steps = {step for step in always if " " not in step and step != "gather_texts"}
    assert steps <= {name for name, _ in executed}


@pytest.mark.parametrize("case", CASES)
def test_the_queries_of_a_run_are_free_and_leave_nothing_open_without_a_word(case):
    """The files are not there: nothing is read. What stays a parameter has its comment."""
    text = CASES[case].plan(NOWHERE).sql()
    without_comments = re.sub("--.*", "", text)
    opened = set(re.findall(r"\$([a-z_]\w*)", without_comments))
    assert opened <= set(re.findall(r"\$([a-z_]\w*)", _comments(text)))
    assert "nowhere/*.parquet" in text


def test_a_text_cannot_leave_its_literal_nor_a_comment():
    spelled = with_values("SELECT $what -- of $what, $n", {"what": "it's\nDROP", "n": 3})
    assert spelled == "SELECT 'it''s\nDROP' -- of $what, 3"


# The threshold of a level in the specification


@given(
    below=st.sets(st.tuples(*[st.sampled_from("abcd")] * 2), max_size=12),
    sigma=st.integers(500, 4000),
    spurious=st.sampled_from([0.001, 0.01, 0.5]),
)
@settings(max_examples=20)
def test_the_threshold_of_a_level_follows_from_what_is_released_below(below, sigma, spurious):
    words = sorted({word for gram in below for word in gram} | {"e"})
    level = PrunedLevel(3, 10, 10, sigma, spurious)
    ladder = first_ladder(words)
    keys = sorted((words.index(one) << 32) | words.index(other) for one, other in below)
    valid = len(ladder.with_next(np.array(keys, np.int64)).valid_grams())
    con = duckdb.connect()
    con.execute(specified("nothing_yet"))
    for gram in [*below, *((word,) for word in words)]:
        con.execute("INSERT INTO released VALUES (?, ?, 0)", [len(gram), list(gram)])
    asked = {"level": 3, "spurious": spurious}
    ((probability,),) = con.execute(specified("dpne_threshold"), asked).fetchall()
    threshold = rounded_gaussian(sigma).smallest_with_tail_at_most(Fraction(probability))
    assert threshold == spurious_threshold(level, len(below), valid)


# Who asks


def test_the_command_line_shows_the_queries_and_spends_nothing(tmp_path, ledger):
    corpus_of(tmp_path, [(1, ["a"])])
    asked = ["items", str(tmp_path / "corpus.parquet"), "--user", "who", "--text", "what",
             "--epsilon", "1", "--delta", "1e-6"]  # fmt: skip
    runner = click.testing.CliRunner()
    shown = runner.invoke(cli, [*asked, "--sql"])
    assert "-- sql/set_union/words_of_round.sql" in shown.output
    assert not ledger.runs()
