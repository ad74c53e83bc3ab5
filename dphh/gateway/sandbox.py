"""Runs an analyst's statement in a child process that has macros and no data.

The child can read no file and write none, and has little memory and a time limit. If a statement
crashes it, only that statement is lost. The service answers the macros, over the pipe.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

from dphh.asking.macros import install, macros
from dphh.corpora.quiet import without_bar
from dphh.errors import BudgetRefused, DphhError, UsageError
from dphh.gateway.answer_rows import VECTOR, Rows, in_batches
from dphh.gateway.child import Child, Gone, Message, Pipe, serve
from dphh.gateway.guard import EMPTY, Guard

log = logging.getLogger("dphh.gateway")

#: Answers a macro for one analyst, whom the sandbox does not know.
Answering = Callable[[str, dict[str, Any]], pa.Table]

SECONDS = 60.0  # the time limit of a statement, not counting the runs that it waits for
TOTAL_SECONDS = 4 * 3600.0  # the time limit including runs
CALLS = 64  # macro calls per statement, which may call macros for each row of a table
_MEMORY = "512MB"
_ADDRESSES = 4 * 2**30  # bytes of address space; DuckDB's own limit does not count everything


class Sandbox:
    """The gateway's handle of one sandbox process."""

    def __init__(self, *, guarded: bool = True) -> None:
        self._child = Child(__name__, *([] if guarded else ["unguarded"]))
        self.stopped = False

    def ask(self, statement: str, answering: Answering, seconds: float = SECONDS) -> Rows:
        """Run one statement and answer its macros. The child keeps the rows until the next one."""
        pipe = self._child.pipe
        start = time.monotonic()
        until, calls = start + seconds, 0
        try:
            pipe.send({"statement": statement})
            while True:
                if not pipe.waits(until - time.monotonic()):
                    self.stop()
                    raise UsageError(f"The query took over {seconds:g} seconds; make it smaller")
                message, _ = pipe.receive()
                if "refused" in message:
                    raise UsageError(message["refused"])
                if "call" not in message:
                    return Rows(
                        message["names"], message["size"], message["batches"], self._fetch_batch
                    )
                calls += 1
                if calls > CALLS:
                    self.stop()
                    raise UsageError(f"The query calls dphh over {CALLS} times; use fewer calls")
                asked = time.monotonic()
                self._answer_call(message, answering)
                if macros()[message["call"]].spends:  # a run has its own limits
                    until = min(until + time.monotonic() - asked, start + TOTAL_SECONDS)
        except Gone:
            raise self._error_of_end() from None

    def forget(self) -> None:
        """Drop the rows of the last statement."""
        try:
            self._child.pipe.send({"forget": True})
        except Gone:
            self.stopped = True

    def _fetch_batch(self, number: int) -> bytes:
        try:
            self._child.pipe.send({"batch": number})
            if not self._child.pipe.waits(SECONDS):
                self.stop()
            _, batch = self._child.pipe.receive_packed()
        except Gone:
            raise self._error_of_end() from None
        assert batch is not None
        return batch

    def _error_of_end(self) -> UsageError:
        why = "was stopped" if self.stopped else "needs more memory than a query may use"
        self.stopped = True
        return UsageError(f"The query {why}, and has ended")

    def _answer_call(self, message: Message, answering: Answering) -> None:
        try:
            table = answering(message["call"], message["arguments"])
        except (UsageError, BudgetRefused) as problem:
            self._child.pipe.send({"refused": str(problem)})
        except DphhError as problem:  # its message may name the ledger, so only the owner sees it
            log.error("%s", problem)
            self._child.pipe.send(
                {"refused": "The gateway failed, and why is for its owner to see"}
            )
        except BaseException:
            self.stop()  # the child waits for an answer that will not come
            raise
        else:
            self._child.pipe.send({}, table)

    def stop(self) -> None:
        """Stop the sandbox, from any thread; a thread that waits in `ask` gets an error."""
        self.stopped = True
        self._child.end()

    def close(self) -> None:
        self._child.close()


def _main() -> None:
    """The main function of the child process."""
    guarded = sys.argv[2:] != ["unguarded"]
    if guarded:
        _limit_process()
    con = duckdb.connect(":memory:", config={**EMPTY, "memory_limit": _MEMORY} if guarded else {})
    without_bar(con)
    con.execute("SET arrow_lossless_conversion = true")
    con.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")  # as checked trees are written
    service: list[Pipe] = []

    def forward(what: str, arguments: dict[str, Any], _: str) -> pa.Table:
        service[0].send({"call": what, "arguments": arguments})
        message, table = service[0].receive()
        if "refused" in message:
            raise UsageError(message["refused"])
        return table

    install(con, forward)
    if guarded:
        con.execute("SET max_temp_directory_size = '0B'")
        con.execute("SET lock_configuration = true")
    guard = Guard(frozenset(f"dphh_{kind}{name}" for name in macros() for kind in ("", "asked_")))

    batches: list[pa.Table] = []  # of the last answer

    def handle(pipe: Pipe, message: Message, _: pa.Table | None = None) -> None:
        if "batch" in message:
            return pipe.send({}, batches[message["batch"]])
        batches.clear()
        if "forget" in message:
            return None
        service[:] = [pipe]
        statement = message["statement"]
        try:
            reader = con.execute(
                guard.checked(statement) if guarded else statement
            ).to_arrow_reader(VECTOR)
            assert reader is not None
            found, size = in_batches(reader, reader.schema)
        except (DphhError, duckdb.Error) as problem:
            # DuckDB prefixes messages of its `error` function; the server adds the prefix again.
            pipe.send({"refused": str(problem).removeprefix("Invalid Input Error: ")})
        except MemoryError:
            pipe.send({"refused": "The query needs more memory than a query may use"})
        else:
            batches.extend(found)
            pipe.send({"names": reader.schema.names, "size": size, "batches": len(found)})

    serve(handle)


def _limit_process() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _main()
