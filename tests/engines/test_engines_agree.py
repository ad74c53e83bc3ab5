"""The engines give one and the same release, integer for integer: nothing is left to them.

Under a test's randomness a release depends on the corpus alone, and so does which items a user
keeps who is over the cap.
"""

from __future__ import annotations

import unicodedata

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dphh import Corpus, counts, items, ldp_trie, ngrams, trie
from dphh.engines import ENGINES, engine_of
from dphh.engines.duckdb import rows as duckdb_rows
from dphh.testing import SeededRandomness
from dphh.udfs.kernel import contributions, gathering, positions, spilled_texts
from dphh.udfs.text import vocabulary
from tests.engines.levels import few, histogram

OTHERS = pytest.mark.parametrize("other", [name for name in ENGINES if name != "duckdb"])
#: Words that separators, escapes and orders could confuse.
WORDS = [*"abéÉ$Σ\0\x1f\\", "日本", "a\x1fb", "b'", "", "zz", "naïve"]


@pytest.fixture(scope="module")
def rows():
    """Many users with a few lists each, of words that some share; some users have odd rows."""
    rng = np.random.default_rng(7)
    made = []
    for user in range(3000):
        for _ in range(rng.integers(1, 4)):
            size = rng.integers(0, 6)
            made.append((user, [WORDS[i] for i in rng.zipf(1.6, size) % len(WORDS)]))
    return made


def frame(rows):
    return pl.DataFrame({"who": [u for u, _ in rows], "what": [list(t) for _, t in rows]})


LOCAL = {
    "local_epsilon": 6, "delta": 1e-6, "users_per_level": 700, "contributions": 2, "max_length": 2,
    "keep": 12, "passes": 3, "character_set": [word for word in WORDS if word not in ("", "zz")],
    "pad": True,
}  # fmt: skip
#: A list with some of the words, words that nobody holds, and pairs that the text has.
PUBLIC = pl.DataFrame(
    {
        "item": [["b"], ["é"], ["\x1f"], ["zz"], *([f"absent{i}"] for i in range(90)), ["b", "é"]],
        "count": [900, 400, 30, 5, *range(90, 0, -1), 40],
    }
)


def with_prior(corpus, **asked):
    return ngrams(corpus, epsilon=8, delta=1e-3, prior=PUBLIC, prior_is_public=True, **asked)


VERBS = {
    "items": lambda c: items(c, epsilon=2, delta=1e-4),
    "items adaptive": lambda c: items(c, epsilon=2, delta=1e-4, method="adaptive"),
    "items adaptive over the cap": lambda c: items(
        c, epsilon=8, delta=1e-4, max_items=2, method="adaptive"
    ),
    "items auto, one round": lambda c: items(c, epsilon=0.5, delta=1e-4, method="auto"),
    "items auto, rounds over the cap": lambda c: items(
        c, epsilon=80, delta=1e-2, max_items=2, method="auto"
    ),
    "items sips": lambda c: items(c, epsilon=2, delta=1e-4, method="sips"),
    "items over the cap": lambda c: items(c, epsilon=4, delta=1e-4, max_items=2),
    "items sips over the cap": lambda c: items(
        c, epsilon=8, delta=1e-4, max_items=2, method="sips"
    ),
    "ngrams": lambda c: ngrams(c, max_n=4, epsilon=8, delta=1e-3),
    "ngrams dpne over the cap": lambda c: ngrams(
        c, max_n=4, epsilon=8, delta=1e-3, max_items=2, method="dpne"
    ),
    "ngrams dpne": lambda c: ngrams(c, max_n=4, epsilon=8, delta=1e-3, spurious=0.5, method="dpne"),
    "ngrams single": lambda c: ngrams(
        c, max_n=4, epsilon=8, delta=1e-3, spurious=0.5, pruning="single", method="dpne"
    ),
    "ngrams with a prior": lambda c: with_prior(c, max_n=3, spurious=0.5),
    "ngrams with a prior over the cap": lambda c: with_prior(c, max_n=1, max_items=2),
    "trie drawn": lambda c: trie(c, epsilon=4, delta=1e-4, max_length=5),
    "trie most frequent": lambda c: trie(
        c, epsilon=4, delta=1e-4, max_length=5, choice="most-frequent"
    ),
    "trie paper": lambda c: trie(
        c, epsilon=8, delta=1e-2, max_length=4, accounting="paper", users=5000
    ),
    "items counted": lambda c: items(c, epsilon=8, delta=1e-4, method="sips", counts=0.3),
    "dpne counted": lambda c: ngrams(c, max_n=2, epsilon=8, delta=1e-3, method="dpne", counts=0.3),
    "trie counted": lambda c: trie(
        c, epsilon=8, delta=1e-3, max_length=4, counts=0.3, max_items=20
    ),
    "counts": lambda c: counts(
        c, of=["a", "b", "é", "日本", "b a", "a b", "zz"], max_held=10, epsilon=8, delta=1e-4
    ),
    "ldp_trie": lambda c: ldp_trie(c, **LOCAL),
    "ldp_trie greedy": lambda c: ldp_trie(c, sampling="greedy", **LOCAL),
}


