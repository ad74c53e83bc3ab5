"""The ledger: the budget that survives the process.

One transaction books a run: it either finds the same request, or checks the caps and inserts the
run with its booking, before a row is read. From then on it is spent, whatever happens to the
process. Each level is stored as it is drawn, before it is used; a run that was killed or failed
continues with the first level that is not stored. The release is stored when the run settles. Of
several processes with the same run, the first to store a level or a release decides what it is.

The ledger holds parameters, bookings and releases, which may leave the building, and keyed digests
of the data with their key, which may not (`reader/identity.py`): keep the file as the data.
"""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from dphh.errors import BudgetRefused, LedgerError, UnknownRunError, UsageError
from dphh.ledger.accounts import Accounts
from dphh.ledger.asked import write_runs
from dphh.ledger.backups import write_copy
from dphh.ledger.budget import number_that_fit, share_used
from dphh.ledger.entries import (
    BookedRun,
    Data,
    Entry,
    Manifest,
    Request,
    Setting,
    StoredRelease,
    canonical_json,
)
from dphh.ledger.paying import check_caps, label_of, payers_of, places_of, would_read
from dphh.ledger.schema import exists, reading, writing
from dphh.ledger.spending import Account, Outlook
from dphh.ledger.tables import (
    RELEASED,
    account_named,
    accounts_in,
    login_name,
    number_of_unfinished_run,
    row_of_run,
    seal,
    shares_of,
    start_of_today,
    store,
    stored_release,
    stored_rows,
)
from dphh.privacy.events import events_from_json, events_to_json
from dphh.reader.corpus import Corpus, as_recorded, corpus_from_json
from dphh.reader.paths import local_path_to_write

#: The names of the accounts that paid for a run; for an analyst, of those that gave them a share.
PAYERS = """
    SELECT name FROM charges JOIN accounts ON id = account WHERE run = {run} AND (
        :analyst IS NULL OR id IN (SELECT account FROM shares WHERE analyst = :analyst)
    ) ORDER BY id
"""
#: The most attempts of one run: a failure may disclose what no theorem covers (docs/threats.md).
MOST_ATTEMPTS = 20


