"""Accounts are named by what they are, and what was named wrong can be put right until it pays."""

from __future__ import annotations

import polars as pl
import pytest
from click.testing import CliRunner

import dphh
from dphh import Corpus, CorpusError, UsageError
from dphh.cli import cli
from dphh.ledger.corpora import source_of

ROWS = [(person, "hello there") for person in range(300)]


def plan(corpus):
    return dphh.items(corpus, epsilon=1.0, delta=1e-6, max_items=4)


def frame():
    return pl.DataFrame(ROWS, schema=["who", "what"], orient="row")


def test_an_account_that_never_paid_can_be_put_right(written, ledger):
    corpus = written(ROWS)
    wrong = source_of(Corpus(*corpus.where, user="what", text="what"))
    ledger.add("survey", wrong, 1.0, 1e-6)
    assert ledger.rename("survey", "study").name == "study"
    with pytest.raises(UsageError, match="no account 'survey'"):
        ledger.remove("survey")
    ledger.remove("study")
    ledger.add("survey", source_of(corpus), 5.0, 1e-4)
    plan(corpus).run(ledger=ledger)
    for spend_again in (lambda: ledger.remove("survey"), lambda: ledger.rename("survey", "x")):
        with pytest.raises(UsageError, match="was charged 1 times"):
            spend_again()
    assert ledger.status("survey").runs == 1


def test_a_wrong_column_is_told_when_it_is_named(written, own_ledger):
    (path,) = written(ROWS).where

    def add(column, *more):
        asked = ["ledger", "add", "survey", path, "--user", "who", "--text", column]
        return CliRunner().invoke(cli, [*asked, "--epsilon", "1", "--delta", "1e-6", *more])

    assert add("waht").exit_code != 0
    assert dphh.Ledger(own_ledger).accounts() == []
    assert add("waht", "--unseen").exit_code == 0
    renamed = CliRunner().invoke(cli, ["ledger", "rename", "survey", "old"])
    assert "old" in renamed.output
    assert CliRunner().invoke(cli, ["ledger", "remove", "old"]).exit_code == 0
    assert add("what").exit_code == 0


def test_in_python_too(written, ledger, tmp_path):
    (path,) = written(ROWS).where
    for user, text, said in [
        ("hwo", "what", "user: the corpus has no column 'hwo'; did you mean 'who'"),
        ("who", "waht", "text or item: .* did you mean 'what'"),
    ]:
        with pytest.raises(CorpusError, match=f"^{said}.* Nothing was added"):
            ledger.add("survey", Corpus(path, user=user, text=text), 1.0, 1e-6)
    assert ledger.accounts() == []
    later = Corpus(tmp_path / "later" / "*.parquet", user="hwo", text="what")
    ledger.add("later", later, 1.0, 1e-6)
    (tmp_path / "kept" / "who=7").mkdir(parents=True)
    pl.DataFrame({"what": ["hello"]}).write_parquet(tmp_path / "kept" / "who=7" / "a.parquet")
    ledger.add("kept", Corpus(tmp_path / "kept", user="who", text="what"), 1.0, 1e-6)


def test_a_frames_account_is_named_by_what_it_is(ledger):
    plan(Corpus(frame(), user="who", text="what")).run(ledger=ledger)
    other = frame().rename({"what": "said"})
    plan(Corpus(other, user="who", text="said")).run(ledger=ledger)
    labels = [account.label for account in ledger.accounts()]
    assert labels == ["polars:DataFrame(who, what)", "polars:DataFrame(who, said)"]
