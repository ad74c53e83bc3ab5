"""Exact counts, and how a release compares with them. For the owner of the data only.

Nothing here is private, so nothing here may be published. This module makes no Release and uses
no ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dphh.engines import engine_of, open_host
from dphh.errors import UsageError
from dphh.mechanisms.running import as_array
from dphh.reader.corpus import Corpus
from dphh.reader.rows import Limits
from dphh.release import Release
from dphh.run import Progress
from dphh.udfs.noise.randomness import SystemRandomness
from dphh.wording.lines import with_noun
from dphh.wording.options import check_whole, checked_call

if TYPE_CHECKING:
    import polars as pl


@checked_call
def exact_ngrams(
    corpus: Corpus,
    *,
    max_n: int,
    memory_limit: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """How many users hold each n-gram of up to `max_n` tokens, counted by DuckDB: level, item,
    tokens, exact_users. `progress`: a function that shows a line for each length, such as print.
    NOT private, not for publication: for the owner's own evaluation."""
    import polars as pl

    check_whole("max_n", max_n)
    say = progress or (lambda _: None)
    if engine_of(corpus) == "spark":
        raise UsageError(
            "corpus: found a Spark frame, which DuckDB cannot read; write it as Parquet, and give "
            "its path"
        )
    host = open_host("duckdb", corpus, SystemRandomness(), Limits(memory_limit, threads))
    levels = []
    try:
        say("reading the corpus")
        host.open()
        host.run("exact_texts")
        for length in range(1, max_n + 1):
            say(f"counting n-grams of {with_noun(length, 'token')}")
            counts = host.take("exact_counts", length=length)
            tokens = as_array(counts.column("tokens"), pa.list_(pa.string()))
            item = pc.binary_join(tokens, corpus.content.joiner)
            users = as_array(counts.column("users"), pa.int64())
            level = pa.array([length] * len(item), pa.int32())
            columns = {"level": level, "item": item, "tokens": tokens, "exact_users": users}
            levels.append(pa.table(columns))
    finally:
        host.close()
    return pl.DataFrame(pa.concat_tables(levels))


def _refuse_other_reading(release: Release, corpus: Corpus | pl.DataFrame) -> None:
    """Refuse a corpus that is read otherwise than that of the release: of another country, say."""
    said = release.manifest.get("parameters", {}).get("content")
    if not isinstance(corpus, Corpus) or said is None:
        return
    own = {**corpus.content.to_json(), "column": said["column"]}
    if others := [name for name in sorted({*said, *own}) if said.get(name) != own.get(name)]:
        raise UsageError(
            f"corpus: its {', '.join(others)} differ from the release's, which is of other rows or "
            "tokens; give the corpus of the release"
        )


@checked_call
def evaluate(
    release: Release,
    corpus: Corpus | pl.DataFrame,
    *,
    at_least: tuple[int, ...] = (10, 30, 100, 300, 1000),
    progress: Progress | None = None,
) -> pl.DataFrame:
    """A release of `items` or `ngrams` beside the exact counts of its corpus, or beside a frame of
    `exact_ngrams` with all its lengths. NOT private, not for publication.

    A row for each length: how many n-grams users `held`, how many were `released`, and how many of
    these are `true`; `recall`, the share of the held ones that was released; `missing_mass`, of all
    pairs of a user and an n-gram that the user holds, the share whose n-gram was not released;
    `spurious`, the share of the released ones that no user holds; and `recall_from_K`, the recall
    of those that at least K users hold.
    """
    import polars as pl

    if not isinstance(release, Release):
        raise UsageError(f"release: found a {type(release).__name__}; give a dphh.Release")
    verb, method = (release.manifest.get(name) for name in ("verb", "method"))
    if verb in ("trie", "ldp_trie", "counts") or method == "domain":
        raise UsageError(
            f"release: found a release of {verb}; only releases of items and ngrams can be "
            "compared with exact counts"
        )
    _refuse_other_reading(release, corpus)
    longest = max(level["level"] for level in release.manifest["levels"])
    exact = (
        exact_ngrams(corpus, max_n=longest, progress=progress)
        if isinstance(corpus, Corpus)
        else corpus
    )
    # An item counted within groups has a row for each.
    found = release.to_polars().select("level", "tokens").unique().with_columns(found=True)
    missing = {*found["level"]} - {*exact["level"]}
    if missing and exact is corpus:
        raise UsageError(
            f"corpus: found exact counts without length {min(missing)}; give "
            f"exact_ngrams(corpus, max_n={longest})"
        )
    both = exact.join(found, on=["level", "tokens"], how="full", coalesce=True).with_columns(
        pl.col("found").fill_null(False), users=pl.col("exact_users").fill_null(0)
    )
    users, found_and_held = pl.col("users"), pl.col("found") & (pl.col("users") > 0)
    return (
        both.filter(pl.col("level") <= longest)
        .group_by("level")
        .agg(
            held=(users > 0).sum(),
            released=pl.col("found").sum(),
            true=found_and_held.sum(),
            recall=pl.col("found").filter(users > 0).mean(),
            missing_mass=(users.filter(~pl.col("found")).sum() / users.sum()).fill_nan(None),
            spurious=(users == 0).filter("found").mean(),
            **{f"recall_from_{k}": pl.col("found").filter(users >= k).mean() for k in at_least},
        )
        .sort("level")
    )
