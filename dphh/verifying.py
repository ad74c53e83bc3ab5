"""`dphh.verify`: the gate before a release leaves the building, or after one came in.

It passes a folder that is, byte for byte, what a ledger has stored for a run that an account paid
for within its cap. All else is refused: what was edited, what was made otherwise, what a folder
carries besides its release, and what could not be checked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from dphh.errors import UnknownRunError, UsageError
from dphh.ledger import Account, Entry, Ledger
from dphh.ledger.asked import asked_in_words
from dphh.ledger.budget import Booking, checked_booking, fits, percent
from dphh.ledger.places import label_of
from dphh.ledger.spending import guarantee_and_usage
from dphh.price import warnings_of
from dphh.privacy.events import events_from_json
from dphh.reader.corpus import unit_and_columns
from dphh.release import MANIFEST, TABLE, Release, release_of_files, stored_release
from dphh.report.verified import verified
from dphh.wording.lines import one_line, with_noun
from dphh.wording.options import checked_call

#: What was checked, and what was found.
Line = tuple[str, str]

_CONSISTENT_ALONE = (
    "the release agrees with itself, which does not show who made it, nor that anybody paid for it"
)


@checked_call
def verify(
    folder: str | Path,
    *,
    ledger: Ledger | str | Path | None = None,
    without_ledger: bool = False,
    page: str | Path | None = None,
    title: str | None = None,
    top: int = 25,
) -> list[Line]:
    """Check that a folder is a release that the ledger's accounts paid for, and nothing else.

    Refuses (UsageError) a folder that holds more or less than `release.parquet` and
    `release.json`, or other bytes than the ledger has stored for the run, a run that no account
    paid for, an account whose cap does not hold, and a test's release. Returns (what was checked,
    what was found) for each check. It costs nothing.

    without_ledger: check only that the release agrees with itself, which does not show who made
    it. page: check too that this file is what `Release.report` writes of the release, with this
    `title` and `top`.
    """
    if without_ledger and ledger is not None:
        raise UsageError("without_ledger: a ledger is given too; leave one of them out")
    files = _files_of(Path(folder))
    release = release_of_files(files[TABLE], files[MANIFEST])
    if release.is_test:
        raise _refusal("it is a test's, made with a seed, and is NOT private")
    lines = [("files", f"{TABLE} and {MANIFEST}, and nothing else"), *verified(release)]
    lines += [("warning", said) for said in release.privacy.warnings]
    book = None
    if without_ledger:
        _refuse_other_bytes(files, release)
        lines.append(("ledger", f"none was asked: {_CONSISTENT_ALONE}"))
    else:
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        stored = _stored_in(book, release.run_id)
        _refuse_other_bytes(files, stored)
        lines.append(("ledger", f"{book.path} has stored these two files, byte for byte"))
        lines += _lines_on_payers(book, stored)
    if page is not None:
        lines.append(_line_on_page(Path(page), release, book, title, top))
    return lines


def _refusal(why: str) -> UsageError:
    return UsageError(f"release: {why}. It must not be passed on as it is")


def _files_of(folder: Path) -> dict[str, bytes]:
    """The bytes of the release's two files. Refuses a folder that is or has a link, or has anything
    else: such files would leave with it."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise _refusal(f"{folder} is a link or a file; give the folder itself")
        names = sorted(entry.name for entry in os.scandir(folder))
        if others := [name for name in names if name not in (TABLE, MANIFEST)]:
            more = f" and {with_noun(len(others) - 1, 'other')}" if len(others) > 1 else ""
            raise _refusal(f"beside its two files the folder has {one_line(others[0])!r}{more}")
        for path in (folder, folder / TABLE, folder / MANIFEST):
            if path != folder and not stat.S_ISREG(path.lstat().st_mode):
                raise _refusal(f"{path.name} is a link, or no file")
            if hasattr(os, "listxattr") and any(
                name.startswith("user.") for name in os.listxattr(path, follow_symlinks=False)
            ):
                raise _refusal(f"{path.name} has extended attributes, which copies may carry along")
        return {name: (folder / name).read_bytes() for name in (TABLE, MANIFEST)}
    except OSError as problem:
        raise UsageError(
            f"release: {problem.filename} could not be read ({problem.strerror}); give the "
            "folder that --out or Release.save wrote"
        ) from None


