"""The page for people: one file, no network, and no promise but the one that was made."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from html.parser import HTMLParser

import polars as pl
import pytest
from click.testing import CliRunner

import dphh
from dphh import Corpus, UsageError
from dphh.cli import cli
from dphh.evaluation import ExactCounts
from dphh.ledger import Request, source_of
from dphh.privacy.events import GaussianEvent
from dphh.privacy.gaussian import gaussian_sigma
from dphh.report.page import page_of
from dphh.report.promise import guessing, in_words
from dphh.testing import SeededRandomness
from tests.report.made import PRIVACY, counted, items, ladder, trie
from tests.report.test_chart import HOSTILE


class Seen(HTMLParser):
    """What a browser would make of a page: its tags, their attributes and its text."""

    EMPTY = ("meta", "input", "rect", "line")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("release", [ladder(), items(), items(()), trie(), items(HOSTILE)])
def test_a_page_is_whole_and_asks_no_network(release):
    page = Seen(page_of(release))
    assert {"html", "main", "h1", "details"} <= set(page.tags)
    assert not {"img", "link", "iframe", "object"} & set(page.tags)
    assert not {"src", "href", "style", "onclick", "onerror"} & {
        name for name, _ in page.attributes
    }
    assert "http://" not in page.text.replace("http://www.w3.org/2000/svg", "")


def test_nothing_runs_but_the_pages_own_script():
    page = page_of(items(HOSTILE))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag, source in (("script", "script-src"), ("style", "style-src")):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{source} 'sha256-{digest}'" in policy


def test_hostile_items_stay_text():
    page = page_of(items(HOSTILE), title="\u202e</title><script>")
    assert not set(page) & set("\x1b\x07\0\u202e\r\uffff")
    seen = Seen(page)
    assert seen.tags.count("script") == 1
    assert "<script>alert(1)</script>" in seen.text
    assert "⟨U+202E⟩</title><script>" in seen.text


def test_the_page_says_what_it_shows_and_what_it_does_not():
    text = Seen(page_of(ladder())).text
    assert "5 words and 6 longer phrases" in text
    assert "Noised weights" in text
    assert "What is not here is not thereby absent" in text
    assert "1 is expected at most" in text  # 1% of 5 and of 5, rounded up
    assert "see you later" in text
    assert "2 sequences" in Seen(page_of(trie())).text


def test_a_tests_release_is_not_taken_for_a_private_one():
    made = items()
    made.manifest.update(randomness="a seed", is_test=True)
    assert "<p class='warning'>a seed</p>" in page_of(made)
    made.manifest.update(randomness="NOT a seed", is_test=False)
    assert "<p class='warning'>" not in page_of(made)


def test_people_are_shown_with_what_their_own_release_promises():
    counts = counted({"see": (200, 150, 260)})
    text = Seen(page_of(ladder(), counts=counts)).text
    assert "150–260" in text
    assert "Of the numbers of people" in text
    assert "run-of-counts" in text


def test_the_head_of_a_page_of_two_releases_has_their_total_promise(ledger):
    rows = {"who": range(400), "what": ["a b"] * 400}
    corpus = Corpus(pl.DataFrame(rows), user="who", text="what")
    randomness = SeededRandomness(2)
    words = dphh.items(corpus, epsilon=1, delta=1e-6).run(ledger=ledger, randomness=randomness)
    people = dphh.counts(corpus, of=["a"], epsilon=0.5, delta=1e-9).run(
        ledger=ledger, randomness=randomness
    )
    lead = Seen(page_of(words, counts=people)).text.split("differential", 1)[1]
    promised = re.search(r"people with \(0.5, 1e-09\); together \((.*?), (.*?)\) for who", lead)
    assert promised is not None
    assert 1 < float(promised[1]) < 1.5
    assert float(promised[2]) == pytest.approx(1e-6, rel=0.01)
    assert "together" not in Seen(page_of(words)).text


def test_exact_counts_are_refused():
    with pytest.raises(UsageError, match="exact counts may not"):
        page_of(ladder(), counts=ExactCounts(ladder().table, 3))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no column users, low, high"):
        page_of(ladder(), counts=items())


def test_the_budget_is_of_the_accounts_that_paid(ledger, written, tmp_path):
    source = source_of(written([(1, "a")]))
    ledger.add("survey", source, 2.0, 1e-6)
    other = tmp_path / "other.parquet"
    ledger.add("other-corpus", type(source)("path", (str(other),), "who"), 1.0, 1e-6)
    event = GaussianEvent(gaussian_sigma(1.0, 1e-8))
    ledger.book(Request(source, "items", {}, [event], 1.0, 1e-8), {}, run_id="run-of-items")
    text = Seen(page_of(items(), ledger=ledger)).text
    assert "survey: promised to each user: " in text
    assert "other-corpus" not in text
    assert "does not know this run" in page_of(ladder(), ledger=ledger)


def test_a_long_release_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr("dphh.report.page.MOST_ITEMS", 3)
    text = Seen(page_of(items([f"item {n}" for n in range(10)]))).text
    assert "The first 3 of each length are here; 7 more" in text


# The promise in words


def test_the_best_guess_is_bounded_as_randomised_response_attains_it():
    # Between two outcomes, randomised response at epsilon has exactly e^eps/(1 + e^eps).
    for epsilon in (0.1, 1.0, 3.0):
        percent = float(re.findall(r"probability ([0-9.]+)% at most", guessing(epsilon, 0, ""))[0])
        exact = 100 * math.exp(epsilon) / (1 + math.exp(epsilon))
        assert exact <= percent <= exact + 0.1
    # With delta the reveal-with-probability-delta mechanism adds delta/(1 + e^eps) and no more.
    assert "100% at most" in guessing(1.0, 1.0, "")


def test_the_factor_is_never_rounded_down():
    for epsilon in (0.001, 0.1, 0.5, 1.0, 2.0, 2.5, 8.0, 15.0):
        said = dict(in_words({**PRIVACY, "epsilon": epsilon}))[f"epsilon = {epsilon:.4g}"]
        factor = float(re.findall(r"at most ([0-9.,]+) times", said)[0].replace(",", ""))
        assert math.exp(epsilon) <= factor <= math.exp(epsilon) * 1.001


#: Statements have fields for what they say in words, and the words may be any.
def test_one_direction_is_not_told_as_two():
    privacy = {**PRIVACY, "adjacency": "whoever goes is gone", "both_directions": False}
    said = " ".join(text for _, text in in_words(privacy))
    assert "The other way round nothing is proved" in said
    assert "guess" not in said


def test_of_a_statement_without_the_fields_the_words_tell_nothing():
    privacy = {**PRIVACY, "unit": "a user", "adjacency": "both directions"}
    del privacy["protects"], privacy["both_directions"]
    said = dict(in_words(privacy))["epsilon = 1"]
    assert "one of what is protected" in said
    assert "does not say" in said
    assert "guess" not in said


def test_a_contribution_is_not_told_as_a_person():
    one = {"unit": "a user's contribution", "protects": "contribution"}
    privacy = {**PRIVACY, **one, "epsilon": 8.0, "central_epsilon": 0.3, "user_epsilon": 0.9}
    said = dict(in_words(privacy))
    assert "epsilon = 0.3" in said
    assert "person" not in said["epsilon = 0.3"]
    assert "0.9" in said["all of a user"]


# On the command line


def test_a_saved_release_becomes_a_page(tmp_path):
    ladder().save(tmp_path / "out")
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        cli, ["report", str(tmp_path / "out"), "-o", str(page), "--title", "Farewells"]
    )
    assert done.exit_code == 0, done.output
    assert "Farewells" in page.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(UsageError, match="is a folder; give a file"):
        items().report(tmp_path)
    with pytest.raises(UsageError, match="could not be written"):
        items().report(tmp_path / "no" / "page.html")
