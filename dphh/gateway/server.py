"""The gateway's core: authenticates clients and has their statements answered.

A client's input comes through the front, complete and small, as one of four messages. A statement
goes to a sandbox. Its rows are stored in the DuckDB that serves them, which only runs queries that
read such rows. So nothing that an analyst writes is executed, or even parsed, where the answers are
stored. Refusals are sent from here.
"""

from __future__ import annotations

import secrets
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dphh.errors import BudgetRefused, DphhError, UsageError
from dphh.gateway import wire
from dphh.gateway.analysts import Analysts, OnlyOwner
from dphh.gateway.answer_rows import Rows, of_table, reading
from dphh.gateway.child import Gone
from dphh.gateway.front import ConnectionLimits, Front
from dphh.gateway.sandbox import Sandbox
from dphh.gateway.served import Served
from dphh.gateway.service import Service, Terms, log
from dphh.ledger import Ledger

if TYPE_CHECKING:
    from dphh.gateway.provider import SignedIn

#: What a client asks by itself when it attaches: the schemas and tables. There are none.
_STARTUP_QUERIES = {
    "SELECT catalog_name, schema_name FROM information_schema.schemata "
    "WHERE catalog_name NOT IN ('system', 'temp') ORDER BY ALL": (
        "SELECT 'dphh' AS catalog_name, 'main' AS schema_name"
    ),
    "SELECT schema_name, sql, 'table' FROM duckdb_tables() "
    "UNION ALL SELECT schema_name, view_name, 'view' FROM duckdb_views()": (
        "SELECT '' AS schema_name, '' AS sql, '' AS kind WHERE false"
    ),
}

_NOT_IN_FORCE = "Not authorised: connect again with a token that is in force"
_DESKS, _DESKS_EACH = 6, 3  # statements at the same time, in all and per analyst
_SESSIONS, _SESSIONS_EACH = 512, 128  # beyond these, the least recently used sessions end
_KEPT_SECONDS, _KEPT_ANSWERS = 60.0, 4  # per session, for clients that fetch slowly
_STORED_BYTES_EACH = 512 * 2**20  # per analyst, so that there is room for others
_STORED_BYTES = 1024 * 2**20  # in all
_WATCH_SECONDS = 0.5  # between two checks for removed tokens


@dataclass(eq=False)
class _Session:
    """A client's connection: its analyst, its token and its stored answers."""

    analyst: str
    token: str = field(repr=False)
    used: float = field(default_factory=time.monotonic)
    ended: bool = False
    quack: tuple[Served, str] | None = None  # its session in the process that serves answers


@dataclass(eq=False)
class _Answer:
    """An answer that is stored as a table in the process that serves rows."""

    session: _Session
    where: Served
    table: str
    size: int  # in bytes
    made: float = field(default_factory=time.monotonic)
    gone: bool = False


