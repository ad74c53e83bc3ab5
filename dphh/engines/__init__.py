"""Engines run levels. Each is a package with the same files and the same verbs in them."""

from __future__ import annotations

from importlib import import_module

from dphh.corpus import Corpus
from dphh.engines.session import Limits, Session
from dphh.errors import UsageError
from dphh.udfs.draws.randomness import Randomness

ENGINES = ("duckdb", "polars", "spark")


def open_session(engine: str, corpus: Corpus, randomness: Randomness, limits: Limits) -> Session:
    """Open an engine on a corpus: looks at names and types alone, never at a row."""
    if engine not in ENGINES:
        raise UsageError(f"engine: found {engine!r}; say one of {', '.join(ENGINES)}")
    from dphh.sources.formats import opened  # with all that reads formats

    try:
        opener = import_module(f"dphh.engines.{engine}.session")
    except ModuleNotFoundError as problem:
        raise UsageError(
            f"engine: {engine!r} needs the package {problem.name}, which is not installed; "
            f"pip install 'dphh[{engine}]'"
        ) from None
    session: Session = opener.open_session(opened(corpus), randomness, limits)
    return session


def engine_of(corpus: Corpus) -> str:
    """The engine that a corpus is at home in: what it is made of decides, else the default."""
    home = type(corpus.source).__module__.split(".")[0]
    home = home.removeprefix("py")  # pyspark's frames are Spark's
    return home if home in ENGINES else ENGINES[0]
