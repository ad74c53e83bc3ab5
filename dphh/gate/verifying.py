"""`dphh.verify`: the gate before a release leaves the building, or after one came in.

It passes a folder that is, byte for byte, what a ledger has stored for a run that an account paid
for within its cap. All else is refused: what was edited, what was made otherwise, what a folder
carries besides its release, and what could not be checked.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa

from dphh.consistency import check_consistency
from dphh.errors import UnknownRunError, UsageError
from dphh.files.listed import items_of_file
from dphh.gate.own_words import (
    OWN_WORDS,
    Line,
    lines_on_columns,
    lines_on_run_ids,
    own_words,
    whole,
)
from dphh.ledger import Account, Entry, Ledger
from dphh.ledger.asked import asked_in_words
from dphh.ledger.budget import fits, part_of
from dphh.ledger.changes import Change
from dphh.ledger.entries import Manifest
from dphh.ledger.paying import label_of, read_other_files
from dphh.ledger.spending import guarantee_and_usage
from dphh.price import warnings_of
from dphh.reader.content import Content
from dphh.reader.corpus import unit_and_columns
from dphh.reader.views import tokens_of_texts
from dphh.release import GET_AGAIN, MANIFEST, TABLE, Release, release_of_files, stored_release
from dphh.wording.lines import with_noun
from dphh.wording.options import checked_call

WARNING = "warning"
#: What is checked in lines that a person must answer before the release leaves.
WAITS = WARNING, OWN_WORDS

_CONSISTENT_ALONE = (
    "the release agrees with itself, which does not show who made it, nor that anybody paid for it"
)

_ONE_ITEM = (
    "this release's promise protects one contributed item, and not all that a person contributed"
)


@checked_call
def verify(
    folder: str | Path,
    *,
    ledger: Ledger | str | Path | None = None,
    account: str | None = None,
    answered: int = 0,
    run_id: str | None = None,
    days: str | None = None,
    groups: str | Sequence[str] | None = None,
    of: str | Path | None = None,
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

    Where what was checked is "warning" or "own words", a person must read what was found and answer
    for it: an account or a cap that was made or raised after runs, a weak promise, a text that
    somebody wrote and that leaves with the release.

    account: refuse a run that this account did not pay for, whichever others did.
    answered: its first so many changes, as `dphh ledger show NAME` numbers them, wait for no
    answer: whoever says so has answered for them.
    run_id: refuse another run than this. Whoever names it has read it: it waits for no answer.
    days: the column whose days choose the rows, as in each run of a job with `since` and `until`:
    a range of days near the run's waits for no answer. Other days do, and those of any other
    column, since they may be a birthday, and its name may tell of one person.
    groups: these names of groups wait for no answer, nor do periods near the run's. Others do, also
    where an account declared them public.
    of: a text file; given items that stand in it, one a line, wait for no answer.
    without_ledger: check only that the release agrees with itself, which does not show who made
    it, and waits for an answer. page: check too that this file is what `Release.report` writes of
    the release, with this `title` and `top`.
    """
    if without_ledger and (ledger is not None or account is not None):
        raise UsageError("without_ledger: a ledger or an account is given too; leave one out")
    if title is not None and page is None:
        raise UsageError("title: there is no page to check; give page, or leave title out")
    files = _files_of(Path(folder))
    release = release_of_files(files[TABLE], files[MANIFEST])
    if release.is_test:
        raise _refusal("it is a test's, made with a seed, and is NOT private")
    if run_id not in (None, release.run_id):
        raise _refusal(f"it is of the run {release.run_id!r}, and not {run_id!r}")
    if answered and account is None:
        raise UsageError("answered: name the account whose changes were answered")
    book, runs, payers = None, None, []
    if not without_ledger:
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        _refuse_other_bytes(files, _stored_in(book, release.run_id))
    named = whole(Path(folder).absolute().name)
    where = f"{TABLE} and {MANIFEST}, and nothing else; the folder's name, '{named}', leaves too"
    lines = [("files", where), *check_consistency(release), *_warnings_alone(release)]
    if book is None:
        lines.append(_line_without_ledger(files, release))
    else:
        lines.append(("ledger", f"{book.path} has stored these two files, byte for byte"))
        runs = {run.run_id: run for run in book.runs()}
        entry = runs[release.run_id]
        if account is not None and account not in entry.accounts:
            paid = " and ".join(map(repr, entry.accounts)) or "no account"
            none = "" if account in book.names() else ", which the ledger does not have"
            raise _refusal(f"{paid} paid for its run, and not {account!r}{none}")
        payers = [*map(book.status, entry.accounts)]
        lines += _lines_on_payers(book, entry, payers, {account: answered})
    manifest = release.manifest
    if (why := _why_items_are_known(manifest, of, book, runs or {})) is not None:
        lines.append(("items", why))
        manifest = {
            **manifest,
            "parameters": {
                name: said for name, said in manifest["parameters"].items() if name not in _GIVEN
            },
        }
    lines += _declared_public(manifest, None if runs is None else entry.analyst or entry.who)
    lines += lines_on_run_ids(release.manifest, runs, run_id)
    lines += lines_on_columns(release.manifest["parameters"])
    near = datetime.now(UTC) if runs is None else entry.when
    lines += own_words(manifest, groups, days, near)
    if page is not None:
        names = [each.name for each in payers if each.name != account]
        lines += _lines_on_page(Path(page), release, book, title, top, names)
    return lines


