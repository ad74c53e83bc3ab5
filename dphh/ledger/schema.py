"""The ledger's SQLite file: its tables and its path, and how it is opened, read and written.

Every verb of the ledger opens the file, does one transaction and closes it again. No connection
outlives a verb, so a forked worker never inherits one. The journal is SQLite's rollback journal,
not WAL, so that the ledger is one file at rest and can be copied, mounted read-only or put on a
disk that knows no shared memory; `synchronous = EXTRA` makes a commit survive a power cut.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from dphh.errors import LedgerError
from dphh.ledger.history import note_earlier
from dphh.ledger.networks import refuse_network
from dphh.ledger.older_copy import refuse_older

SCHEMA_VERSION = 8
APPLICATION_ID = 0x64706868  # "dphh" in ASCII: tells a ledger from any other SQLite file
TIMEOUT = 120.0  # seconds to wait for other processes' transactions, which take milliseconds each

# No row of `runs` is ever deleted, and the triggers let a state only move forward, so that no
# later version of the Python code can give a price back that was spent.
TABLES = """
CREATE TABLE accounts (
    id          INTEGER PRIMARY KEY,
    name        TEXT UNIQUE,            -- NULL for a corpus that nobody has named: it has no cap
    source      TEXT NOT NULL,          -- JSON: kind, where, user, content
    fingerprint TEXT NOT NULL
);
CREATE TABLE caps (                     -- the last row of an account is in force
    id       INTEGER PRIMARY KEY,
    account  INTEGER NOT NULL REFERENCES accounts (id),
    epsilon  REAL NOT NULL,
    delta    REAL NOT NULL,
    recorded REAL NOT NULL
);
CREATE TABLE runs (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id   TEXT NOT NULL,
    digest   TEXT NOT NULL,             -- of the whole request: tells a repeat from another request
    verb     TEXT NOT NULL,
    parameters TEXT NOT NULL,           -- JSON
    source   TEXT NOT NULL,             -- JSON
    events   TEXT NOT NULL,             -- JSON list: what is done, so that it can be priced again
    epsilon  REAL NOT NULL,
    delta    REAL NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('reserved', 'running', 'settled', 'cancelled')),
    recorded REAL NOT NULL,
    changed  REAL NOT NULL,
    manifest TEXT,                      -- JSON, and the digest of the chunks: when settled
    sha256   TEXT
);
-- A cancelled run drew nothing, so its id may be used again.
CREATE UNIQUE INDEX runs_by_id ON runs (run_id) WHERE state <> 'cancelled';
CREATE TABLE charges (
    account INTEGER NOT NULL REFERENCES accounts (id),
    run     INTEGER NOT NULL REFERENCES runs (sequence),
    PRIMARY KEY (account, run)
) WITHOUT ROWID;
CREATE TABLE chunks (                   -- a release's Parquet file, cut below SQLite's blob limit
    run    INTEGER NOT NULL REFERENCES runs (sequence),
    number INTEGER NOT NULL,
    data   BLOB NOT NULL,
    PRIMARY KEY (run, number)
);
CREATE TABLE clock (latest REAL NOT NULL);
INSERT INTO clock VALUES (0);
CREATE TRIGGER runs_are_kept BEFORE DELETE ON runs
BEGIN SELECT RAISE (ABORT, 'a run of the ledger cannot be deleted'); END;
CREATE TRIGGER states_move_forward BEFORE UPDATE OF state ON runs
WHEN NOT (OLD.state = 'reserved' AND NEW.state IN ('running', 'cancelled')
          OR OLD.state = 'running' AND NEW.state = 'settled')
