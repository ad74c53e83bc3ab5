"""Run a plan: reserve its price in the ledger, run the levels on an engine, settle the release.

The same request under the same run id gives one release, even if several processes ask for it or
some of them are killed: each level is drawn once and stored (`dphh.journal`).
"""

from __future__ import annotations

import platform
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from dphh.columns import described, meanings, sorted_rows
from dphh.corpus import Corpus
from dphh.engines import (
    SLOW_TO_START,
    checked_engine,
    engine_of,
    open_session,
    refuse_if_run_would_fail,
)
from dphh.errors import CorpusError, DphhError, LedgerError, NotHeldError, UsageError
from dphh.files.stopping import received
from dphh.journal import journaled, setting_of
from dphh.ledger import Hold, Ledger
from dphh.ledger.budget import checked_draw
from dphh.ledger.columns_there import refuse_missing_columns_of_files
from dphh.ledger.corpora import check_account
from dphh.ledger.entries import Reservation, checked_run_id
from dphh.ledger.requests import recorded
from dphh.ledger.wording import missing_files_text
from dphh.mechanisms.counts.levels import with_counts
from dphh.mechanisms.released_rows import LevelDone, as_text
from dphh.price import Price, stated
from dphh.prior import check_same_tokens, fit_numbers
from dphh.privacy.events import events_from_json, events_to_json
from dphh.refunds import drawn_events
from dphh.registry import VERBS
from dphh.release import Release, checked_out
from dphh.replay import Note, Replay, notice
from dphh.session.protocol import Limits, Session
from dphh.sources.lacking import lacking
from dphh.udfs.draws.randomness import Randomness, RunRandomness, SystemRandomness
from dphh.wording.warned import warn

Progress = Callable[[str], None]


def run(
    price: Price,
    corpus: Corpus,
    *,
    ledger: Ledger | str | Path | None = None,
    engine: str | None = None,
    run_id: str | None = None,
    again: bool = False,
    out: str | Path | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    randomness: Randomness | None = None,
) -> Release:
    """Spend the price on a corpus, once, and return the release.

    If the same request ran before on unchanged data, its release is returned, or an interrupted
    run continues after its last complete level. `again` spends anew.
    """
    _check_arguments(corpus, run_id, again, threads, progress, randomness)
    corpus = VERBS[price.verb].read(corpus, price)
    say = progress or notice
    source = RunRandomness(randomness or SystemRandomness())
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    check_account(corpus, book)
    check_same_tokens(price.prior, corpus.content)
    _say_missing_accounts(book, say)
    asking = Replay.of(price, corpus, book)
    # A caller who passes test randomness chooses each draw, so earlier runs are not looked up.
    once = run_id is None and not again and randomness is None
    told: list[str] = []  # said once no refusal can follow
    before = asking.before(say, told.append) if once else None
    known = before is not None
    run_id, request = before or (run_id, asking.request)
    if out is not None:
        checked_out(out, run_id)

    engine = checked_engine(engine or engine_of(corpus))

    # A stored release needs no engine, which may take long to start. It is returned even if the
    # files have changed since.
    if run_id is not None and (settled_run := book.reserved_before(run_id, request)) is not None:
        release = _stored(settled_run, corpus, asking, source, known=known)
        assert release is not None
        return release if out is None else _save_release(release, out)

    if engine in SLOW_TO_START and not known:
        refuse_missing_columns_of_files(corpus, "Nothing was spent")
    # Opening a session reads names and types only, so a refusal here costs nothing.
    session = open_session(engine, corpus, source, Limits(memory_limit, threads))
    try:
        if not known:
            refuse_if_run_would_fail(engine, corpus, session)
            _say_missing_columns(corpus, book, say)
        reservation = book.reserve(
            run_id or uuid.uuid4().hex,
            request,
            files=None if source.is_test else asking.files,
            once=once,
        )
        run_id = reservation.run_id
        _say_all(told, say)
        if (stored := _stored(reservation, corpus, asking, source, known=known)) is not None:
            release = stored
        else:
            _say_who_pays(reservation, book, say)
            try:
                drawn = _begun(price, corpus, session, book, reservation.hold, source, say)
                with _failing(price, book, reservation.hold):
                    release = released(price, corpus, drawn, run_id, source, say)
                release = settled(book, release, reservation.hold)
            except LedgerError:
                if (theirs := _settled_by_another(book, reservation.hold)) is None:
                    raise
                release = theirs
    finally:
        session.close()
    return release if out is None else _save_release(release, out)


