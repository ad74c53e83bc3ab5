"""A Polars pipeline: scan, clean, discover phrases, join what was found to public data.

    python examples/polars_pipeline.py [--people 20000]

Everything before the verb is private and lazy; everything after `.run()` is a release, and may be
joined, saved or shown like any table. The corpus is made up, so nothing real is spent: the ledger
is a file of this run's own.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import dphh  # gives frames their `dphh`; dphh.frame(...) is the same, for those who check types

DISHES = ["lentil soup", "apple pie", "fish and chips", "green curry", "rye bread", "miso soup"]
POSITIONS = ["at home", "in town", "with friends"]


def write_messages(path: Path, people: int) -> None:
    """A few messages a person: what they ate where, and something that nobody else says."""
    rng = np.random.default_rng(1)
    author = rng.integers(0, people, 3 * people)
    dish = rng.choice(DISHES, 3 * people, p=[0.4, 0.25, 0.15, 0.1, 0.07, 0.03])
    place = rng.choice(POSITIONS, 3 * people)
    pl.DataFrame({"author": author, "dish": dish, "place": place}).select(
        "author",
        body=pl.concat_str(
            pl.lit("Had  "), "dish", pl.lit(" "), "place",
            pl.format("! my pin is {} http://t.co/{}", pl.col("author") * 7919 % 10_000, "author"),
        ),
    ).write_parquet(path)  # fmt: skip


def find_dishes(folder: Path, people: int) -> None:
    write_messages(folder / "messages.parquet", people)

    messages = (
        pl.scan_parquet(folder / "messages.parquet")
        .with_columns(pl.col("body").str.replace_all(r"https?://\S+", ""))
        .filter(pl.col("body").str.len_chars() > 5)
    )
    plan = dphh.frame(messages).ngrams(
        user="author", text=pl.col("body").str.to_lowercase(), max_n=3, max_items=10,
        epsilon=2.0, delta=1e-6,
    )  # fmt: skip
    ledger = dphh.Ledger(folder / "ledger.sqlite", create=True)
    print(plan.describe(ledger))

    release = plan.run(ledger=ledger)

    menu = pl.DataFrame({"dish": DISHES, "price": [5.0, 4.5, 9.0, 8.5, 3.0, 4.0]})  # public
    found = release.to_polars().join(menu, left_on="item", right_on="dish")
    print(found.select("item", "price", "users", "low", "high").sort("users"))
    print(f"{len(release):,} phrases in all, of {people:,} people")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--people", type=int, default=20_000)
    people: int = parser.parse_args().people
    with tempfile.TemporaryDirectory(prefix="dphh-example-") as folder:
        find_dishes(Path(folder), people)


if __name__ == "__main__":
    main()
