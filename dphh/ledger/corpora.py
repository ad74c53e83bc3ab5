"""A corpus as the ledger knows it: where it lives, what its account is called, and back again."""

from __future__ import annotations

from collections.abc import Sequence

from dphh.corpus import Corpus, absolute, corpus_from_json, replace_corpus
from dphh.errors import UsageError
from dphh.ledger.accounts import Accounts
from dphh.ledger.origins import origin_of, source_of
from dphh.ledger.sources import Source
from dphh.lineage.origin import Origin
from dphh.unit.user import RowWise

__all__ = [
    "check_account",
    "corpus_of",
    "files_of_named",
    "how_rows_were_made",
    "mixed",
    "named_corpus",
    "source_of",
    "unseen",
]


def how_rows_were_made(corpus: Corpus, origin: Origin | None = None) -> RowWise | None:
    """How it is known that each row comes of one user's rows alone; of files, which are taken as
    they are, None. `origin`, here and below: what the query told, where it was asked."""
    if corpus.source is None:
        return None
    origin = origin or origin_of(corpus)
    if origin.whole and not origin.mixes:
        return "seen"
    return "said" if corpus.row_wise else "assumed"


def mixed(corpus: Corpus, origin: Origin | None = None) -> str | None:
    """Why a run on this corpus is refused: what one user adds may depend on others. None where its
    rows are made one by one, or its owner answers for it, or its query cannot be seen."""
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
    """Where it cannot be told which files a corpus reads, so that their accounts do not pay."""
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
    """The corpus that the ledger knows by this name, if it does. Its owner has said how it is
    read; `said` are the options by which whoever asks says it too. `periods`: read these alone."""
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
    """A name must be of the account that this corpus belongs to; files pay wherever they are."""
    if corpus.name is None:
        return
    account = ledger.status(corpus.name)
    if corpus.kind == "path" and corpus.name not in ledger.accounts_touched(source_of(corpus)):
        raise UsageError(
            f"name: the account {corpus.name!r} is of {', '.join(account.source.where)}, "
            f"not of {', '.join(corpus.where)}; leave the name out, or add these files to the "
            "corpus"
        )
