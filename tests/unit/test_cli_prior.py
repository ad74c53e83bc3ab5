"""`--prior`: the same on the command line as in Python (tests/priors/test_asked.py)."""

from __future__ import annotations

import polars as pl
import pytest

from dphh import Release
from dphh.release import MANIFEST


@pytest.fixture
def private(written):
    return written([(user, "good morning") for user in range(300)])


@pytest.fixture
def news(tmp_path):
    path = tmp_path / "news.txt.parquet"
    pl.DataFrame({"body": ["good morning all", "good you all"]}).write_parquet(path)
    return path


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "words.parquet"
    pl.DataFrame({"item": ["good", "morning"], "count": [9, 5]}).write_parquet(path)
    return path


def test_a_prior_is_a_file_a_column_of_text_or_a_release(
    dphh, private, table, news, ledger, tmp_path
):
    asked = (
        *("ngrams", private.where[0], "--user", "who", "--text", "what", "--max-n", "2"),
        *("--epsilon", "4", "--delta", "1e-6"),
    )
    code, _, said = dphh(*asked, "--prior", table)
    assert code == 2
    assert "--prior-is-public" in said
    assert ledger.runs() == []
    code, out, _ = dphh(*asked, "--prior", table, "--prior-is-public", "--plan", "--details")
    assert code == 0
    assert "does not cover the prior's text" in " ".join(out.split())
    text = ("--prior", news, "--prior-text", "body", "--prior-is-public")
    code, _, said = dphh(*asked, *text, "--out", tmp_path / "out")
    assert code == 0, said
    assert (tmp_path / "out" / MANIFEST).is_file()
    assert Release.load(tmp_path / "out").manifest["prior"]["words"] == 2
    code, out, _ = dphh(*asked, "--prior", tmp_path / "out", "--plan", "--details")
    assert code == 0
    assert "an earlier release" in out