def _line_without_ledger(files: dict[str, bytes], release: Release) -> Line:
    _refuse_other_bytes(files, release)
    if (made_with := release.manifest["versions"]["dphh"]) != version("dphh"):
        raise UsageError(
            f"release: dphh {made_with} made it, and here is {version('dphh')}, so it could "
            "not be checked whether it promises what that version promises; check it where "
            "that version is, or with the ledger"
        )
    return WARNING, f"no ledger was asked: {_CONSISTENT_ALONE}"


def _warnings_alone(release: Release) -> Iterator[Line]:
    """What needs an answer whoever paid."""
    if not _SHOWS_ATTRIBUTES:
        yield WARNING, "whether the files have attributes, this system does not show"
    for said in release.privacy.warnings:
        yield WARNING, said
    if release.privacy.protects == "contribution":
        yield WARNING, _ONE_ITEM


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
            raise _refusal(f"beside its two files the folder has {others[0]!a}{more}")
        for path in (folder, folder / TABLE, folder / MANIFEST):
            if path != folder and (why := _why_no_file_alone(path)):
                raise _refusal(f"{path.name} {why}")
            if _has_attributes(path):
                raise _refusal(f"{path.name} {_ATTRIBUTES}")
            if path != folder and path.stat().st_size > _MOST_BYTES:
                raise _refusal(f"{path.name} is larger than any that dphh writes")
        return {name: (folder / name).read_bytes() for name in (TABLE, MANIFEST)}
    except OSError as problem:
        raise UsageError(
            f"release: {problem.filename} could not be read ({problem.strerror}); give the "
            "folder that --out or Release.save wrote"
        ) from None


_ATTRIBUTES = (
    "has extended attributes, which copies may carry along; `cp` without `-a`, into a new folder, "
    "leaves them out"
)
#: More bytes than either file has: SQLite, and so the ledger, stores at most 10^9 in one value.
_MOST_BYTES = 1 << 30


#: Linux alone does, from Python.
_SHOWS_ATTRIBUTES = hasattr(os, "listxattr")
#: Attributes that systems give to files by themselves.
_OF_THE_SYSTEM = {
    *("security.selinux", "security.SMACK64", "security.ima", "security.evm", "system.nfs4_acl"),
}


def _why_no_file_alone(path: Path) -> str | None:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        return "is a link, or no file"
    if found.st_nlink > 1:
        return (
            "has a second name (a hard link), by which it may be changed afterwards; `cp` into a "
            "new folder leaves that behind"
        )
    return None


def _has_attributes(path: Path) -> bool:
    if not _SHOWS_ATTRIBUTES:
        return False
    try:
        return not _OF_THE_SYSTEM.issuperset(os.listxattr(path, follow_symlinks=False))
    except OSError as problem:
        if problem.errno != errno.ENOTSUP:  # a disk that has no attributes
            raise
        return False


