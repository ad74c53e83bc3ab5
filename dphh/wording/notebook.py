"""What notebooks show of a value, and which of its names they complete."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import ClassVar

from dphh.wording.lines import visible_text

_CELL = '<td style="text-align: left; vertical-align: top; padding: 0.2em 0.6em">'


class InNotebooks:
    """A value with rows of cells for a notebook, and with names that are for dphh alone."""

    #: Methods and fields that people do not call: completion leaves them out.
    _INTERNAL: ClassVar[str] = ""

    def _rows(self) -> Iterable[Iterable[str]]:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        rows = (
            "".join(f"{_CELL}{cell and escape(visible_text(cell, 10_000))}</td>" for cell in row)
            for row in self._rows()
        )
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in self._INTERNAL.split()]