def _check_arguments(
    corpus: object, run_id: object, again: object, threads: object, progress: object, drawn: object
) -> None:
    if not isinstance(corpus, Corpus):
        raise UsageError(f"corpus: found a {type(corpus).__name__}; give a dphh.Corpus")
    if run_id is not None:
        checked_run_id(run_id)
    if again and run_id is not None:
        raise UsageError("again: makes a run with a new id; leave out either again or run_id")
    if threads is not None and (type(threads) is not int or threads < 1):
        raise UsageError(f"threads: found {threads!r}; give a whole number from 1")
    if progress is not None and not callable(progress):
        raise UsageError(f"progress: found {progress!r}; give a function of a line, such as print")
    if drawn is not None and not hasattr(drawn, "is_test"):
        raise UsageError(
            "randomness: is for tests only, as a dphh.testing.SeededRandomness; leave it out"
        )


def _say_all(lines: Iterable[str], say: Progress) -> None:
    for line in lines:
        say(line)


def _say_missing_accounts(book: Ledger, say: Progress) -> None:
    if book.analyst is not None:
        return  # an analyst must not see what else the ledger names
    for account in book.gone():
        say(Note(missing_files_text(account, account.source.where)))


def _say_who_pays(reservation: Reservation, book: Ledger, say: Progress) -> None:
    _say_all(map(Note, reservation.moved if book.analyst is None else ()), say)
    if not reservation.capped:
        say(Note("nobody has capped this corpus; `dphh ledger add` does"))


def _say_missing_columns(corpus: Corpus, book: Ledger, say: Progress) -> None:
    if book.analyst is not None:
        return  # which columns there are is their owner's to know
    for option, column in lacking(corpus):
        say(Note(f"{option}: some files have no column {column!r}, so it is NULL in their rows"))


def _stored(
    reservation: Reservation,
    corpus: Corpus,
    asking: Replay,
    randomness: RunRandomness,
    *,
    known: bool,
) -> Release | None:
    """The release that the ledger has of a run, if it is settled.

    The process remembers the run as one on these rows, but not if its release comes back because
    its id was given: it may be of other rows.
    """
    if not randomness.is_test and (known or reservation.release is None):
        asking.remember(reservation.run_id)
    if reservation.release is None:
        return None
    if not known:
        _warn_of_other_data(corpus, reservation.run_id, asking.files, reservation.files)
    manifest, parquet = reservation.release
    return Release.from_parquet(parquet, manifest)


def _warn_of_other_data(corpus: Corpus, run_id: str, files: str, then: str) -> None:
    """Warn if the release of a given run id was made, or may have been made, from other data."""
    if corpus.kind != "path" and not (files and then):
        told = (
            "whether of this table nobody can tell, since tables in memory cannot be compared; for "
            "another table"
        )
    elif files and then and files != then:
        told = (
            "of its files as they were then: they have changed since; for what they hold now"
            if corpus.kind == "path"
            else "of its query and files as they were then, which are others now; for these"
        )
    else:
        return
    warn(
        f"run {run_id} was made before, and this is its release: {told} use a new run id, which "
        "spends",
    )


def _save_release(release: Release, out: str | Path) -> Release:
    try:
        release.save(out)
    except UsageError as problem:
        run_id = release.run_id
        raise UsageError(
            f"{problem}. The release was made and paid for, and the ledger keeps it: "
            f"`dphh ledger release {run_id} --out DIR`, or run again with run_id={run_id!r}"
        ) from None
    return release


def _begun(
    price: Price,
    corpus: Corpus,
    session: Session,
    book: Ledger,
    hold: Hold,
    randomness: RunRandomness,
    say: Progress,
) -> Session:
    """Begin the run, or continue it after its last complete level: the session with its journal."""
    try:
        setting = setting_of(price, corpus, session, book, is_test=randomness.is_test)
        new_key = SystemRandomness().words(4, "the key of a run").tobytes()
        beginning = book.begin(hold, setting, new_key)
    except BaseException:
        with suppress(LedgerError):  # fails if an earlier attempt began: its price stays booked
            book.cancel(hold)
        raise
    assert beginning is not None
    randomness.draw_once_by(beginning.key)
    if beginning.attempt > 1:
        say(f"going on with a run that did not finish, attempt {beginning.attempt}")
        if corpus.kind != "path":
            say(Note("a table in memory cannot be compared; its rows must be those it began with"))
    return journaled(session, book, hold)