BEGIN SELECT RAISE (ABORT, 'a run of the ledger cannot go back'); END;
"""

# Since schema 2. What an unfinished run needs to go on; gone once it is settled. A run that an
# earlier dphh began has no row here, and cannot go on.
UNFINISHED = """
CREATE TABLE unfinished (
    run      INTEGER PRIMARY KEY REFERENCES runs (sequence),
    key      BLOB NOT NULL,             -- of the words that a run draws once: never chosen by data
    setting  TEXT NOT NULL,             -- JSON: what must be the same when the run goes on
    attempts INTEGER NOT NULL
);
CREATE TABLE levels (                   -- released rows of whole levels, cut like a release's
    run    INTEGER NOT NULL REFERENCES unfinished (run),
    step   TEXT NOT NULL,
    number INTEGER NOT NULL,
    data   BLOB NOT NULL,
    sha256 TEXT NOT NULL,               -- of all pieces together
    PRIMARY KEY (run, step, number)     -- so no step of a run can stand there twice
);
CREATE TRIGGER levels_are_kept BEFORE DELETE ON levels
WHEN (SELECT state FROM runs WHERE sequence = OLD.run) <> 'settled'
BEGIN SELECT RAISE (ABORT, 'a level of an unfinished run cannot be deleted'); END;
CREATE TRIGGER levels_stand BEFORE UPDATE ON levels
BEGIN SELECT RAISE (ABORT, 'a level of a run cannot be changed'); END;
"""

# Since schema 3. Who reserved a run, so that nobody else begins, settles or cancels it; and what
# was reserved stays what it was.
HOLDS = """
CREATE TABLE holds (
    run   INTEGER NOT NULL REFERENCES runs (sequence),
    token TEXT NOT NULL,                -- a secret of the attempt that reserved, or asked the same
    PRIMARY KEY (run, token)
) WITHOUT ROWID;
CREATE TRIGGER requests_stand BEFORE UPDATE OF
    sequence, run_id, digest, verb, parameters, source, events, epsilon, delta ON runs
BEGIN SELECT RAISE (ABORT, 'what a run of the ledger asked for cannot be changed'); END;
CREATE TRIGGER held_runs_are_kept BEFORE UPDATE OF state ON runs
WHEN NEW.state = 'cancelled' AND EXISTS (SELECT * FROM holds WHERE run = OLD.sequence)
BEGIN SELECT RAISE (ABORT, 'a run that somebody holds cannot be cancelled'); END;
"""

# Since schema 4. How a cap is kept: caps of earlier ledgers keep what they promised. The table of
# analysts' shares is made with the first share (`analyst_shares.py`), and gets the column there.
# And days instead of times.
KEPT = """
ALTER TABLE caps ADD COLUMN             -- 'open' until the first run settles it
    kept TEXT NOT NULL DEFAULT 'composed'
    CHECK (kept IN ('open', 'divergence', 'sums', 'composed'));
CREATE TRIGGER caps_are_kept_as_settled BEFORE UPDATE ON caps
WHEN OLD.kept <> 'open' OR (OLD.id, OLD.account, OLD.epsilon, OLD.delta)
    <> (NEW.id, NEW.account, NEW.epsilon, NEW.delta)
BEGIN SELECT RAISE (ABORT, 'how a cap of the ledger is kept cannot be changed'); END;
-- Times are days from here on: a run's length told how much data it had read.
UPDATE runs SET recorded = CAST(recorded / 86400 AS INTEGER) * 86400.0,
    changed = CAST(changed / 86400 AS INTEGER) * 86400.0;
UPDATE clock SET latest = CAST(latest / 86400 AS INTEGER) * 86400.0;
"""

# Since schema 5. What a settled run drew, where that is less than it reserved, and the cap under
# which each account was charged: what was not drawn is given back under that cap or a larger one.
DRAWN = """
CREATE TABLE drawn (
    run    INTEGER PRIMARY KEY REFERENCES runs (sequence),
    events TEXT NOT NULL                -- JSON list, as of `runs`
);
CREATE TRIGGER only_a_run_that_settles_gives_back BEFORE INSERT ON drawn
WHEN (SELECT state FROM runs WHERE sequence = NEW.run) <> 'running'
BEGIN SELECT RAISE (ABORT, 'only a run that settles gives back'); END;
CREATE TRIGGER what_was_drawn_stands BEFORE UPDATE ON drawn
BEGIN SELECT RAISE (ABORT, 'what a run drew cannot be changed'); END;
ALTER TABLE charges ADD COLUMN cap INTEGER REFERENCES caps (id);
CREATE TRIGGER charges_stand BEFORE UPDATE OF run, cap ON charges
BEGIN SELECT RAISE (ABORT, 'a charge of the ledger cannot be changed'); END;
"""

# Since schema 6. What the same request is told by when it comes again, and which runs failed.
REPEATS = """
-- Of a run that draws from the operating system. `files` is what `sources.files_check` says of the
-- corpus when the run was reserved: a few bits of its files' names, sizes and times, and of a frame
-- over files of its query; '' where the data cannot be compared. No verb shows it and no export has
-- it (docs/threats.md).
CREATE TABLE asked (
    run   INTEGER PRIMARY KEY REFERENCES runs (sequence),
    files TEXT NOT NULL
);
ALTER TABLE unfinished ADD COLUMN       -- 1 when an attempt has ended without a release
    failed INTEGER NOT NULL DEFAULT 0;
