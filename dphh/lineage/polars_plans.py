"""The files that a lazy Polars frame reads: told by its plan, which Polars shows part by part.

Polars hands the plan of a query to whoever asks before it runs it: each part by its type, a scan
with its paths. Here it is looked at and given back unrun. Names and schemas are looked up on the
way, as for any plan; no row is read.

Which files are meant (a glob rather than those that it finds now) stands in the plan as Polars
writes it down, where it can: rows and functions of Python's are not written, and nothing is told
of what they read. Such a plan is not whole, nor is one of which Polars does not show a part.
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
#: In a plan as it is written down: rows, functions of Python's or of a plugin's.
_NOT_OF_FILES = re.compile(
    r"python|anonymous|plugin|callback|Buffers|DataFrameScan|^PipeWithSchema$|^Map$", re.IGNORECASE
)
#: And chance.
_BY_CHANCE = re.compile(r"^Random$|^random$")
#: Formats whose files are all that a scan reads.
_FORMATS = {"Parquet", "Csv", "NDJson", "Ipc", "Lines"}
#: Bytes of a written plan beyond which it holds data, which writing it as JSON would multiply.
_LONGEST_PLAN = 1 << 24


@dataclass
class Walk:
    """What was met on the way through a plan."""

    files: set[str] = field(default_factory=set)
    #: Whether each part was shown, but for scans: what these read is written down too.
    shown: bool = True
    #: Whether rows come from elsewhere than from files: from memory, or from a function.
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


class _Enough(Exception):  # noqa: N818 - it is no error: Polars is not to run what it has shown
    """Ends a query that was to be looked at."""


def is_lazy(frame: Any) -> bool:
    return type(frame).__module__.split(".")[0] == "polars" and hasattr(frame, "collect")


def origin_of_lazy(frame: Any) -> Origin:
    walk = _walked(frame)
    if walk is None:
        return Origin(mixes=NOT_LOOKED_AT)
    written = None if walk.elsewhere else _written(frame)
    whole = walk.shown and written is not None and _files_alone(written)
    files = set() if written is None else set(_paths(written))
    return Origin(
        tuple(sorted(files if whole else files | folded(walk.files))),
        whole and bool(files),
        walk.mixes,
    )


def query_of_lazy(frame: Any) -> str:
    """The plan as Polars writes it down; '' where it may give other rows of the same files."""
    if not origin_of_lazy(frame).whole:
        return ""
    written = _as_asked(_written(frame))
    return "" if any(map(_BY_CHANCE.search, _names(written))) else json.dumps(written)


def _walked(frame: Any) -> Walk | None:
    """None where it could not be walked to its end: what it reads is not there, or this version of
    Polars shows plans otherwise."""
    import polars as pl

    found: list[Walk] = []

    def look(plan: Any, *_: Any) -> None:
        walk = Walk()
        walk.through(plan)
        found.append(walk)
        raise _Enough

    with suppress(Exception, pl.exceptions.PanicException):  # whatever it is, nothing is told then
        # As it was asked for: an optimiser drops parts, and the files of what nothing passes.
        # `visit()` would show it too, and waits for itself where Python says which files there are.
        frame.collect(
            engine="in-memory", optimizations=pl.QueryOptFlags.none(), post_opt_callback=look
        )
    return found[0] if found else None


def _written(frame: Any) -> Any:
    """The plan as JSON; None where Polars cannot write it, or it holds data."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the format may change
            if len(frame.serialize()) > _LONGEST_PLAN:
                return None
            return json.loads(frame.serialize(format="json"))
    except Exception as problem:
        if type(problem).__module__.split(".")[0] != "polars":
            raise
        return None


def _files_alone(written: Any) -> bool:
    """Whether files, by their names, are all that a written plan reads."""
    for part in _parts(written):
        if "scan_type" not in part:
            continue
        kind = part["scan_type"]
        if not ({kind} if isinstance(kind, str) else set(kind)) <= _FORMATS:
            return False
        if set(part["sources"]) != {"Paths"} or part["unified_scan_args"].get("deletion_files"):
            return False
    return not any(map(_NOT_OF_FILES.search, _names(written)))


def _as_asked(plan: Any) -> Any:
    """Polars keeps beside a part of a plan what it has found out of it, once it was looked at."""
    if isinstance(plan, dict):
        if plan.keys() == {"IR"}:
            return _as_asked(plan["IR"]["dsl"])
        return {key: _as_asked(value) for key, value in plan.items()}
    return [_as_asked(each) for each in plan] if isinstance(plan, list) else plan


def _parts(plan: Any) -> Iterator[dict[str, Any]]:
    """Of a schema its types alone: what columns are called says nothing of a plan."""
    if isinstance(plan, dict):
        yield plan
        schema = plan["fields"] if isinstance(plan.get("fields"), dict) else {}
        plan = [each for each in plan.values() if each is not schema] + list(schema.values())
    if isinstance(plan, list):
        for each in plan:
            yield from _parts(each)


def _names(plan: Any) -> Iterator[str]:
    """And methods, of which chance is one: of ranks among equals."""
    for part in _parts(plan):
        yield from part
        if isinstance(method := part.get("method"), str):
            yield method


def _paths(plan: Any) -> Iterator[str]:
    for part in _parts(plan):
        if "Paths" in part:
            yield from _texts(part["Paths"])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
