"""A run as tests of the ledger ask for it, and a hand in its file."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from dphh import BudgetRefused
from dphh.columns import SCORED_SCHEMA, digest_of, release_file
from dphh.ledger import BookedRun, Data, Ledger, Request
from dphh.ledger.budget import checked_booking
from dphh.ledger.schema import writing
from dphh.ledger.tables import seal
from dphh.privacy.events import EpsilonDeltaEvent, Event, SetUnionEvent, events_to_json
from dphh.privacy.gaussian import gaussian_sigma
from dphh.privacy.set_union import GAUSSIAN_SHARE_OF_DELTA, NEW_ITEMS_SHARE_OF_DELTA
from dphh.reader.corpus import Corpus, replace_corpus

SETTING = {"engine": "duckdb 2.0.0", "data": "77"}
DATA = Data("d1", "f1")


def asked(
    corpus: Corpus,
    epsilon: float = 0.1,
    delta: float = 0.0,
    *,
    events: Sequence[Event] | None = None,
    account: str | None = None,
    **parameters: Any,
) -> Request:
    done = [EpsilonDeltaEvent(epsilon, delta)] if events is None else events
    price = checked_booking(done, epsilon, delta)
    return Request(replace_corpus(corpus, account=account), "items", parameters, price)


def ask(book: Ledger, run_id: str | None, corpus: Corpus, *price: float, **how: Any) -> BookedRun:
    request = asked(corpus, *price, **how)
    return book.book(request, SETTING, DATA, run_id=run_id)


def settled(book: Ledger, run_id: str, *asking: Any, **how: Any) -> BookedRun:
    """A run that settled, with the least that the manifest of such a run says."""
    request = asked(*asking, **how)
    run = book.book(request, SETTING, DATA, run_id=run_id)
    scores = {"level": 1, "item": "a", "tokens": ["a"], "score": 1.5}
    table = pa.Table.from_pylist([scores] * 9, SCORED_SCHEMA)
    manifest = {
        "table_sha256": digest_of(table),
        "versions": {"dphh": version("dphh"), "pyarrow": pa.__version__},
        "run_id": run_id, "verb": request.verb, "parameters": request.parameters,
        "events": events_to_json(request.booking.events), "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "privacy": {"epsilon": request.booking.epsilon, "delta": request.booking.delta},
    }  # fmt: skip
    book.settle(run, manifest, release_file(table, run_id))
    return run


def granted(*asking: Any, **how: Any) -> bool:
    try:
        ask(*asking, **how)
    except BudgetRefused:
        return False
    return True


def items_price(epsilon: float, delta: float) -> list[Event]:
    sigma = gaussian_sigma(epsilon, GAUSSIAN_SHARE_OF_DELTA * delta)
    return [SetUnionEvent(sigma, NEW_ITEMS_SHARE_OF_DELTA * delta)]


def resealed(book: Ledger) -> None:
    """As somebody leaves the file who knows how dphh makes its seals."""
    with writing(book.path) as con:
        for table in ("runs", "history"):
            for (number,) in con.execute(f"SELECT rowid FROM {table}").fetchall():
                seal(con, table, number)


def tampered(book: Ledger, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(book.path)) as con, con:
        return con.execute(statement).fetchall()
