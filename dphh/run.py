"""Run a plan: book its price in the ledger, run the levels on an engine, settle the release.

The same request gives one release, even if several processes ask for it or some of them are killed,
because what a run drew is not drawn again. Before a draw the ledger is asked for its stored rows.
If there are none, it is made, and its rows are stored in one transaction before they are used. If
another process with the same run id stored its rows first, both processes use those. From the same
rows both continue in the same way: all else that a level needs, a host finds again in the corpus.
"""

from __future__ import annotations

import hashlib
import json
import logging
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa

from dphh.columns import (
    DIGEST_FIELD,
    TEXT_TYPES,
    as_parquet,
    as_release_table,
    digest_of,
    stored_table,
)
from dphh.engines import checked_engine, engine_of, open_host
from dphh.engines.host import Draw, DrawOnce, Host
from dphh.errors import (
    DphhError,
    LedgerError,
    Notice,
    UnknownRunError,
    UnreachableError,
    UsageError,
    warn,
)
from dphh.files.stopping import received_signal
from dphh.ledger import BookedRun, Data, Entry, Ledger, Request
from dphh.ledger.entries import Setting, check_name
from dphh.ledger.spending import UNCAPPED, WHAT_CAPS
from dphh.price import Price, manifest_before_run
from dphh.reader.corpus import Corpus, replace_corpus
from dphh.reader.identity import state_of_files
from dphh.reader.rows import Limits
from dphh.registry import VERBS, RunOutcome, run_levels
from dphh.release import TABLE, Release, checked_folder, release_as_stored, stored_release
from dphh.udfs.noise.randomness import Randomness, RunRandomness, SystemRandomness
from dphh.wording.options import check_whole

#: The version of a package, which a file says.
version = cache(metadata.version)
#: Each line of progress, for schedulers that keep what Python logs.
_LOG = logging.getLogger("dphh")
#: A function that shows a line of progress.
Progress = Callable[[str], None]

#: What the options of a run do that commands have, in one line each.
HELP = {
    "engine": "duckdb (the default), polars or spark.",
    "memory_limit": "Memory for a run, such as 4GB.",
    "threads": "Threads that a run may use.",
    "run_id": "The run's name; the same gives its release again, free.",
    "again": "Run and spend again what was paid for.",
    "require_account": "Refuse a run that no account pays for.",
    "out": "Write release.parquet and release.json there.",
}


class Note(str):
    """A line of progress about the budget; it is shown even if the caller passed no `progress`."""

    def __new__(cls, said: str) -> Note:
        return super().__new__(cls, f"note: {said}")


def show_budget_notes(said: str) -> None:
    """The default `progress`: shows only lines about the budget."""
    if not isinstance(said, Note):
        return
    shell = sys.modules.get("IPython")
    if shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None:
        print(said)  # a notebook would show a warning in red, with the path of a temporary file
    else:
        # Where warnings are errors, this one must not end a run that has been paid for.
        with suppress(Notice):
            warn(said.removeprefix("note: "), Notice)


def run(
    plan: Any,
    *,
    corpus: Corpus | None = None,
    ledger: Ledger | str | Path | None = None,
    engine: str | None = None,
    run_id: str | None = None,
    again: bool = False,
    require_account: bool = False,
    out: str | Path | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    randomness: Randomness | None = None,
) -> Release:
    """Spend the price and return the release.

    The same plan on the same data, wherever they are, returns its earlier release, or continues an
    interrupted run after its last complete level, at no further cost; `again=True` spends again.
    With a `run_id` of an earlier run, that run's release comes back whatever the data are now,
    unless another place is named, whose rows are others.
    `require_account`: a run that no account pays for, so that nothing caps it, is refused.
    """
    price: Price = plan.price  # `plan` is a `Plan`, whose module imports this one
    corpus = corpus or plan.corpus
    if corpus is None:
        raise UsageError("run: the plan has no corpus; pass run(corpus=...)")
    _check_arguments(corpus, run_id, again, threads, progress, randomness)
    engine = checked_engine(engine or engine_of(corpus))
    corpus = VERBS[price.verb].read(corpus, price)
    # Files are listed once: what the ledger is asked about is what is looked at and read.
    corpus = replace_corpus(corpus, listed=corpus.files_of_places())
    say = _logging(progress or show_budget_notes)
    source = RunRandomness(randomness or SystemRandomness())
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    request = Request.of(price, corpus)
    # To an analyst, data are the files as they were written, unread: that a release comes again
    # because this night's rows are those of the night before would show that nobody did anything.
    is_analyst = book.analyst is not None
    key = book.data_key()
    files = state_of_files(corpus, key, stores_too=is_analyst)
    data = None if files is None else Data(files, files) if is_analyst else book.data_of(files)

    def released_before() -> Release | None:
        """The release of the same run, which costs nothing; None if there is none, or only reading
        tells."""
        # A caller who passes test randomness chooses each draw: only an id repeats such a run.
        known = None if source.is_test else data
        before = book.before_reading(
            request, known, run_id=run_id, again=again, require_account=require_account
        )
        if out is not None:
            _check_folder(out, run_id if before is None else before.run_id, book, request)
        if before is None or (run_id and not _is_run_of(before, corpus, data, is_analyst)):
            return None
        return _released_before(book, before, None if run_id else say, out)

    # The ledger is asked before any row is read: whether it refuses must not depend on rows, and a
    # stored release needs no engine, which may take long to start.
    if (release := released_before()) is not None:
        return release

    # Before a run pays, a host looks at columns and types, and reads all rows: an error is free.
    with _telling("nothing was spent"):
        host = open_host(engine, corpus, source, Limits(memory_limit, threads))
    booked = None
    try:
        with _telling("nothing was spent"):
            host.open()
            data = data or Data(host.digest(key), files)
        if (release := released_before()) is not None:
            return release
        last = None if source.is_test or again or run_id else book.last_like(request)
        booked = book.book(
            request,
            _setting_of(price, host, data, is_test=source.is_test),
            None if source.is_test else data,
            run_id=run_id,
            again=again,
            require_account=require_account,
        )
        if booked.settled:  # another process has settled the run since `released_before`
            return _save_to_folder(stored_release(book, booked.run_id), out, spent=False)
        _say_notes_at_start(booked, last, book.names(), say)
        source.secret_key = booked.key
        with _recording_failure(price, book, booked):
            say("reading the corpus")
            found = run_levels(price, host, once_for_run(book, booked), say)
            release = release_of(found, price, corpus, host, booked.run_id, source)
        release = settle(book, release, booked)
    except LedgerError:
        # Another process that runs the same run may have settled it meanwhile.
        with suppress(LedgerError):
            if booked is not None:
                return _save_to_folder(stored_release(book, booked.run_id), out, spent=True)
        raise
    finally:
        host.close()
    return _save_to_folder(release, out, spent=True)