"""

# Since schema 7. What files are known by wherever they lie (`marks.py`): an account of an earlier
# ledger has none until it is charged again.
MARKS = """
CREATE TABLE marking (key BLOB NOT NULL);   -- of the keyed hash: this ledger's own
CREATE TABLE marks (
    account INTEGER PRIMARY KEY REFERENCES accounts (id),
    slots   BLOB NOT NULL                   -- as many for every account, marks among chance
);
CREATE TABLE deleted (                      -- accounts whose files are gone for good: no news
    account INTEGER PRIMARY KEY REFERENCES accounts (id)
);
"""

# Since schema 8. What owners changed and who they were (`history.py`); which groups they declared.
HISTORY = """
CREATE TABLE history (
    id       INTEGER PRIMARY KEY,
    account  TEXT,                      -- its name then; NULL of a token
    analyst  TEXT,                      -- whose share or token it is
    what     TEXT NOT NULL,             -- cap, share, token, groups, name or place
    was      TEXT,                      -- NULL: there was none
    now      TEXT,                      -- NULL: there is none any more
    who      TEXT,                      -- the system's name of the user; NULL of what was before
    recorded REAL NOT NULL
);
CREATE TRIGGER history_stands BEFORE UPDATE ON history
BEGIN SELECT RAISE (ABORT, 'the history of the ledger cannot be changed'); END;
CREATE TRIGGER history_is_kept BEFORE DELETE ON history
BEGIN SELECT RAISE (ABORT, 'the history of the ledger cannot be deleted'); END;
CREATE TABLE declared (                 -- groups of a column: public knowledge
    account INTEGER NOT NULL REFERENCES accounts (id),
    by      TEXT NOT NULL,
    groups  TEXT NOT NULL,              -- JSON list
    PRIMARY KEY (account, by)
) WITHOUT ROWID;
"""

# Since schema 8 too. For a corpus whose unit is a user in one period: the cap of a person over all
# periods, if its owner gives one. Like the unit's cap it is never changed; a new cap is a new row.
# Which periods a run reads is in the run's `source`, which cannot be changed either.
PERSONS = """
ALTER TABLE caps ADD COLUMN person_epsilon REAL;
ALTER TABLE caps ADD COLUMN person_delta REAL
    CHECK ((person_epsilon IS NULL) = (person_delta IS NULL));
CREATE TRIGGER persons_caps_stand BEFORE UPDATE OF person_epsilon, person_delta ON caps
BEGIN SELECT RAISE (ABORT, 'a cap of the ledger cannot be changed'); END;
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
    data = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_DATA_HOME", "")
    if not Path(data).is_absolute():  # the XDG rules say to ignore a relative one
        try:
            data = str(Path.home() / ".local" / "share")
        except RuntimeError:
            raise LedgerError(
                "No place for the ledger: this user has no home folder. "
                "Name a file with --ledger or DPHH_LEDGER."
            ) from None
    return Path(data) / "dphh" / "ledger.sqlite"


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """A read-only connection; None if there is no ledger yet."""
    with one_verb_at_a_time, _explain_errors(path, "read"):
        if not path.exists() or path.stat().st_size == 0:
            yield None
            return
        # Read-write if the file allows it, because a killed writer's journal must be rolled back
        # before anything is read; SQLite falls back to read-only by itself.
        with closing(_connect(path)) as con:
            con.execute("PRAGMA query_only = ON")
            con.execute("BEGIN")
            yield con if _schema_version_of(con, path) else None
            con.execute("ROLLBACK")


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """One immediate transaction: committed as a whole when the block ends, or not at all."""
    with one_verb_at_a_time, _explain_errors(path, "write"):
        refuse_network(path)
        _create(path)
        with closing(_connect(path)) as con:
            con.execute("BEGIN")  # what `_schema_version_of` reads must be of one moment
            known = _schema_version_of(con, path)
            con.execute("ROLLBACK")
            if known and con.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
                con.execute("PRAGMA journal_mode = DELETE")
            con.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            con.execute("PRAGMA foreign_keys = ON")
            con.execute("PRAGMA secure_delete = ON")  # a settled run's key is overwritten
            con.execute("BEGIN IMMEDIATE")
            try:
                _create_or_upgrade_tables(con, _schema_version_of(con, path))
                refuse_older(con, path)
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


