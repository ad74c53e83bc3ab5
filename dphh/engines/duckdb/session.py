"""A session on DuckDB: what this package's files hold and draw, on one private instance."""

from __future__ import annotations

from dphh.corpus import Corpus
from dphh.engines.answering import Answering
from dphh.engines.duckdb.look import refuse_if_run_would_fail, room_on_duckdb
from dphh.engines.duckdb.ngrams import Ngrams
from dphh.engines.duckdb.trie import Tries
from dphh.folders import import_folder


class DuckDBSession(Answering, Ngrams, Tries):
    """The session of a run on DuckDB."""

    def look_first(self, corpus: Corpus) -> None:
        refuse_if_run_would_fail(corpus, room_on_duckdb, self)


open_session = DuckDBSession
import_folder("dphh.engines.duckdb")  # each file registers what it holds and draws
