"""What an account records of a corpus, and the files that a lazy frame reads, which pay too.

Polars writes its plans down, with every path and glob that they scan. What a DuckDB view or
relation or a Spark frame reads, and where rows in memory came from, cannot be told from them.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

from dphh.corpus import Corpus
from dphh.ledger.sources import Source

_SCAN = re.compile(r"SCAN \[([^\]\n]+)")
_MORE = re.compile(r"\.\.\. \d+ (?:other|more).*")


def source_of(corpus: Corpus) -> Source:
    """What an account records of a corpus."""
    return Source(
        kind=corpus.kind,
        where=corpus.where,
        user=corpus.user,
        content=corpus.content.to_json(),
        files=files_behind(corpus.source) if corpus.kind == "frame" else (),
    )


def files_behind(frame: Any) -> tuple[str, ...]:
    """Paths and globs that a Polars lazy frame scans; none where they cannot be told."""
    if type(frame).__module__.split(".")[0] != "polars" or not hasattr(frame, "collect"):
        return ()
    try:
        shown = _SCAN.findall(frame.explain(optimized=False))
    except Exception as problem:
        if type(problem).__module__.split(".")[0] != "polars" and not isinstance(problem, OSError):
            raise
        return ()  # what it scans is not there: the run says so when it reads
    if not shown:
        return ()  # rows in memory alone, which writing the plan down would copy
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the format may change
            found = set(_paths(json.loads(frame.serialize(format="json"))))
    except Exception as problem:
        if type(problem).__module__.split(".")[0] != "polars":
            raise
        found = set()  # a plan with a function of Python's in it is not written down
    return tuple(sorted(found)) or tuple(sorted(set(_listed(shown))))


def _paths(plan: Any) -> Iterator[str]:
    if isinstance(plan, dict):
        for key, value in plan.items():
            yield from _texts(value) if key == "Paths" else _paths(value)
    elif isinstance(plan, list):
        for each in plan:
            yield from _paths(each)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _listed(shown: list[str]) -> Iterator[str]:
    """From how a plan prints: its first file, and of a few all."""
    for scan in shown:
        yield from (name for name in scan.split(", ") if name and not _MORE.fullmatch(name))
