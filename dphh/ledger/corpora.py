"""Converts between a corpus and what the ledger stores of it: its location and its account."""

from __future__ import annotations

from collections.abc import Sequence

from dphh.corpus import Corpus, absolute, corpus_from_json, replace_corpus
from dphh.errors import UsageError
from dphh.ledger.accounts import Accounts
from dphh.ledger.origins import source_of
from dphh.ledger.sources import Source


def corpus_of(source: Source, name: str | None = None) -> Corpus:
    """The corpus that an account describes; only paths can be opened again."""
    if source.kind != "path":
        raise UsageError(
            f"corpus: the account {name!r} is of a table in memory "
            f"({', '.join(source.where)}); pass that table with name={name!r}"
        )
    return corpus_from_json(source.to_json(), name=name)


def named_corpus(name: str, ledger: Accounts, said: Sequence[str] = ()) -> Corpus | None:
    """The corpus that the ledger knows by this name, or None. Its owner has declared how it is
    read, so `said`, the options of the caller that declare it again, are refused."""
    account = next((each for each in ledger.accounts() if each.name == name), None)
    if account is None:
        return None
    if said:
        raise UsageError(
            f"{', '.join(said)}: the ledger has the corpus {name!r}, whose owner has declared how "
            "it is read; leave these out"
        )
    return corpus_of(account.source, name)


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
