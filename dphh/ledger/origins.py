"""What an account records of a corpus."""

from __future__ import annotations

from dphh.corpus import Corpus
from dphh.ledger.files_of_periods import with_files_of_periods
from dphh.ledger.sources import Source, files_check


def source_of(corpus: Corpus) -> Source:
    """What an account records of a corpus."""
    return Source(
        kind=corpus.kind,
        where=corpus.where,
        user=corpus.user,
        content=corpus.content.to_json(),
    )


def data_check(corpus: Corpus, source: Source, besides: str) -> str:
    """What the ledger stores to recognise unchanged files: `files_check`. '' of other data."""
    if corpus.kind != "path":
        return ""
    return files_check(with_files_of_periods(source), besides)