def _stored_in(book: Ledger, run_id: str) -> Release:
    """The release of this run in the ledger. Refuses one that is not there."""
    if book.absent() is not None:
        raise UsageError(
            f"ledger: there is none at {book.path}, and {_CONSISTENT_ALONE}. Give the ledger that "
            "paid for it; if this much is enough, give without_ledger=True"
        )
    try:
        return stored_release(book, run_id)
    except UnknownRunError:
        raise _refusal(
            f"the ledger {book.path} does not know its run {run_id!r}: it was paid for in another "
            "ledger, if at all"
        ) from None


def _refuse_other_bytes(files: dict[str, bytes], right: Release) -> None:
    """Refuse files that are not those of this release, of which they have the run id. Without a
    ledger the release is the folder's own: then this finds what its files carry besides it."""
    for name, bytes_of_right in right.files().items():
        if files[name] == bytes_of_right:
            continue
        made_with = right.manifest.get("versions", {}).get("pyarrow")
        if right.stored is None and name == TABLE and made_with != pa.__version__:
            raise UsageError(
                f"release: {TABLE} was written by pyarrow {made_with}, and here is "
                f"{pa.__version__}, so it could not be checked what it carries besides its rows; "
                "check it where that version is, or with the ledger"
            )
        raise _refusal(
            f"{name} is not what dphh wrote for this run: it has another content, or carries "
            "something besides, such as metadata. Get it again from the ledger that paid for it, "
            "`dphh ledger release RUN_ID --out DIR`"
        )


def _lines_on_payers(book: Ledger, stored: Release) -> Iterator[Line]:
    """What the accounts that paid for this run promise; refuses if there is none, or one does not
    keep its promise."""
    (entry,) = (run for run in book.runs() if run.run_id == stored.run_id)
    if _booking_of(stored) != entry.booking:
        raise _refusal("its promise is not the one that the ledger has booked for this run")
    if not entry.accounts:
        raise _refusal(
            "no account paid for its run, so no cap holds and no total is promised to anyone "
            f"({label_of(entry.corpus)}). Let the owner of the data add an account for them "
            "(`dphh ledger add`), for which the run then counts as spent"
        )
    yield "asked", asked_in_words(entry)
    if entry.corpus.kind != "path":
        yield (
            "warning",
            "the run read a table in memory, and the ledger believed whoever made the table that "
            "its rows are the account's",
        )
    for account in map(book.status, entry.accounts):
        _refuse_broken_promise(account, entry)
        runs = with_noun(account.runs, "run")
        yield (
            "account",
            f"{account.name!r} paid for this run, within its cap of {account.cap}, of which "
            f"{percent(account.used)} is used, by {runs}; its data are {label_of(account.corpus)}",
        )
        for said in warnings_of(account.cap.epsilon, account.cap.delta):
            yield "warning", f"the cap of {account.name!r}: {said}"
        for change in book.history(account.name):
            if change.what == "cap" and change.was is not None:
                yield "warning", f"the cap of {account.name!r} was changed: {change}"


def _booking_of(release: Release) -> Booking:
    promised = release.privacy
    events = events_from_json(release.manifest["events"])
    return checked_booking(events, promised.booked_epsilon, promised.delta)


def _refuse_broken_promise(account: Account, entry: Entry) -> None:
    if account.corpus.user != entry.corpus.user:
        raise _refusal(
            f"{account.label} protects {unit_and_columns(account.corpus.user)}, and this run "
            f"protects {unit_and_columns(entry.corpus.user)}"
        )
    if not fits(account.bookings, account.cap):
        raise _refusal(f"the account {account.name!r}: {guarantee_and_usage(account)}")


def _line_on_page(
    path: Path, release: Release, book: Ledger | None, title: str | None, top: int
) -> Line:
    """Refuses a page that is not what is written of this release now. One with the state of the
    accounts is, until something more is spent."""
    from dphh.report.page import page_of

    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise UsageError(f"page: {path} is a link, or no file; give the page itself")
        found = path.read_bytes()
    except OSError as problem:
        raise UsageError(f"page: {path} could not be read ({problem.strerror})") from None
    for shown in (None, book):
        if found == page_of(release, title=title, ledger=shown, top=top).encode():
            return "page", f"{path} is what `dphh report` writes of this release"
    raise UsageError(
        f"page: {path} is not what this dphh writes of this release. Give the title and the top "
        "with which it was written. A page that shows what is left in the accounts holds until "
        "more is spent. If in doubt, write it again, and do not pass this one on"
    )
