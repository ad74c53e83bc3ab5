"""A session on DuckDB: what this package's files hold and draw, on one private instance."""

from __future__ import annotations

from dphh.engines.answering import Answering
from dphh.engines.duckdb.ngrams import Ngrams
from dphh.engines.duckdb.trie import Tries
from dphh.folders import import_folder


class DuckDBSession(Answering, Ngrams, Tries):
    """The session of a run on DuckDB."""


open_session = DuckDBSession
import_folder("dphh.engines.duckdb")  # each file registers what it holds and draws
