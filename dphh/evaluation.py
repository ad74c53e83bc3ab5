"""Exact counts, and how a release compares with them. For the owner of the data only.

Nothing here is private, so nothing here may be published. This module makes no Release and uses
no ledger, and every result carries a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dphh.engines import engine_of, open_host
from dphh.errors import UsageError, hiding_private_details
from dphh.mechanisms.running import as_array
from dphh.reader.corpus import Corpus
from dphh.reader.rows import Limits, refuse_rows_without_user
from dphh.release import Release
from dphh.udfs.noise.randomness import SystemRandomness
from dphh.wording.options import check_whole

if TYPE_CHECKING:
    import polars as pl

NOT_PRIVATE_WARNING = "exact counts of private data: NOT private, not for publication"


@dataclass(frozen=True, eq=False)
class ExactCounts:
    """How many users hold each n-gram, exactly. This cannot be saved as a release."""

    table: Any
    max_n: int
    at_least: int = 1
    warning: str = NOT_PRIVATE_WARNING

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_arrow(self) -> Any:
        """The table, with the columns level, item, tokens and users."""
        return self.table

    def to_polars(self) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame(self.table)

    def save(self, *_: Any, **__: Any) -> None:
        """Always refuses: exact counts are not a release."""
        raise UsageError(f"save: these are {self.warning}; to publish, run a plan")

    def __repr__(self) -> str:
        return f"{len(self):,} n-grams, {self.warning}"


@hiding_private_details
def exact_ngrams(
    corpus: Corpus,
    *,
    max_n: int,
    at_least: int = 1,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> ExactCounts:
    """Count the users of every n-gram of up to `max_n` tokens that at least `at_least` users hold,
    by DuckDB. NOT private: for the owner's own evaluation."""
    for name, value in (("max_n", max_n), ("at_least", at_least)):
        check_whole(name, value)
    if engine_of(corpus) == "spark":
        raise UsageError(
            "corpus: found a Spark frame, which DuckDB cannot read; write it as Parquet, and give "
            "its path"
        )
    host = open_host("duckdb", corpus, SystemRandomness(), Limits(memory_limit, threads))
    levels = []
    try:
        host.open()
        refuse_rows_without_user(corpus, host.has_rows_without_user)
        for length in range(1, max_n + 1):
            counts = host.take("exact_counts", length=length, at_least=at_least)
            tokens = as_array(counts.column("tokens"), pa.list_(pa.string()))
            item = pc.binary_join(tokens, corpus.content.joiner)
            users = as_array(counts.column("users"), pa.int64())
            level = pa.array([length] * len(item), pa.int32())
            levels.append(
                pa.table({"level": level, "item": item, "tokens": tokens, "users": users})
            )
    finally:
        host.close()
    return ExactCounts(pa.concat_tables(levels), max_n, at_least)


@dataclass(frozen=True)
class LevelEvaluation:
    """How the released n-grams of one length compare with the exact counts."""

    level: int
    there: int
    released: int
    true: int
    #: Of the n-grams that some user holds, the share that was released.
    recall: float
    #: Of all pairs of a user and an n-gram that the user holds, the share whose n-gram was not
    #: released.
    missing_mass: float
    #: Of the released n-grams, the share that no user holds.
    spurious: float
    #: For several K, of the n-grams that at least K users hold, the share that was released, as
    #: (K, share): Figure 4 of DPNE.
    coverage: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Evaluation:
    """A release compared with the exact counts, length by length. NOT private."""

    levels: tuple[LevelEvaluation, ...]
    warning: str = NOT_PRIVATE_WARNING

    def __repr__(self) -> str:
        lines = [self.warning, "level     there  released  recall  missing mass  spurious"]
        for x in self.levels:
            lines.append(
                f"{x.level:>5} {x.there:>9,} {x.released:>9,} {x.recall:>7.1%} "
                f"{x.missing_mass:>13.1%} {x.spurious:>9.2%}"
            )
            lines.append(
                "      held by at least "
                + ", ".join(f"{users:,}: {share:.1%}" for users, share in x.coverage)
            )
        return "\n".join(lines)


def evaluate(
    release: Release,
    corpus: Corpus | ExactCounts,
    *,
    at_least: tuple[int, ...] = (10, 30, 100, 300, 1000),
) -> Evaluation:
    """Compare a release of `items` or `ngrams` with the exact counts. NOT private."""
    import polars as pl

    verb, method = (release.manifest.get(name) for name in ("verb", "method"))
    if verb in ("trie", "ldp_trie", "counts") or method == "domain":
        raise UsageError(
            f"release: found a release of {verb}; only releases of items and ngrams can be "
            "compared with exact counts"
        )
    lengths = sorted({level["level"] for level in release.manifest["levels"]})
    truth = corpus if isinstance(corpus, ExactCounts) else exact_ngrams(corpus, max_n=lengths[-1])
    if truth.at_least > 1 or truth.max_n < lengths[-1]:
        raise UsageError(
            f"corpus: found exact counts of lengths up to {truth.max_n} with at least "
            f"{truth.at_least:,} users; give exact_ngrams(corpus, max_n={lengths[-1]}), without "
            "at_least"
        )
    counts = truth.to_polars()
    # An item counted within groups has a row for each.
    found = release.to_polars().select("level", "tokens").unique().with_columns(found=pl.lit(True))
    both = counts.join(found, on=["level", "tokens"], how="full", coalesce=True).with_columns(
        pl.col("found").fill_null(False), pl.col("users").fill_null(0)
    )
    levels = []
    for level in lengths:
        here = both.filter(pl.col("level") == level)
        held = here.filter(pl.col("users") > 0)
        released = here.filter("found")
        mass = int(held["users"].sum())
        shares = []
        for users in at_least:
            many = here.filter(pl.col("users") >= users)
            if len(many):
                shares.append((users, int(many["found"].sum()) / len(many)))
        true = int(held["found"].sum())
        missing = int(held.filter(~pl.col("found"))["users"].sum())
        levels.append(
            LevelEvaluation(
                level=level,
                there=len(held),
                released=len(released),
                true=true,
                recall=true / len(held) if len(held) else 1.0,
                missing_mass=missing / mass if mass else 0.0,
                spurious=1 - true / len(released) if len(released) else 0.0,
                coverage=tuple(shares),
            )
        )
    return Evaluation(tuple(levels))