def _is_run_of(before: BookedRun, corpus: Corpus, data: Data | None, is_analyst: bool) -> bool:
    """Whether the release of the run that the caller names by its id is given for these data. False
    if only reading tells: a job that is tried again names the same place; another one under this id
    has the same rows, or is a slip, which would publish the old release as the new one's."""
    if data is not None and data.digest == before.data:
        return True
    if before.data is not None and before.where != corpus.where and not is_analyst:
        if data is None:
            return False
        raise UsageError(
            f"run_id: run {before.run_id} was made of {', '.join(before.where)}, and this one "
            "names another place with other rows. Nothing was spent. Use a new run id, which "
            f"spends; `dphh ledger release {before.run_id} --out DIR` gives that release"
        )
    warn(
        f"run {before.run_id} was made before, and this is its release, whatever the data are "
        "now. A new run id spends"
    )
    return True


def _released_before(
    book: Ledger, before: BookedRun, say: Progress | None, out: str | Path | None
) -> Release:
    if say is not None:
        say(
            Note(
                f"nothing is spent: this is the release of run {before.run_id}, by the same "
                "request of the same data; again=True spends again"
            )
        )
    return _save_to_folder(stored_release(book, before.run_id), out, spent=False)


def _logging(show: Progress) -> Progress:
    def say(line: str) -> None:
        _LOG.info("%s", line)
        show(line)

    return say


def _setting_of(price: Price, host: Host, data: Data, *, is_test: bool) -> Setting:
    """What must be the same when an interrupted run continues, besides its request."""
    planned: list[Any] = [price.method, [level.to_json() for level in price.levels]]
    if price.counting is not None:
        planned.append(price.counting.to_json())
    levels = json.dumps(planned, sort_keys=True)
    return {
        "plan": hashlib.sha256(levels.encode()).hexdigest()[:32],
        "dphh": version("dphh"),
        "engine": f"{host.name} {host.version}",
        "randomness": "a test's" if is_test else "operating system",
        "data": data.digest,
    }


def _check_arguments(
    corpus: object,
    run_id: object,
    again: object,
    threads: object,
    progress: object,
    randomness: object,
) -> None:
    if not isinstance(corpus, Corpus):
        raise UsageError(f"corpus: found a {type(corpus).__name__}; give a dphh.Corpus")
    if run_id is not None:
        check_name("run_id", run_id, 200)
    if again and run_id is not None:
        raise UsageError("again: makes a run with a new id; leave out either again or run_id")
    if threads is not None:
        check_whole("threads", threads)
    if progress is not None and not callable(progress):
        raise UsageError(
            f"progress: found {progress!r}; give a function that takes a line, such as print"
        )
    if randomness is not None and not hasattr(randomness, "is_test"):
        raise UsageError(
            "randomness: is for tests only, as a dphh.testing.SeededRandomness; leave it out"
        )


def _check_folder(out: str | Path, run_id: str | None, book: Ledger, request: Request) -> None:
    """Refuse a folder that takes no release, or in which later runs would read it as rows."""
    folder = checked_folder(out, run_id)
    if (whose := book.data_with(folder / TABLE, request)) is not None:
        raise UsageError(
            f"out: {folder} is among the data of {whose}, so later runs would read the "
            "release as rows; give a folder elsewhere. Nothing was spent"
        )


