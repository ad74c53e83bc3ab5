"""What an account records of a corpus, and the files that its query reads, which pay too.

The files are found in the plan of a lazy Polars frame (`dphh.lineage.polars_plans`) or of a Spark
frame (`dphh.lineage.spark_plans`), and in the SQL of a DuckDB view or relation
(`dphh.lineage.duckdb_views`). The origin of rows in memory is unknown.
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

#: The number of hexadecimal digits of a query's hash that the ledger stores.
QUERY = 8


def source_of(corpus: Corpus, origin: Origin | None = None) -> Source:
    """What an account records of a corpus. `origin`: what lineage found, if it was analysed
    before."""
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
    """Analyse the query of a frame, a view or a relation: which files it reads, and how."""
    match type(corpus.source).__module__.split(".")[0].lstrip("_"):
        case "duckdb":
            return origin_of_relation(corpus.source)
        case "pyspark":
            return origin_of_spark(corpus.source)
        case "polars" if is_lazy(corpus.source):
            return origin_of_lazy(corpus.source)
    return Origin()


def data_check(corpus: Corpus, source: Source, besides: str) -> str:
    """What the ledger stores to recognise unchanged data: `files_check`, and for a frame over files
    also some bits of its query. '' if the data cannot be compared."""
    if corpus.kind == "path":
        return files_check(with_files_of_periods(source), besides)
    if not (query := query_of(corpus)):
        return ""
    state = files_check(Source("path", source.files, source.user), besides)
    return state and state + hashlib.sha256(query.encode()).hexdigest()[:QUERY]


def query_of(corpus: Corpus) -> str:
    """The query that makes a frame's, view's or relation's rows from its files, as one text; '' if
    the rows may have other sources too, or may differ each time."""
    match type(corpus.source).__module__.split(".")[0].lstrip("_"):
        case "duckdb":
            return query_of_relation(corpus.source)
        case "polars" if is_lazy(corpus.source):
            return query_of_lazy(corpus.source)
    return ""
