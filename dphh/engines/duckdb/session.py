"""A session on DuckDB: the verbs of this package's files, on one private instance."""

from __future__ import annotations

from dphh.corpus import Corpus
from dphh.engines.duckdb.counts import Counts
from dphh.engines.duckdb.ldp_trie import LocalTries
from dphh.engines.duckdb.ngrams import Ngrams
from dphh.engines.duckdb.trie import Tries
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import Randomness


def open_session(corpus: Corpus, randomness: Randomness, limits: Limits) -> DuckDBSession:
    return DuckDBSession(corpus, randomness, limits)


class DuckDBSession(Ngrams, Counts, Tries, LocalTries):
    """The session of a run on DuckDB."""

    name = "duckdb"