def _schema_version_of(con: sqlite3.Connection, path: Path) -> int:
    """The ledger's schema version, which this version of dphh must be able to read; 0 if the file
    is empty."""
    application = con.execute("PRAGMA application_id").fetchone()[0]
    version = con.execute("PRAGMA user_version").fetchone()[0]
    tables = con.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application == version == tables == 0:
        return 0
    if application != APPLICATION_ID or version < 1:
        raise LedgerError(f"{path} is an SQLite file but not a dphh ledger. Name another file.")
    if version > SCHEMA_VERSION:
        raise LedgerError(
            f"The ledger {path} was written by a newer dphh (schema {version}; "
            f"this one knows {SCHEMA_VERSION}): upgrade dphh."
        )
    return int(version)


def _create_or_upgrade_tables(con: sqlite3.Connection, known: int) -> None:
    """Create the tables of a new file, or upgrade an earlier schema. No data are ever deleted."""
    if known == SCHEMA_VERSION:
        return
    missing = "".join(
        (TABLES, UNFINISHED, HOLDS, KEPT, DRAWN, REPEATS, MARKS, HISTORY + PERSONS)[known:]
    )
    statement = ""
    for line in missing.splitlines(keepends=True):  # executescript would commit
        statement += line
        if sqlite3.complete_statement(statement):
            con.execute(statement)
            statement = ""
    if known < 7:
        con.execute("INSERT INTO marking VALUES (?)", (secrets.token_bytes(32),))
    if known < 8:
        note_earlier(con)
    con.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    con.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def has_column(con: sqlite3.Connection, table: str, column: str) -> bool:
    """Whether a table exists and has a column; a ledger of an earlier version may lack it."""
    return any(row[1] == column for row in con.execute(f"PRAGMA table_info ({table})"))


def has_cap_rules(con: sqlite3.Connection, table: str) -> bool:
    """Whether a table of caps has a column for the caps' rules."""
    return has_column(con, table, "kept")


def has_persons(con: sqlite3.Connection) -> bool:
    """Whether the table of caps has columns for a person's cap."""
    return has_column(con, "caps", "person_epsilon")


_MESSAGES_OF_CODES = {
    sqlite3.SQLITE_NOTADB: "it is not a dphh ledger (nor any SQLite file). Name another file",
    sqlite3.SQLITE_CORRUPT: "the file is damaged. Do not go on with a new one, which would "
    "forget what was spent: restore it from a backup",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only. Make both writable, or name "
    "another ledger",
    sqlite3.SQLITE_FULL: "the disk is full. Free some space and ask again",
    sqlite3.SQLITE_BUSY: f"other processes held it locked for {TIMEOUT:.0f} seconds. See which "
    "ones hang, and ask again",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened, or its journal not be made beside it. See that "
    "it is a file, and that this user may read it and write to its folder",
    sqlite3.SQLITE_PERM: "this user may not open it. Change its permissions, or name another file",
    sqlite3.SQLITE_IOERR: "the disk failed, or a limit on the size of files was met. See the "
    "system's log, and ask again",
}


@contextmanager
def _explain_errors(path: Path, what: str) -> Iterator[None]:
    """Replace errors of SQLite and the system by LedgerErrors that say what was found and what to
    do."""
    try:
        yield
    except sqlite3.Error as error:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        cause = _MESSAGES_OF_CODES.get(primary, "SQLite could not do it")
        raise LedgerError(
            f"Could not {what} the ledger {path}: {cause} (SQLite says: {error}). "
            "Nothing of this request was recorded."
        ) from error
    except OSError as error:
        raise LedgerError(
            f"Could not {what} the ledger {path}: {error.strerror or error}. See that this user "
            "may write to its folder, or name another file with --ledger or DPHH_LEDGER."
        ) from error
