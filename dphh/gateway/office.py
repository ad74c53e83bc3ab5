"""Answers the macros for one analyst: what they may see of the ledger, and what they may spend.

An analyst sees the corpora that they have a share of, what they themselves have spent and have
left there, and every settled release of those corpora, whoever asked for it. An identical request
of the same analyst is one run: asked again, on any connection, it comes from the ledger and costs
nothing; if it was stopped, it goes on. Whoever wants a second draw gives it a `run_id` of its own.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import secrets
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dphh.asking.answers import Arguments, answered, corpus_name
from dphh.asking.macros import Macro
from dphh.errors import DphhError, LedgerError, UsageError
from dphh.gateway.analysts import OWNER
from dphh.gateway.child import Child, Gone
from dphh.given import with_declared
from dphh.ledger import Account, Entry, Hold, Ledger, Share
from dphh.ledger.nouns import checked_run_id
from dphh.release import Release

_SEARCHES, _SEARCHING_SECONDS = 5, 24 * 3600.0
_PRICING_SECONDS = 90.0  # the worker's own limit is shorter, unless something holds it up

log = logging.getLogger("dphh.gateway")


@dataclass(frozen=True)
class Terms:
    """What runs may use: how many at once in all and for one analyst, and what each may take."""

    jobs: int = 2
    jobs_each: int = 1
    engine: str = "duckdb"
    memory: str | None = None
    threads: int | None = None


class Office:
    def __init__(self, ledger: Ledger, terms: Terms) -> None:
        self._ledger, self._terms = ledger, terms
        self._lock = threading.Lock()
        self._working: dict[Child, str] = {}  # which analyst it works for
        self._stopped: set[Child] = set()
        self._runs = 0  # that the ledger has had
        #: When another corpus, which the analyst is not to know of, refused.
        self._elsewhere: dict[str, list[float]] = defaultdict(list)
        self._spare: list[Child] = [Child("dphh.gateway.job")]

    def answer(self, analyst: str, what: str, arguments: Arguments) -> pa.Table:
        return answered(
            what,
            arguments,
            accounts=lambda: self._budgets(analyst),
            groups=self._ledger.declared_groups,
            releases=lambda: self._settled(analyst),
            release=lambda run_id: self._release(analyst, run_id),
            verb=lambda macro, asked: self._of_verb(analyst, what, macro, asked),
        )

    def _of_verb(self, analyst: str, what: str, macro: Macro, arguments: Arguments) -> pa.Table:
        corpus = corpus_name(what, arguments)
        if corpus not in self._corpora(analyst):
            raise UsageError(
                f"corpus: there is no corpus {corpus!r} for you; FROM dphh_ledger() names yours"
            )
        arguments = with_declared(arguments, self._ledger, corpus)
        if isinstance(run_id := arguments.get("of"), str):
            self._release(analyst, run_id)  # `counts` counts what they may see
        if not macro.spends:
            with self._worker(analyst) as worker:
                return self._work(worker, analyst, what, arguments, None)
        return self._run(analyst, what, arguments)

    def stop(self, analyst: str | None = None) -> None:
        """End what is being worked on for an analyst, or for all."""
        with self._lock:
            stopping = [child for child, name in self._working.items() if analyst in (None, name)]
            self._stopped |= set(stopping)
        for child in stopping:
            child.end(patience=5.0)

    def close(self) -> None:
        self.stop()
        for child in self._spare:
            child.close()

    def _run(self, analyst: str, verb: str, arguments: Arguments) -> pa.Table:
        run_id = _run_id(analyst, verb, arguments)
        runs = self._ledger.runs()
        self._refuse_older_ledger(len(runs))
        earlier = next((run for run in runs if _holds(run, run_id)), None)
        if earlier is not None and arguments.get("run_id") is None and earlier.state == "settled":
            return self._stored(run_id)
        self._refuse_searching(analyst)
        # Of this request alone: what another one has reserved under the same id is not let go here.
        hold = Hold(run_id, secrets.token_hex(16))
        with self._worker(analyst) as worker:
            try:
                return self._work(worker, analyst, verb, arguments, hold)
            finally:
                # The worker has answered or is dead. If all that it did was to reserve, it drew
                # nothing, and the price comes back unless somebody else is at the same run.
                with suppress(DphhError):
                    self._ledger.cancel(hold)
                with suppress(DphhError):
                    self._seen(len(self._ledger.runs()))

    def _refuse_older_ledger(self, runs: int) -> None:
        """No run of a ledger is ever deleted: one that has fewer forgot what was spent."""
        before = self._seen(runs)
        if runs < before:
            raise LedgerError(
                f"{self._ledger.path} has {runs} runs, and had {before}: it was replaced by an "
                "older copy. Put the newer one back, or start the gateway again if that is lost."
            )

    def _seen(self, runs: int) -> int:
        """How many runs the ledger was seen to have before; it has so many now."""
        with self._lock:
            before, self._runs = self._runs, max(self._runs, runs)
        return before

    def _refuse_searching(self, analyst: str) -> None:
        """By asking ever less until another corpus no longer refuses, one would learn what it has
        left: a few refusals a day are answers, and then nothing more is tried."""
        late = time.monotonic() - _SEARCHING_SECONDS
        recent = [when for when in self._elsewhere[analyst] if when > late]
        self._elsewhere[analyst] = recent
        if len(recent) >= _SEARCHES:
            raise UsageError(
                "Refused: another corpus of the ledger has rows in the same files, and refused "
                f"{_SEARCHES} requests of yours today. Nothing was spent. Ask the corpora's owner."
            )

    def _work(
        self, worker: Child, analyst: str, what: str, arguments: Arguments, hold: Hold | None
    ) -> pa.Table:
        order = {
            "ledger": str(self._ledger.path),
            "analyst": analyst,
            "what": what,
            "arguments": arguments,
            "hold": hold and (hold.run_id, hold.token),
            "engine": self._terms.engine,
            "memory": self._terms.memory,
            "threads": self._terms.threads,
        }
        try:
            worker.pipe.send(order)
            if hold is None and not worker.pipe.waits(_PRICING_SECONDS):
                raise Gone
            message, table = worker.pipe.receive()
        except BaseException as problem:
            worker.end()
            if not isinstance(problem, Gone):
                raise
            message, table = {"failed": "its process ended, as when memory runs out"}, None
        if "elsewhere" in message:
            self._elsewhere[analyst].append(time.monotonic())
        if "refused" in message:
            raise UsageError(message["refused"])
        if "failed" in message and worker in self._stopped:
            raise UsageError(f"Stopped. {_ON_THE_LEDGER}")
        if "failed" in message:
            log.error("%s for %s, %s: %s", what, analyst, hold, message["failed"])
            raise UsageError(
                f"The run failed, and why is for the corpus's owner to see. {_ON_THE_LEDGER}"
            )
        return table

    @contextmanager
    def _worker(self, analyst: str) -> Iterator[Child]:
        """A process to work for an analyst; kept for the next one unless it has ended."""
        with self._lock:
            working = Counter(self._working.values())
            if working.total() >= self._terms.jobs or working[analyst] >= self._terms.jobs_each:
                raise UsageError(
                    "The gateway is working on as many requests as it may, in all or for you. "
                    "Nothing was spent; ask again when one is done"
                )
            worker = self._spare.pop() if self._spare else Child("dphh.gateway.job")
            self._working[worker] = analyst
        try:
            yield worker
        finally:
            with self._lock:
                del self._working[worker]
                keep = not self._spare and worker.alive() and worker not in self._stopped
                self._stopped.discard(worker)
                self._spare += [worker] if keep else [] if self._spare else [_fresh()]
            if not keep:
                worker.close()

    def _corpora(self, analyst: str) -> set[str]:
        return {budget.label for budget in self._budgets(analyst)}

    def _budgets(self, analyst: str) -> Sequence[Account | Share]:
        return budgets(self._ledger, analyst)

    def _visible(self, analyst: str, mine: Set[str]) -> list[Entry]:
        """Runs on nothing but `mine`, whoever asked, and the analyst's own that touch these."""
        return [
            run
            for run in self._ledger.runs()
            if mine & set(run.accounts)
            and (mine >= set(run.accounts) or run.run_id.startswith(f"{analyst}/"))
        ]

    def _settled(self, analyst: str) -> tuple[list[Entry], Set[str]]:
        mine = self._corpora(analyst)
        return self._visible(analyst, mine), mine

    def _release(self, analyst: str, run_id: Any) -> pa.Table:
        visible = self._visible(analyst, self._corpora(analyst))
        settled = (run.run_id for run in visible if run.state == "settled")
        if run_id not in settled:
            raise UsageError("run_id: no such release; FROM dphh_releases() has those you may see")
        return self._stored(run_id)

    def _stored(self, run_id: str) -> pa.Table:
        manifest, parquet = self._ledger.release(run_id)
        return Release.from_parquet(parquet, manifest).table


