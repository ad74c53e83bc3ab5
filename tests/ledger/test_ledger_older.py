"""Ledgers that an earlier dphh wrote: they keep what they promised."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing

from dphh.ledger import Ledger, Request, Source
from dphh.ledger import schema as ledger_schema
from dphh.ledger.budget import Cap
from dphh.ledger.schema import SCHEMA_VERSION
from dphh.privacy.events import GaussianEvent
from tests.ledger.asked import ask, items_price, tampered

BACK_TO_SCHEMA_7 = "DROP TABLE history; DROP TABLE declared; PRAGMA user_version = 7;"
BACK_TO_SCHEMA_6 = BACK_TO_SCHEMA_7 + (
    "DROP TABLE marking; DROP TABLE marks; DROP TABLE deleted; PRAGMA user_version = 6;"
)
BACK_TO_SCHEMA_5 = BACK_TO_SCHEMA_6 + (
    "DROP TABLE asked; ALTER TABLE unfinished DROP failed; PRAGMA user_version = 5"
)


def test_runs_of_schema_5_stay_what_they_were_and_are_nobodys_answer(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    begun = ask(book, "a", reviews, 0.1, 1e-8).hold
    book.begin(begun, {"engine": "one"}, b"key")
    with closing(sqlite3.connect(book.path)) as con, con:
        con.executescript(BACK_TO_SCHEMA_5)
    before = book.status("reviews"), book.runs()  # readers change nothing
    (request,) = before[1]
    same = Request(reviews, request.verb, request.parameters, request.events, 0.1, 1e-8)
    assert book.asked_before(same, files="") is None
    assert book.reserve("b", same, files="beef", once=True).run_id == "b"
    assert (book.status("reviews").cap, book.runs()[0]) == (before[0].cap, before[1][0])
    assert book.asked_before(same, files="beef").run_id == "b"
    assert book.begin(begun, {"engine": "one"}, b"other").key == b"key"
    book.failed(begun)
    assert [run.state for run in book.runs()] == ["failed", "reserved"]


def test_a_request_whose_notes_were_hashed_is_the_same_request(
    book: Ledger, reviews: Source
) -> None:
    """As ledgers had it until what events say of themselves was left out."""
    asked = Request(reviews, "items", {"word": "a"}, [GaussianEvent(60.0, "noise")], 0.1, 1e-9)
    book.reserve("a", asked, files="beef")
    then = [
        "items", {"word": "a"}, reviews.absolute().to_json(), None,
        [{"kind": "gaussian", "note": "noise", "sigma": 60.0}], 0.1, 1e-9,
    ]  # fmt: skip
    text = json.dumps(then, sort_keys=True, separators=(",", ":"))
    tampered(book, "DROP TRIGGER requests_stand")
    tampered(book, f"UPDATE runs SET digest = '{hashlib.sha256(text.encode()).hexdigest()}'")
    assert book.reserve("a", asked).sequence == 1
    assert book.asked_before(asked, files="beef").run_id == "a"
    assert book.reserve("b", asked, files="beef", once=True).run_id == "a"


def written_by_schema_3(book: Ledger, source: Source) -> None:
    """An account of cap (1, 1e-6) with one run, which began and ended to the microsecond."""
    book.add("reviews", source, 1.0, 1e-6)
    hold = ask(book, "a", source, 0.2, 1e-7, events=items_price(0.2, 1e-7)).hold
    book.begin(hold)
    book.settle(hold, {}, b"rows")
    with closing(sqlite3.connect(book.path)) as con, con:
        con.executescript(BACK_TO_SCHEMA_5)
        con.executescript(
            "DROP TRIGGER charges_stand; ALTER TABLE charges DROP cap; DROP TABLE drawn;"
            "DROP TRIGGER caps_are_kept_as_settled; ALTER TABLE caps DROP kept"
        )
        con.execute("UPDATE runs SET recorded = 1000000.25, changed = 1000007.5")
        con.execute("PRAGMA user_version = 3")


def test_an_earlier_ledgers_caps_keep_what_they_promised_until_they_are_set_anew(
    book: Ledger, reviews: Source
) -> None:
    written_by_schema_3(book, reviews)
    before = book.status("reviews")
    assert before.cap == Cap(1.0, 1e-6, "composed")
    # Granted by composition alone: the sums and a cap that is kept exactly would refuse it.
    ask(book, "b", reviews, 0.99, 8.9e-7, events=items_price(0.99, 4.0e-7))
    assert book.status("reviews").cap == before.cap
    assert book.set_cap("reviews", 1.0, 1e-6).cap == Cap(1.0, 1e-6, "divergence")
    assert book.set_cap("reviews", 2.0, 1e-6).cap == Cap(2.0, 1e-6, "divergence")


def test_a_ledger_of_the_first_schema_is_brought_to_this_one(book: Ledger, reviews: Source) -> None:
    with closing(sqlite3.connect(book.path)) as con:
        con.executescript(ledger_schema.TABLES)
        con.execute(f"PRAGMA application_id = {ledger_schema.APPLICATION_ID}")
        con.execute("PRAGMA user_version = 1")
    assert book.runs() == []  # readers change nothing
    assert tampered(book, "PRAGMA user_version") == [(1,)]
    hold = ask(book, "a", reviews).hold
    assert tampered(book, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    book.begin(hold, {"engine": "one"}, b"key")
    assert book.keep_level(hold, "level 1", b"rows") == b"rows"


def test_a_ledger_holds_days_and_no_hours(book: Ledger, reviews: Source) -> None:
    written_by_schema_3(book, reviews)
    (entry,) = book.runs()
    assert entry.when == entry.changed
    ask(book, "b", reviews)
    for table, column in (("runs", "recorded"), ("runs", "changed"), ("clock", "latest")):
        assert {t % 86_400 for (t,) in tampered(book, f"SELECT {column} FROM {table}")} == {0.0}