#: Numbers and names become keys alike under every verb: one of each way to weigh and to draw has
#: both.
OF_NAMES = [
    "items adaptive over the cap",
    "ngrams dpne over the cap",
    "ngrams with a prior",
    "trie drawn",
    "trie paper",
    "ldp_trie greedy",
]
ASKED = [*((verb, "numbers") for verb in VERBS), *((verb, "names") for verb in OF_NAMES)]


def released(plan, engine):
    release = plan.run(engine=engine, randomness=SeededRandomness(11))
    assert release.manifest["engine"]["name"] == engine
    table = release.to_arrow().to_pylist()
    same = {
        key: release.manifest.get(key)
        for key in ("parameters", "levels", "privacy", "events", "finds")
    }
    return sorted(table, key=str), same


@pytest.mark.on_spark(every=True, kind="numbers")
@OTHERS
@pytest.mark.parametrize(("verb", "kind"), ASKED)
def test_a_seeds_release_is_the_same_on_every_engine(tmp_path, rows, other, verb, kind):
    table = frame(rows)
    if kind == "names":
        table = table.with_columns(who="user " + pl.col("who").cast(pl.String))
    table.write_parquet(tmp_path / "corpus.parquet")
    corpus = Corpus(tmp_path / "corpus.parquet", user="who", text="what", as_="list")
    plan = VERBS[verb](corpus)
    table, manifest = released(plan, "duckdb")
    assert len(table) > 5
    assert released(plan, other) == (table, manifest)


# How users are worked through

#: One of each way.
WORKED = {
    "items adaptive": VERBS["items adaptive over the cap"],
    "items counted": VERBS["items counted"],
    "ngrams": VERBS["ngrams"],
    "ngrams dpne": VERBS["ngrams dpne over the cap"],
    "ngrams with a prior": VERBS["ngrams with a prior"],
    "counts": VERBS["counts"],
}


@pytest.mark.parametrize("verb", WORKED)
def test_pieces_rows_and_threads_change_no_release(verb, rows, monkeypatch):
    """Users are worked through some at a time. Here few are, some users are longer than a piece,
    and rows come in another order, so that words are numbered in another."""
    read = {"user": "who", "text": "what", "as_": "list"}
    plan, table = WORKED[verb](Corpus(frame(rows), **read)), frame(rows)
    whole = plan.run(engine="duckdb", randomness=SeededRandomness(11)).to_arrow()
    for module, name, size in (
        (contributions, "PIECE", 16), (positions, "PIECE", 16), (vocabulary, "NUMBERED", 32),
        (gathering, "ROW", 8), (gathering, "STRETCH", 16), (gathering, "BYTES", 64),
        (spilled_texts, "POSITIONS", 64),
    ):  # fmt: skip
        assert getattr(module, name) > size
        monkeypatch.setattr(module, name, size)
    monkeypatch.setattr(duckdb_rows, "SHARE", 2**62)  # all texts go to files
    plan = WORKED[verb](Corpus(table.sample(fraction=1, shuffle=True, seed=5), **read))
    for threads in (1, 4):
        release = plan.run(engine="duckdb", threads=threads, randomness=SeededRandomness(11))
        assert release.to_arrow() == whole


# Text. Characters that one of two Unicodes does not know yet may be classed or folded differently.

READINGS = {
    "words": {},
    "lower": {"lower": True},
    "unicode": {"split": "unicode"},
    "characters": {"as_": "characters"},
    "whole": {"as_": "whole"},
    "units": {"as_": "whole", "unit": 3},
    "cut units": {"as_": "whole", "unit": 3, "max_token_length": 7},
    "long units": {"as_": "whole", "unit": 500, "max_token_length": 4},
    "units of nothing": {"as_": "whole", "unit": 2, "max_token_length": 5, "too_long": "drop"},
    "strip": {"strip": "'’é._-\\]^"},
    "keep": {"keep": r"[\p{L}\p{N}_'-]{2,}"},
    "drop": {"drop": r".*[0-9]|é.?"},
    "short": {"max_token_length": 2},
    "drop long": {"max_token_length": 2, "too_long": "drop"},
    "all": {"lower": True, "split": "unicode", "strip": "_", "keep": ".{2,}", "drop": ".*a"},
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
    table = frame([(1, ["a"])])
    asked = {"user": "who", "text": "what", "as_": "list"}
    for source, engine in (
        (table, "polars"),
        (table.lazy(), "polars"),
        (table.to_arrow(), "duckdb"),
    ):
        corpus = Corpus(source, **asked)
        assert engine_of(corpus) == engine
        release = items(corpus, epsilon=1, delta=1e-7).run()
        assert release.manifest["engine"]["name"] == engine
    assert engine_of(written([(1, "a")])) == "duckdb"