class Ledger(Accounts):
    """A ledger in one SQLite file. Each method is one transaction, safe among any number of
    processes.

    With an `analyst`, every run is that analyst's: it pays from the analyst's share of the account
    that it names, and from the account. Other runs are not found.

    A file that `path` or DPHH_LEDGER names must exist, unless an account is added or `create`: in a
    new ledger, as by a misspelled path, nothing is spent yet and nothing is capped.
    """

    _INTERNAL = (
        "absent analyst_with before_reading book booked_here data_key data_of data_with "
        "drawn edited failed keep_drawn last_like outlook settle uncapped_runs"
    )

    def book(
        self,
        request: Request,
        setting: Setting,
        data: Data | None = None,
        *,
        run_id: str | None = None,
        again: bool = False,
        require_account: bool = False,
    ) -> BookedRun:
        """Find the run of this request; if there is none, charge its booking to every account that
        pays.

        A settled run comes back as it is; one that did not finish continues, if its `setting` is
        the same. `data` is None for a test's run, which is found by its `run_id` alone. `again`:
        book a new run, whatever ran before. `require_account`: refuse a run that no account pays
        for.
        """
        places = places_of(request.corpus)  # links are resolved before the ledger is locked
        with writing(self.path) as con:
            found = None if again else self._find_earlier_run(con, request, data, run_id)
            if found is not None:
                booked = _repeated_run(con, found, setting)
            else:
                payers = payers_of(
                    con, request.corpus, places, self.analyst, required=require_account
                )
                check_caps(con, request, payers, self.analyst)
                booked = self._insert_run(con, run_id, request, setting, data, payers)
        if not booked.settled:
            self.booked_here.add(booked.run_id)
        return booked

    def data_key(self) -> bytes:
        """The key of this ledger's digests of data."""
        with (reading if exists(self.path) else writing)(self.path) as con:
            ((key,),) = con.execute("SELECT key FROM data_key").fetchall()
            return bytes(key)

    def data_of(self, files: str) -> Data | None:
        """The data of files in this state, if an earlier run of the same caller has read them."""
        query = (
            "SELECT data FROM runs WHERE files = ? AND analyst IS ? AND data IS NOT NULL LIMIT 1"
        )
        with reading(self.path) as con:
            found = con.execute(query, (files, self.analyst)).fetchone()
        return None if found is None else Data(found["data"], files)

    def last_like(self, request: Request) -> Entry | None:
        """The last run of an equal request by the same caller, of whatever data."""
        with reading(self.path) as con:
            found = self._last_equal_run(con, request)
            return None if found is None else self._entries(con, run=found["sequence"])[0]

    def before_reading(
        self,
        request: Request,
        data: Data | None,
        *,
        run_id: str | None = None,
        again: bool = False,
        require_account: bool = False,
    ) -> BookedRun | None:
        """What `book` would do, asked before any row is read: the settled run with this id, or of
        these data, where they are known by their files; None if a run may begin or continue. What
        no data could change is refused. If there was an equal request, whose data may turn out to
        be the same, a cap refuses only when they are known."""
        places = places_of(request.corpus)
        with reading(self.path) as con:
            found = None if again else self._find_earlier_run(con, request, data, run_id)
            if found is None:
                payers = payers_of(
                    con, request.corpus, places, self.analyst, required=require_account
                )
                open_ended = not again and data is None and run_id is None
                if not open_ended or self._last_equal_run(con, request) is None:
                    check_caps(con, request, payers, self.analyst)
                return None
            return _repeated_run(con, found, {}) if found["state"] == "settled" else None

    def outlook(self, request: Request) -> Outlook:
        """Which accounts would pay for this request now, whether they allow it, and what is left
        under their caps. Changes nothing. To an analyst it tells of the analyst's shares alone: it
        is free, and would find what others have spent of an account."""
        places = places_of(request.corpus)
        is_owner = self.analyst is None
        with reading(self.path) as con:
            payers, refused = [], None
            try:
                payers = payers_of(
                    con, request.corpus, places, self.analyst, with_bookings=is_owner
                )
                check_caps(con, request, payers, self.analyst, shares_only=not is_owner)
            except (BudgetRefused, UsageError) as problem:
                refused = str(problem)
            if not is_owner:
                payers = shares_of(con, payers[:1], self.analyst)
        ahead = [
            (
                each.name,
                share_used([request.booking], each.cap),
                number_that_fit(each.bookings, each.cap, request.booking),
            )
            for each in payers
        ]
        scarcest = min(ahead, key=lambda each: (each[2], -each[1]), default=None)
        return Outlook(tuple(payers), refused, scarcest)

    def accounts_of(self, corpus: Corpus) -> list[Account]:
        """The accounts that pay for runs on a corpus. Refuses one on which no run can be booked."""
        places = places_of(corpus)
        with reading(self.path) as con:
            return payers_of(con, corpus, places, self.analyst)

    def data_with(self, file: Path, request: Request) -> str | None:
        """Whose data a file would be, once it is written: the request's or an account's, as
        messages name it; None: nobody's."""
        with reading(self.path) as con:
            owned = accounts_in(con, with_bookings=False) if self.analyst is None else []
        corpora = [request.corpus, *(own.corpus for own in owned)]
        return next((label_of(each) for each in corpora if would_read(each, file)), None)

    def drawn(self, run: BookedRun, draw_name: str) -> bytes | None:
        """The stored rows of this draw of an unfinished run; None if it was not made yet."""
        with reading(self.path) as con:
            return stored_rows(con, number_of_unfinished_run(con, run), draw_name)

    def keep_drawn(self, run: BookedRun, draw_name: str, data: bytes) -> bytes:
        """Store the rows of a draw, unless it has rows already; returns the stored rows."""
        with writing(self.path) as con:
            number = number_of_unfinished_run(con, run)
            if (stored := stored_rows(con, number, draw_name)) is not None:
                return stored
            store(con, number, draw_name, data)
        return data

    def settle(self, run: BookedRun, manifest: Manifest, parquet: bytes) -> StoredRelease:
        """Store the release, unless another process was first; returns the stored one. Only a
        release that is stored in the ledger may be shown."""
        with writing(self.path) as con:
            found = row_of_run(con, run.run_id)
            if found is not None and found["state"] == "settled":
                return stored_release(con, found)
            number = number_of_unfinished_run(con, run)
            # The release contains all levels, and the key is not needed any more.
            con.execute(
                "UPDATE runs SET state = 'settled', changed = ?, manifest = ?, key = NULL, "
                "setting = NULL WHERE sequence = ?",
                (start_of_today(), canonical_json(manifest), number),
            )
            seal(con, "runs", number)
            con.execute("DELETE FROM drawn WHERE run = ?", (number,))
            store(con, number, RELEASED, parquet)
        return StoredRelease(manifest, parquet)

    def failed(self, run: BookedRun) -> None:
        """Record that an attempt has ended without a release. Its price stays spent, and a repeated
        request continues it."""
        with writing(self.path) as con:
            con.execute(
                "UPDATE runs SET state = 'failed', changed = ? "
                "WHERE run_id = ? AND state = 'running'",
                (start_of_today(), run.run_id),
            )

    def release(self, run_id: str) -> StoredRelease:
        """The manifest and the Parquet file of a settled run."""
        with reading(self.path) as con:
            found = row_of_run(con, run_id)
            if found is None or self.analyst not in (None, found["analyst"]):
                raise UnknownRunError(
                    f"The ledger has no run {run_id!r}. `dphh ledger show NAME` lists the ids of "
                    "a corpus's runs, and `dphh ledger export FILE` those of all."
                )
            return stored_release(con, found)

    def runs(self, account: str | None = None) -> list[Entry]:
        """All runs in their order; with `account`, those that it paid for. For an analyst's ledger,
        only that analyst's runs."""
        with reading(self.path) as con:
            if account is not None:
                account_named(con, account)  # refuses a name that the ledger does not have
            return self._entries(con, account)

    def export(self, path: str | Path, *, replace: bool = False) -> int:
        """Write every run to a `.parquet` or `.csv`, whole or not at all. An existing file is
        refused, unless `replace`. Returns the number of runs."""
        listed = self.runs()
        write_runs(listed, path, replace=replace)
        return len(listed)

    def backup(self, path: str | Path) -> int:
        """Write a copy of the ledger, whole or not at all, that only this login may read. Others
        may write to the ledger meanwhile. An earlier copy of this ledger is replaced, and no other
        file. Returns the number of runs in it. docs/ledger.md says what a copy forgets."""
        if (why := self.absent()) is not None:
            raise UsageError(why)
        with reading(self.path) as con:
            return write_copy(con, self.path, local_path_to_write("backup", path).absolute())

    def _find_earlier_run(
        self, con: sqlite3.Connection, request: Request, data: Data | None, run_id: str | None
    ) -> sqlite3.Row | None:
        """The run with this id; without an id, the last run of an equal request on these data."""
        if run_id is None:
            return None if data is None else self._last_equal_run(con, request, data)
        found = row_of_run(con, run_id)
        if found is None:
            return None
        if found["digest"] != request.digest or found["analyst"] != self.analyst:
            raise UsageError(
                f"Run {run_id} is in the ledger with another request (verb, corpus, parameters or "
                f"price{self._other_parameters(found, request)}. Nothing was spent. Use a new run "
                "id, which spends; to choose rows of a release is free, as by WHERE low >= 400 "
                "over its release.parquet"
            )
        return found

    def _other_parameters(self, found: sqlite3.Row, request: Request) -> str:
        """Which parameters are not those of the run, unless it is another caller's."""
        before = json.loads(found["parameters"])
        now = json.loads(canonical_json(request.parameters))
        if found["verb"] != request.verb or found["analyst"] != self.analyst:
            return ")"
        other = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        return f"; other here: {', '.join(other)})" if other else ")"

    def _last_equal_run(
        self, con: sqlite3.Connection, request: Request, data: Data | None = None
    ) -> sqlite3.Row | None:
        """The last run of an equal request; on these data, if they are given."""
        query = """
            SELECT * FROM runs WHERE digest = ? AND analyst IS ? AND data = coalesce(?, data)
            ORDER BY sequence DESC LIMIT 1
        """
        asked = request.digest, self.analyst, None if data is None else data.digest
        found: sqlite3.Row | None = con.execute(query, asked).fetchone()
        return found

    def _insert_run(
        self,
        con: sqlite3.Connection,
        given_id: str | None,
        request: Request,
        setting: Setting,
        data: Data | None,
        payers: Sequence[Account],
    ) -> BookedRun:
        day, key = start_of_today(), os.urandom(32)
        run_id = given_id or uuid.uuid4().hex
        row = {
            "run_id": run_id,
            "id_given": given_id is not None,
            "digest": request.digest,
            "data": None if data is None else data.digest,
            "files": None if data is None else data.files,
            "analyst": self.analyst,
            "who": login_name(),
            "verb": request.verb,
            "parameters": canonical_json(request.parameters),
            "source": canonical_json(as_recorded(request.corpus)),
            "events": canonical_json(events_to_json(request.booking.events)),
            "epsilon": request.booking.epsilon,
            "delta": request.booking.delta,
            "state": "running",
            "recorded": day,
            "changed": day,
            "attempts": 1,
            "key": key,
            "setting": canonical_json(setting),
            "payers": canonical_json([each.name for each in payers]),
        }
        run = con.execute(
            f"INSERT INTO runs ({', '.join(row)}) VALUES (:{', :'.join(row)})", row
        ).lastrowid
        seal(con, "runs", run)
        con.executemany("INSERT INTO charges VALUES (?, ?)", ((run, each.id) for each in payers))
        return BookedRun(run_id, tuple(each.name for each in payers), new=True, key=key)

    def _entries(
        self, con: sqlite3.Connection, account: str | None = None, run: int | None = None
    ) -> list[Entry]:
        """All runs in their order; or those that an account paid for, or one run."""
        payers = PAYERS.format(run="sequence")
        query = f"""
            SELECT
                sequence, run_id, id_given, verb, epsilon, delta, state, who, analyst, source,
                parameters, events, recorded, changed,
                json_extract(manifest, '$.versions.dphh') AS dphh,
                json_extract(manifest, '$.engine.name') AS engine,
                json_extract(manifest, '$.table_sha256') AS table_sha256,
                data IS NULL AS is_test,
                (SELECT json_group_array(name) FROM ({payers})) AS payers
            FROM runs
            WHERE (:analyst IS NULL OR analyst = :analyst) AND (:run IS NULL OR sequence = :run)
                AND (:account IS NULL OR :account IN ({payers}))
            ORDER BY sequence
        """
        asked = {"analyst": self.analyst, "account": account, "run": run}
        unchanged = (
            *("sequence", "run_id", "verb", "epsilon", "delta", "state", "who", "analyst"),
            "table_sha256",
        )
        return [
            Entry(
                **{name: found[name] for name in unchanged},
                accounts=tuple(json.loads(found["payers"])),
                corpus=corpus_from_json(json.loads(found["source"])),
                parameters=json.loads(found["parameters"]),
                events=events_from_json(json.loads(found["events"])),
                id_given=bool(found["id_given"]),
                is_test=bool(found["is_test"]),
                when=datetime.fromtimestamp(found["recorded"], UTC),
                changed=datetime.fromtimestamp(found["changed"], UTC),
                made_with=found["dphh"] and f"dphh {found['dphh']} on {found['engine']}",
            )
            for found in con.execute(query, asked)
        ]


