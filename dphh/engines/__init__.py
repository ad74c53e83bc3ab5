"""Engines run levels. Each engine is a package with the same files, which define the same verbs."""

from __future__ import annotations

from importlib import import_module

from dphh.corpus import Corpus
from dphh.errors import UsageError
from dphh.rows.content import Content
from dphh.session.protocol import Limits, Session
from dphh.udfs.draws.randomness import Randomness

ENGINES = ("duckdb", "polars", "spark")
#: Engines that take seconds to start: what can be refused without them is refused before.
SLOW_TO_START = {"spark"}


def checked_engine(engine: str) -> str:
    if engine not in ENGINES:
        raise UsageError(f"engine: found {engine!r}; give one of {', '.join(ENGINES)}")
    return engine


def open_session(engine: str, corpus: Corpus, randomness: Randomness, limits: Limits) -> Session:
    """Open an engine on a corpus. Reads names and types only, no row."""
    checked_engine(engine)
    from dphh.sources.formats import opened  # here, because it imports all file formats

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
    """The engine of a corpus: the library that its table is from, else the default."""
    home = type(corpus.source).__module__.split(".")[0]
    home = home.removeprefix("py")  # pyspark -> spark
    return home if home in ENGINES else ENGINES[0]


def refuse_if_run_would_fail(engine: str, corpus: Corpus, session: Session) -> None:
    """Before a run pays, refuse a corpus on which it would fail."""
    look = import_module(f"dphh.engines.{engine}.look")
    look.refuse_if_run_would_fail(corpus, session)


def has_rows_of_null_users(corpus: Corpus, thorough: bool) -> bool | None:
    """Whether a row has a NULL user id; None if it is not known. `thorough`: also where it takes a
    query or the reading of files from stores. Raises any other fault that would end a run."""
    look = import_module(f"dphh.engines.{engine_of(corpus)}.look")
    found: bool | None = look.has_rows_of_null_users(corpus, thorough)
    return found


def tokens_of(text: str, content: Content) -> tuple[str, ...]:
    """The tokens of one text, as every engine reads it."""
    import polars as pl  # it needs no connection

    reading = import_module("dphh.engines.polars.content")
    row = pl.DataFrame({content.column: [text]}, schema={content.column: pl.String})
    tokens = row.select(reading.tokens_expression(content, pl.String())).item()
    return tuple(token for token in tokens if token)
