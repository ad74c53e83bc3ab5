"""The page for people, and cards: one file, no script, no network, and no promise but the made."""

from __future__ import annotations

import math
import re

import pytest
from click.testing import CliRunner

from dphh import Corpus, UsageError, items, ngrams
from dphh.cli import cli
from dphh.errors import BudgetRefused
from dphh.evaluation import ExactCounts
from dphh.report.page import page_of
from dphh.report.promise import guessing, in_full, in_words
from tests.report import made
from tests.report.made import HOSTILE, PRIVACY, Seen, counted, ladder, within_country

RELEASES = [ladder(), made.items(), made.items(()), made.trie(), made.items(HOSTILE)]


@pytest.mark.parametrize("release", RELEASES)
def test_a_page_runs_nothing_and_asks_no_network(release):
    page = page_of(release)
    seen = Seen(page)
    assert {"html", "main", "h1", "details"} <= set(seen.tags)
    assert not {"script", "img", "link", "iframe", "object", "svg"} & set(seen.tags)
    assert {name for name, _ in seen.attributes} <= {
        "lang", "charset", "http-equiv", "content", "name", "class", "style", "scope",
    }  # fmt: skip
    for name, value in seen.attributes:
        assert name != "style" or re.fullmatch(r"(;?(width|left):[0-9.]+%)+", str(value))
    assert "://" not in page and "url(" not in page and "@import" not in page
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert "default-src 'none'" in policy and "script" not in policy


def test_hostile_values_stay_text_wherever_they_are():
    release = within_country({text: {"<b>": (9, 4, 14), "\x07": (7, 2, 12)} for text in HOSTILE})
    release.manifest["parameters"] |= {"by": "<i>", "content": {"where": "a < '<u>'"}}
    release.manifest.update(randomness="<s>", is_test=True, run_id="<hr>")
    for page in (page_of(release, title="\u202e</title><script>"), release._repr_html_()):
        assert not set(page) & set("\x1b\x07\0\u202e\r\uffff")
        seen = Seen(page)
        assert not {"script", "u", "s", "hr"} & set(seen.tags)
        for text in ("<script>alert(1)</script>", "␛[31mred␇", "{{ 7 * 7 }}", "line␊break␍"):
            assert text in seen.text
        assert "x" * 301 not in seen.text
    assert "⟨U+202E⟩</title><script>" in Seen(page_of(release, title="\u202e</title><script>")).text


def test_the_page_says_what_it_shows_and_what_it_does_not():
    text = Seen(page_of(ladder())).text
    assert "5 words and 6 longer phrases" in text
    assert "Noised weights" in text and "no numbers of people" in text
    assert "What is not here is not thereby absent" in text
    assert (
        "up to 1 of them, as expected, may be held by few or nobody" in text
    )  # 1% of 5 and of 5, rounded up
    assert "see you later" in text
    assert "2 sequences" in Seen(page_of(made.trie())).text
    local = made.items()
    local.manifest["verb"] = "ldp_trie"
    assert "level's reports" in Seen(page_of(local)).text


def test_a_page_of_counts_does_not_speak_of_finding():
    text = Seen(page_of(within_country({"see you": {"DE": (9, 4, 14), "other": (7, 2, 12)}}))).text
    assert "1 item counted, within country: DE, other" in text and "What was counted" in text
    assert "What is not here is not thereby absent" not in text
    assert "lies above 0 with probability 0.9 when held by at least 251 users" in text
    assert "is found" not in text


def test_a_tests_release_is_not_taken_for_a_private_one():
    tested = made.items()
    tested.manifest.update(randomness="a seed", is_test=True)
    for shown in (page_of(tested), tested._repr_html_()):
        assert '<p class="warning">a seed</p>' in shown
    assert '<p class="warning">' not in page_of(made.items())


def test_nothing_that_was_counted_vanishes():
    """Totals of the release, groups of another with what the first did not find, and the rest."""
    found = counted({"see you": (70, 20, 130), "see": (200, 150, 260)})
    found.manifest["run_id"] = "run-of-totals"
    others = {"see you": {"DE": (30, 21, 39), "US": (8, 1, 17)},
              "of both": {"DE": (44, 35, 53), "US": (5, 0, 14)}}  # fmt: skip
    text = Seen(page_of(found, counts=within_country(others))).text
    for number in ("20–130", "150–260", "21–39", "1–17", "35–53", "0–14"):
        assert number in text
    assert "by country" in text and "for all of a run together" in text
    text = Seen(page_of(ladder(), counts=counted({"see": (200, 150, 260)}))).text
    assert "Found, and not counted" in text and "see you later" in text


def test_the_first_rows_of_a_table_are_open_and_the_rest_is_folded():
    release = made.items([f"item {n}" for n in range(30)])
    page = page_of(release)
    opened, _, folded = page.partition("<details>")
    assert (opened.count('scope="row"'), folded.count('scope="row"')) == (25, 5)
    assert "and 5 more" in folded
    assert page_of(release, top=3).partition("<details>")[0].count('scope="row"') == 3
    assert "see you" not in Seen(page_of(ladder(), min_length=3)).text.replace("see you later", "")
    with pytest.raises(UsageError, match="top"):
        page_of(release, top=0)


def test_a_page_of_more_rows_than_a_browser_likes_says_so(monkeypatch):
    monkeypatch.setattr("dphh.report.page.MOST_ROWS", 3)
    text = Seen(page_of(made.items([f"item {n}" for n in range(30)]))).text
    assert "and 5 more" in text and "The first 3 of these are here" in text


