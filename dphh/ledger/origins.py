"""What an account records of a corpus, and the files that its query reads, which pay too.

Of a lazy Polars frame its plan tells them (`dphh.lineage.polars_plans`), of a Spark frame its plan
too (`dphh.lineage.spark_plans`), of a DuckDB view or relation the SQL
(`dphh.lineage.duckdb_views`). Where rows in memory came from cannot be told from them.
"""

from __future__ import annotations

import hashlib

from dphh.corpus import Corpus
from dphh.ledger.files_of_periods import with_files_of_periods
from dphh.ledger.sources import Source, files_check
from dphh.lineage.duckdb_views import origin_of_relation, query_of_relation
from dphh.lineage.origin import Origin
from dphh.lineage.polars_plans import is_lazy, origin_of_lazy, query_of_lazy
from dphh.lineage.spark_plans import origin_of_spark

#: Hexadecimal digits of a query that stay in the ledger.
QUERY = 8


def source_of(corpus: Corpus, origin: Origin | None = None) -> Source:
    """What an account records of a corpus. `origin`: what its query told, where it was asked."""
    return Source(
        kind=corpus.kind,
        where=corpus.where,
        user=corpus.user,
        content=corpus.content.to_json(),
        period=corpus.period,
        periods=corpus.periods,
        files=(origin or origin_of(corpus)).files,
    )


def origin_of(corpus: Corpus) -> Origin:
    """What the query of a frame, a view or a relation tells of its rows."""
    match type(corpus.source).__module__.split(".")[0].lstrip("_"):
        case "duckdb":
            return origin_of_relation(corpus.source)
        case "pyspark":
            return origin_of_spark(corpus.source)
        case "polars" if is_lazy(corpus.source):
            return origin_of_lazy(corpus.source)
    return Origin()


def data_check(corpus: Corpus, source: Source, besides: str) -> str:
    """What the ledger keeps of a corpus to know it again: of files `files_check`, and of a frame
    over files some bits of its query too. '' where the data cannot be compared."""
    if corpus.kind == "path":
        return files_check(with_files_of_periods(source), besides)
    if not (query := query_of(corpus)):
        return ""
    state = files_check(Source("path", source.files, source.user), besides)
    return state and state + hashlib.sha256(query.encode()).hexdigest()[:QUERY]


def query_of(corpus: Corpus) -> str:
    """How a frame, a view or a relation makes its rows of its files, as one text; '' where they may
    come from elsewhere too, or otherwise each time, so that it says too little."""
    match type(corpus.source).__module__.split(".")[0].lstrip("_"):
        case "duckdb":
            return query_of_relation(corpus.source)
        case "polars" if is_lazy(corpus.source):
            return query_of_lazy(corpus.source)
    return ""
