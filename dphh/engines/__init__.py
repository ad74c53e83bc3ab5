"""Engines run levels: each is a package with a host of its own.

Here belongs what runs a named step and keeps its tables; `host.py` is all that mechanisms ask, and
rows come from `reader/`. May import: reader, udfs, sql; no price, no ledger. Begin at `host.py`,
then `duckdb/host.py`.
"""

from __future__ import annotations

from dphh.engines.host import Host
from dphh.errors import UsageError
from dphh.reader.corpus import Corpus
from dphh.reader.rows import Limits, opened_unless_parquet
from dphh.udfs.noise.randomness import Randomness

ENGINES = ("duckdb", "polars", "spark")


def checked_engine(engine: str) -> str:
    if engine not in ENGINES:
        raise UsageError(f"engine: found {engine!r}; give one of {', '.join(ENGINES)}")
    return engine


def open_host(engine: str, corpus: Corpus, randomness: Randomness, limits: Limits) -> Host:
    """Open an engine on a corpus. Reads names and types only, no row."""
    read = opened_unless_parquet(corpus)
    try:
        if checked_engine(engine) == "duckdb":
            from dphh.engines.duckdb.host import DuckDBHost

            return DuckDBHost(read, randomness, limits)
        if engine == "polars":
            from dphh.engines.polars.host import PolarsHost

            return PolarsHost(read, randomness, limits)
        from dphh.engines.spark.host import SparkHost
    except ModuleNotFoundError as problem:
        raise UsageError(
            f"engine: {engine!r} needs the package {problem.name}, which is not installed; "
            f"pip install 'dphh[{engine}]'"
        ) from None
    return SparkHost(read, randomness, limits)


def engine_of(corpus: Corpus) -> str:
    """The engine that runs a corpus if none is named: the library of its table, else DuckDB."""
    home = type(corpus.source).__module__.split(".")[0]
    home = home.removeprefix("py")  # Spark's package is pyspark
    return home if home in ENGINES else ENGINES[0]
