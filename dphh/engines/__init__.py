"""Engines run levels. Each engine is a package with the same files, which define the same verbs."""

from __future__ import annotations

from importlib import import_module

from dphh.corpus import Corpus
from dphh.errors import CorpusError, UsageError
from dphh.rows.content import Content
from dphh.rows.user import ROWS_WITHOUT_USER
from dphh.session.protocol import Limits, Session
from dphh.udfs.draws.randomness import Randomness

ENGINES = ("duckdb", "polars", "spark")


def checked_engine(engine: str) -> str:
    if engine not in ENGINES:
        raise UsageError(f"engine: found {engine!r}; give one of {', '.join(ENGINES)}")
    return engine


def open_session(engine: str, corpus: Corpus, randomness: Randomness, limits: Limits) -> Session:
    """Open an engine on a corpus. Reads names and types only, no row."""
    checked_engine(engine)
    from dphh.corpora.formats import opened  # here, because it imports all file formats

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


def refuse_rows_without_user(corpus: Corpus, session: Session) -> None:
    """Before a run pays, refuse a corpus with rows that have NULL in all of the user's columns.

    They belong to no user, so either both of two neighbouring corpora have them or neither does.
    All rows are looked at, whatever `where` says, and nothing else: what a request is answered
    depends on no user's rows, however many requests are made.
    """
    if corpus.content.null_users == "refuse" and session.has_rows_without_user():
        raise CorpusError(f"{ROWS_WITHOUT_USER}. Nothing was spent")


def tokens_of(text: str, content: Content) -> tuple[str, ...]:
    """The tokens of one text, as every engine reads it."""
    import polars as pl  # it needs no connection

    reading = import_module("dphh.engines.polars.content")
    row = pl.DataFrame({content.column: [text]}, schema={content.column: pl.String})
    tokens = row.select(reading.tokens_expression(content, pl.String())).item()
    return tuple(token for token in tokens if token)
