"""The files that a lazy Polars frame reads, found from its plan.

Before Polars runs a query, it hands the plan to a callback, which can look at each node: its type
and, for a scan, its paths. The callback then cancels the query. As for any plan, Polars looks up
names and schemas on the way; no row is read.

The serialised plan shows the files as they were asked for (a glob, not the files that it finds
now), if Polars can serialise it: rows and Python functions cannot be, and what they read is
unknown. Such a plan is not `whole`, nor is one with a node that Polars does not show.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dphh.lineage.origin import Origin, folded
from dphh.lineage.row_by_row_polars import mixing

NOT_LOOKED_AT = "a plan that Polars did not show: what it reads is not there, or not as it says"
#: Names in a serialised plan of in-memory rows, Python functions and plugins.
_NOT_FROM_FILES = re.compile(
    r"python|anonymous|plugin|callback|Buffers|DataFrameScan|^PipeWithSchema$|^Map$", re.IGNORECASE
)
#: Names of random functions and methods.
_RANDOM_OPERATION = re.compile(r"^Random$|^random$")
#: Formats whose scans read only their files.
_FILE_FORMATS = {"Parquet", "Csv", "NDJson", "Ipc", "Lines"}
#: A larger serialised plan contains data, which JSON would multiply; it is not looked at.
_LONGEST_PLAN = 1 << 24


@dataclass
class Walk:
    """What was found while walking through a plan."""

    files: set[str] = field(default_factory=set)
    #: Whether each node but scans was shown; what scans read is in the serialised plan.
    shown: bool = True
    #: Whether some rows come from memory or from a function rather than from files.
    elsewhere: bool = False
    mixes: str = ""

    def through(self, plan: Any) -> None:
        ahead, seen = [plan.get_node()], set()
        while ahead:
            if (node := ahead.pop()) in seen:
                continue
            seen.add(node)
            plan.set_node(node)
            try:
                view = plan.view_current_node()
            except NotImplementedError:
                view = None
            inputs = plan.get_inputs()
            if type(view).__name__ == "Scan":
                self.files |= {str(path) for path in view.paths}
            elif not inputs:
                self.elsewhere |= view is not None
            else:
                self.shown &= view is not None
            self.mixes = self.mixes or mixing(plan, view)
            ahead += inputs


class _StopAfterLook(Exception):  # noqa: N818 - not an error: cancels the query
    """Cancels a query after its plan was looked at."""


def is_lazy(frame: Any) -> bool:
    return type(frame).__module__.split(".")[0] == "polars" and hasattr(frame, "collect")


def origin_of_lazy(frame: Any) -> Origin:
    walk = _walk_plan(frame)
    if walk is None:
        return Origin(mixes=NOT_LOOKED_AT)
    written = None if walk.elsewhere else _serialised_plan(frame)
    whole = walk.shown and written is not None and _reads_only_files(written)
    files = set() if written is None else set(_file_paths(written))
    return Origin(
        tuple(sorted(files if whole else files | folded(walk.files))),
        whole and bool(files),
        walk.mixes,
    )


def query_of_lazy(frame: Any) -> str:
    """The serialised plan; '' if it may give other rows from the same files."""
    if not origin_of_lazy(frame).whole:
        return ""
    written = _without_cached_parts(_serialised_plan(frame))
    return (
        "" if any(map(_RANDOM_OPERATION.search, _operation_names(written))) else json.dumps(written)
    )


def scanned_by_lazy(frame: Any) -> tuple[str, ...]:
    """The Parquet files whose rows the frame returns unchanged, as Polars lists them now; () if its
    plan differs in anything from that of `pl.scan_parquet` of these places."""
    import polars as pl

    written = _without_cached_parts(_serialised_plan(frame))
    places = [*_file_paths(written)]
    if not places or any(":" in place for place in places):  # of this machine alone
        return ()
    if written != _serialised_plan(pl.scan_parquet(places)):
        return ()
    walk = _walk_plan(frame)
    return () if walk is None else tuple(sorted(walk.files))


def _walk_plan(frame: Any) -> Walk | None:
    """The walk through the frame's plan; None if it failed: what the frame reads is missing, or
    this version of Polars shows plans differently."""
    import polars as pl

    found: list[Walk] = []

    def look(plan: Any, *_: Any) -> None:
        walk = Walk()
        walk.through(plan)
        found.append(walk)
        raise _StopAfterLook

    with suppress(Exception, pl.exceptions.PanicException):  # on any failure, nothing is known
        # Without optimisations: an optimiser drops nodes, and the files of unused inputs.
        # `visit()` would also show the plan, but deadlocks if a Python function lists the files.
        frame.collect(
            engine="in-memory", optimizations=pl.QueryOptFlags.none(), post_opt_callback=look
        )
    return found[0] if found else None


def _serialised_plan(frame: Any) -> Any:
    """The plan as JSON; None if Polars cannot serialise it, or it contains data."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Polars warns that the format may change
            if len(frame.serialize()) > _LONGEST_PLAN:
                return None
            return json.loads(frame.serialize(format="json"))
    except Exception as problem:
        if type(problem).__module__.split(".")[0] != "polars":
            raise
        return None


def _reads_only_files(written: Any) -> bool:
    """Whether a serialised plan reads nothing but named files."""
    for part in _objects_of_plan(written):
        if "scan_type" not in part:
            continue
        kind = part["scan_type"]
        if not ({kind} if isinstance(kind, str) else set(kind)) <= _FILE_FORMATS:
            return False
        if set(part["sources"]) != {"Paths"} or part["unified_scan_args"].get("deletion_files"):
            return False
    return not any(map(_NOT_FROM_FILES.search, _operation_names(written)))


def _without_cached_parts(plan: Any) -> Any:
    """The plan without what Polars caches in it after the plan was looked at."""
    if isinstance(plan, dict):
        if plan.keys() == {"IR"}:
            return _without_cached_parts(plan["IR"]["dsl"])
        return {key: _without_cached_parts(value) for key, value in plan.items()}
    return [_without_cached_parts(each) for each in plan] if isinstance(plan, list) else plan


def _objects_of_plan(plan: Any) -> Iterator[dict[str, Any]]:
    """All objects of a plan. From schemas only the types: column names are arbitrary text."""
    if isinstance(plan, dict):
        yield plan
        schema = plan["fields"] if isinstance(plan.get("fields"), dict) else {}
        plan = [each for each in plan.values() if each is not schema] + list(schema.values())
    if isinstance(plan, list):
        for each in plan:
            yield from _objects_of_plan(each)


def _operation_names(plan: Any) -> Iterator[str]:
    """The names of operations and methods; some rank methods are random."""
    for part in _objects_of_plan(plan):
        yield from part
        if isinstance(method := part.get("method"), str):
            yield method


def _file_paths(plan: Any) -> Iterator[str]:
    for part in _objects_of_plan(plan):
        if "Paths" in part:
            yield from _texts_in(part["Paths"])


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(each)