class Gateway:
    """A running gateway for the corpora that a ledger names.

    `guarded=False` is for a test of the attack tests: statements then run as written, in an
    instance that may open files, and the attacks must be noticed. No command sets it.
    """

    def __init__(
        self,
        ledger: Ledger,
        analysts: Analysts | OnlyOwner | SignedIn,
        *,
        host: str = "localhost",
        port: int = 9494,
        terms: Terms | None = None,
        allowed: ConnectionLimits | None = None,
        guarded: bool = True,
    ) -> None:
        self.uri = f"quack:{host}:{port}"
        self.ledger, self._analysts, self._guarded = ledger, analysts, guarded
        self._sessions: dict[str, _Session] = {}
        self._answers: list[_Answer] = []  # oldest first
        self._sandboxes: dict[Sandbox, _Session] = {}  # busy sandboxes and their sessions
        self._idle: list[tuple[str, Sandbox]] = []
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._served: Served | None = None
        self._ended = threading.Event()
        self._service = Service(ledger, terms or Terms())
        self._front: Front | None = None
        try:
            self._serving_process()
            self._front = Front(host, port, self._answer_bytes, allowed)
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._watch_tokens, daemon=True).start()

    def stop(self, analyst: str | None = None) -> None:
        """Stop the statements and runs of one analyst, or of all. What had begun stays spent."""
        # Desks first, under the lock, so that no sandbox goes to a later query meanwhile.
        with self._lock:
            for sandbox, session in self._sandboxes.items():
                if analyst in (None, session.analyst):
                    sandbox.stop()
        self._service.stop(analyst)

    def close(self) -> None:
        self._ended.set()
        self.stop()
        if self._front is not None:
            self._front.close()
        self._service.close()
        with self._lock:
            idle, self._idle = self._idle, []
        for _, sandbox in idle:
            sandbox.close()
        if self._served is not None:
            self._served.close()

    # Messages

    def _answer_bytes(self, data: bytes) -> bytes:
        """The answer to any message."""
        try:
            return self._answer_message(wire.read(data))
        except (UsageError, BudgetRefused) as problem:
            # About the request and its price, which the analyst may know.
            return wire.refused(str(problem))
        except DphhError as problem:
            # About the ledger or the machine: only the owner may see it.
            log.error("%s", problem)
            return wire.refused("The gateway failed, and why is for its owner to see")
        except Exception as problem:
            log.exception("a defect of the gateway")
            return wire.refused(f"A defect of the gateway, {type(problem).__name__}")

    def _answer_message(self, message: wire.Message) -> bytes:
        if isinstance(message, wire.Connect):
            return wire.connected(self._open_session(message.token))
        session = self._session_of(message.session)
        match message:
            case wire.Prepare():
                return self._answer_prepare(session, message)
            case wire.Fetch():
                return self._answer_fetch(session, message)
            case wire.Disconnect():
                with self._lock:
                    self._sessions.pop(message.session, None)
                self._forget_sessions([session])
                return wire.disconnected()

    def _open_session(self, token: str) -> str:
        analyst = self._analyst_of_token(token)
        if analyst is None:
            log.warning("a client came with a token of nobody's")
            raise UsageError("Authentication failed")
        session = secrets.token_hex(16).upper()
        with self._lock:
            ended = self._take_oldest_sessions(analyst)
            self._sessions[session] = _Session(analyst, token)
        self._forget_sessions(ended)
        return session

    def _take_oldest_sessions(self, analyst: str) -> list[_Session]:
        """Remove and return the oldest session of this analyst, and the oldest of all, where a
        limit is reached: they end, so that the analyst can have one more."""
        ended = []
        for most, whose in ((_SESSIONS_EACH, {analyst}), (_SESSIONS, None)):
            names = [n for n, s in self._sessions.items() if whose is None or s.analyst in whose]
            if len(names) >= most:
                oldest = min(names, key=lambda name: self._sessions[name].used)
                ended.append(self._sessions.pop(oldest))
        return ended

    def _session_of(self, name: str) -> _Session:
        session = self._sessions.get(name)
        if session is None:
            raise UsageError(_NOT_IN_FORCE)
        if self._analyst_of_token(session.token) != session.analyst:
            raise UsageError(_NOT_IN_FORCE)
        session.used = time.monotonic()
        return session

    def _token_is_valid(self, session: _Session) -> bool:
        try:
            return self._analysts.still(session.analyst, session.token)
        except DphhError as problem:
            log.error("%s", problem)
            return False

    def _analyst_of_token(self, token: str) -> str | None:
        try:
            return self._analysts.who(token)
        except DphhError as problem:
            log.error("%s", problem)
            return None

    def _watch_tokens(self) -> None:
        """Stop the statements and runs of analysts whose token was removed."""
        while not self._ended.wait(_WATCH_SECONDS):
            with self._lock:
                busy = list(self._sandboxes.items())
            for sandbox, session in busy:
                if not self._token_is_valid(session):
                    sandbox.stop()
                    self._service.stop(session.analyst)

    def _answer_prepare(self, session: _Session, message: wire.Prepare) -> bytes:
        statement = message.statement
        if (fixed := _STARTUP_QUERIES.get(" ".join(statement.split()))) is not None:
            return self._serve_rows(session, message, None, fixed)
        if "".join(statement.lower().split()).rstrip(";") == _STOP_STATEMENT:
            self.stop(session.analyst)
            return self._serve_rows(session, message, of_table(pa.table({"stopped": [True]})), "")
        with self._borrowed_sandbox(session) as sandbox:
            return self._serve_rows(
                session, message, self._run_statement(session, sandbox, statement), ""
            )

    def _serve_rows(
        self, session: _Session, message: wire.Prepare, rows: Rows | None, sql: str
    ) -> bytes:
        """Serve the rows; if the serving process dies of them, try once more with a new one."""
        for _ in range(2):
            try:
                served, quack = self._quack_session(session)
                if rows is not None:
                    table = self._store_answer(session, served, rows)
                    sql = reading(f"answers.{table}", rows.names)
                return served.send(wire.Prepare(quack, sql, message.query))
            except Gone:
                continue
        raise UsageError("The answer cannot be served; select fewer rows or columns")

    def _answer_fetch(self, session: _Session, message: wire.Fetch) -> bytes:
        if session.quack is not None:
            served, quack = session.quack
            try:
                return served.send(wire.Fetch(quack, message.result, message.query))
            except Gone:
                pass
        raise UsageError("Result has been closed; ask again, what was paid for costs nothing")

    def _serving_process(self) -> Served:
        """The process that serves answers, started again if it has died."""
        with self._starting:
            if self._served is None or not self._served.alive():
                if self._served is not None:
                    log.error("what serves answers has died, and is started again")
                    self._served.close()
                self._served = Served()
            return self._served

    def _quack_session(self, session: _Session) -> tuple[Served, str]:
        served = self._serving_process()
        if session.quack is None or session.quack[0] is not served:
            session.quack = (served, served.connect())
        return session.quack

    # Statements

    def _run_statement(self, session: _Session, sandbox: Sandbox, statement: str) -> Rows:
        def answering(what: str, arguments: dict[str, Any]) -> pa.Table:
            if not self._token_is_valid(session):
                raise UsageError(_NOT_IN_FORCE)
            return self._service.answer(session.analyst, what, arguments)

        return sandbox.ask(statement, answering)

    @contextmanager
    def _borrowed_sandbox(self, session: _Session) -> Iterator[Sandbox]:
        sandbox = self._take_sandbox(session)
        try:
            yield sandbox
        finally:
            sandbox.forget()
            self._return_sandbox(sandbox, session.analyst)

    def _take_sandbox(self, session: _Session) -> Sandbox:
        analyst = session.analyst
        with self._lock:
            busy = Counter(each.analyst for each in self._sandboxes.values())
            if busy.total() >= _DESKS or busy[analyst] >= _DESKS_EACH:
                raise UsageError(
                    "The gateway has reached its limit of concurrent queries, in all or for you; "
                    "repeat the query in a moment"
                )
            # A sandbox belongs to one analyst for good, so that analysts share no state.
            own = next((each for each in self._idle if each[0] == analyst), None)
            if own is not None:
                self._idle.remove(own)
            sandbox = own[1] if own else Sandbox(guarded=self._guarded)
            self._sandboxes[sandbox] = session
            return sandbox

    def _return_sandbox(self, sandbox: Sandbox, analyst: str) -> None:
        with self._lock:
            del self._sandboxes[sandbox]
            closing = [sandbox] if sandbox.stopped else []
            if not sandbox.stopped:
                self._idle.append((analyst, sandbox))
            while len(self._idle) > _DESKS:
                closing.append(self._idle.pop(0)[1])
        for each in closing:
            each.close()

    # Answers

    def _store_answer(self, session: _Session, served: Served, rows: Rows) -> str:
        """Store the rows as a table. Old answers are dropped first, to stay within the limits."""
        answer = _Answer(session, served, f"answer_{uuid.uuid4().hex}", rows.size)
        with self._lock:
            self._answers.append(answer)
            going = _answers_to_drop(self._answers)
            self._remove_answers(going)
        self._drop_tables(going)
        try:
            served.keep(answer.table, rows, lambda: not answer.gone)
        except (UsageError, Gone):
            with self._lock:
                self._remove_answers([answer])
            raise
        return answer.table

    def _remove_answers(self, going: Sequence[_Answer]) -> None:
        for each in going:
            each.gone = True
        self._answers = [each for each in self._answers if not each.gone]

    def _forget_sessions(self, sessions: Iterable[_Session]) -> None:
        """Drop all answers of ended sessions."""
        for session in sessions:
            session.ended = True
            with self._lock:
                going = [each for each in self._answers if each.session is session]
                self._remove_answers(going)
            self._drop_tables(going)
            if session.quack is not None and session.quack[0].alive():
                served, quack = session.quack
                with suppress(Gone):
                    served.send(wire.Disconnect(quack))

    def _drop_tables(self, answers: Iterable[_Answer]) -> None:
        listed = list(answers)
        for served in {each.where for each in listed if each.where.alive()}:
            with suppress(Gone):
                served.drop(each.table for each in listed if each.where is served)


def _answers_to_drop(answers: Sequence[_Answer]) -> list[_Answer]:
    """The answers to drop, by the limits per session, per analyst and in all."""
    *_, latest = answers
    of_session: Counter[_Session] = Counter()
    of_analyst: Counter[str] = Counter()
    of_all, going = 0, []
    for each in reversed(answers):
        session = each.session
        size = of_analyst[session.analyst] + each.size
        late = session is latest.session and each.made < latest.made - _KEPT_SECONDS
        if each is not latest and (
            session.ended
            or late
            or of_session[session] >= _KEPT_ANSWERS
            or size > _STORED_BYTES_EACH
            or of_all + each.size > _STORED_BYTES
        ):
            going.append(each)
            continue
        of_session[session] += 1
        of_analyst[session.analyst] = size
        of_all += each.size
    return going


#: `FROM dphh_stop()`, with or without a semicolon: sent by Ctrl-C in `dphh shell`.
_STOP_STATEMENT = "fromdphh_stop()"
