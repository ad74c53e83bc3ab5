"""Options that no verb has are told in dphh's words, with the nearest name."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any

import numpy as np
import polars as pl
import pytest

import dphh
from dphh import Corpus, CorpusError
from dphh.errors import Notice

DPHH: Any = dphh  # type checkers find these too
ITEMS: Any = dphh.items
TRIE: Any = dphh.trie
NGRAMS: Any = dphh.ngrams
COUNTS: Any = dphh.counts
CORPUS: Any = dphh.Corpus
COMPARE: Any = dphh.compare


def test_numbers_of_numpy_are_numbers():
    asked = NGRAMS(max_n=np.int64(2), epsilon=np.float64(1), delta=np.float32(2**-20))
    assert asked == NGRAMS(max_n=2, epsilon=1.0, delta=2**-20)


def test_a_notice_names_the_line_that_asked(tmp_path):
    frame = pl.DataFrame({"who": [1], "what": ["a"]})
    plan = frame.dphh.items(user="who", text="what", epsilon=1.0, delta=1e-8)
    with pytest.warns(Notice) as told:
        plan.run(ledger=tmp_path / "ledger.sqlite")
    assert {each.filename for each in told} == {__file__}


@pytest.mark.parametrize("file", ["a.parquet", "a.csv", "a.jsonl"])
def test_a_sentence_begins_with_a_capital_after_a_question_alone(tmp_path, file):
    path = tmp_path / file
    frame = pl.DataFrame({name: ["x"] for name in ("whom", "text")})
    write = {"parquet": "write_parquet", "csv": "write_csv", "jsonl": "write_ndjson"}
    getattr(frame, write[path.suffix[1:]])(path)
    for user, where in (("who", None), ("elsewhere", None), ("whom", "whom = DE")):
        corpus = Corpus(str(path), user=user, text="text", where=where)
        with pytest.raises(CorpusError) as told:
            dphh.items(corpus, epsilon=1.0, delta=1e-8).run(ledger=tmp_path / "ledger.sqlite")
        said = str(told.value)
        assert "; did you mean 'whom'? " in said if user == "who" else "?" not in said
        assert not re.search(r"; [A-Z]|\? [a-z]", said), said
        assert ("a text needs single quotes: 'DE'" in said) == (where is not None)


def test_a_frames_verbs_complete_their_options():
    frame = pl.DataFrame({"who": [1], "what": ["a"]})
    options = signature(frame.dphh.ngrams).parameters
    assert {"user", "text", "max_n", "epsilon", "delta", "max_items"} <= options.keys()
    assert options["max_items"].default == signature(dphh.ngrams).parameters["max_items"].default
