"""`dphh.check`: finds what would make a run cost more, or promise less, than intended. It is free.

It looks at names, types, the ledger, and whether any row has a NULL user id. Names and types are
public (docs/threats.md), and rows with a NULL user id, or lines that are no row, belong to no user,
so no finding depends on any user's data. No finding says how many files or rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from dphh.columns import type_name
from dphh.engines import engine_of, open_host
from dphh.errors import DphhError, UsageError
from dphh.ledger import Ledger
from dphh.ledger.spending import UNCAPPED, WHAT_CAPS, usage_phrase
from dphh.reader.corpus import PROMISE_CONDITION, Corpus, unit_and_columns
from dphh.reader.files import schemas_of_parquet
from dphh.reader.paths import parquet_pattern
from dphh.reader.rows import Limits
from dphh.sql import literal
from dphh.udfs.noise.randomness import SystemRandomness
from dphh.wording.lines import in_two_columns
from dphh.wording.notebook import InNotebooks
from dphh.wording.options import checked_call

Verdict = Literal["good", "unknown", "mind", "stops"]
MARK_OF_VERDICT: dict[Verdict, str] = {"good": "+", "unknown": "?", "mind": "!", "stops": "x"}


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    what: str
    verdict: Verdict
    found: str
    #: What it costs to leave this as it is; empty if the verdict is good.
    costs: str = ""


@dataclass(frozen=True)
class Checked(InNotebooks):
    """What `dphh.check` found, in the order in which a run would meet it."""

    corpus: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether a run would start, as far as can be checked for free."""
        return all(finding.verdict != "stops" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {
            "corpus": self.corpus,
            "ok": self.ok,
            "findings": [asdict(finding) for finding in self.findings],
        }

    def __repr__(self) -> str:
        lines = []
        for each in self.findings:
            lines.append((f"{MARK_OF_VERDICT[each.verdict]} {each.what}", each.found))
            if each.costs:
                lines.append(("", each.costs))
        return "\n".join([f"check: {self.corpus}", *in_two_columns(lines)])

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                MARK_OF_VERDICT[each.verdict],
                each.what,
                ". ".join(filter(None, (each.found, each.costs))),
            )
            for each in self.findings
        ]


@checked_call
def check(
    corpus: Corpus, *, ledger: Ledger | str | Path | None = None, engine: str | None = None
) -> Checked:
    """Check a corpus before anything is spent on it. Free, and reveals nothing about any user."""
    if not isinstance(corpus, Corpus):
        raise UsageError(f"corpus: found a {type(corpus).__name__}; give a dphh.Corpus")
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    findings = [*_check_opening(corpus, engine or engine_of(corpus))]
    if findings[0].verdict == "good":
        findings += _check_files(corpus)
        if corpus.kind != "path":
            condition = f"the promise holds provided that {PROMISE_CONDITION}"
            risk = "If not, what one user adds depends on others, and nothing is promised."
            findings.append(Finding("rows", "unknown", condition, risk))
    return Checked(repr(corpus), (*findings, *_check_accounts(corpus, book)))


def _check_opening(corpus: Corpus, engine: str) -> Iterator[Finding]:
    """Open the corpus, and yield what is found of its columns and users by a run's first checks."""
    try:
        host = open_host(engine, corpus, SystemRandomness(), Limits())
    except DphhError as problem:
        yield Finding("columns", "stops", str(problem), "No run begins, and nothing is spent.")
        return
    named = ", ".join(f"{option} is {column!r}" for option, column in corpus.columns.items())
    yield Finding("columns", "good", f"{named}: there, and of types that can be read")
    try:
        host.open()
        yield Finding("users", "good", "no row is without a user")
    except DphhError as problem:
        yield Finding("users", "stops", str(problem), "No run begins, and nothing is spent.")
    finally:
        host.close()


def _check_files(corpus: Corpus) -> Iterator[Finding]:
    """Check that all Parquet files have the columns, each of one type."""
    endings = (".parquet", ".pq", ".parq")
    named = [file for file in corpus.local_files if file.lower().endswith(endings)]
    schemas = [schemas_of_parquet(corpus, file)[1] for file in named]
    where = ", ".join(literal(parquet_pattern(place)) for place in corpus.where)
    see = f"SELECT file_name, name FROM parquet_schema([{where}]) says which."
    all_alike = bool(schemas)
    for column in corpus.columns.values():
        kinds = {
            type_name(schema.field(column).type) if column in schema.names else None
            for schema in schemas
        }
        if kinds == {None}:
            continue  # the names of the partition folders have the column's values
        if None in kinds:  # of users, this may stop a run: the look for NULL users says so
            costs = f"Their rows have NULL there, and count for nothing. {see}"
            yield Finding("files", "mind", f"some have no column {column!r}", costs)
        elif len(kinds) > 1:
            yield Finding(
                "files", "mind",
                f"{column!r} is {' in some and '.join(sorted(map(str, kinds)))} in others",
                "It is widened for all rows: numbers may be written otherwise. Write all files "
                "with one schema.",
            )  # fmt: skip
        all_alike &= len(kinds) == 1
    if all_alike:
        yield Finding("files", "good", "all have these columns, each of one type")


def _check_accounts(corpus: Corpus, book: Ledger) -> Iterator[Finding]:
    """Check which accounts pay, and what is left in them."""
    try:
        accounts = book.accounts_of(corpus)
    except DphhError as problem:
        yield Finding("ledger", "stops", str(problem), "No run begins, and nothing is spent.")
        return
    if book.absent() is not None:
        yield Finding(
            "ledger", "mind", "there is none",
            "A run makes a new one, in which nothing is spent yet and nothing is capped.",
        )  # fmt: skip
    elif (edited := book.edited()) is not None:
        yield Finding("ledger", "mind", edited, "No release of a run passes `dphh verify`.")
        return
    for account in accounts:
        if account.corpus.user != corpus.user:
            yield Finding(
                "ledger", "stops", f"the account {account.name!r} protects "
                f"{unit_and_columns(account.corpus.user)}",
                f"A run that counts them by {unit_and_columns(corpus.user)} is refused.",
            )  # fmt: skip
        elif account.one_more.epsilon <= 0:
            yield Finding(
                "ledger", "stops", f"{account.name!r} has nothing left of {account.cap}",
                "Every run is refused; the releases that were made can be had again for nothing.",
            )  # fmt: skip
        else:
            yield Finding(
                "ledger", "good",
                f"{account.name!r} pays: a cap of {account.cap}; {usage_phrase(account)}",
            )  # fmt: skip
    if not accounts:
        yield Finding(
            "ledger", "mind", UNCAPPED,
            "Nothing limits what is spent on it, and no total is promised to anyone. "
            f"{WHAT_CAPS}.",
        )  # fmt: skip
