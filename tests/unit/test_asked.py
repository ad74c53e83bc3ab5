"""Options that no verb has are told in dphh's words, with the nearest name."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import dphh
from dphh import Corpus, CorpusError, UsageError
from dphh.cli import cli
from dphh.errors import Notice
from tests.report.made import items

DPHH: Any = dphh  # type checkers find these too
ITEMS: Any = dphh.items
TRIE: Any = dphh.trie
NGRAMS: Any = dphh.ngrams
COUNTS: Any = dphh.counts
CORPUS: Any = dphh.Corpus
COMPARE: Any = dphh.compare


def test_an_unknown_option_is_told_with_the_nearest_name():
    with pytest.raises(UsageError, match=r"^epsilom: items has no such option; did you mean 'eps"):
        ITEMS(epsilom=1.0, delta=1e-8)
    with pytest.raises(UsageError, match=r"^zzz: trie has no .*; the options are max_length"):
        TRIE(zzz=1)


def test_what_is_wanting_is_told():
    with pytest.raises(UsageError, match=r"^max_n, delta: ngrams needs each of them; pass max_n="):
        NGRAMS(epsilon=1.0)
    with pytest.raises(UsageError, match=r"^user: Corpus needs it; pass user=$"):
        CORPUS("reviews.parquet", text="body")


def test_a_value_without_a_name_is_told_which_has_none():
    with pytest.raises(
        UsageError, match=r"^ngrams: found 3 .* only corpus may .* max_n=, .* epsilon="
    ):
        NGRAMS(CORPUS("x.parquet", user="u", text="t"), 2, 1.0)
    with pytest.raises(UsageError, match=r"^Corpus: found 2 .* only source may .*: user="):
        CORPUS("reviews.parquet", "author", text="body")


def test_every_door_tells_the_nearest_name(tmp_path):
    corpus = CORPUS("x.parquet", user="u", text="t")
    plan: Any = dphh.items(corpus, epsilon=1.0, delta=1e-8)
    ledger: Any = dphh.Ledger(tmp_path / "ledger.sqlite")
    release: Any = items()
    for call, said in [
        (lambda: CORPUS("x.parquet", usr="u", text="t"), "usr: Corpus .* mean 'user'"),
        (lambda: plan.run(egnine="polars"), "egnine: run .* mean 'engine'"),
        (lambda: DPHH.check(corpus, egnine="polars"), "egnine: check .* mean 'engine'"),
        (lambda: COMPARE("items", max_itms=[1, 2]), "max_itms: items .* mean 'max_items'"),
        (lambda: DPHH.connect(leger="x"), "leger: connect .* mean 'ledger'"),
        (lambda: ledger.add("x", corpus, epsilom=1, delta=0), "epsilom: Accounts.add .* 'epsilon'"),
        (lambda: release.phrases(maxmal=True), "maxmal: Release.phrases .* mean 'maximal'"),
        (lambda: release.report("x.html", count=release), "count: Release.report .* mean 'counts'"),
        (lambda: release.plot(tp=3), "tp: Release.plot .* mean 'top'"),
    ]:
        with pytest.raises(UsageError, match=f"^{said}"):
            call()


def test_numbers_of_numpy_are_numbers():
    asked = NGRAMS(max_n=np.int64(2), epsilon=np.float64(1), delta=np.float32(2**-20))
    assert asked == NGRAMS(max_n=2, epsilon=1.0, delta=2**-20)


def test_what_is_of_another_kind_is_told():
    corpus = CORPUS("x.parquet", user="u", text="t")
    plan: Any = dphh.items(corpus, epsilon=1.0, delta=1e-8)
    for call, said in [
        (lambda: CORPUS("x.parquet", user="u", text=3), "text or item: found 3"),
        (lambda: CORPUS("x.parquet", user="u", text="t", lower="yes"), "lower: found 'yes'"),
        (lambda: CORPUS("x.parquet", user="u", text="t", strip=None), "strip: found None"),
        (lambda: CORPUS("x.parquet", user="u", text="t", account=3), "account: found 3"),
        (lambda: plan.run(corpus="x.parquet"), "corpus: found a str"),
        (lambda: plan.run(run_id=7), "run_id: "),
        (lambda: plan.run(threads="2"), "threads: found '2'"),
        (lambda: plan.run(progress=True), "progress: found True"),
        (lambda: plan.run(randomness=5), "randomness: is for tests"),
        (lambda: plan.run(ledger=3), "ledger: found a int"),
        (lambda: dphh.Ledger().add("x", "x.parquet", 1, 0), "source: found a str"),
        (lambda: COUNTS(corpus, of=plan, epsilon=1, delta=1e-8), "of: found a Plan"),
    ]:
        with pytest.raises(UsageError, match=f"^{said}"):
            call()


def test_a_notice_names_the_line_that_asked(tmp_path):
    frame = pl.DataFrame({"who": [1], "what": ["a"]})
    plan = frame.dphh.items(user="who", text="what", epsilon=1.0, delta=1e-8)
    with pytest.warns(Notice) as told:
        plan.run(ledger=tmp_path / "ledger.sqlite")
    assert {each.filename for each in told} == {__file__}


def test_commands_are_told_with_the_nearest_name():
    said = CliRunner().invoke(cli, ["ngram", "x.parquet"]).output
    assert "No such command 'ngram'. Did you mean 'ngrams'?" in said


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


def test_of_frames_too():
    frame = pl.DataFrame({"who": [1], "what": ["a"]})
    with pytest.raises(UsageError, match=r"^txt: items has no such option; did you mean 'text'"):
        frame.dphh.items(user="who", txt="what", epsilon=1.0, delta=1e-8)
    with pytest.raises(
        UsageError, match=r"^tokens: items has no such option; name .* text=, .* as_='list'"
    ):
        frame.dphh.items(user="who", tokens="what", epsilon=1.0, delta=1e-8)
    with pytest.raises(UsageError, match=r"^source: items has no such option"):
        frame.dphh.items(source="x", user="who", epsilon=1.0, delta=1e-8)
    assert frame.dphh.items(user="who", text="what", epsilon=1.0, delta=1e-8).corpus is not None


def test_a_frames_verbs_complete_their_options():
    frame = pl.DataFrame({"who": [1], "what": ["a"]})
    options = signature(frame.dphh.ngrams).parameters
    assert {"user", "text", "max_n", "epsilon", "delta", "max_items"} <= options.keys()
    assert options["max_items"].default == signature(dphh.ngrams).parameters["max_items"].default
