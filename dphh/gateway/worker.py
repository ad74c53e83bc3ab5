"""The processes that price plans and run them: the only ones of a gateway that open private data.

A worker gets an order, which is a verb, the name of a corpus, and options; it returns a table or a
refusal. If it is killed, the server goes on with another one, and the run that it had begun
continues when it is asked for again.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import signal
import threading
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from dphh.asking.answers import plan_table
from dphh.columns import as_parquet
from dphh.errors import UsageError
from dphh.files.stopping import Stopped, received_signal, stopping
from dphh.gateway.ledger_view import Answer, answer_to_error, ledger_section, share_named
from dphh.ledger import Account, Ledger, Request
from dphh.ledger.paying import corpus_of_files
from dphh.plan import Plan, verb_function
from dphh.registry import LDP_TRIE, VERBS
from dphh.report.plan_lines import sections_without_ledger

#: The most bytes of address space, and seconds of the processor, for pricing one plan. It reads no
#: data, so only absurd options need more.
_MOST_PRICING_BYTES, _MOST_PRICING_CPU_SECONDS = 3 * 2**30, 10
#: After a signal, a worker has this many seconds to clean up.
_CLEANUP_SECONDS = 8.0


@dataclass(frozen=True)
class Order:
    """A request of an analyst's that a worker prices or runs."""

    ledger: str
    analyst: str
    verb: str
    corpus: str
    options: tuple[tuple[str, Any], ...]


class Workers:
    """`count` processes, each of which answers one order at a time. Orders are answered
    first come, first served."""

    def __init__(self, count: int, run_options: Mapping[str, Any] | None) -> None:
        self._all = [Worker(run_options) for _ in range(count)]
        self._idle = asyncio.LifoQueue[Worker]()  # the last one used has its modules loaded
        for worker in reversed(self._all):
            self._idle.put_nowait(worker)

    async def answer(self, order: Order, seconds: float | None = None) -> Answer | None:
        worker = await self._idle.get()
        try:
            return await worker.answer(order, seconds)
        finally:
            self._idle.put_nowait(worker)

    def close(self) -> None:
        """Interrupt all runs at the same time, so that they clean up, and end the processes."""
        with ThreadPoolExecutor(len(self._all)) as threads:
            for worker in self._all:
                threads.submit(worker.close)


class Worker:
    """A process that answers one order at a time, and starts when it is needed. `run_options`:
    those of `Plan.run`; None for a worker that prices plans and runs none."""

    def __init__(self, run_options: Mapping[str, Any] | None) -> None:
        self._run_options = run_options
        self._thread = ThreadPoolExecutor(1)  # this thread waits for the process's answers
        self._process: Any = None
        self._pipe: Connection | None = None
        self._closed = False

    async def answer(self, order: Order, seconds: float | None = None) -> Answer | None:
        """The answer to an order; None if the process ended, or took more than `seconds` and was
        killed."""
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._send_and_wait, order, seconds
        )

    def _send_and_wait(self, order: Order, seconds: float | None) -> Answer | None:
        if self._closed:
            return None
        try:
            if self._pipe is None or not self._process.is_alive():
                context = multiprocessing.get_context("spawn")
                self._pipe, theirs = context.Pipe()
                self._process = context.Process(
                    target=_answer_orders, args=(theirs, self._run_options), daemon=True
                )
                self._process.start()
                theirs.close()
            self._pipe.send(order)
            if not self._pipe.poll(seconds):
                raise EOFError
            answer: Answer = self._pipe.recv()
            return answer
        except (EOFError, OSError):
            self._end(0.0)
            return None

    def close(self) -> None:
        """Interrupt the run, so that it cleans up, and end the process."""
        self._closed = True
        self._end(_CLEANUP_SECONDS)

    def _end(self, grace_seconds: float) -> None:
        if (process := self._process) is not None:
            process.terminate()
            process.join(grace_seconds)
            process.kill()
            process.join()


def _answer_orders(pipe: Connection, run_options: Mapping[str, Any] | None) -> None:
    os.umask(0o077)
    if run_options is None:
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_PRICING_BYTES, _MOST_PRICING_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")  # the owner's terminal must not show an analyst's warnings
    server = multiprocessing.parent_process()
    threading.Thread(target=_end_with_server, args=(server,), daemon=True).start()
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while received_signal() is None:  # a signal ends the worker
            order = pipe.recv()
            if run_options is None:
                _limit_cpu_seconds()
            with stopping():
                answer = _answer_unless_stopped(order, run_options)
            pipe.send(answer)


def _limit_cpu_seconds() -> None:
    """Let the kernel end this process if it uses too much of the processor from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime) + _MOST_PRICING_CPU_SECONDS
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


def _end_with_server(server: Any) -> None:
    """End this process when the server's process has ended: no run must go on unnoticed."""
    server.join()
    signal.raise_signal(signal.SIGTERM)
    time.sleep(_CLEANUP_SECONDS)
    os._exit(1)


def _answer_unless_stopped(order: Order, run_options: Mapping[str, Any] | None) -> Answer | None:
    book, runs = Ledger(order.ledger, order.analyst), False
    try:
        account = share_named(book, order.corpus)
        plan = _plan(order, book, account)
        assert plan.corpus is not None
        if runs := run_options is not None:
            table = plan.run(ledger=book, **(run_options or {})).table
        else:
            request = Request.of(plan.price, plan.corpus)
            sections = sections_without_ledger(plan.price, plan.corpus)
            table = plan_table([*sections, ledger_section(book, request, account)])
        return Answer(as_parquet(table))
    except (Exception, Stopped) as problem:
        stopped = received_signal() is not None
        return None if stopped else answer_to_error(problem, of_run=runs)


def _plan(order: Order, book: Ledger, account: Account) -> Plan:
    verb, options = VERBS[order.verb], dict(order.options)
    if (by := options.get("by")) is not None:
        if by not in account.groups:
            # The outcome of a run by another column would reveal whether the corpus has it.
            raise UsageError(
                f"by: the corpus's owner has declared no groups of {by[:100]!r}; declared are "
                f"{', '.join(account.groups) or 'none'}. Nothing was spent"
            )
        options.setdefault("groups", account.groups[by])
    corpus = corpus_of_files(account.corpus)
    try:
        plan = verb_function(verb, book, may_read_files=False)(corpus, **options)
    except (MemoryError, ArithmeticError, TypeError):
        raise UsageError(
            "Pricing failed: an option has the wrong type, or is too large or too small; FROM "
            f"dphh_options('{order.verb}') lists them. Nothing was spent"
        ) from None
    if verb is LDP_TRIE and not plan.price["pad"]:
        raise UsageError(
            "pad: without it, whether the run ends in an error depends on the number of users, "
            "which only the corpus's owner may know: the run's outcome would reveal it. Nothing "
            "was spent; give pad := true: where users are too few, made-up ones are added"
        )
    return plan
