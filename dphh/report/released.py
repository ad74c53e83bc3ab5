"""What this folder needs of a release, so that it does not import the class `Release`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import polars as pl


class Released(Protocol):
    """A released table and its manifest."""

    @property
    def table(self) -> Any: ...

    @property
    def manifest(self) -> dict[str, Any]: ...

    @property
    def privacy(self) -> dict[str, Any]: ...

    @property
    def run_id(self) -> str: ...

    @property
    def is_test(self) -> bool: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[dict[str, Any]]: ...

    def to_polars(self) -> pl.DataFrame: ...

    def dumps(self) -> str: ...
