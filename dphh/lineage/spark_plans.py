"""The files that a Spark frame reads, by its plan as it was before what is cached took their place.

`inputFiles()` asks the optimised plan, which has no files of a frame that was cached, and says
nothing of rows that are no file's beside them. So the leaves of the analysed plan are asked too,
those of subqueries among them: each is of files, or of rows from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from dphh.lineage.origin import Origin, folded

#: A second mention of what `WITH` defined, whose own leaves are there once.
_MENTION = "CTERelationRef"
#: What a leaf reads, and whether that is all it reads.
Files = tuple[list[str], bool]
ELSEWHERE: Files = ([], False)


def origin_of_spark(frame: Any) -> Origin:
    """The files as Spark lists them, and whether they are all. How rows were made is not seen."""
    try:
        found = [*_of_leaves(frame)]
    except Exception as problem:
        if type(problem).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        return Origin()
    told = folded(unquote(file) for some, _ in found for file in some)
    return Origin(tuple(sorted(told)), bool(told) and all(whole for _, whole in found))


def _of_leaves(frame: Any) -> Iterator[Files]:
    here = getattr(frame, "_jdf", None)
    yield frame.inputFiles(), here is not None
    if here is None:  # by Spark Connect the plan is elsewhere
        return
    plan = here.queryExecution().analyzed()
    for each in (plan, *_all(plan.subqueriesAll())):
        for leaf in _all(each.collectLeaves()):
            kind = leaf.getClass().getSimpleName()
            if kind != _MENTION:
                yield _of_leaf(kind, leaf)


def _of_leaf(kind: str, leaf: Any) -> Files:
    from py4j.protocol import Py4JError

    try:
        match kind:
            case "LogicalRelation":
                return [*leaf.relation().inputFiles()], True
            case "DataSourceV2Relation":
                return [*leaf.table().fileIndex().inputFiles()], True
    except Py4JError:  # no relation of files has these: rows at hand, a database's, a catalog's
        pass
    return ELSEWHERE


def _all(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]
