"""What is new this week, on eight weeks of made-up remarks whose truth is known.

    python examples/weekly_trend.py --out trend

Each week has other users. In every week the same numbers of users make the steady remarks, many of
them near the threshold, so that noise decides each week which of these are released. One remark
grows from week to week, one fades, and a few begin in the last week. The example writes the chart
and the table, and says how many steady remarks were called new by mistake.
"""

from __future__ import annotations

import argparse
import datetime as dt
from pathlib import Path

import polars as pl

import dphh

WEEKS = 8
FIRST = dt.date(2026, 10, 5)  # 2026-W41
STEADY = {"thank you": 900, "good morning": 600, "see you later": 450}
GROWS, FADES = "the heating is cold", "the ice cream is gone"
BEGIN = {"the bridge is closed": 400, "no trains today": 250}


def rare(number: int) -> dict[str, int]:
    """Steady remarks of one word, held by 20 to 70 users each: about as many as are found."""
    return {f"remark-{place}": 20 + place % 51 for place in range(number)}


def said_in(week: int, steady: dict[str, int]) -> dict[str, int]:
    """How many users make each remark in a week."""
    changing = {GROWS: 60 + 60 * week, FADES: 60 * (WEEKS - week)}
    return {**steady, **changing, **(BEGIN if week == WEEKS - 1 else {})}


def write(folder: Path, steady: dict[str, int]) -> None:
    for week in range(WEEKS):
        remarks = [text for text, users in said_in(week, steady).items() for _ in range(users)]
        pl.DataFrame(
            {
                "author": [f"{week}-{place}" for place in range(len(remarks))],
                "date": [FIRST + dt.timedelta(weeks=week)] * len(remarks),
                "body": remarks,
            }
        ).write_parquet(folder / f"remarks-{week}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("trend"))
    parser.add_argument("--rare", type=int, default=500, help="steady remarks near the threshold")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    steady = {**STEADY, **rare(asked.rare)}
    if not any(asked.out.glob("remarks-*.parquet")):  # the same files have the same releases
        write(asked.out, steady)

    corpus = dphh.Corpus(
        str(asked.out / "remarks-*.parquet"), user="author", item="body", period="date by week"
    )
    ledger = dphh.Ledger(asked.out / "ledger.sqlite")
    if not ledger.accounts():
        ledger.add("remarks", corpus, 2.0, 1e-6)
    weeks = [f"2026-W{41 + week}" for week in range(WEEKS)]
    public = [[text] for text in (*STEADY, GROWS, FADES, *BEGIN)]
    releases = []
    for week in weeks:
        rows = corpus.in_periods(week)
        found = dphh.items(rows, epsilon=1.0, delta=1e-7).run(ledger=ledger)
        counted = dphh.counts(rows, of=public, epsilon=0.7, delta=1e-8).run(ledger=ledger)
        releases += [found, counted]

    trend = dphh.trend(releases)
    print(trend)
    for name in ("trend.html", "trend.svg", "trend.csv"):
        trend.save(asked.out / name)
    table = trend.to_polars()
    new = set(table.filter(pl.col("change") == "new")["item"])
    perhaps = set(table.filter(pl.col("change") == "perhaps new")["item"])
    print(f"\nbegan in truth, and called new: {len(new & {*BEGIN})} of {len(BEGIN)}")
    print(f"steady in truth, in this release alone: {len((new | perhaps) & {*steady})}")
    print(f"of these called new by mistake: {len(new & {*steady})} of {len(steady)} steady remarks")


if __name__ == "__main__":
    main()
