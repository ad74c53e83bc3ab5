"""The coordinator's side: open a round, publish its ballot, close it with the votes, and so on.

All state is in a folder, whose files are written atomically, so that another process than the one
that opened a round may close it:

    collection.json         the plan, and the run id in the ledger
    level-1/ballot.parquet  for the devices
    level-1/grown.parquet   the new prefixes; once this file exists the round is closed

The price is spent when the first round opens. A round is closed once, because counting later votes,
or the same votes again, would be a second release from the same coins.
"""

from __future__ import annotations

import io
import json
import uuid
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dphh.corpus import Corpus, as_sequences, replace_corpus
from dphh.devices.votes import VOTES_SCHEMA, Ballot, read_ballot
from dphh.engines.duckdb.failures import engine_errors
from dphh.errors import CorpusError, UsageError
from dphh.files.whole_files import write_once
from dphh.ledger import Booked, Ledger, Request
from dphh.levels.trie import VoteLevel
from dphh.mechanisms.released_rows import LevelDone
from dphh.mechanisms.trie.levels import trie_levels
from dphh.plan import Plan, plan_from_json
from dphh.release import Release
from dphh.rows.content import Characters, Reading
from dphh.run import released, settled
from dphh.session.protocol import Session
from dphh.session.trie import OneSequence, TrieOn
from dphh.sources.quiet import without_bar
from dphh.sql import query
from dphh.udfs.draws.randomness import SystemRandomness

COLLECTION, BALLOT, GROWN = "collection.json", "ballot.parquet", "grown.parquet"


@dataclass(frozen=True)
class Received:
    """The numbers of a round's votes, for the coordinator only: these counts are not private."""

    counted: int = field(repr=False)
    #: How many were malformed, of another round, out of range, repeated or contradictory.
    rejected: dict[str, int] = field(repr=False)