def test_both_promises_stand_on_top_and_their_sum():
    text = Seen(page_of(ladder(), counts=counted({"see": (200, 150, 260)}))).text
    top, _, below = text.partition("What was found")
    assert "(1, 1e-08)-differential privacy" in top and "both together(2, 2e-08) at most" in top
    assert "at most 2.719 times as likely" in top
    assert text.count("at most 2.719 times as likely") == 1
    assert "run-of-ngrams" in below and "run-of-counts" in below


def test_exact_counts_are_refused():
    for counts in (ExactCounts(ladder().table, 3), made.items()):
        with pytest.raises(UsageError, match="exact counts may not"):
            page_of(ladder(), counts=counts)  # type: ignore[arg-type]


def test_the_ledgers_line_is_of_the_accounts_that_paid(ledger, written, tmp_path):
    corpus = written([(who, "hello") for who in range(90)])
    ledger.add("survey", corpus, 2.0, 1e-6)
    release = items(corpus, epsilon=1.0, delta=1e-8).run(ledger=ledger)
    top = Seen(page_of(release, ledger=ledger)).text.partition("What was found")[0]
    assert "survey: " in top and "of its cap, epsilon 2, delta 1e-06, is used, by 1 run" in top
    assert "does not know this run" in page_of(ladder(), ledger=ledger)


# Cards


@pytest.fixture
def corpus(written) -> Corpus:
    return written([("ann", "hello")])


def test_a_plan_shows_in_a_notebook_what_it_prints(corpus, ledger):
    card = items(corpus, domain=[["<b>"]], epsilon=1.0, delta=1e-8)._repr_html_()
    assert "&lt;b&gt;" in card
    assert "users" in card and "adjacency" not in Seen(card).text


def test_a_plan_says_that_the_ledger_would_refuse_it_as_it_does(corpus, ledger):
    ledger.add("survey", corpus, 0.5, 1e-6)
    plan = items(corpus, epsilon=1.0, delta=1e-8)
    assert "would refuse" in plan._repr_html_()
    assert "would refuse" in plan.describe(ledger)
    with pytest.raises(BudgetRefused) as refused:
        plan.run(ledger=ledger)
    assert " ".join(str(refused.value).split()) in " ".join(plan.describe(ledger).split())
    assert "would refuse" not in items(corpus, epsilon=0.4, delta=1e-8).describe(ledger)
    assert "no corpus yet" in items(epsilon=1.0, delta=1e-8)._repr_html_()


@pytest.mark.parametrize(("epsilon", "delta", "said"), [(11.0, 1e-8, "e^11"), (1.0, 1e-3, "1,000")])
def test_a_promise_beyond_reason_is_warned_of(epsilon, delta, said):
    plan = items(epsilon=epsilon, delta=delta)
    assert said in plan.describe()
    assert said in plan._repr_html_()
    assert "warning" not in items(epsilon=10.0, delta=1e-5).describe().lower()


def test_a_release_shows_bars_and_its_promise_folded():
    card = ladder()._repr_html_()
    Seen(card)
    assert card.count('class="track"') == 1 + 5 + 5
    assert "at most 2.719 times" in card.partition("<details>")[2]
    assert "41 users" in made.items(())._repr_html_()


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
        said = in_words({**PRIVACY, "epsilon": epsilon})
        factor = float(re.findall(r"at most ([0-9.,]+) times", said)[0].replace(",", ""))
        assert math.exp(epsilon) <= factor <= math.exp(epsilon) * 1.001


def test_one_direction_is_not_told_as_two():
    privacy = {**PRIVACY, "adjacency": "whoever goes is gone", "both_directions": False}
    said = in_words(privacy)
    assert "The other way round nothing is proved" in said
    assert "guess" not in said


def test_a_contribution_is_not_told_as_a_person():
    one = {"unit": "a user's contribution", "protects": "contribution"}
    privacy = {**PRIVACY, **one, "epsilon": 8.0, "central_epsilon": 0.3, "user_epsilon": 0.9}
    said = in_words(privacy)
    assert "1.350 times" in said
    assert "person" not in said
    assert "0.9" in dict(in_full(privacy))["all of a user"]


# On the command line


def test_a_saved_release_becomes_a_page(written, ledger, tmp_path):
    corpus = written([(who, "see you later") for who in range(900)])
    ngrams(corpus, max_n=3, epsilon=4.0, delta=1e-6).run(ledger=ledger, out=tmp_path / "out")
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        cli,
        [
            *("report", str(tmp_path / "out"), "-o", str(page), "--title", "Farewells"),
            *("--csv", str(tmp_path / "table.csv"), "--top", "2", "--min-length", "2"),
        ],
    )
    assert done.exit_code == 0, done.output
    assert "Farewells" in page.read_text(encoding="utf-8")
    assert "see you later" in (tmp_path / "table.csv").read_text(encoding="utf-8")
    asked = CliRunner().invoke(cli, ["report", str(tmp_path / "out")])
    assert asked.exit_code == 2 and "--csv" in asked.output


def test_a_page_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(UsageError, match="is a folder; give a file"):
        made.items().report(tmp_path)
    with pytest.raises(UsageError, match="could not be written"):
        made.items().report(tmp_path / "no" / "page.html")
