"""The ledger's SQLite file: its tables and its path, and how it is opened, read and written.

Every call of the ledger opens the file, does one transaction and closes it again. No connection
outlives a call, so a forked worker never inherits one. The journal is SQLite's rollback journal,
not WAL, so that the ledger is one file at rest and can be copied, mounted read-only or put on a
disk that knows no shared memory; `synchronous = EXTRA` makes a commit survive a power cut.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from dphh.errors import LedgerError, Notice, UsageError, warn
from dphh.reader.paths import dphh_folder

SCHEMA_VERSION = 7
APPLICATION_ID = 0x64706868  # "dphh" in ASCII: tells a ledger from any other SQLite file
LOCK_TIMEOUT_SECONDS = 120.0  # other processes' transactions take milliseconds each
SILENT_SECONDS = 3.0  # a longer wait is told

TABLES = """
CREATE TABLE data_key (                 -- random: digests of data are keyed with it
    key BLOB NOT NULL
);
CREATE TABLE accounts (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    source  TEXT NOT NULL,              -- JSON: kind, where, user, content
    epsilon REAL NOT NULL,              -- the cap
    delta   REAL NOT NULL,
    rule    TEXT NOT NULL CHECK (rule IN ('divergence', 'sums')),
    "groups" TEXT NOT NULL DEFAULT '{}' -- JSON: columns with values that are public
);
CREATE TABLE shares (
    account INTEGER NOT NULL REFERENCES accounts (id),
    analyst TEXT NOT NULL,
    epsilon REAL NOT NULL,
    delta   REAL NOT NULL,
    PRIMARY KEY (account, analyst)
) WITHOUT ROWID;
CREATE TABLE tokens (
    analyst TEXT PRIMARY KEY,
    sha256  TEXT NOT NULL UNIQUE        -- of a token of 256 random bits
) WITHOUT ROWID;
CREATE TABLE runs (
    sequence   INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id     TEXT NOT NULL UNIQUE,
    id_given   INTEGER NOT NULL,        -- 1: whoever asked wrote the run id; 0: dphh drew it
    digest     TEXT NOT NULL,           -- of the whole request: tells a repeat from another request
    data       TEXT,                    -- a keyed digest of the rows; NULL for a test's run
    files      TEXT,                    -- a keyed hash of its files' state; NULL without files
    analyst    TEXT,                    -- who asked, at the gateway
    who        TEXT NOT NULL,           -- the login name
    verb       TEXT NOT NULL,
    parameters TEXT NOT NULL,           -- JSON
    source     TEXT NOT NULL,           -- JSON
    events     TEXT NOT NULL,           -- JSON list: what is done, so that it can be priced again
    epsilon    REAL NOT NULL,
    delta      REAL NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('running', 'failed', 'settled')),
    recorded   REAL NOT NULL,
    changed    REAL NOT NULL,
    attempts   INTEGER NOT NULL,
    -- What a run needs to go on; NULL when it is settled.
    key        BLOB,                    -- random: what a run draws once is derived from it
    setting    TEXT,                    -- JSON: what must be the same
    manifest   TEXT,                    -- JSON, when settled
    payers     TEXT NOT NULL,           -- JSON: the accounts that were charged when it was booked
    seal       TEXT NOT NULL DEFAULT '' -- a hash of the row, as of `seal_of`
);
CREATE INDEX runs_by_digest ON runs (digest);
CREATE TABLE charges (
    run     INTEGER NOT NULL REFERENCES runs (sequence),
    account INTEGER NOT NULL REFERENCES accounts (id),
    PRIMARY KEY (run, account)
) WITHOUT ROWID;
CREATE TABLE drawn (                    -- what a draw releases, or the whole release, as Parquet
    run    INTEGER NOT NULL REFERENCES runs (sequence),
    name   TEXT NOT NULL,
    data   BLOB NOT NULL,
    PRIMARY KEY (run, name)             -- so no draw of a run is stored twice
);
CREATE TABLE history (                  -- what owners changed
    id       INTEGER PRIMARY KEY,
    account  TEXT,                      -- its name; NULL for a token
    analyst  TEXT,                      -- whose share or token it is
    what     TEXT NOT NULL,             -- account, cap, corpus, groups, share or token
    earlier  TEXT NOT NULL,             -- JSON: the earlier runs that were charged with it
    who      TEXT NOT NULL,             -- the login name
    recorded REAL NOT NULL,
    after    INTEGER NOT NULL,          -- the sequence of the last run before it; 0 without one
    state    TEXT,    -- since then: JSON of the account, or of the share; a token's hash; or NULL
    seal     TEXT NOT NULL DEFAULT ''   -- a hash of the row, as of `seal_of`
);
"""

#: A commit waits until the disk has both the data and the removal of the journal from its folder.
SYNCHRONOUS = "EXTRA"

# One call at a time in a process. Two reasons, both SQLite's: a fork in the middle of a transaction
# would give the child a connection whose closing rolls the parent's transaction back, so forks
# wait; and closing any descriptor of the file drops all POSIX locks that the process holds on it,
# so nothing may create the file while another thread is in a transaction.
one_call_at_a_time = threading.RLock()
if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(
        before=one_call_at_a_time.acquire,
        after_in_parent=one_call_at_a_time.release,
        after_in_child=one_call_at_a_time.release,
    )


def default_path() -> Path:
    """The path in the variable DPHH_LEDGER, else `dphh/ledger.sqlite` in the user's data folder."""
    if file := os.environ.get("DPHH_LEDGER"):
        return Path(file)
    if (unnamed := _unnamed_path()) is None:
        raise LedgerError(
            "No place for the ledger: this user has no home folder. "
            "Name a file with --ledger or DPHH_LEDGER."
        )
    return unnamed