@contextmanager
def _failing(price: Price, book: Ledger, hold: Hold) -> Iterator[None]:
    """Record a run that fails here as failed, and say in its error what was spent."""
    try:
        yield
    except BaseException as problem:
        with suppress(LedgerError):
            book.failed(hold)
        spent = f"epsilon {price.privacy.booked_epsilon:g}, delta {price.privacy.delta:g}"
        told = (
            f"the price is spent once ({spent}): the same request with run id {hold.run_id} goes "
            "on where this run was cut short"
            + (
                ", and pays nothing more, as long as the data are as they were. Mended data are "
                "others: they are another run, which pays anew. The ledger keeps this one as failed"
                if isinstance(problem, CorpusError)
                else ""
            )
        )
        # DuckDB, logs and `str` show no notes; who interrupts a run is told of that alone.
        if isinstance(problem, DphhError) and received() is None:
            problem.args = (f"{str(problem).rstrip('.')}. {told[0].upper()}{told[1:]}",)
        else:
            problem.add_note(told)
        raise


def released(
    price: Price,
    corpus: Corpus,
    session: Session,
    run_id: str,
    randomness: Randomness,
    say: Progress,
) -> Release:
    say("reading the corpus")
    done = []
    for step in VERBS[price.verb].levels(price, session, corpus.content.joiner):
        say(f"level {step.level.level}: {step.rows.num_rows:,} released")
        done.append(step)
    table = sorted_rows(pa.concat_tables([step.rows for step in done]))
    manifest = _manifest_of(price, corpus, session, run_id, randomness, done)
    if price.prior is not None:
        manifest["prior"] = {**price.prior.to_json(), **fit_numbers(price.prior.prior, table)}
    if price.counting is not None:
        say("counting what was found")
        counted, table = with_counts(table, price.counting, session)
        manifest["counting"] = counted
    manifest["columns"] = meanings(table.schema.names)
    return Release(described(sorted_rows(as_text(table, corpus.content))), manifest)


def _manifest_of(
    price: Price,
    corpus: Corpus,
    session: Session,
    run_id: str,
    randomness: Randomness,
    done: list[LevelDone],
) -> dict[str, Any]:
    found = any(step.rows.num_rows for step in done)
    drew = checked_draw(price.events, drawn_events(price, [step.level for step in done], found))
    return {
        "verb": price.verb,
        "method": price.method,
        "run_id": run_id,
        "parameters": recorded(price, corpus),
        "privacy": stated(price, corpus.user, of_files=corpus.source is None).to_json(),
        "levels": [step.manifest() for step in done],
        "finds": price.finds.to_json(),
        "events": events_to_json(price.events),
        **({} if drew == price.events else {"drawn": events_to_json(drew)}),
        "randomness": _randomness_name(randomness),
        "is_test": randomness.is_test,
        "engine": {"name": session.name, "version": session.version},
        "versions": {
            "dphh": version("dphh"),
            "python": platform.python_version(),
            "pyarrow": pa.__version__,
        },
    }


def _randomness_name(randomness: Randomness) -> str:
    if randomness.is_test:
        return "a test's seed: this release is NOT private"
    return "operating system"


def settled(book: Ledger, release: Release, hold: Hold) -> Release:
    drawn = release.manifest.get("drawn")
    drew = None if drawn is None else events_from_json(drawn)
    try:
        book.settle(hold, release.manifest, release.parquet(), drew)
    except NotHeldError:
        raise  # this ledger did not reserve the run; it may be an older copy
    except LedgerError as problem:
        if (theirs := _settled_by_another(book, hold)) is not None:
            return theirs
        # The price is spent and recorded; discarding the release would help nobody.
        warn(
            f"the release was made, but the ledger could not keep a copy: {problem} "
            "Save the release now; or ask again with this run id once the ledger can be written.",
        )
    return release


def _settled_by_another(book: Ledger, hold: Hold) -> Release | None:
    """The release, if another process that runs the same run id has settled it already."""
    try:
        manifest, parquet = book.release(hold)
    except LedgerError:
        return None
    return Release.from_parquet(parquet, manifest)