def _stored_in(book: Ledger, run_id: str) -> Release:
    """The release of this run in the ledger. Refuses one that is not there; a ledger
    that was edited."""
    if (absent := book.absent()) is not None:
        raise UsageError(
            f"ledger: {absent}. Without the ledger that paid for it, {_CONSISTENT_ALONE}; if this "
            "much is enough, give without_ledger=True"
        )
    if (edited := book.edited()) is not None:
        raise _refusal(edited)
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
        wrote = "writes of this" if right.stored is None else "wrote for this"
        raise _refusal(
            f"{name} is not what dphh {wrote} run: it has another content, or carries something "
            f"besides, such as metadata; {GET_AGAIN}"
        )


def _lines_on_payers(
    book: Ledger, entry: Entry, payers: Sequence[Account], answered: Mapping[str | None, int]
) -> Iterator[Line]:
    """What the accounts that paid for this run promise, and what was changed in them once they had
    runs, but for an account's first changes, which were `answered`. Refuses if there is none, or
    one does not keep its promise."""
    if not entry.accounts:
        raise _refusal(
            "no account paid for its run, so no cap holds and no total is promised to anyone "
            f"({label_of(entry.corpus)}). Let the owner of the data add an account for them "
            "(`dphh ledger add`), for which the run then counts as spent"
        )
    who = f"by {entry.analyst or entry.who}, {entry.when:%Y-%m-%d}"
    yield "asked", f"{asked_in_words(entry)}; {who}"
    if entry.corpus.kind != "path":
        yield (
            WARNING,
            "the run read a table in memory, and the ledger believed whoever made the table that "
            "its rows are the account's",
        )
    for account in payers:
        _refuse_broken_promise(account, entry)
        runs, changes = with_noun(account.runs, "run"), book.history(account.name)
        late = any(each.what == "account" and each.after >= entry.sequence for each in changes)
        yield (
            "account",
            f"{account.name!r} {'counts this run as spent' if late else 'paid for this run'}, "
            f"within its cap of {account.cap}, of which "
            f"{part_of(account.used)} is used, by {runs}; its data are {label_of(account.corpus)}",
        )
        moved = any(each.what == "corpus" for each in changes)
        if not moved and read_other_files(entry.corpus, account.corpus):
            of = f"which is not in the data of {account.name!r}"
            yield WARNING, f"the run read {label_of(entry.corpus)}, {of}"
        if account.runs_of_others or account.test_runs:
            yield WARNING, f"{account.name!r}: {guarantee_and_usage(account)}"
        for said in warnings_of(account.cap.epsilon, account.cap.delta):
            yield WARNING, f"the cap of {account.name!r}: {said}"
        yield from _lines_on_changes(account, changes, entry, answered.get(account.name, 0))


def _lines_on_changes(
    account: Account, changes: Sequence[Change], entry: Entry, answered: int
) -> Iterator[Line]:
    """What was changed in an account that paid for this run, once it had runs."""
    if answered > len(changes):
        raise UsageError(
            f"answered: {account.name!r} has {with_noun(len(changes), 'change')}, and nobody has "
            "answered for a later one"
        )
    for number, change in enumerate(changes, start=1):
        of_groups = change.what == "groups"
        other_groups = of_groups and not change.is_of_groups_by(entry.parameters.get("by"))
        if change.what in ("share", "token") or other_groups:
            continue
        if change.lowers_cap and change.runs:
            held = "the larger cap was promised before; all runs are within the smaller one too"
            yield "account", f"{account.name!r}: {change}; {held}"
        elif change.runs and number <= answered:
            yield "account", f"{account.name!r}, answered: {change}"
        elif change.runs and change.after >= entry.sequence:
            yield WARNING, f"{account.name!r}, AFTER this run was asked for: {change}"
        elif change.runs:
            yield WARNING, f"{account.name!r}, after earlier runs: {change}"
        elif of_groups:
            yield "groups", f"{account.name!r}: {change}"


#: The parameters that have items which somebody gave.
_GIVEN = ("of", "domain")


