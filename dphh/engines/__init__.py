"""Engines run levels. Each is a package with the same files and the same verbs in them."""

from __future__ import annotations

from importlib import import_module

from dphh.corpus import Corpus
from dphh.engines.session import Limits, Session
from dphh.errors import UsageError
from dphh.udfs.randomness import Randomness

ENGINES = ("duckdb",)


def open_session(engine: str, corpus: Corpus, randomness: Randomness, limits: Limits) -> Session:
    """Open an engine on a corpus: looks at names and types alone, never at a row."""
    if engine not in ENGINES:
        raise UsageError(f"engine: found {engine!r}; say one of {', '.join(ENGINES)}")
    session: Session = import_module(f"dphh.engines.{engine}.session").open_session(
        corpus, randomness, limits
    )
    return session
