"""`sql/rows/text_units.sql`: the kinds of characters, and items cut into units of several."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from dphh.udfs.text import text_units


def code_points(content: pl.Expr) -> pl.Expr:
    return content.str.split("")


def graphemes(content: pl.Expr) -> pl.Expr:
    """Extended grapheme clusters (UAX #29), by DuckDB on every engine."""
    return content.map_batches(
        _graphemes_of_column, return_dtype=pl.List(pl.String), is_elementwise=True
    )


def spelled_bytes(content: pl.Expr) -> pl.Expr:
    """Each byte as two hexadecimal digits, because a single byte of "é" is not text."""
    return content.bin.encode("hex")


def pairs(digits: pl.Expr) -> pl.Expr:
    return digits.str.extract_all("..")


def cut_code_points(item: pl.Expr, size: int) -> pl.Expr:
    """A whole item, cut into units of `size` characters; the last may be shorter."""
    text = item.list.first()
    return code_points(text) if size == 1 else text.str.extract_all(f"(?s).{{1,{size}}}")


def cut_graphemes(item: pl.Expr, size: int) -> pl.Expr:
    clusters = graphemes(item.list.first())
    if size == 1:
        return clusters

    def runs(found: pl.Series) -> pl.Series:
        return pl.Series(
            found.name, [_runs_of_characters(row, size) for row in found], pl.List(pl.String)
        )

    return clusters.map_batches(runs, return_dtype=pl.List(pl.String), is_elementwise=True)


def cut_bytes(item: pl.Expr, size: int) -> pl.Expr:
    return _cut_hex_bytes(spelled_bytes(item.list.first().cast(pl.Binary)), size)


def cut_spelled_bytes(item: pl.Expr, size: int) -> pl.Expr:
    """Like `cut_bytes`, for an item whose bytes are already hexadecimal digits."""
    return _cut_hex_bytes(item.list.first(), size)


def _cut_hex_bytes(digits: pl.Expr, size: int) -> pl.Expr:
    return digits.str.extract_all(f".{{1,{2 * size}}}")


def _graphemes_of_column(texts: pl.Series) -> pl.Series:
    clusters = text_units.graphemes(texts.to_arrow().cast(pa.string()))
    return pl.Series(texts.name, clusters).cast(pl.List(pl.String))


def _runs_of_characters(characters: pl.Series | None, size: int) -> list[str] | None:
    if characters is None:
        return None
    found = characters.to_list()
    return ["".join(found[place : place + size]) for place in range(0, len(found), size)]
