"""The engines give one and the same release, integer for integer: nothing is left to them.

Under a test's randomness a release depends on the corpus alone, and so does which items a user
keeps who is over the cap.
"""

import unicodedata
from random import Random

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dphh import Corpus, items
from dphh.engines import ENGINES, engine_of
from dphh.engines.polars import host as polars_host
from dphh.reader import rows as duckdb_rows
from dphh.testing import SeededRandomness
from dphh.udfs.arrays import one_array
from dphh.udfs.kernel import contributions, gathering, positions, spilled_texts
from dphh.udfs.rules import counts
from tests.engines.levels import few, histogram
from tests.engines.recorded_runs import CASES, SEED, corpus_of, seeded_on_duckdb

OTHERS = pytest.mark.parametrize("other", [name for name in ENGINES if name != "duckdb"])


def told_of(release, engine):
    assert release.manifest["engine"]["name"] == engine
    table = release.to_arrow().to_pylist()
    same = {
        key: release.manifest.get(key)
        for key in ("parameters", "levels", "privacy", "events", "finds", "counting")
    }
    return sorted(table, key=str), same


@pytest.mark.on_spark(every=True)
@OTHERS
@pytest.mark.parametrize("case", CASES)
def test_a_seeds_release_is_the_same_on_every_engine(tmp_path, other, case):
    plan, release, _ = seeded_on_duckdb(case)
    table, manifest = told_of(release, "duckdb")
    assert table or "nothing" in case
    if "more finds" in case:
        assert manifest["counting"]["within_purses"] > plan.price.counting.within_purses
    again = CASES[case].plan(corpus_of(tmp_path, CASES[case].rows))
    released = again.run(engine=other, randomness=SeededRandomness(SEED))
    assert told_of(released, other) == (table, manifest)


# How users are worked through

#: One of each way.
WORKED = (
    "adaptive", "items, counted", "forecast, three rounds of words", "dpne",
    "forecast with a prior", "counts",
)  # fmt: skip


@pytest.mark.parametrize("case", WORKED)
def test_pieces_rows_and_threads_change_no_release(tmp_path, case, monkeypatch):
    """Users are worked through some at a time. Here few are, some users are longer than a piece,
    and rows come in another order, so that words are numbered in another."""
    plan, rows = CASES[case].plan, CASES[case].rows[::5]
    asked = plan(corpus_of(tmp_path, rows))
    whole = asked.run(engine="duckdb", randomness=SeededRandomness(SEED)).to_arrow()
    assert len(whole)
    for module, name, size in (
        (contributions, "PIECE_SIZE", 4), (positions, "PIECE_SIZE", 4),
        (gathering, "POSITIONS_PER_ROW", 3),
        (gathering, "TEXTS_AT_ONCE", 64), (gathering, "BATCH_BYTES", 512),
        (spilled_texts, "POSITIONS_AT_ONCE", 256),
    ):  # fmt: skip
        assert getattr(module, name) > size
        monkeypatch.setattr(module, name, size)
    monkeypatch.setattr(duckdb_rows, "TEXTS_MEMORY_SHARE", 0)  # all texts go to files
    asked = plan(corpus_of(tmp_path, Random(5).sample(rows, len(rows))))
    release = asked.run(engine="duckdb", threads=4, randomness=SeededRandomness(SEED))
    assert release.to_arrow() == whole
    # Polars would hand over as many rows as a thread gets.
    given = []
    monkeypatch.setattr(polars_host, "ROWS_OF_A_CALL", 8)
    for rules in (contributions, counts):
        monkeypatch.setattr(
            rules, "one_array", lambda column: given.append(len(column)) or one_array(column)
        )
    assert asked.run(engine="polars", randomness=SeededRandomness(SEED)).to_arrow() == whole
    assert max(given) == 8


# Text. Characters that one of two Unicodes does not know yet may be classed or folded differently.

READINGS = {
    "all": {"lower": True, "split": "unicode", "strip": "_", "keep": ".{2,}", "drop": ".*a"},
    "cut units": {"as_": "whole", "unit": 3, "max_token_length": 7},
    "units of nothing": {"as_": "whole", "unit": 2, "max_token_length": 5, "too_long": "drop"},
}
ODD = "aAbzéÉßñΣσςİıǅ日本_'’-.,;?!1٣\0\t\n\v\f\r\x85\xa0\u1680\u2028\u3000 🙂\u200d\u0301Ⅷ½"
TEXTS = st.text(
    st.one_of(
        st.sampled_from(ODD),
        st.characters(codec="utf-8").filter(lambda c: unicodedata.category(c) != "Cn"),
    ),
    max_size=12,
)


@pytest.mark.parametrize(
    ("other", "reading"),
    [("polars", "all"), ("polars", "cut units"), *(("spark", reading) for reading in READINGS)],
)
@given(texts=st.lists(TEXTS, min_size=15, max_size=60))
@example(texts=["ΑΣ ΑΣΑ İI Σ", "Ⅷ½ e\u0301A", " ", ODD])
@few(2)  # of many texts each, as two instances of engines cost more
def test_engines_read_the_same_tokens(no_noise, other, reading, texts):
    """DuckDB makes tokens for Polars too."""
    options = READINGS[reading]
    corpus = Corpus(pl.DataFrame({"who": range(len(texts)), "what": texts}),
                    user="who", **({"text": "what"} | options))  # fmt: skip
    both = [histogram(name, corpus, no_noise, 100) for name in ("duckdb", other)]
    assert both[0] == both[1]


# Which engine runs


def test_what_the_corpus_is_chooses_the_engine(written):
    table = pl.DataFrame({"who": [1], "what": [["a"]]})
    asked = {"user": "who", "text": "what", "as_": "list"}
    for source, engine in (
        (table, "polars"),
        (table.lazy(), "polars"),
        (table.to_arrow(), "duckdb"),
    ):
        corpus = Corpus(source, **asked)
        assert engine_of(corpus) == engine
        release = items(corpus, epsilon=1, delta=1e-7).run(again=True)
        assert release.manifest["engine"]["name"] == engine
    assert engine_of(written([(1, "a")])) == "duckdb"
