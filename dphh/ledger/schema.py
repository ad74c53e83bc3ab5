"""The ledger's SQLite file: its tables and its path, and how it is opened, read and written.

Every verb of the ledger opens the file, does one transaction and closes it again. No connection
outlives a verb, so a forked worker never inherits one. The journal is SQLite's rollback journal,
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

from dphh.errors import LedgerError, UnknownRunError
from dphh.files.paths import folder_of_user

SCHEMA_VERSION = 1
APPLICATION_ID = 0x64706868  # "dphh" in ASCII: tells a ledger from any other SQLite file
TIMEOUT = 120.0  # seconds to wait for other processes' transactions, which take milliseconds each

# The triggers keep what later code, or a hand in the file, must not change by mistake: no run is
# deleted or priced anew, no state goes back, no drawn level is replaced.
TABLES = """
CREATE TABLE accounts (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    source  TEXT NOT NULL,              -- JSON: kind, where, user, content
    epsilon REAL NOT NULL,              -- the cap
    delta   REAL NOT NULL,
    kept    TEXT NOT NULL CHECK (kept IN ('divergence', 'sums'))
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
CREATE TABLE declared (                 -- groups of a column: public knowledge
    account INTEGER NOT NULL REFERENCES accounts (id),
    by      TEXT NOT NULL,
    "groups" TEXT NOT NULL,             -- JSON list
    PRIMARY KEY (account, by)
) WITHOUT ROWID;
CREATE TABLE runs (
    sequence   INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id     TEXT NOT NULL UNIQUE,
    digest     TEXT NOT NULL,           -- of the whole request: tells a repeat from another request
    files      TEXT,                    -- a few bits that recognise the data; NULL of a test's run
    analyst    TEXT,                    -- who asked, at the gateway
    who        TEXT NOT NULL,           -- the system's user
    verb       TEXT NOT NULL,
    parameters TEXT NOT NULL,           -- JSON
    source     TEXT NOT NULL,           -- JSON
    events     TEXT NOT NULL,           -- JSON list: what is done, so that it can be priced again
    epsilon    REAL NOT NULL,
    delta      REAL NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('running', 'failed', 'settled')),
    recorded   REAL NOT NULL,
    changed    REAL NOT NULL,
    manifest   TEXT                     -- JSON, when settled
);
CREATE INDEX runs_by_digest ON runs (digest);
CREATE TABLE charges (
    run     INTEGER NOT NULL REFERENCES runs (sequence),
    account INTEGER NOT NULL REFERENCES accounts (id),
    PRIMARY KEY (run, account)
) WITHOUT ROWID;
CREATE TABLE unfinished (               -- what a run needs to go on; gone once it is settled
    run      INTEGER PRIMARY KEY REFERENCES runs (sequence),
    key      BLOB NOT NULL,             -- of the words that a run draws once: never chosen by data
    setting  TEXT NOT NULL,             -- JSON: what must be the same when the run goes on
    attempts INTEGER NOT NULL
);
CREATE TABLE pieces (                   -- of a level's released rows, or of a release
    run    INTEGER NOT NULL REFERENCES runs (sequence),
    step   TEXT NOT NULL,
    number INTEGER NOT NULL,            -- cut below SQLite's blob limit
    data   BLOB NOT NULL,
    sha256 TEXT NOT NULL,               -- of all pieces together
    PRIMARY KEY (run, step, number)     -- so no step of a run is stored twice
);
CREATE TABLE history (                  -- what owners changed
    id       INTEGER PRIMARY KEY,
    account  TEXT,                      -- its name; NULL of a token
    analyst  TEXT,                      -- whose share or token it is
    what     TEXT NOT NULL,             -- cap, share, token, groups or corpus
    was      TEXT,                      -- NULL: there was none
    now      TEXT,                      -- NULL: there is none any more
    who      TEXT NOT NULL,             -- the system's user
    recorded REAL NOT NULL
);

CREATE TRIGGER runs_are_kept BEFORE DELETE ON runs
BEGIN SELECT RAISE (ABORT, 'a run of the ledger cannot be deleted'); END;
CREATE TRIGGER requests_stand BEFORE UPDATE OF
    sequence, run_id, digest, analyst, verb, parameters, source, events, epsilon, delta ON runs