def _unnamed_path() -> Path | None:
    """The path of a user's ledger if none is named; None without a home folder."""
    data = dphh_folder("XDG_DATA_HOME", ".local/share")
    return None if data is None else data / "ledger.sqlite"


def _refuse_misspelled(path: Path) -> None:
    """Refuse a ledger that was named and does not exist: a new one would cap nothing."""
    unnamed = _unnamed_path()
    if not exists(path) and (unnamed is None or path != Path(os.path.realpath(unnamed))):
        raise UsageError(absent_message(path))


def absent_message(path: Path) -> str:
    if path.exists():
        return (
            f"The file {path} is empty: it is no ledger, or no longer one. Nothing was spent. If "
            "it had accounts or runs, put the last copy back (docs/ledger.md, A copy): a new "
            "ledger forgets what was spent. If not, `dphh ledger add ACCOUNT CORPUS` begins one"
        )
    return (
        f"There is no ledger at {path}. Nothing was spent. Correct its name (--ledger, "
        "DPHH_LEDGER), or put it back. If there was none, `dphh ledger add ACCOUNT CORPUS` "
        "makes it, or in Python Ledger(path).add(...)"
    )


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection; to an empty ledger in memory, if the path is the one that nobody has
    to name and no ledger is there yet."""
    _refuse_misspelled(path)
    with (
        one_call_at_a_time,
        _explain_errors(path, "read"),
        # Read-write if the file allows it, because a killed writer's journal must be rolled back
        # before anything is read; SQLite falls back to read-only by itself.
        closing(_connect(path) if exists(path) else empty_ledger()) as file,
    ):
        _wait_for_lock(file, path, "PRAGMA user_version")
        con = file if _has_tables(file, path) else empty_ledger()
        con.execute("PRAGMA query_only = ON")
        con.execute("BEGIN")
        yield con
        con.execute("ROLLBACK")


def empty_ledger() -> sqlite3.Connection:
    """A ledger without accounts and runs, in memory."""
    con = sqlite3.connect(":memory:", isolation_level=None)
    con.row_factory = sqlite3.Row
    _create_tables(con)
    return con


def exists(path: Path) -> bool:
    """Whether there is a ledger, and not the empty file that a first booking has just made."""
    with _explain_errors(path, "read"):  # a folder that this login may not enter
        return path.exists() and path.stat().st_size > 0


@contextmanager
def writing(path: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """One immediate transaction: committed as a whole when the block ends, or not at all. A missing
    ledger is made if `create`, or if its path is the one that nobody has to name."""
    if not create:
        _refuse_misspelled(path)
    with one_call_at_a_time, _explain_errors(path, "write"):
        # No other login may read the ledger. SQLite gives its journal the same mode.
        for folder in reversed(path.parents):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)
        with closing(_connect(path)) as con, con:  # the second `con` commits or rolls back
            con.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            con.execute("PRAGMA foreign_keys = ON")
            con.execute("PRAGMA secure_delete = ON")  # a settled run's key is overwritten
            _wait_for_lock(con, path, "BEGIN IMMEDIATE")
            if not _has_tables(con, path):
                _create_tables(con)
            yield con


def _connect(path: Path) -> sqlite3.Connection:
    con = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None
    )
    con.row_factory = sqlite3.Row
    return con


def _wait_for_lock(con: sqlite3.Connection, path: Path, first: str) -> None:
    """Execute the first statement that needs the file's lock. A long wait is announced, so that a
    job's log does not look as if the job hung."""
    try:
        con.execute(f"PRAGMA busy_timeout = {int(1000 * SILENT_SECONDS)}")
        con.execute(first)
    except sqlite3.OperationalError as problem:
        if problem.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        with suppress(Notice):  # where warnings are errors, a paid run must not end by this one
            warn(f"waiting for the ledger {path}, which another process holds locked", Notice)
        con.execute(f"PRAGMA busy_timeout = {int(1000 * LOCK_TIMEOUT_SECONDS)}")
        con.execute(first)