# The functions below run inside the caller's transaction, on its connection.


def _repeated_run(con: sqlite3.Connection, found: sqlite3.Row, setting: Setting) -> BookedRun:
    """The run that a repeated request gets: settled, or to be continued with the same setting."""
    run, run_id = found["sequence"], found["run_id"]
    payers = con.execute(PAYERS.format(run=":run"), {"run": run, "analyst": None})
    names = tuple(name for (name,) in payers)
    where = tuple(json.loads(found["source"])["where"])
    again = BookedRun(run_id, names, new=False, data=found["data"], where=where)
    if found["state"] == "settled":
        return replace(again, settled=True)
    if found["setting"] is None:  # `write_copy` left it out
        raise UsageError(
            f"Run {run_id} had not finished when the copy was made from which this ledger was put "
            "back, so it cannot continue. Its price stays spent. A new run id or again=True "
            "spends again."
        )
    began: Setting = json.loads(found["setting"])
    for what in sorted(began.keys() | setting.keys()):
        if began.get(what) != setting.get(what):
            # An analyst may read this error, so it omits the digest of the data.
            then, now = (each.get(what, "unknown") for each in (began, setting))
            told = "" if what == "data" else f" (then {then}; now {now})"
            raise UsageError(
                f"Run {run_id} did not finish and cannot continue: its {what} changed since it "
                f"began{told}. Its price stays spent. Repeat it unchanged, or use a new run id or "
                "again=True, which spends again."
            )
    if found["attempts"] >= MOST_ATTEMPTS:
        raise LedgerError(
            f"Run {run_id} was begun {MOST_ATTEMPTS} times and never finished; each failure may "
            "reveal something, so no more are allowed. Its price stays spent. A new run id or "
            "again=True spends again."
        )
    con.execute(
        "UPDATE runs SET attempts = attempts + 1, state = 'running', changed = ? "
        "WHERE sequence = ?",
        (start_of_today(), run),
    )
    return replace(again, key=found["key"], attempt=found["attempts"] + 1)