def _save_to_folder(release: Release, out: str | Path | None, *, spent: bool) -> Release:
    release = replace(release, spent=spent)
    if out is None:
        return release
    try:
        release.save(out)
    except (UsageError, UnreachableError) as problem:
        run_id = release.run_id
        raise type(problem)(
            f"{problem}. The release was made and paid for, and the ledger keeps it: "
            f"`dphh ledger release {run_id} --out DIR`, or run again with run_id={run_id!r}"
        ) from None
    return release


def _say_notes_at_start(
    booked: BookedRun, last: Entry | None, others: list[str], say: Progress
) -> None:
    if booked.new and last is not None:
        say(
            Note(
                f"the data are not those of run {last.run_id} of {last.when:%Y-%m-%d}, which was "
                f"the same request: this run spends anew. run_id={last.run_id!r} returns that "
                "release"
            )
        )
    if booked.new and not booked.accounts:
        told = f"{UNCAPPED}: {WHAT_CAPS}"
        if others:  # as where a folder was copied together with its ledger
            told += f"; with `--replace`, if it is that of {', '.join(others)} in another place"
        say(Note(told))
    if not booked.new:
        say(f"going on with a run that did not finish, attempt {booked.attempt}")


@contextmanager
def _recording_failure(price: Price, book: Ledger, booked: BookedRun) -> Iterator[None]:
    """Record a run that fails here as failed, and say in its error what was spent."""
    spent = f"epsilon {price.privacy.booked_epsilon:g}, delta {price.privacy.delta:g}"
    with _telling(
        f"the price is spent once ({spent}): the same request with run id {booked.run_id} goes on "
        "where this run was cut short, as long as the data are as they were"
    ):
        try:
            yield
        except BaseException:
            with suppress(LedgerError):
                book.failed(booked)
            raise


@contextmanager
def _telling(told: str) -> Iterator[None]:
    """Say in an error what was spent. DuckDB, logs and `str` show no notes of an error, so the
    message gets these words; only an interruption gets a note."""
    try:
        yield
    except BaseException as problem:
        if isinstance(problem, DphhError) and received_signal() is None:
            problem.args = (f"{str(problem).rstrip('.')}. {told[0].upper()}{told[1:]}",)
        else:
            problem.add_note(told)
        raise


def once_for_run(book: Ledger, run: BookedRun) -> DrawOnce:
    """The function that makes each draw of this run once, and stores what it releases."""
    names: set[str] = set()

    def once(draw_name: str, draw: Draw) -> Any:
        if draw_name in names:  # the second draw would get the rows that the first one stored
            raise AssertionError(f"two draws of one run are called {draw_name!r}")
        names.add(draw_name)
        stored = book.drawn(run, draw_name)
        if stored is None:
            stored = book.keep_drawn(run, draw_name, rows_as_parquet(draw()))
        return stored_table(stored)

    return once


def rows_as_parquet(released: Any) -> bytes:
    """The rows as Parquet, sorted by their values. The order in which an engine found them could
    reveal how the table was made, for instance which of its grams are spurious."""
    plain = pa.table(
        {
            name: column.cast(pa.string()) if column.type in TEXT_TYPES else column
            for name, column in zip(released.schema.names, released.columns, strict=True)
        }
    )
    return as_parquet(plain.sort_by([(name, "ascending") for name in plain.schema.names]))


def release_of(
    found: RunOutcome,
    price: Price,
    corpus: Corpus,
    host: Host,
    run_id: str,
    randomness: Randomness,
) -> Release:
    """The release of a run: the table of all that its levels released, and the manifest."""
    levels, table, counting = found
    manifest = {
        **manifest_before_run(price, corpus, table.column_names, is_test=randomness.is_test),
        "run_id": run_id,
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "levels": [step.manifest_entry() for step in levels],
        "engine": {"name": host.name, "version": host.version},
        "versions": {
            "dphh": version("dphh"),
            "python": platform.python_version(),
            "pyarrow": pa.__version__,
        },
    }
    if counting is not None:
        manifest["counting"] = counting
    table = as_release_table(table)
    manifest[DIGEST_FIELD] = digest_of(table)
    # As JSON, so that it equals what the ledger stores of it and a folder gives back.
    return Release(table, json.loads(json.dumps(manifest)))


def settle(book: Ledger, release: Release, booked: BookedRun) -> Release:
    """Store the release in the ledger and return it, or the one that another process stored
    first."""
    try:
        stored = book.settle(booked, release.manifest, release.parquet())
    except UnknownRunError:
        raise  # the ledger was replaced: it does not record what this run has spent
    except LedgerError as problem:
        # The price is spent and recorded; the release must not be lost.
        warn(
            f"the release was made, but the ledger could not keep a copy: {problem} "
            "Save the release now; or ask again with this run id once the ledger can be written.",
        )
        return release
    return release_as_stored(stored)
