"""Played by an analyst with a valid token: nothing private comes back, and nothing goes unpaid."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from dphh.asking.macros import macros
from dphh.registry import VERBS
from tests.gateway.conftest import SECRET, Place

ASKED = {"corpus": "reviews", "epsilon": 0.01, "delta": 1e-8}
HOSTILE = [
    "/etc/passwd", "../ledger.sqlite", "reviews.parquet", "file:///etc/passwd", "s3://bucket/x",
    "http://127.0.0.1:1/x", "*", "%", "'; DROP TABLE runs; --", "\" OR 1=1", "$(id)", "`id`",
    "{{7*7}}", "${jndi:ldap://x}", "\x00", "\x1b[2J", "\u202egpj", "\U0001f600" * 50, "-1", "1e999",
    "nan", "inf", "0x10", "1_000", "\u0661", "9" * 400, "[", "[]", "[[]]", "[" * 3000, "[null]",
    '["hunter2"]', "true", "None", "null", "who", "what", "__class__", "letters", "owner", "bob",
]  # fmt: skip


@pytest.fixture(scope="module")
def told(place: Place) -> Iterator[list[bytes]]:
    """All that the attacks get back. In the end, it has nothing private."""
    answers: list[bytes] = []
    before = place.spent("bob")
    yield answers
    found = b"\n".join(answers).decode(errors="replace")
    private = [SECRET, "hunter2 lives", "Traceback", "root:", 'File "', place.tokens["bob"],
               str(place.ledger.path)]  # fmt: skip
    assert not [each for each in private if each in found]
    assert place.spent("bob") == before


def test_hostile_values_in_every_option_of_every_verb(place: Place, told: list[bytes]) -> None:
    chance = random.Random(3)
    for verb, macro in VERBS.items():
        for option in ("corpus", *macro.options):
            for value in chance.sample(HOSTILE, 6):
                answer = place.ask(f"plan/{verb}", **ASKED | {option: value})
                told.append(answer.body)
                assert answer.status in (200, 400, 414), (verb, option, value, answer)
    # What a plan takes is a value like others; none of these ran.
    assert all(run.epsilon != 0.01 for run in place.ledger.runs())


def test_hostile_run_ids_verbs_and_paths(place: Place, told: list[bytes]) -> None:
    for value in HOSTILE:
        for path in ("releases/", "options/", "plan/", "", "items/", "ledger/"):
            answer = place.ask(path + quote(value, safe="/"))
            told.append(answer.body)
            assert answer.status in (400, 404, 414), (path, value, answer)
    for path in (
        *("//etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/", "items;corpus=letters", "docs"),
        *("ITEMS", "items%00", "items.jsonl.jsonl", ".jsonl", "openapi.json"),
    ):
        answer = place.ask(path)
        told.append(answer.body)
        assert "reviews" not in answer.body.decode() or answer.status == 400


def test_random_requests(place: Place, told: list[bytes]) -> None:
    chance = random.Random(7)
    known = [macro.path for macro in macros(of_tables=False).values() if not macro.spends]
    names = [*VERBS["ngrams"].options, *VERBS["counts"].options, "corpus", "verb", "run_id"]
    for _ in range(300):
        texts = [
            "".join(chance.choices(string.printable, k=chance.randint(0, 30))) for _ in range(6)
        ]
        options = {chance.choice(names): quote(text) for text in texts}
        query = "&".join(f"{name}={text}" for name, text in options.items())
        verb = chance.choice(["GET", "HEAD"])
        accept = chance.choice(["application/json", "*/*", "text/html", "q=;;,"])
        path = chance.choice(known) + chance.choice(["", ".jsonl", "/", "x"])
        answer = place.ask(f"{path}?{query}", verb=verb, headers={"Accept": accept})
        told.append(answer.body)
        assert answer.status in (200, 400, 404)


def test_another_analysts_share_is_never_spent(place: Place, told: list[bytes]) -> None:
    before, bobs = place.spent(), place.spent("bob")
    hidden = str(place.folder / "letters.parquet")
    asked = [place.ask("counts", **ASKED, of=each).error for each in (hidden, hidden + "x")]
    assert asked[0] == asked[1].replace(hidden + "x", hidden)  # a place is a word like any other
    for corpus in ("letters", "reviews'", "REVIEWS", "reviews ", "", hidden):
        answer = place.items(corpus=corpus, epsilon=0.02)
        told.append(answer.body)
        assert answer.status == 400
    for extra in ("analyst", "account", "run_id", "again", "ledger", "engine", "randomness", "out"):
        answer = place.items(epsilon=0.02, **{extra: "bob"})
        told.append(answer.body)
        assert answer.status == 400 and f"{extra}: dphh_items has no such option" in answer.error
    assert (place.spent(), place.spent("bob")) == (before, bobs)