def _why_items_are_known(
    manifest: Manifest, of: str | Path | None, book: Ledger | None, runs: Mapping[str, Entry]
) -> str | None:
    """Why the items that the run was given wait for no answer; None if they do."""
    asked = manifest["parameters"]
    given = {tuple(item) for name in _GIVEN for item in asked.get(name, ())}
    if of is not None:
        try:
            listed = items_of_file(of)
        except (OSError, ValueError):
            raise UsageError(f"of: {of} is no text file with an item on each line") from None
        if not given:
            return "the run was given none, so the list that was named is not needed"
        if given <= {*tokens_of_texts(listed, Content(**asked["content"]))}:
            return f"all are in the list that was named, {of}"
    earlier = _release_with_given(book, runs[manifest["run_id"]], runs) if book else None
    return earlier and f"all are of the release {earlier}, which its account paid for"


def _release_with_given(book: Ledger, entry: Entry, runs: Mapping[str, Entry]) -> str | None:
    """The last run before this one that found all the items which this one was given, without being
    given any itself, and that an account of this run paid for, for the same users."""
    lists = [entry.parameters[name] for name in _GIVEN if name in entry.parameters]
    for run in reversed([*runs.values()]) if lists else ():
        if (
            (run.sequence < entry.sequence and run.state == "settled")
            and (run.corpus.user == entry.corpus.user and {*run.accounts} & {*entry.accounts})
            and not {*_GIVEN, "prior"} & run.parameters.keys()
            and run.corpus.kind == "path"  # nobody knows of whom the rows of a table are
        ):
            found = stored_release(book, run.run_id)
            released = {*map(tuple, found.table["tokens"].to_pylist())}
            if released.issuperset(map(tuple, *lists)) and not found.is_test:
                return run.run_id
    return None


def _declared_public(manifest: Manifest, who: str | None) -> Iterator[Line]:
    """What whoever asked has declared public: the promise does not hold for what it discloses."""
    asked, by = manifest["parameters"], "" if who is None else f", by {who}"
    declared = [
        *(f"a list of {with_noun(len(asked[given]), 'item')}" for given in _GIVEN
          if given in asked),
        *(["a prior"] if asked.get("prior") else []),
    ]  # fmt: skip
    for each in declared:
        yield WARNING, f"declared public: {each}{by}; nothing protects the people in it"


def _refuse_broken_promise(account: Account, entry: Entry) -> None:
    if account.corpus.user != entry.corpus.user:
        raise _refusal(
            f"{account.label} protects {unit_and_columns(account.corpus.user)}, and this run "
            f"protects {unit_and_columns(entry.corpus.user)}"
        )
    if not fits(account.bookings, account.cap):
        raise _refusal(f"the account {account.name!r}: {guarantee_and_usage(account)}")


def _lines_on_page(
    path: Path, release: Release, book: Ledger | None, title: str | None, top: int,
    names: Sequence[str],
) -> Iterator[Line]:  # fmt: skip
    """Refuses a page that is not what is written of this release now. One with the state of the
    accounts is, until something more is spent; `names` are those that the caller has not named."""
    from dphh.report.page import page_of

    try:
        if why := _why_no_file_alone(path):
            raise UsageError(f"page: {path} {why}")
        if _has_attributes(path):
            raise UsageError(f"page: {path} {_ATTRIBUTES}. Write it again")
        found = path.read_bytes()
    except OSError as problem:
        raise UsageError(f"page: {path} could not be read ({problem.strerror})") from None
    for shown in (None, book):
        if found == page_of(release, title=title, ledger=shown, top=top).encode():
            said = f"{path} is what `dphh report` writes of this release"
            if shown is not None:
                said += ", with the names of the accounts that paid and what is left in them"
            yield "page", f"{said}; the file's name, '{whole(path.name)}', leaves too"
            if title:
                yield "page", f"its title, '{whole(title)}', is the one that was named"
            for name in names if shown else ():
                yield OWN_WORDS, f"leaves as somebody wrote it, on the page: '{whole(name)}'"
            return
    raise UsageError(
        f"page: {path} is not what this dphh writes of this release. Give the title and the top "
        "with which it was written. A page that shows what is left in the accounts holds until "
        "more is spent. A page of several releases, or of a change since another, cannot be "
        "checked. If in doubt, write a page of this one again, and do not pass this one on"
    )
