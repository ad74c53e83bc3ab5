"""Corpora of many groups, with a user in every other one who is there or not."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from dphh import Corpus
from tests.engines.levels import frame

#: How a corpus of texts is read: as the words that a trial put into it.
WORDS: dict[str, Any] = {"text": "what", "split": "white space"}


def groups_of(names: Iterable[str], groups: int) -> NDArray[np.bool_]:
    """Which groups' names, "number/...", are among these."""
    seen = np.zeros(groups, dtype=bool)
    seen[[int(name.split("/")[0]) for name in names]] = True
    return seen


def extra(what: str, groups: int) -> str:
    """A query of the users who are there or not, one in every other group g."""
    return f"SELECT 'extra' || g AS who, {what} AS what FROM range(0, {groups}, 2) AS a(g)"


def others(number: int, what: str, groups: int) -> str:
    """A query of so many more users of every group g."""
    return (
        f"SELECT 'h' || g || '/' || h AS who, {what} AS what "
        f"FROM range({groups}) AS a(g), range({number}) AS b(h)"
    )


def written(folder: Path, *queries: str, **read: Any) -> Corpus:
    """The corpus of DuckDB queries of (who, what)."""
    query = " UNION ALL ".join(queries)
    path = folder / "audited.parquet"
    with duckdb.connect() as con:
        con.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return Corpus(path, user="who", **read)


def of_rows(rows: Sequence[tuple[Any, Any]], **read: Any) -> Corpus:
    return Corpus(frame(rows), user="who", **read)
