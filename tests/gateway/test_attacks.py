"""A hostile analyst with a valid token: nothing planted comes back, and no budget is passed.

The same attempts on a gateway with its guard off do take things: this suite would notice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from dphh.gateway.guard import Guard
from dphh.gateway.server import Gateway
from tests.gateway.attacked import Attacked, attempt_on
from tests.gateway.attacks import KINDS, Attempt, attempts
from tests.gateway.conftest import Client, needs_quack

pytestmark = needs_quack


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Attacked, str]]:
    attacked = Attacked(tmp_path_factory.mktemp("attacked"))
    with attacked.served() as uri:
        bob = attacked.client(uri, "bob")
        bob.ask(
            "FROM dphh_items('canary_letters', epsilon := 0.5, delta := 1e-10, "
            "run_id := 'quarterly')"
        )
        bob.ask("FROM dphh_items('reviews', epsilon := 0.5, delta := 1e-10)")
        # A release of her own, whichever attempts come first: workers share them out.
        attacked.client(uri).ask("FROM dphh_items('reviews', epsilon := 0.01, delta := 1e-10)")
        yield attacked, uri


def test_there_are_three_hundred_distinct_attempts() -> None:
    tried = Counter(attempt.statement for kind in KINDS for attempt in attempts(kind))
    assert [statement for statement, times in tried.items() if times > 1] == []
    assert len(tried) >= 300


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_private_comes_back(attacked: tuple[Attacked, str], kind: str) -> None:
    place, uri = attacked
    client, places = place.client(uri), place.places(really=True)
    wrong = []
    for attempt in attempts(kind):
        outcome = attempt_on(client, attempt, places)  # a refusal shows too that it goes on
        as_expected = (
            outcome.answered
            if attempt.reason is None
            else not outcome.answered and re.search(attempt.reason, outcome.said) is not None
        )
        if outcome.leaked or not as_expected:
            wrong.append(outcome)
    assert wrong == [], "\n".join(map(str, wrong))
    assert place.in_budget()
    assert place.client(uri).ask("SELECT 41 + 1") == [(42,)]
    assert "canary" not in place.printed().replace("canary_letters", "").lower()
    assert list((place.folder / "out").iterdir()) == []


#: Kinds that change what the next attempt meets.
_CHANGE = ("attaching", "pragmas", "settings", "stuffing", "writing", "copying")


def test_with_the_guard_off_they_take_what_they_want(tmp_path: Path) -> None:
    """Each attempt that the guard is to refuse tells what is planted, or does what it says."""
    place = Attacked(tmp_path)
    gateway = place.unguarded()
    leaked: Counter[str] = Counter()
    failed = []
    try:
        client, places = place.client(gateway.uri), place.places(really=False)
        for kind in KINDS:
            harmful = [attempt for attempt in attempts(kind) if attempt.does_harm]
            for index, attempt in enumerate(harmful):
                if index == 0:
                    _end_sandboxes(gateway)
                if index == 0 or kind in _CHANGE:
                    _furnish(gateway, client, places)
                outcome = attempt_on(client, _as_desks_run_it(attempt), places)
                if not outcome.leaked and not outcome.answered:  # an attempt before it spoilt it
                    _end_sandboxes(gateway)
                    _furnish(gateway, client, places)
                    outcome = attempt_on(client, _as_desks_run_it(attempt), places)
                leaked[kind] += outcome.leaked
                if not outcome.leaked and not outcome.answered:
                    failed.append((attempt.statement, outcome.said))
    finally:
        gateway.close()
    assert failed == [], "\n".join(map(str, failed))
    assert leaked.total() >= 90
    for kind in ("raw_tables", "files", "catalogs", "query_functions", "errors_with_data"):
        assert leaked[kind] >= 5, kind


def _as_desks_run_it(attempt: Attempt) -> Attempt:
    """What is injected acts once the checked tree is written, so it is written first."""
    if attempt.kind != "injected":
        return attempt
    return replace(attempt, statement=Guard(frozenset())._canonical_statement(attempt.statement))


def _furnish(gateway: Gateway, client: Client, places: dict[str, str]) -> None:
    """What there would be to take where raw data and releases are in the served instance."""
    furniture = f"""
        CREATE OR REPLACE VIEW memory.main.reviews AS
        SELECT canary_author AS author, canary_body AS body, canary_note
        FROM read_parquet('{places["raw"]}');
        CREATE OR REPLACE TABLE memory.main.releases AS SELECT 'r' AS run_id, 'canary' AS item;
        CREATE OR REPLACE TABLE memory.main.t AS SELECT 'canary' AS body;
        CREATE OR REPLACE SEQUENCE memory.main.s;
        PREPARE p AS FROM memory.main.reviews;
        SET VARIABLE x = 'canary';
        SELECT 1
    """
    with suppress(duckdb.Error):
        client.ask(furniture)
        return
    _end_sandboxes(gateway)  # an attempt spoilt it
    client.ask(furniture)


def _end_sandboxes(gateway: Gateway) -> None:
    for _, sandbox in gateway._idle:
        sandbox.close()
    gateway._idle.clear()
