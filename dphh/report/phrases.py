"""A release as a list to read, and its first k items.

Everything here is post-processing of a release: it costs nothing and changes no guarantee.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import polars as pl

from dphh.errors import UsageError, printable
from dphh.report.sentences import Released
from dphh.wording.options import check_whole


def phrases(release: Released, *, only_maximal: bool) -> pl.DataFrame:
    """The released rows, longest first; with `only_maximal`, those that `is_maximal` keeps."""
    frame = release.to_polars()
    if only_maximal:
        frame = frame.filter(is_maximal(frame))
    score = ["score"] if "score" in frame.columns else []
    frame = frame.sort(
        pl.col("tokens").list.len(), *score, "item",
        descending=[True, *(True for _ in score), False], nulls_last=True, maintain_order=True,
    )  # fmt: skip
    # Polars prints texts as they are, so characters that control a terminal are escaped here.
    readable = pl.element().map_elements(printable, pl.String)
    return frame.with_columns(
        pl.col(pl.String).map_elements(printable, pl.String), pl.col("tokens").list.eval(readable)
    )


def is_maximal(frame: pl.DataFrame) -> pl.Series:
    """For each row, whether no longer phrase of the frame contains it. For a trie: whether it is a
    complete sequence, or a prefix that no row of the frame extends or ends."""
    all_tokens = [tuple(tokens) for tokens in frame["tokens"]]
    if "ended" not in frame.columns:
        shorter_parts = {
            tokens[start:stop]
            for tokens in set(all_tokens)
            for start, stop in combinations(range(len(tokens) + 1), 2)
            if stop - start < len(tokens)
        }
        return pl.Series([tokens not in shorter_parts for tokens in all_tokens], dtype=pl.Boolean)
    ends = frame["ended"].fill_null(False).to_list()
    leads = {tokens[:stop] for tokens in all_tokens for stop in range(1, len(tokens))}
    leads |= {tokens for tokens, end in zip(all_tokens, ends, strict=True) if end}
    kept = [end or tokens not in leads for tokens, end in zip(all_tokens, ends, strict=True)]
    return pl.Series(kept, dtype=pl.Boolean)


def top_of(release: Released, k: int) -> Any:
    """The rows of k items: the first of each level, the second of each, and so on. A level's items
    are sorted by their numbers of users, added up over groups, or else by their scores."""
    check_whole("k", k)
    frame = release.to_polars().with_row_index("row")
    by = next(
        (name for name in ("users", "score") if name in frame and frame[name].count() > 0), None
    )
    if by is None:
        if len(frame):
            raise UsageError(
                "top: this release has neither scores nor counts to sort by; run it with counts=, "
                "or run `counts` of it, and take the top of that"
            )
        return release.table
    best = (
        frame.drop_nulls(by)
        .group_by("level", "item")
        .agg(pl.col(by).sum(), "row")
        .sort("level", by, "item", descending=[False, True, False])
        .with_columns(turn=pl.int_range(pl.len()).over("level"))
        .sort("turn", "level", maintain_order=True)
        .head(k)
        .sort("level", "turn")
    )
    return release.table.take(best.explode("row")["row"].to_arrow())
