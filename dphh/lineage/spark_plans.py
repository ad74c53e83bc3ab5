"""The files that a Spark frame reads, found from its analysed plan.

`inputFiles()` uses the optimised plan, which has no files for a cached frame and ignores rows that
come from elsewhere. So the leaves of the analysed plan, including subqueries, are checked too: each
leaf reads files, or rows from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from dphh.lineage.origin import Origin, folded
from dphh.lineage.spark_connect import refuse_lost

#: A further reference to a `WITH` part, whose leaves are listed at its definition.
_CTE_REFERENCE = "CTERelationRef"
#: The files of a leaf, and whether it reads nothing else.
Files = tuple[list[str], bool]
NO_KNOWN_FILES: Files = ([], False)


def origin_of_spark(frame: Any) -> Origin:
    """The files as Spark lists them, and whether they are all; row mixing is not analysed."""
    refuse_lost(frame.sparkSession)
    try:
        found = [*_files_of_leaves(frame)]
    except Exception as problem:
        if type(problem).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        return Origin()
    told = folded(unquote(file) for some, _ in found for file in some)
    return Origin(tuple(sorted(told)), bool(told) and all(whole for _, whole in found))


def _files_of_leaves(frame: Any) -> Iterator[Files]:
    here = getattr(frame, "_jdf", None)
    yield frame.inputFiles(), here is not None
    if here is None:  # with Spark Connect, the plan is on the server
        return
    plan = here.queryExecution().analyzed()
    for each in (plan, *_as_python_list(plan.subqueriesAll())):
        for leaf in _as_python_list(each.collectLeaves()):
            kind = leaf.getClass().getSimpleName()
            if kind != _CTE_REFERENCE:
                yield _files_of_leaf(kind, leaf)


def _files_of_leaf(kind: str, leaf: Any) -> Files:
    from py4j.protocol import Py4JError

    try:
        match kind:
            case "LogicalRelation":
                return [*leaf.relation().inputFiles()], True
            case "DataSourceV2Relation":
                return [*leaf.table().fileIndex().inputFiles()], True
    except Py4JError:  # not a file relation: local rows, a database table or a catalog table
        pass
    return NO_KNOWN_FILES


def _as_python_list(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]
