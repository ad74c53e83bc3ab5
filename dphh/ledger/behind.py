"""What an account records of a corpus, and the files that a lazy frame reads, which pay too.

Polars writes its plans down, with every path and glob that they scan; of a Spark frame the plan
tells (`dphh.ledger.behind_spark`), of a DuckDB view or relation the SQL
(`dphh.ledger.behind_duckdb`). Where rows in memory came from cannot be told from them.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

from dphh.corpus import Corpus
from dphh.ledger.behind_duckdb import files_of_relation, query_of_relation
from dphh.ledger.behind_spark import files_of_spark
from dphh.ledger.sources import Source, files_check

#: Hexadecimal digits of a query that stay in the ledger.
QUERY = 8
_SCAN = re.compile(r"SCAN \[([^\]\n]+)")
#: Tables that a function of Python's gives: Delta's and Iceberg's, whose files a look may list.
_DATASET = "PL_PY_DSET"
#: Those, and rows that a plan holds itself.
_ELSEWHERE = re.compile(rf"PYTHON SCAN|{_DATASET}|^\s*DF \[", re.IGNORECASE | re.MULTILINE)
#: In a plan as it is written down: rows, functions of Python's or of a plugin's, chance.
_CHANGES = re.compile(r"python|anonymous|plugin|Buffers|DataFrameScan|^Random$", re.IGNORECASE)
_MORE = re.compile(r"\.\.\. \d+ (?:other|more).*")


def source_of(corpus: Corpus) -> Source:
    """What an account records of a corpus."""
    return Source(
        kind=corpus.kind,
        where=corpus.where,
        user=corpus.user,
        content=corpus.content.to_json(),
        files=files_told(corpus)[0],
    )


def files_told(corpus: Corpus) -> tuple[tuple[str, ...], bool]:
    """Paths and globs that a frame, a view or a relation reads, and whether they are all."""
    home = type(corpus.source).__module__.split(".")[0].lstrip("_")
    if home == "duckdb":
        return files_of_relation(corpus.source)
    if home == "pyspark":
        return files_of_spark(corpus.source)
    files = files_behind(corpus.source)
    return files, bool(files) and _ELSEWHERE.search(corpus.source.explain(optimized=False)) is None


def data_check(corpus: Corpus, source: Source, besides: str) -> str:
    """What the ledger keeps of a corpus to know it again: of files `files_check`, and of a frame
    over files some bits of its query too. '' where the data cannot be compared."""
    if corpus.kind == "path":
        return files_check(source, besides)
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
        case "polars" if hasattr(corpus.source, "collect"):
            return _query_of_lazy(corpus.source)
    return ""


def _query_of_lazy(frame: Any) -> str:
    """The plan as Polars writes it down, with no rows, functions of Python's or chance in it."""
    if not files_behind(frame) or _ELSEWHERE.search(frame.explain(optimized=False)):
        return ""
    try:
        written = _written(frame)
    except Exception as problem:
        if type(problem).__module__.split(".")[0] != "polars":
            raise
        return ""
    return "" if any(map(_CHANGES.search, _keys(written))) else json.dumps(_as_asked(written))


def _as_asked(plan: Any) -> Any:
    """Polars keeps beside a part of a plan what it has found out of it, once it was looked at."""
    if isinstance(plan, dict):
        if plan.keys() == {"IR"}:
            return _as_asked(plan["IR"]["dsl"])
        return {key: _as_asked(value) for key, value in plan.items()}
    return [_as_asked(each) for each in plan] if isinstance(plan, list) else plan


def _keys(plan: Any) -> Iterator[str]:
    """And methods, of which chance is one: of ranks among equals."""
    if isinstance(plan, dict):
        yield from plan
        if isinstance(method := plan.get("method"), str):
            yield method
        plan = list(plan.values())
    if isinstance(plan, list):
        for each in plan:
            yield from _keys(each)


def _written(frame: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the format may change
        return json.loads(frame.serialize(format="json"))


def files_behind(frame: Any) -> tuple[str, ...]:
    """Paths and globs that a Polars lazy frame scans; none where they cannot be told."""
    if type(frame).__module__.split(".")[0] != "polars" or not hasattr(frame, "collect"):
        return ()
    try:
        shown = _SCAN.findall(frame.explain(optimized=False))
        if _DATASET in shown:  # its log is read for the files that it has now
            shown += _SCAN.findall(frame.explain())
    except Exception as problem:
        if type(problem).__module__.split(".")[0] != "polars" and not isinstance(problem, OSError):
            raise
        return ()  # what it scans is not there: the run says so when it reads
    if not shown:
        return ()  # rows in memory alone, which writing the plan down would copy
    try:
        found = set(_paths(_written(frame)))
    except Exception as problem:
        if type(problem).__module__.split(".")[0] != "polars":
            raise
        found = set()  # a plan with a function of Python's in it is not written down
    if _DATASET in shown or not found:
        found |= set(_listed(shown))
    return tuple(sorted(found))


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
        names = (name for name in scan.split(", ") if name and not _MORE.fullmatch(name))
        yield from (name for name in names if name != _DATASET)