def budgets(ledger: Ledger, analyst: str) -> Sequence[Account | Share]:
    """What somebody may spend: an analyst their shares, the owner every named corpus."""
    if analyst == OWNER:
        return [account for account in ledger.accounts() if account.name is not None]
    return ledger.shares(analyst)


_ON_THE_LEDGER = "FROM dphh_ledger() says what is spent: all of it, if the run had begun"


def _fresh() -> Child:
    return Child("dphh.gateway.job")


def _holds(run: Entry, run_id: str) -> bool:
    return run.run_id == run_id and run.state != "cancelled"


def _run_id(analyst: str, verb: str, arguments: Arguments) -> str:
    """The analyst's own name for the run, or one that only the same request has."""
    given = arguments.get("run_id")
    request = {name: _plain(value) for name, value in arguments.items()}
    asked = json.dumps([verb, {**request, "run_id": None}], sort_keys=True)
    own = f"{verb}-{hashlib.sha256(asked.encode()).hexdigest()[:16]}"
    if given is None or given == own:
        given = own
    elif isinstance(given, str) and re.fullmatch(r"[a-z_]+-[0-9a-f]{16}", given):
        raise UsageError("run_id: this form is of names that the gateway gives; choose another")
    return f"{analyst}/{checked_run_id(given, longest=100)}"


def _plain(value: Any) -> Any:
    """1.0 and 1 are one number, however SQL wrote it."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
