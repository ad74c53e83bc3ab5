"""Whether a corpus holds rows of nobody: a look that is free, whatever engine the run is for.

Such rows belong to no user, so both of two neighbouring corpora hold them or neither does, and what
is done about them before a run begins says nothing of anyone.
"""

from __future__ import annotations

from dphh.corpus import Corpus
from dphh.engines.duckdb.session import DuckDBSession, open_session
from dphh.engines.session import Limits, Session
from dphh.sources.formats import opened
from dphh.sources.reading import at_hand
from dphh.udfs.draws.randomness import SystemRandomness


def can_be_looked_at(corpus: Corpus) -> bool:
    """Where a look takes no more than a glance: Parquet on this machine, and tables at hand.

    Of other formats it would read every row, and what it met there would be an answer for nothing.
    """
    if corpus.kind == "path":
        return opened(corpus).kind == "path" and not any("://" in each for each in corpus.where)
    return at_hand(corpus)


def has_rows_of_nobody(corpus: Corpus, session: Session | None = None) -> bool:
    """By the run's own session where that is DuckDB's, else by one for this alone."""
    if isinstance(session, DuckDBSession):
        return _found(session)
    own = open_session(opened(corpus), SystemRandomness(), Limits())
    try:
        return _found(own)
    finally:
        own.close()


def _found(session: DuckDBSession) -> bool:
    session.hold_rows()
    return session.has_rows_of_nobody()
