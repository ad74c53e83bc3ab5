"""A session on DuckDB: what this package's files hold and draw, on one private instance."""

from __future__ import annotations

from dphh.corpus import Corpus
from dphh.engines.answering import Answering
from dphh.engines.duckdb.look import refuse_if_run_would_fail, room_on_duckdb
from dphh.engines.duckdb.ngrams import Ngrams
from dphh.engines.duckdb.trie import Tries
from dphh.folders import import_folder
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import Randomness


def open_session(corpus: Corpus, randomness: Randomness, limits: Limits) -> DuckDBSession:
    return DuckDBSession(corpus, randomness, limits)


class DuckDBSession(Answering, Ngrams, Tries):
    """The session of a run on DuckDB."""

    name = "duckdb"

    def look_first(self, corpus: Corpus) -> None:
        refuse_if_run_would_fail(corpus, room_on_duckdb, self)


import_folder("dphh.engines.duckdb")  # each file registers what it holds and draws