BEGIN SELECT RAISE (ABORT, 'what a run of the ledger asked for cannot be changed'); END;
CREATE TRIGGER settled_runs_stand BEFORE UPDATE OF state, manifest ON runs
WHEN OLD.state = 'settled'
BEGIN SELECT RAISE (ABORT, 'a settled run of the ledger cannot be changed'); END;
CREATE TRIGGER charges_stand BEFORE UPDATE ON charges
BEGIN SELECT RAISE (ABORT, 'a charge of the ledger cannot be changed'); END;
CREATE TRIGGER charges_are_kept BEFORE DELETE ON charges
BEGIN SELECT RAISE (ABORT, 'a charge of the ledger cannot be deleted'); END;
CREATE TRIGGER levels_are_kept BEFORE DELETE ON pieces
WHEN (SELECT state FROM runs WHERE sequence = OLD.run) <> 'settled'
BEGIN SELECT RAISE (ABORT, 'a level of an unfinished run cannot be deleted'); END;
CREATE TRIGGER pieces_stand BEFORE UPDATE ON pieces
BEGIN SELECT RAISE (ABORT, 'what was drawn cannot be changed'); END;
CREATE TRIGGER history_stands BEFORE UPDATE ON history
BEGIN SELECT RAISE (ABORT, 'the history of the ledger cannot be changed'); END;
CREATE TRIGGER history_is_kept BEFORE DELETE ON history
BEGIN SELECT RAISE (ABORT, 'the history of the ledger cannot be deleted'); END;
"""

#: A commit waits for the disk, and for the folder that forgets the journal.
SYNCHRONOUS = "EXTRA"

# One verb at a time in a process. Two reasons, both SQLite's: a fork in the middle of a transaction
# would give the child a connection whose closing rolls the parent's transaction back, so forks
# wait; and closing any descriptor of the file drops all POSIX locks that the process holds on it,
# so nothing may create the file while another thread is in a transaction.
one_verb_at_a_time = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=one_verb_at_a_time.acquire,
        after_in_parent=one_verb_at_a_time.release,
        after_in_child=one_verb_at_a_time.release,
    )


def default_path() -> Path:
    """The path `DPHH_LEDGER`, or `dphh/ledger.sqlite` in this user's data folder."""
    if named := os.environ.get("DPHH_LEDGER"):
        return Path(named)
    if (data := folder_of_user("XDG_DATA_HOME", ".local/share")) is None:
        raise LedgerError(
            "No place for the ledger: this user has no home folder. "
            "Name a file with --ledger or DPHH_LEDGER."
        )
    return data / "ledger.sqlite"


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection; if there is no ledger yet, one to an empty ledger in memory."""
    with (
        one_verb_at_a_time,
        _explain_errors(path, "read"),
        # Read-write if the file allows it, because a killed writer's journal must be rolled back
        # before anything is read; SQLite falls back to read-only by itself.
        closing(_connect(path) if exists(path) else _empty()) as file,
    ):
        con = file if _has_tables(file, path) else _empty()
        con.execute("PRAGMA query_only = ON")
        con.execute("BEGIN")
        yield con
        con.execute("ROLLBACK")


def _empty() -> sqlite3.Connection:
    """A ledger without accounts and runs, in memory."""
    con = sqlite3.connect(":memory:", isolation_level=None)
    _create_tables(con)
    return con


def exists(path: Path) -> bool:
    """Whether there is a ledger file; a run that is being booked may have made it, still empty."""
    return path.exists() and path.stat().st_size > 0


@contextmanager
def writing(path: Path, *, create: bool = True) -> Iterator[sqlite3.Connection]:
    """One immediate transaction: committed as a whole when the block ends, or not at all. Makes the
    ledger if there is none, unless a run goes on in it (`create`)."""
    with one_verb_at_a_time, _explain_errors(path, "write"):
        if create:
            _create(path)
        elif not exists(path):
            raise UnknownRunError(f"The ledger {path} has gone while a run was going on in it.")
        with closing(_connect(path)) as con:
            con.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            con.execute("PRAGMA foreign_keys = ON")
            con.execute("PRAGMA secure_delete = ON")  # a settled run's key is overwritten
            con.execute("BEGIN IMMEDIATE")
            try:
                if not _has_tables(con, path):
                    _create_tables(con)
                yield con
                con.execute("COMMIT")
            except BaseException:
                if con.in_transaction:
                    con.execute("ROLLBACK")
                raise


def _connect(path: Path) -> sqlite3.Connection:
    con = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=TIMEOUT, isolation_level=None
    )
    con.execute("PRAGMA trusted_schema = OFF")
    con.execute("PRAGMA cell_size_check = ON")
    return con


def _create(path: Path) -> None:
    """Create the file and its missing folders, readable by this user only. SQLite gives journals
    the same mode."""
    folder = path.parent
    for missing in reversed([f for f in (folder, *folder.parents) if not f.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    if not path.exists():
        with suppress(FileExistsError):  # another process was first
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _has_tables(con: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is a ledger; False if it is empty. Any other file is refused."""
    application = con.execute("PRAGMA application_id").fetchone()[0]
    version = con.execute("PRAGMA user_version").fetchone()[0]
    tables = con.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application == version == tables == 0:
        return False
    if application != APPLICATION_ID:
        raise LedgerError(f"{path} is an SQLite file but not a dphh ledger. Name another file.")
    if version != SCHEMA_VERSION:
        raise LedgerError(
            f"The ledger {path} has schema {version}, and this dphh reads schema "
            f"{SCHEMA_VERSION}. Use the dphh that wrote it."
        )
    return True


def _create_tables(con: sqlite3.Connection) -> None:
    statement = ""
    for line in TABLES.splitlines(keepends=True):  # executescript would commit
        statement += line
        if sqlite3.complete_statement(statement):
            con.execute(statement)
            statement = ""
    con.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    con.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


_MESSAGES_OF_CODES = {
    sqlite3.SQLITE_NOTADB: "it is not a dphh ledger (nor any SQLite file). Name another file",
    sqlite3.SQLITE_CORRUPT: "the file is damaged. Do not go on with a new one, which would "
    "forget what was spent: restore it from a backup",
    sqlite3.SQLITE_BUSY: f"other processes held it locked for {TIMEOUT:.0f} seconds. See which "
    "ones hang, and ask again",
}
_OTHER_CODES = (
    "see that the disk has space, and that this user may read the file and write to it and to its "
    "folder; or name another file with --ledger or DPHH_LEDGER"
)


@contextmanager
def _explain_errors(path: Path, what: str) -> Iterator[None]:
    """Replace errors of SQLite and the system by LedgerErrors that say what was found and what to
    do."""
    try:
        yield
    except sqlite3.Error as error:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        cause = _MESSAGES_OF_CODES.get(primary, _OTHER_CODES)
        raise LedgerError(
            f"Could not {what} the ledger {path}: {cause} (SQLite says: {error}). "
            "Nothing of this request was recorded."
        ) from error
    except OSError as error:
        raise LedgerError(
            f"Could not {what} the ledger {path}: {error.strerror or error}; {_OTHER_CODES}."
        ) from error
