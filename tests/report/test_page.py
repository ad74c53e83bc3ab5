"""The page for people: one file, no script, no network, and no promise but the made."""

import math
import re

import pytest
from click.testing import CliRunner

from dphh import UsageError, items, ngrams
from dphh.cli import cli
from dphh.report.page import page_of
from dphh.report.sentences import promise_in_words
from tests.report import made
from tests.report.made import HOSTILE, PRIVACY, Seen, ladder, within_country


@pytest.mark.parametrize("release", [ladder(), made.items(()), made.trie(), made.items(HOSTILE)])
def test_a_page_runs_nothing_and_asks_no_network(release):
    page = page_of(release)
    seen = Seen(page)
    assert {"html", "main", "h1", "details"} <= set(seen.tags)
    assert not {"script", "img", "link", "iframe", "object", "svg"} & set(seen.tags)
    assert {name for name, _ in seen.attributes} <= {
        "lang", "charset", "http-equiv", "content", "name", "class", "style", "scope", "open",
    }  # fmt: skip
    for name, value in seen.attributes:
        assert name != "style" or re.fullmatch(r"(;?(width|left):[0-9.]+%)+", str(value))
    assert "://" not in page and "url(" not in page and "@import" not in page
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert "default-src 'none'" in policy and "script" not in policy


def test_hostile_values_stay_text_wherever_they_are():
    release = within_country({text: {"<b>": (9, 4, 14)} for text in HOSTILE}, ["<b>", "\x07"])
    release.manifest["parameters"] |= {"by": "<i>", "content": {"where": "a < '<u>'"}}
    release.manifest.update(randomness="<s>", is_test=True, run_id="<hr>")
    for page in (page_of(release, title="\u202e</title><script>"), release._repr_html_()):
        assert not set(page) & set("\x1b\x07\0\u202e\r\uffff")
        seen = Seen(page)
        assert not {"script", "u", "s", "hr"} & set(seen.tags)
        shown = ["␛[31mred␇", "line␊break␍"]
        for text in ("<script>alert(1)</script>", "{{ 7 * 7 }}", "<b>", "<s>", *shown):
            assert text in seen.text
        assert "x" * 301 not in seen.text
    assert "⟨U+202E⟩</title><script>" in Seen(page_of(release, title="\u202e</title><script>")).text


def test_the_first_rows_of_a_table_are_open_and_the_rest_is_folded(monkeypatch):
    release = made.items([f"item {n}" for n in range(30)])
    opened, _, folded = page_of(release).partition("<details>")
    assert (opened.count('scope="row"'), folded.count('scope="row"')) == (25, 5)
    assert "and 5 more" in folded
    assert page_of(release, top=3).partition("<details>")[0].count('scope="row"') == 3
    with pytest.raises(UsageError, match="top"):
        page_of(release, top=0)
    monkeypatch.setattr("dphh.report.page.MOST_FOLDED_ROWS", 3)
    assert "and 2 more in the release's table" in Seen(page_of(release)).text


def test_the_ledgers_line_is_of_the_accounts_that_paid(ledger, written):
    corpus = written([(who, "hello") for who in range(90)])
    ledger.add("survey", corpus, 2.0, 1e-6)
    release = items(corpus, epsilon=1.0, delta=1e-8).run(ledger=ledger)
    top = Seen(page_of(release, ledger=ledger)).text.partition("What was found")[0]
    assert "survey: " in top and "(2, 1e-06), whatever is asked" in top
    assert "does not know this run" in page_of(ladder(), ledger=ledger)


def test_the_factor_is_never_rounded_down():
    for epsilon in (0.001, 0.1, 0.5, 1.0, 2.0, 2.5, 8.0, 15.0):
        said = promise_in_words(made.items(privacy={**PRIVACY, "epsilon": epsilon}).privacy)
        factor = float(re.findall(r"at most ([0-9.,]+) times", said)[0].replace(",", ""))
        assert math.exp(epsilon) <= factor <= math.exp(epsilon) * 1.001


def test_a_saved_release_becomes_a_page(written, ledger, tmp_path):
    corpus = written([(who, "see you later") for who in range(900)])
    ngrams(corpus, max_n=3, epsilon=4.0, delta=1e-6).run(ledger=ledger, out=tmp_path / "out")
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        cli,
        [
            *("report", str(tmp_path / "out"), "-o", str(page), "--title", "Farewells"),
            *("--csv", str(tmp_path / "table.csv"), "--top", "2"),
        ],
    )
    assert done.exit_code == 0, done.output
    assert "Farewells" in page.read_text(encoding="utf-8")
    assert "see you later" in (tmp_path / "table.csv").read_text(encoding="utf-8")
    shown = CliRunner().invoke(cli, ["report", str(tmp_path / "out")])
    assert shown.exit_code == 0 and "see you later" in shown.output
    with pytest.raises(UsageError, match="is a folder; give a file"):
        made.items().report(tmp_path)
    with pytest.raises(UsageError, match="could not be written"):
        made.items().report(tmp_path / "no" / "page.html")
