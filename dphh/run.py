"""The one flow: plan -> ledger -> engine runs the levels -> release -> ledger."""

from __future__ import annotations

import platform
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from dphh.corpus import Corpus, as_sequences
from dphh.engines import open_session
from dphh.engines.session import Limits, Session
from dphh.errors import LedgerError, UsageError
from dphh.flows import LevelDone
from dphh.flows.items import items_levels
from dphh.flows.ngrams import ngrams_levels
from dphh.flows.trie import trie_levels
from dphh.plan import Plan
from dphh.privacy.ledger import Ledger
from dphh.release import Release, checked_out
from dphh.udfs.randomness import Randomness, SystemRandomness

Progress = Callable[[str], None]


#: How each verb's levels follow one another.
LEVELS: dict[str, Callable[[Plan, Session], Iterator[LevelDone]]] = {
    "items": items_levels,
    "ngrams": ngrams_levels,
    "trie": trie_levels,
}


def run(
    plan: Plan,
    *,
    corpus: Corpus | None = None,
    ledger: Ledger | str | Path | None = None,
    engine: str | None = None,
    run_id: str | None = None,
    out: str | Path | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    randomness: Randomness | None = None,
) -> Release:
    """Spend the plan's price on its corpus, once, and hand back the release."""
    corpus = corpus or plan.corpus
    if corpus is None:
        raise UsageError("run: the plan has no corpus; pass run(corpus=...)")
    if plan.verb == "trie":
        corpus = as_sequences(corpus, plan["unit"])
    plan = replace(plan, corpus=corpus)
    if run_id is not None and (not run_id.isprintable() or not 0 < len(run_id) <= 200):
        raise UsageError("run_id: give a printable text of 1 to 200 characters")
    say = progress or _quiet
    source = randomness or SystemRandomness()
    if out is not None:
        checked_out(out, run_id)
    run_id = run_id or uuid.uuid4().hex
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    check_account(corpus, book)

    # Opening looks at names and types alone, so what it refuses has cost nothing.
    session = open_session(engine or "duckdb", corpus, source, Limits(memory_limit, threads))
    try:
        reservation = book.reserve(
            run_id,
            corpus.ledger_source(),
            plan.verb,
            request(plan),
            plan.events,
            plan.privacy.epsilon,
            plan.privacy.delta,
            account=corpus.name,
        )
        if reservation.release is not None:
            manifest, parquet = reservation.release
            release = Release.from_parquet(parquet, manifest)
        else:
            if not reservation.capped:
                say("note: nobody has capped this corpus; `dphh ledger add` does")
            book.begin(run_id)
            release = _released(plan, session, run_id, source, say)
            _settle(book, release)
    finally:
        session.close()
    if out is not None:
        try:
            release.save(out)
        except UsageError as problem:
            raise UsageError(
                f"{problem}. The release is made and paid for, and the ledger keeps it: "
                f"`dphh ledger release {run_id} --out DIR`, or run again with run_id={run_id!r}"
            ) from None
    return release


def check_account(corpus: Corpus, book: Ledger) -> None:
    """A name must be of the account that this corpus belongs to; files pay wherever they are."""
    if corpus.name is None:
        return
    account = book.status(corpus.name)
    if corpus.kind == "path" and corpus.name not in book.accounts_touched(corpus.ledger_source()):
        raise UsageError(
            f"name: the account {corpus.name!r} is of {', '.join(account.source.where)}, "
            f"not of {', '.join(corpus.where)}; leave the name out, or name these files too"
        )


def request(plan: Plan) -> dict[str, Any]:
    """What is asked, as the ledger and the manifest record it."""
    assert plan.corpus is not None
    return {
        **dict(plan.parameters),
        "user": plan.corpus.user,
        "content": plan.corpus.content.to_json(),
    }


def _released(
    plan: Plan, session: Session, run_id: str, randomness: Randomness, say: Progress
) -> Release:
    say("reading the corpus")
    done = []
    for step in LEVELS[plan.verb](plan, session):
        say(f"level {step.level.level}: {step.rows.num_rows:,} released")
        done.append(step)
    table = pa.concat_tables([step.rows for step in done])
    table = table.sort_by([("level", "ascending"), ("score", "descending"), ("item", "ascending")])
    return Release(table, _manifest(plan, session, run_id, randomness, done))


def _manifest(
    plan: Plan, session: Session, run_id: str, randomness: Randomness, done: list[LevelDone]
) -> dict[str, Any]:
    return {
        "verb": plan.verb,
        "method": plan.method,
        "run_id": run_id,
        "parameters": request(plan),
        "privacy": plan.privacy.to_json(),
        "levels": [step.manifest() for step in done],
        "finds": plan.finds.to_json(),
        "events": [event.to_json() for event in plan.events],
        "randomness": (
            "a test's seed: this release is NOT private"
            if randomness.is_test
            else "operating system"
        ),
        "engine": {"name": session.name, "version": session.version},
        "versions": {
            "dphh": version("dphh"),
            "python": platform.python_version(),
            "pyarrow": pa.__version__,
        },
    }


def _settle(book: Ledger, release: Release) -> None:
    try:
        book.settle(release.run_id, release.manifest, release.parquet())
    except LedgerError as problem:
        # The price is spent and recorded; losing what it bought would help nobody.
        warnings.warn(
            f"the release was made, but the ledger could not keep a copy: {problem} "
            "Save the release now: asking for this run id again will not bring it back.",
            stacklevel=2,
        )


def _quiet(_: str) -> None:
    """Nobody watches."""
