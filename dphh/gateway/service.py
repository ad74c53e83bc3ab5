"""Answers the macros for one analyst, within what they may see of the ledger and may spend.

An analyst sees the corpora that they have a share of, what they have spent and have left there, and
every settled release of those corpora, whoever asked for it. The same request of the same analyst
is one run: repeated on any connection, its release comes from the ledger and costs nothing; if the
run was stopped, it continues. To draw again, an analyst gives the request a `run_id` of its own.
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
from dphh.columns import as_set
from dphh.errors import DphhError, LedgerError, UsageError
from dphh.gateway.analysts import OWNER
from dphh.gateway.child import Child, Gone
from dphh.ledger import Account, Entry, Hold, Ledger, Share
from dphh.ledger.entries import checked_run_id
from dphh.public.counted_items import with_declared
from dphh.release import Release

_WORKER = "dphh.gateway.job"  # the module
_SEARCHES, _SEARCHING_SECONDS = 5, 24 * 3600.0
_PRICING_SECONDS = 90.0  # the worker's own limit is shorter, so this ends only a blocked worker

log = logging.getLogger("dphh.gateway")


@dataclass(frozen=True)
class Terms:
    """Limits on runs: how many at the same time, in all and per analyst, and their resources."""

    jobs: int = 2
    jobs_each: int = 1
    engine: str = "duckdb"
    memory: str | None = None
    threads: int | None = None


class Service:
    """Answers macros for analysts and runs their plans in worker processes."""

    def __init__(self, ledger: Ledger, terms: Terms) -> None:
        self._ledger, self._terms = ledger, terms
        self._lock = threading.Lock()
        self._working: dict[Child, str] = {}  # the analyst whom each worker works for
        self._stopped: set[Child] = set()
        self._runs = 0  # the largest number of runs seen in the ledger
        #: Times of refusals because of another corpus, which the analyst must not learn about.
        self._elsewhere: dict[str, list[float]] = defaultdict(list)
        self._spare: list[Child] = [Child(_WORKER)]

    def answer(self, analyst: str, what: str, arguments: Arguments) -> pa.Table:
        return answered(
            what,
            arguments,
            accounts=lambda: budgets(self._ledger, analyst),
            groups=self._ledger.declared_groups,
            releases=lambda: self._settled_runs(analyst),
            release=lambda run_id: self._release_for(analyst, run_id),
            verb=lambda macro, asked: self._priced_or_run(analyst, what, macro, asked),
        )

    def _priced_or_run(
        self, analyst: str, what: str, macro: Macro, arguments: Arguments
    ) -> pa.Table:
        corpus = corpus_name(what, arguments)
        if corpus not in self._corpora_of(analyst):
            found = f"corpus: found no corpus {corpus!r} of yours; FROM dphh_ledger() lists yours"
            if analyst == OWNER:
                found += (
                    ". Add a file first: `dphh ledger add NAME FILE --user U --text T --epsilon E "
                    "--delta D`"
                )
            raise UsageError(found)
        arguments = with_declared(arguments, self._ledger, corpus)
        # What is counted, or known before, is what they may see.
        for option in ("of", "domain", "prior"):
            if isinstance(run_id := arguments.get(option), str):
                self._release_for(analyst, run_id, option)
        if not macro.spends:
            with self._borrowed_worker(analyst) as worker:
                return self._ask_worker(worker, analyst, what, arguments, None)
        return self._reserve_and_run(analyst, what, arguments)

    def stop(self, analyst: str | None = None) -> None:
        """End the workers of one analyst, or of all."""
        with self._lock:
            stopping = [child for child, name in self._working.items() if analyst in (None, name)]
            self._stopped |= set(stopping)
        for child in stopping:
            child.end(patience=5.0)

    def close(self) -> None:
        self.stop()
        for child in self._spare:
            child.close()

    def _reserve_and_run(self, analyst: str, verb: str, arguments: Arguments) -> pa.Table:
        run_id = _run_id(analyst, verb, arguments)
        runs = self._ledger.runs()
        self._refuse_outdated_ledger(len(runs))
        made = any(run.run_id == run_id and run.state == "settled" for run in runs)
        if made and arguments.get("run_id") is None:
            return self._stored_release(run_id)
        self._limit_refusals(analyst)
        # A token of this request's own: it cannot cancel another request's reservation.
        hold = Hold(run_id, secrets.token_hex(16))
        with self._borrowed_worker(analyst) as worker:
            try:
                return self._ask_worker(worker, analyst, verb, arguments, hold)
            finally:
                # The worker has answered or is dead. If it only reserved, it drew nothing, and
                # the reservation is cancelled unless another process works on the same run.
                with suppress(DphhError):
                    self._ledger.cancel(hold)
                with suppress(DphhError):
                    self._most_runs_before(len(self._ledger.runs()))

    def _refuse_outdated_ledger(self, runs: int) -> None:
        """No run is ever deleted from a ledger, so one with fewer runs is an outdated copy."""
        before = self._most_runs_before(runs)
        if runs < before:
            raise LedgerError(
                f"{self._ledger.path} has {runs} runs, and had {before}: an older copy has "
                "replaced it. Put the newer file back, or restart the gateway if it is lost."
            )

    def _most_runs_before(self, runs: int) -> int:
        """Record how many runs the ledger has, and return the largest number seen before."""
        with self._lock:
            before, self._runs = self._runs, max(self._runs, runs)
        return before

    def _limit_refusals(self, analyst: str) -> None:
        """Limit refusals because of another corpus to a few per day: by asking for less and less
        until it no longer refuses, an analyst could learn what that corpus has left."""
        late = time.monotonic() - _SEARCHING_SECONDS
        recent = [when for when in self._elsewhere[analyst] if when > late]
        self._elsewhere[analyst] = recent
        if len(recent) >= _SEARCHES:
            raise UsageError(
                "Refused: another corpus of the ledger has rows in the same files, and has refused "
                f"{_SEARCHES} of your requests today. Nothing was spent. Ask the corpora's owner."
            )

    def _ask_worker(
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
            raise UsageError(
                "Your request was stopped: by you (dphh_stop or Ctrl-C), because your "
                f"token was removed, or because the gateway closed. {_LEDGER_ADVICE}"
            )
        if "failed" in message:
            log.error("%s for %s, %s: %s", what, analyst, hold, message["failed"])
            raise UsageError(
                f"The run failed; only the corpus's owner can see why. {_LEDGER_ADVICE}"
            )
        return table

    @contextmanager
    def _borrowed_worker(self, analyst: str) -> Iterator[Child]:
        """A worker process for one analyst; kept for the next request unless it has ended."""
        with self._lock:
            working = Counter(self._working.values())
            if working.total() >= self._terms.jobs or working[analyst] >= self._terms.jobs_each:
                raise UsageError(
                    "The gateway has reached its limit of concurrent requests, in all or for you. "
                    "Nothing was spent; repeat the request when another has finished"
                )
            worker = self._spare.pop() if self._spare else Child(_WORKER)
            self._working[worker] = analyst
        try:
            yield worker
        finally:
            with self._lock:
                del self._working[worker]
                keep = not self._spare and worker.alive() and worker not in self._stopped
                self._stopped.discard(worker)
                self._spare += [worker] if keep else [] if self._spare else [Child(_WORKER)]
            if not keep:
                worker.close()

    def _corpora_of(self, analyst: str) -> set[str]:
        return {budget.label for budget in budgets(self._ledger, analyst)}

    def _visible_runs(self, analyst: str, mine: Set[str]) -> list[Entry]:
        """Runs that touch only corpora in `mine`, and the analyst's own runs that touch any."""
        return [
            run
            for run in self._ledger.runs()
            if mine & set(run.accounts) and (mine >= set(run.accounts) or run.analyst == analyst)
        ]

    def _settled_runs(self, analyst: str) -> tuple[list[Entry], Set[str]]:
        mine = self._corpora_of(analyst)
        return self._visible_runs(analyst, mine), mine

    def _release_for(self, analyst: str, run_id: Any, option: str = "run_id") -> pa.Table:
        visible = self._visible_runs(analyst, self._corpora_of(analyst))
        settled = (run.run_id for run in visible if run.state == "settled")
        if run_id not in settled:
            listed = ", or give a list, such as ['new york', 'good morning']"
            raise UsageError(
                f"{option}: no such release; FROM dphh_releases() lists those for you"
                + (listed if option == "of" else "")
            )
        return self._stored_release(run_id)

    def _stored_release(self, run_id: str) -> pa.Table:
        manifest, parquet = self._ledger.release(run_id)
        return Release.from_parquet(parquet, manifest).table


