"""The served DuckDB: speaks quack, knows who asks, and runs no analyst's SQL.

Quack asks two functions by name. The first says whose token a client brings. The second is given
each statement before it runs, and what it gives back runs in its stead: the statement goes to a
desk, its rows into a table of this instance, and the served SQL is the reading of that table, or
an error that says what was refused. So nothing that an analyst writes is ever executed here.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling

from dphh.errors import DphhError, UsageError
from dphh.gateway.analysts import Analysts, OnlyOwner
from dphh.gateway.desk import Desk
from dphh.gateway.extensions import load
from dphh.gateway.guard import EMPTY
from dphh.gateway.office import Office, Terms, log
from dphh.ledger import Ledger

#: What a client asks by itself when it attaches: which schemas and tables there are. None.
_ATTACHING = {
    "SELECT catalog_name, schema_name FROM information_schema.schemata "
    "WHERE catalog_name NOT IN ('system', 'temp') ORDER BY ALL": (
        "SELECT 'dphh' AS catalog_name, 'main' AS schema_name"
    ),
    "SELECT schema_name, sql, 'table' FROM duckdb_tables() "
    "UNION ALL SELECT schema_name, view_name, 'view' FROM duckdb_views()": (
        "SELECT '' AS schema_name, '' AS sql, '' AS kind WHERE false"
    ),
}

_DESKS, _DESKS_EACH = 6, 3  # statements at once, in all and of one analyst
_SESSIONS, _SESSIONS_EACH = 512, 128
_KEPT_SECONDS, _KEPT_ANSWERS = 60.0, 4  # of one session's answers, for clients that fetch slowly
_KEPT_BYTES_EACH = 512 * 2**20  # of all of one analyst's, so that they leave room for others'


@dataclass
class _Answer:
    table: str
    size: int  # in bytes
    made: float = field(default_factory=time.monotonic)


@dataclass
class _Session:
    analyst: str
    token: str
    opened: float = field(default_factory=time.monotonic)
    answers: list[_Answer] = field(default_factory=list)


class Gateway:
    """One served instance over the corpora that a ledger names.

    `guarded=False` is for the test that its attacks would be noticed: statements then run as they
    are written, in an instance that may open files. No command can ask for it.
    """

    def __init__(
        self,
        ledger: Ledger,
        analysts: Analysts | OnlyOwner,
        *,
        host: str = "localhost",
        port: int = 9494,
        terms: Terms | None = None,
        guarded: bool = True,
    ) -> None:
        self.uri = f"quack:{host}:{port}"
        self.ledger, self._analysts, self._guarded = ledger, analysts, guarded
        self._sessions: dict[str, _Session] = {}
        self._desks: dict[Desk, str] = {}  # busy, and for whom
        self._idle: list[tuple[str, Desk]] = []
        self._lock = threading.Lock()
        self._con = _served_instance()
        self._office = Office(ledger, terms or Terms())
        try:
            self._serve(host)
        except BaseException:
            self.close()
            raise

    def stop(self, analyst: str | None = None) -> None:
        """Stop what an analyst, or everybody, has running. What had begun stays spent."""
        # Desks first, and while none can change hands: a query that comes next is not meant.
        with self._lock:
            for desk, name in self._desks.items():
                if analyst in (None, name):
                    desk.stop()
        self._office.stop(analyst)

    def close(self) -> None:
        self.stop()
        self._office.close()
        with suppress(duckdb.Error):
            self._con.execute("CALL quack_stop(?)", [self.uri])
        with self._lock:
            idle, self._idle = self._idle, []
        for _, desk in idle:
            desk.close()
        self._con.close()

    def _serve(self, host: str) -> None:
        con = self._con
        con.create_function(
            "dphh_authenticated",
            self._authenticated,
            ["VARCHAR", "VARCHAR", "VARCHAR"],
            "BOOLEAN",
            side_effects=True,
        )
        con.create_function(
            "dphh_authorised",
            self._authorised,
            ["VARCHAR", "VARCHAR"],
            "VARCHAR",
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=True,
        )
        con.execute("SET GLOBAL quack_authentication_function = 'dphh_authenticated'")
        con.execute("SET GLOBAL quack_authorization_function = 'dphh_authorised'")
        con.execute("CREATE SCHEMA answers")
        # The server's own token is nobody's: `_authenticated` never looks at it.
        other = "true" if host not in ("localhost", "127.0.0.1", "::1") else "false"
        try:
            con.execute(
                f"CALL quack_serve(?, token := ?, allow_other_hostname := {other})",
                [self.uri, uuid.uuid4().hex + uuid.uuid4().hex],
            )
        except duckdb.Error as problem:
            raise UsageError(f"serve: could not listen at {self.uri} ({problem})") from None
        con.execute("SET enable_external_access = false")
        con.execute("SET lock_configuration = true")

    def _authenticated(self, session: str, token: str, _: str) -> bool:
        try:
            analyst = self._analysts.who(token)
        except DphhError as problem:
            log.error("%s", problem)
            return False
        if analyst is None:
            log.warning("a client came with a token of nobody's")
            return False
        with self._lock:
            self._forget_closed_sessions()
            of_analyst = sum(each.analyst == analyst for each in self._sessions.values())
            if len(self._sessions) >= _SESSIONS or of_analyst >= _SESSIONS_EACH:
                log.warning("%s has too many connections", analyst)
                return False
            self._sessions[session] = _Session(analyst, token)
        return True

    def _authorised(self, session_id: str, statement: str) -> str | None:
        """The SQL that runs instead of the statement; NULL refuses without a word.

        To quack any text allows, even one that says `error`. Before it appends rows that a client
        sends, it asks about the INSERT that it would stand for, and runs nothing of the answer.
        """
        if statement.lstrip().upper().startswith("INSERT"):
            return None
        session = self._sessions.get(session_id)
        if session is None or self._analysts.who(session.token) != session.analyst:
            return _error("Not authorised: connect again with a token that is in force")
        try:
            if (fixed := _ATTACHING.get(" ".join(statement.split()))) is not None:
                return fixed
            return self._kept(session, self._asked(session.analyst, statement))
        except DphhError as problem:
            return _error(str(problem))
        except Exception as problem:
            log.exception("a defect of the gateway")
            return _error(f"A defect of the gateway, {type(problem).__name__}; tell its owner")

    def _asked(self, analyst: str, statement: str) -> pa.Table:
        if "".join(statement.lower().split()).rstrip(";") == _STOP:
            self.stop(analyst)
            return pa.table({"stopped": [True]})
        desk = self._take_desk(analyst)
        try:
            return desk.ask(
                statement, lambda what, arguments: self._office.answer(analyst, what, arguments)
            )
        finally:
            self._give_back(desk, analyst)

    def _take_desk(self, analyst: str) -> Desk:
        with self._lock:
            busy = Counter(self._desks.values())
            if busy.total() >= _DESKS or busy[analyst] >= _DESKS_EACH:
                raise UsageError(
                    "The gateway is answering as many queries as it may, in all or for you; ask "
                    "again in a moment"
                )
            # A desk is one analyst's for good: nothing of one is ever where another asks.
            own = next((each for each in self._idle if each[0] == analyst), None)
            if own is not None:
                self._idle.remove(own)
            desk = own[1] if own else Desk(guarded=self._guarded)
            self._desks[desk] = analyst
            return desk

    def _give_back(self, desk: Desk, analyst: str) -> None:
        with self._lock:
            del self._desks[desk]
            closing = [desk] if desk.stopped else []
            if not desk.stopped:
                self._idle.append((analyst, desk))
            while len(self._idle) > _DESKS:
                closing.append(self._idle.pop(0)[1])
        for each in closing:
            each.close()

    def _kept(self, session: _Session, table: pa.Table) -> str:
        """Keep the rows as a table of the served instance, and give the SQL that reads it."""
        answer = _Answer(f"answer_{uuid.uuid4().hex}", table.nbytes)
        self._make_room(session, answer)
        columns = [f"c{index}" for index in range(table.num_columns)]
        con = self._con.cursor()
        incoming = f"incoming_{answer.table}"
        con.register(incoming, table.rename_columns(columns))
        con.execute(f"CREATE TABLE answers.{answer.table} AS FROM {incoming}")
        con.unregister(incoming)
        selected = ", ".join(
            f"{column} AS {_identifier(shown)}"
            for column, shown in zip(columns, table.column_names, strict=True)
        )
        return f"SELECT {selected} FROM answers.{answer.table}"

    def _make_room(self, session: _Session, answer: _Answer) -> None:
        """Of one session the last few answers, for a while; of an analyst no more than so much."""
        with self._lock:
            session.answers.append(answer)
            late = answer.made - _KEPT_SECONDS
            old = [
                (session, each)
                for index, each in enumerate(reversed(session.answers))
                if index >= _KEPT_ANSWERS or each.made < late
            ]
            own = [
                (holder, each)
                for holder in self._sessions.values()
                if holder.analyst == session.analyst
                for each in holder.answers
                if each is not answer and (holder, each) not in old
            ]
            size = answer.size + sum(each.size for _, each in own)
            for holder, each in sorted(own, key=lambda pair: pair[1].made):
                if size > _KEPT_BYTES_EACH:
                    old.append((holder, each))
                    size -= each.size
            for holder, each in old:
                holder.answers.remove(each)
        self._drop(each.table for _, each in old)

    def _forget_closed_sessions(self) -> None:
        """Those that quack no longer has; a new one is not there yet."""
        query = "SELECT connection_id FROM quack_active_connections()"
        open_ones = {row[0] for row in self._con.cursor().execute(query).fetchall()}
        for session_id, session in list(self._sessions.items()):
            if session_id not in open_ones and time.monotonic() - session.opened > 2.0:
                del self._sessions[session_id]
                self._drop(answer.table for answer in session.answers)

    def _drop(self, names: Any) -> None:
        con = self._con.cursor()
        for name in names:
            con.execute(f"DROP TABLE IF EXISTS answers.{name}")


#: `FROM dphh_stop()`, with or without a semicolon: what Ctrl-C in `dphh shell` sends.
_STOP = "fromdphh_stop()"


def _served_instance() -> duckdb.DuckDBPyConnection:
    # Threads wait for desks here, and do nothing else; files may be opened only until extensions
    # are loaded and the port is bound.
    config = {**EMPTY, "enable_external_access": True, "threads": 8, "memory_limit": "2GB"}
    con = duckdb.connect(":memory:", config=config)
    load(con)
    con.execute("SET max_temp_directory_size = '0B'")
    return con


def _error(said: str) -> str:
    return "SELECT error('" + said.replace("'", "''") + "')"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
