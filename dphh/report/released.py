"""What this folder asks of a release. `Release` has it; this folder need not know that class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import polars as pl


class Released(Protocol):
    """A table and its manifest: nothing that is not released already."""

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