def budgets(ledger: Ledger, analyst: str) -> Sequence[Account | Share]:
    """What someone may spend: an analyst their shares, the owner every named corpus."""
    if analyst == OWNER:
        return [account for account in ledger.accounts() if account.name is not None]
    return ledger.shares(analyst)


_LEDGER_ADVICE = "FROM dphh_ledger() says what is spent: all of it, if the run had begun"


def _run_id(analyst: str, verb: str, arguments: Arguments) -> str:
    """The run id that the analyst gave, or a hash of the request."""
    given = arguments.get("run_id")
    request = {name: _with_plain_numbers(value) for name, value in arguments.items()}
    if isinstance(groups := request.get("groups"), (str, list)) and groups:
        request["groups"] = as_set(groups)
    if isinstance(items := request.get("of"), list):
        request["of"] = sorted(items, key=json.dumps)
    asked = json.dumps([verb, {**request, "run_id": None}], sort_keys=True)
    own = f"{verb}-{hashlib.sha256(asked.encode()).hexdigest()[:16]}"
    if given is None or given == own:
        given = own
    elif isinstance(given, str) and re.fullmatch(r"[a-z_]+-[0-9a-f]{16}", given):
        raise UsageError("run_id: names of this form are reserved for the gateway; choose another")
    return f"{analyst}/{checked_run_id(given, longest=100)}"


def _with_plain_numbers(value: Any) -> Any:
    """Makes 1.0 and 1 the same number, so that both give the same run id."""
    if isinstance(value, list):
        return [_with_plain_numbers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
