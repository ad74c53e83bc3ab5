"""Converts between a corpus and what the ledger stores of it: its location and its account."""

from __future__ import annotations

from collections.abc import Sequence

from dphh.corpus import Corpus, absolute, corpus_from_json, replace_corpus
from dphh.errors import UsageError
from dphh.ledger.accounts import Accounts
from dphh.ledger.origins import origin_of, source_of
from dphh.ledger.sources import Source
from dphh.lineage.origin import Origin
from dphh.rows.user import RowWise


def how_rows_were_made(corpus: Corpus, origin: Origin | None = None) -> RowWise | None:
    """How it is known that each row is made from one user's rows only; None for files, which are
    read as they are. `origin`, here and below: what lineage found in the query, if it was analysed
    before."""
    if corpus.source is None:
        return None
    origin = origin or origin_of(corpus)
    if origin.whole and not origin.mixes:
        return "seen"
    return "said" if corpus.row_wise else "assumed"


def mixed(corpus: Corpus, origin: Origin | None = None) -> str | None:
    """The message that refuses a corpus in which one user's rows may depend on other users; None if
    lineage saw each row made from one row, if the owner declared it, or if the query cannot be
    seen."""
    if corpus.row_wise or not (mixes := (origin or origin_of(corpus)).mixes):
        return None
    return (
        f"row_wise: the query of this corpus has more in it than rows taken one by one ({mixes}), "
        "so what one user adds may depend on others, which no privacy statement covers. Nothing "
        "was spent. Leave that out; or, if each row that it gives comes of one user's rows alone, "
        "whoever else is there, say row_wise=True (row_wise := true in SQL): then you answer for "
        "it, and the manifest says so"
    )


def unseen(corpus: Corpus, origin: Origin | None = None) -> str | None:
    """A warning that the files of a corpus are unknown, so their accounts do not pay; else None."""
    if corpus.kind == "path" or corpus.name is not None:
        return None
    origin = origin or origin_of(corpus)
    if origin.whole:
        return None
    if origin.files:
        return (
            "not all files that these rows came from can be told, so accounts of the others do not "
            "pay; name= says of one more that it does"
        )
    return (
        "which files these rows came from cannot be told, so no account of theirs pays; "
        "name= says which one does"
    )


def corpus_of(source: Source, name: str | None = None) -> Corpus:
    """The corpus that an account describes; only paths can be opened again."""
    if source.kind != "path":
        raise UsageError(
            f"corpus: the account {name!r} is of a table in memory "
            f"({', '.join(source.where)}); pass that table with name={name!r}"
        )
    return corpus_from_json(source.to_json(), name=name)


def named_corpus(
    name: str,
    ledger: Accounts,
    said: Sequence[str] = (),
    periods: str | Sequence[str] | None = None,
) -> Corpus | None:
    """The corpus that the ledger knows by this name, or None. Its owner has declared how it is
    read, so `said`, the options of the caller that declare it again, are refused. `periods`: read
    only these."""
    account = next((each for each in ledger.accounts() if each.name == name), None)
    if account is None:
        return None
    if said:
        raise UsageError(
            f"{', '.join(said)}: the ledger has the corpus {name!r}, whose owner has declared how "
            "it is read; leave these out"
        )
    corpus = corpus_of(account.source, name)
    return corpus if periods is None else corpus.in_periods(periods)


def files_of_named(corpus: Corpus, files: Sequence[str], ledger: Accounts) -> Corpus:
    """Some files of a corpus that the ledger names, read as its owner said; its account pays."""
    some = replace_corpus(corpus, where=tuple(map(absolute, files)))
    check_account(some, ledger)
    return some


def check_account(corpus: Corpus, ledger: Accounts) -> None:
    """Check that the corpus's name belongs to an account of the same data."""
    if corpus.name is None:
        return
    account = ledger.status(corpus.name)
    if corpus.kind == "path" and corpus.name not in ledger.accounts_touched(source_of(corpus)):
        raise UsageError(
            f"name: the account {corpus.name!r} is of {', '.join(account.source.where)}, "
            f"not of {', '.join(corpus.where)}; leave name= out, or ask the owner to make these "
            "files part of that account (dphh ledger move NAME PATH...)"
        )