@dataclass(frozen=True)
class Collection:
    """One run of `trie` over devices."""

    folder: Path
    plan: Plan
    run_id: str
    is_test: bool
    ledger: Ledger = field(compare=False)

    @classmethod
    def begin(
        cls,
        folder: str | Path,
        plan: Plan,
        *,
        devices: str,
        as_: Reading = "whole",
        characters: Characters = "code points",
        account: str | None = None,
        user: str = "device",
        ledger: Ledger | str | Path | None = None,
        run_id: str | None = None,
        is_test: bool = False,
    ) -> Collection:
        """Begin a collection in a new folder. Spends nothing yet.

        plan: from `dphh.trie`, without a corpus, by the path accountant. devices: the name of the
        population of devices, for the ledger. as_, characters: how devices make their tokens, for
        spelling released items. account: the ledger's account that pays. user: the user column of
        that account, if it is not an account of devices; then each device must be one user.
        """
        if plan.verb != "trie" or not all(isinstance(level, VoteLevel) for level in plan.levels):
            raise UsageError(
                f"plan: found {plan.verb} by {plan.method}; on devices, users toss their own "
                "coins: give a plan of dphh.trie(...) with accounting='path'"
            )
        if plan.counting is not None:
            raise UsageError("plan: found counts, but devices send only votes; leave counts out")
        if plan.corpus is not None:
            raise UsageError("plan: found a corpus, but the data are on devices; leave it out")
        written = {
            "plan": plan.to_json(),
            "devices": devices,
            "as": as_,
            "characters": characters,
            "account": account,
            "user": user,
            "run_id": run_id or uuid.uuid4().hex,
            "is_test": is_test,
        }
        target = Path(folder)
        _corpus_from_json(written, plan)  # refuses invalid options before anything is written
        try:
            target.mkdir(parents=True, exist_ok=True)
            write_once(target / COLLECTION, json.dumps(written, indent=2).encode())
        except FileExistsError:
            raise UsageError(
                f"folder: {target} has a collection already; give a new folder, or continue with "
                "Collection.load"
            ) from None
        return cls.load(target, ledger=ledger)

    @classmethod
    def load(cls, folder: str | Path, *, ledger: Ledger | str | Path | None = None) -> Collection:
        """Load a collection, perhaps begun by another process, to continue it."""
        try:
            written = json.loads((Path(folder) / COLLECTION).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise UsageError(
                f"folder: {folder} holds no {COLLECTION}; give one that Collection.begin wrote"
            ) from None
        plan = plan_from_json(written["plan"])
        return cls(
            Path(folder),
            replace(plan, corpus=_corpus_from_json(written, plan)),
            written["run_id"],
            written["is_test"],
            ledger if isinstance(ledger, Ledger) else Ledger(ledger),
        )

    def open_round(self) -> Path | None:
        """The path of the open round's ballot, for the devices; None when the trie is done.

        Opening the first round books the run in the ledger.
        """
        done = self._closed_levels()
        if len(done) == len(self.plan.levels):
            return None
        level = self.plan.levels[len(done)]
        assert isinstance(level, VoteLevel)
        path = self._folder_of_level(level.level) / BALLOT
        if path.exists():
            return path
        if not done:
            self._book()
        ways = ((),) if not done else _paths_to_nodes(done[-1])
        table = Ballot(self.run_id, level.level, level.numerator, self.is_test, ways).parquet()
        path.parent.mkdir(exist_ok=True)
        with suppress(FileExistsError):  # another process opened the round: the file is the same
            write_once(path, _as_parquet(table))
        return path

    def close_round(self, votes: Any) -> Received:
        """Count the open round's votes (a Parquet path or glob, or an Arrow table), and grow."""
        path = self.open_round()
        if path is None:
            raise UsageError("close_round: no round is open, as the trie is complete; release() it")
        ballot = read_ballot(path)
        level = self.plan.levels[ballot.level - 1]
        assert isinstance(level, VoteLevel)
        grown, received = _count_votes(ballot, level.theta, votes)
        try:
            write_once(path.with_name(GROWN), _as_parquet(grown))
        except FileExistsError:
            raise UsageError(
                f"close_round: another process has closed round {level.level}, perhaps with other "
                "votes; continue with the next round"
            ) from None
        return received

    def release(self) -> Release:
        """The release, settled in the ledger. Calling this again returns the same release."""
        if self.open_round() is not None:
            raise UsageError("release: a round is still open; close it first with close_round()")
        state = {entry.run_id: entry.state for entry in self.ledger.runs()}.get(self.run_id)
        if state == "settled":
            manifest, parquet = self.ledger.release(self.run_id)
            return Release.from_parquet(parquet, manifest)
        session = cast(Session, _DevicesAsSession(self.folder))
        source = _DeclaredRandomness(self.is_test)
        booked = self._book()
        release = released(
            self.plan.price, self._corpus_of_devices, session, self.run_id, source, lambda _: None
        )
        return settled(self.ledger, release, booked)

    def _book(self) -> Booked:
        """Book the run, once for all processes that continue the collection."""
        request = Request.of(self.plan.price, self._corpus_of_devices)
        return self.ledger.book(request, {}, run_id=self.run_id)

    def _closed_levels(self) -> list[LevelDone]:
        """The closed levels. If the trie has stopped growing, all further levels are empty."""
        done = []
        try:
            session = cast(Session, _DevicesAsSession(self.folder))
            joiner = self._corpus_of_devices.content.joiner
            for level in trie_levels(self.plan.price, session, joiner):
                done.append(level)
        except _RoundIsOpenError:
            pass
        return done

    @property
    def _corpus_of_devices(self) -> Corpus:
        assert self.plan.corpus is not None
        return self.plan.corpus

    def _folder_of_level(self, level: int) -> Path:
        return _level_folder(self.folder, level)


class _RoundIsOpenError(Exception):
    """The round of this level is open: its votes have not been counted."""


class _DevicesAsSession:
    """Replaces an engine session for `trie_levels`: reads what grew from the rounds' files."""

    name = "devices, counted in duckdb"
    version: str = duckdb.__version__

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def hold(self, what: OneSequence) -> None:
        """Does nothing: each device has its own sequence."""

    def draw(self, asked: TrieOn, purpose: str) -> Any:
        """What grew at this level; devices look up their own nodes in the ballot."""
        try:
            return pq.read_table(_level_folder(self.folder, asked.level.level) / GROWN)
        except FileNotFoundError:
            raise _RoundIsOpenError from None


class _DeclaredRandomness(SystemRandomness):
    """Says in the manifest whether the devices' coins were a test's; draws nothing."""

    def __init__(self, is_test: bool) -> None:
        self.is_test = is_test


def _count_votes(ballot: Ballot, theta: int, votes: Any) -> tuple[Any, Received]:
    """Count the votes and apply the threshold, as in any other level: `grown.sql`."""
    with duckdb.connect(":memory:") as con, engine_errors("judged_votes"):
        without_bar(con)
        relation = _view_of_votes(con, votes)
        con.register("trie", ballot.parquet())
        parameters = {"run_id": ballot.run_id, "level": ballot.level}
        con.execute(f"CREATE TEMP VIEW received AS SELECT * FROM {relation}")
        con.execute(query("judged_votes"), parameters)
        con.execute(query("counted_votes"))
        grown = con.sql(query("grown"), params={"theta": theta}).to_arrow_table()
        verdicts = dict(
            con.execute("SELECT verdict, count(*) FROM judged GROUP BY verdict").fetchall()
        )
    accepted = verdicts.pop("accepted", 0)
    return grown, Received(accepted, verdicts)


def _view_of_votes(con: duckdb.DuckDBPyConnection, votes: Any) -> str:
    if isinstance(votes, (str, Path)):
        relation = "read_parquet('" + str(votes).replace("'", "''") + "')"
        try:
            columns = {row[0] for row in con.execute(f"DESCRIBE FROM {relation}").fetchall()}
        except duckdb.IOException:
            raise CorpusError(f"votes: found no Parquet file at {votes}; give its path") from None
    else:
        con.register("votes_in_memory", pa.table(votes))
        relation, columns = "votes_in_memory", set(votes.column_names)
    missing = sorted(set(VOTES_SCHEMA.names) - columns)
    if missing:
        raise CorpusError(f"votes: the table has no column {', '.join(missing)}; see VOTES_SCHEMA")
    return relation


def _paths_to_nodes(done: LevelDone) -> tuple[tuple[str, ...], ...]:
    """The path to each node of the next level, in the order of `trie_levels`."""
    rows = zip(done.rows["tokens"].to_pylist(), done.rows["ended"].to_pylist(), strict=True)
    return tuple(tuple(tokens) for tokens, ended in rows if not ended)


def _corpus_from_json(written: dict[str, Any], plan: Plan) -> Corpus:
    """A corpus for the ledger and the manifest, which describes the devices and is never read."""
    read = Corpus(
        pa.table({}),
        user=written["user"],
        item="sequence",
        as_=written["as"],
        characters=written["characters"],
        account=written["account"],
    )
    where = (f"devices: {written['devices']}",)
    return replace_corpus(as_sequences(read, plan["unit"]), kind="table", where=where, source=None)


def _level_folder(folder: Path, level: int) -> Path:
    return folder / f"level-{level}"


def _as_parquet(table: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()
