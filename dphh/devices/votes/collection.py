"""The coordinator's side: open a round, hand out its ballot, close it with the votes, go on.

All state is a folder, written file by file, whole or not at all, so that any round may be closed by
another process than the one that opened it:

    collection.json            what is asked, and under which run id the ledger keeps it
    level-1/ballot.parquet  out to the devices
    level-1/grown.parquet      what grew of their votes; once it is there the round is closed

The price is spent when the first round opens. A round is closed once: votes that come later, or
another count of the same ones, would be a second look at the same coins.
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

from dphh.again import request_of
from dphh.content import Characters, Reading
from dphh.corpus import Corpus, as_sequences, replace_corpus
from dphh.devices.votes.device import VOTES_SCHEMA, Ballot, read_ballot
from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.session import Session
from dphh.engines.walking import Trie
from dphh.errors import CorpusError, UsageError
from dphh.files.whole_files import write_once
from dphh.ledger import Hold, Ledger
from dphh.levels import Choice, VoteLevel
from dphh.mechanisms.released_rows import LevelDone
from dphh.mechanisms.trie.levels import trie_levels
from dphh.plan import Plan, plan_from_json
from dphh.release import Release
from dphh.run import released, settled
from dphh.sources.quiet import without_bar
from dphh.sql import query
from dphh.udfs.draws.randomness import SystemRandomness

COLLECTION, BALLOT, GROWN = "collection.json", "ballot.parquet", "grown.parquet"


@dataclass(frozen=True)
class Received:
    """What became of a round's votes. For the coordinator alone: these counts are not private."""

    counted: int = field(repr=False)
    #: How many were malformed, of another round, out of range, repeated, contradictory.
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
        """A collection from these devices, in a new folder. Spends nothing yet.

        plan: of `dphh.trie`, without a corpus, by the path accountant. devices: whose they are, as
        the ledger shall name them. as_, characters: how devices come to their tokens, for the
        release to spell items by. account: the ledger's account that pays. user: what that account
        counts users by, if it is no account of devices; one device then has to be one user.
        """
        if plan.verb != "trie" or not all(isinstance(level, VoteLevel) for level in plan.levels):
            raise UsageError(
                f"plan: found {plan.verb} by {plan.method}; devices toss coins of their own, which "
                "dphh.trie(...) with accounting='path' prices"
            )
        if plan.counting is not None:
            raise UsageError("plan: found counts in it; devices send votes alone, leave counts out")
        if plan.corpus is not None:
            raise UsageError("plan: found a corpus in it; devices bring the data, leave it out")
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
        _of_devices(written, plan)  # refuses what makes no sense, before anything is written
        try:
            target.mkdir(parents=True, exist_ok=True)
            write_once(target / COLLECTION, json.dumps(written, indent=2).encode())
        except FileExistsError:
            raise UsageError(
                f"folder: {target} holds a collection already; give a new one, or go on with "
                "Collection.load"
            ) from None
        return cls.load(target, ledger=ledger)

    @classmethod
    def load(cls, folder: str | Path, *, ledger: Ledger | str | Path | None = None) -> Collection:
        """Go on with a collection that another process began."""
        try:
            written = json.loads((Path(folder) / COLLECTION).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise UsageError(
                f"folder: {folder} holds no {COLLECTION}; give one that Collection.begin wrote"
            ) from None
        plan = plan_from_json(written["plan"])
        return cls(
            Path(folder),
            replace(plan, corpus=_of_devices(written, plan)),
            written["run_id"],
            written["is_test"],
            ledger if isinstance(ledger, Ledger) else Ledger(ledger),
        )

    def open_round(self) -> Path | None:
        """The ballot of the round that is open, for the devices; None when the trie is done.

        The first round reserves and begins the run in the ledger.
        """
        done = self._closed()
        if len(done) == len(self.plan.levels):
            return None
        level = self.plan.levels[len(done)]
        assert isinstance(level, VoteLevel)
        path = self._of_level(level.level) / BALLOT
        if path.exists():
            return path
        if not done:
            self._spend()
        ways = ((),) if not done else _ways(done[-1])
        table = Ballot(self.run_id, level.level, level.numerator, self.is_test, ways).parquet()
        path.parent.mkdir(exist_ok=True)
        with suppress(FileExistsError):  # another process opened the round: the file is the same
            write_once(path, _parquet(table))
        return path

    def close_round(self, votes: Any) -> Received:
        """Count the open round's votes (a Parquet path or glob, or an Arrow table) and grow."""
        path = self.open_round()
        if path is None:
            raise UsageError("close_round: the trie is done, and no round is open; release() it")
        ballot = read_ballot(path)
        level = self.plan.levels[ballot.level - 1]
        assert isinstance(level, VoteLevel)
        grown, received = _counted(ballot, level.theta, votes)
        try:
            write_once(path.with_name(GROWN), _parquet(grown))
        except FileExistsError:
            raise UsageError(
                f"close_round: round {level.level} was closed meanwhile, with other votes perhaps; "
                "go on with the next"
            ) from None
        return received

    def release(self) -> Release:
        """What grew, settled in the ledger; asked again, the same."""
        if self.open_round() is not None:
            raise UsageError("release: a round is open still; close_round() it with its votes")
        state = {entry.run_id: entry.state for entry in self.ledger.runs()}.get(self.run_id)
        if state == "settled":
            manifest, parquet = self.ledger.release(self.run_id)
            return Release.from_parquet(parquet, manifest)
        session = cast(Session, _Devices(self.folder))
        source = _Declared(self.is_test)
        hold = self._spend()
        release = released(
            self.plan.price, self._corpus, session, self.run_id, source, lambda _: None
        )
        return settled(self.ledger, release, hold)

    def _spend(self) -> Hold:
        """Spent once, however many processes go on with the collection; each holds the run."""
        hold = self.ledger.reserve(self.run_id, request_of(self.plan.price, self._corpus)).hold
        states = {entry.run_id: entry.state for entry in self.ledger.runs()}
        if states[self.run_id] == "reserved":
            self.ledger.begin(hold)
        return hold

    def _closed(self) -> list[LevelDone]:
        """The levels so far. Where the trie has stopped growing, all that are left are empty."""
        done = []
        try:
            session = cast(Session, _Devices(self.folder))
            joiner = self._corpus.content.joiner
            for level in trie_levels(self.plan.price, session, joiner):
                done.append(level)
        except _RoundIsOpenError:
            pass
        return done

    @property
    def _corpus(self) -> Corpus:
        assert self.plan.corpus is not None
        return self.plan.corpus

    def _of_level(self, level: int) -> Path:
        return _level_folder(self.folder, level)


class _RoundIsOpenError(Exception):
    """No votes have been counted for this level yet."""


class _Devices:
    """In an engine's place, for `trie_levels`: what has grown is what the rounds' files say."""

    name = "devices, counted in duckdb"
    version: str = duckdb.__version__

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def hold_sequences(self, choice: Choice) -> None:
        """Each device holds its own."""

    def trie_level(self, level: VoteLevel, trie: Trie, purpose: str) -> Any:
        """Devices find their own node in the ballot."""
        try:
            return pq.read_table(_level_folder(self.folder, level.level) / GROWN)
        except FileNotFoundError:
            raise _RoundIsOpenError from None


class _Declared(SystemRandomness):
    """Whose coins the devices tossed, for the manifest; nothing is drawn here."""

    def __init__(self, is_test: bool) -> None:
        self.is_test = is_test


def _counted(ballot: Ballot, theta: int, votes: Any) -> tuple[Any, Received]:
    """The same counting and threshold as of any other level: `grown.sql`."""
    with duckdb.connect(":memory:") as con, engine_errors("judged_votes"):
        without_bar(con)
        relation = _received(con, votes)
        con.register("trie", ballot.parquet())
        parameters = {"run_id": ballot.run_id, "level": ballot.level}
        con.execute(f"CREATE TEMP VIEW received AS SELECT * FROM {relation}")
        con.execute(query("judged_votes"), parameters)
        con.execute(query("counted_votes"))
        grown = con.sql(query("grown"), params={"theta": theta}).to_arrow_table()
        verdicts = dict(
            con.execute("SELECT verdict, count(*) FROM judged GROUP BY verdict").fetchall()
        )
    counted = verdicts.pop("counted", 0)
    return grown, Received(counted, verdicts)


def _received(con: duckdb.DuckDBPyConnection, votes: Any) -> str:
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


def _ways(done: LevelDone) -> tuple[tuple[str, ...], ...]:
    """The way to each node of the next level, numbered as `trie_levels` numbers them."""
    rows = zip(done.rows["tokens"].to_pylist(), done.rows["ended"].to_pylist(), strict=True)
    return tuple(tuple(tokens) for tokens, ended in rows if not ended)


def _of_devices(written: dict[str, Any], plan: Plan) -> Corpus:
    """What the ledger and the manifest say in a corpus's place: nobody reads it."""
    read = Corpus(
        pa.table({}),
        user=written["user"],
        item="sequence",
        as_=written["as"],
        characters=written["characters"],
        name=written["account"],
    )
    where = (f"devices: {written['devices']}",)
    return replace_corpus(as_sequences(read, plan["unit"]), kind="table", where=where, source=None)


def _level_folder(folder: Path, level: int) -> Path:
    return folder / f"level-{level}"


def _parquet(table: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()
