"""The one flow: plan -> ledger -> engine runs the levels -> release -> ledger."""

from __future__ import annotations

import platform
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from dphh.corpus import Corpus
from dphh.engines import open_session
from dphh.engines.session import Limits, Session
from dphh.errors import LedgerError, UsageError
from dphh.levels import Level, SetUnionLevel
from dphh.plan import Plan
from dphh.privacy.ledger import Ledger, Source
from dphh.release import SCHEMA, Release, checked_out
from dphh.udfs.randomness import Randomness, SystemRandomness

Progress = Callable[[str], None]


@dataclass(frozen=True)
class LevelDone:
    """One level as it was run, and the rows (in SCHEMA) that it releases."""

    level: Level
    rows: Any

    def manifest(self) -> dict[str, Any]:
        return {**self.level.to_json(), "released": self.rows.num_rows}


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
    plan = replace(plan, corpus=corpus)
    if run_id is not None and (not run_id.isprintable() or not 0 < len(run_id) <= 200):
        raise UsageError("run_id: give a printable text of 1 to 200 characters")
    say = progress or _quiet
    source = randomness or SystemRandomness()
    if out is not None:
        checked_out(out, run_id)
    run_id = run_id or uuid.uuid4().hex
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)

    # Opening looks at names and types alone, so what it refuses has cost nothing.
    session = open_session(engine or "duckdb", corpus, source, Limits(memory_limit, threads))
    try:
        reservation = book.reserve(
            run_id,
            charged_to(corpus, book),
            plan.verb,
            request(plan),
            plan.events,
            plan.privacy.epsilon,
            plan.privacy.delta,
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
        release.save(out)
    return release


def charged_to(corpus: Corpus, book: Ledger) -> Source | str:
    """Which account pays. Files pay wherever they are named, whatever name the caller gives."""
    source = corpus.ledger_source()
    if corpus.name is None:
        return source
    account = book.status(corpus.name)
    if corpus.kind == "path":
        if corpus.name not in book.accounts_touched(source):
            raise UsageError(
                f"name: the account {corpus.name!r} is of {', '.join(account.source.where)}, "
                f"not of {', '.join(corpus.where)}; leave the name out, or name these files too"
            )
        return source
    if account.source.user != corpus.user:
        raise UsageError(
            f"user: the account {corpus.name!r} protects users by the column "
            f"{account.source.user!r}, found {corpus.user!r}; use user={account.source.user!r}"
        )
    return corpus.name


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


def items_levels(plan: Plan, session: Session) -> Iterator[LevelDone]:
    """DPSU: one round; DP-SIPS: several, each without what the earlier ones released."""
    session.hold_items()
    for index, level in enumerate(plan.levels):
        assert isinstance(level, SetUnionLevel)
        if index:
            session.forget_released()
        passed = session.set_union_level(level, f"items/round {level.round}")
        yield LevelDone(level, _rows(level, passed))


LEVELS: dict[str, Callable[[Plan, Session], Iterator[LevelDone]]] = {"items": items_levels}


def _rows(level: SetUnionLevel, passed: Any) -> Any:
    """A set-union level's (key, noisy), as released rows: scores in users, tokens of one."""
    items = passed.column("key").combine_chunks()
    if isinstance(items, pa.ChunkedArray):  # no chunk at all
        items = pa.array([], pa.string())
    items = items.cast(pa.string())
    count = len(items)
    scores = passed.column("noisy").to_numpy() / 2.0**level.grid_bits
    tokens = pa.ListArray.from_arrays(pa.array(range(count + 1), pa.int32()), items)
    levels = pa.array([level.level] * count, pa.int32())
    return pa.table([levels, items, tokens, pa.array(scores, pa.float64())], schema=SCHEMA)


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
