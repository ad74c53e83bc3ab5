"""Frames meant for reading: control characters in their texts are escaped."""

from __future__ import annotations

import polars as pl

from dphh.errors import STEERS, steerless


def readable(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with its texts escaped. Polars prints texts as they are, and so do frames derived
    from them; the release's own table keeps the exact texts."""
    return frame.with_columns(
        [
            _escaped_column(column)
            for column in frame
            if column.dtype in (pl.String, pl.List(pl.String))
        ]
    )


def _escaped_column(column: pl.Series) -> pl.Series:
    if column.dtype == pl.List(pl.String):
        if not column.explode().str.contains(STEERS.pattern).any():
            return column
        lists = [each and [steerless(text) for text in each] for each in column.to_list()]
        return pl.Series(column.name, lists, column.dtype)
    if not column.str.contains(STEERS.pattern).any():
        return column
    return column.map_elements(steerless, pl.String)