def _has_tables(con: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is a ledger; False if it is empty. Any other file is refused."""
    ((application,),) = con.execute("PRAGMA application_id").fetchall()
    ((version,),) = con.execute("PRAGMA user_version").fetchall()
    if application == version == 0 and not con.execute("SELECT 1 FROM sqlite_master").fetchall():
        return False
    if (application, version) != (APPLICATION_ID, SCHEMA_VERSION):
        raise LedgerError(
            f"{path} is not a ledger of this dphh (schema {SCHEMA_VERSION}). Name another file, or "
            "use the dphh that wrote it."
        )
    return True


def is_ledger(path: Path) -> bool:
    return _head(path)[68:72] == APPLICATION_ID.to_bytes(4)  # where SQLite's header has it


def _head(path: Path) -> bytes:
    """The first bytes of a file; none, if it cannot be read."""
    with one_call_at_a_time, suppress(OSError), path.open("rb") as file:
        return file.read(72)
    return b""


def _create_tables(con: sqlite3.Connection) -> None:
    for statement in TABLES.split(";\n"):  # executescript() would commit the transaction
        con.execute(statement)
    con.execute("INSERT INTO data_key VALUES (?)", (os.urandom(32),))
    con.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    con.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


@contextmanager
def _explain_errors(path: Path, task: str) -> Iterator[None]:
    """Replace errors of SQLite and the system by LedgerErrors that say what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        denied = isinstance(error, PermissionError)
        if denied or (path.exists() and not os.access(path, os.R_OK)):
            raise LedgerError(
                f"Could not {task} the ledger {path}: this login has no permission to. Nothing of "
                "this request was recorded. Its owner's login has, and makes a copy for you with "
                "`dphh ledger backup`"
            ) from error
        if _head(path)[8:12] == b"DUCK":
            raise LedgerError(
                f"The file {path} is a DuckDB database, and no ledger. Name another file: ledger=, "
                "--ledger or DPHH_LEDGER. Nothing was spent"
            ) from error
        raise LedgerError(
            f"Could not {task} the ledger {path}: {error}. Nothing of this request was recorded. "
            "See that it is a ledger, that its disk has space, that this user may read and write "
            "it and its folder, and that no process holds it locked; or name another file with "
            "--ledger or DPHH_LEDGER. If the ledger is damaged, restore a backup: a new ledger "
            "forgets what was spent."
        ) from error
