"""What conversations are about, by week: labels that many people's conversations share.

    python examples/conversations.py [--out FOLDER] [--people 4000]

Makes up a table of conversations: who, which week, and the key phrases that a labeller gave each
conversation. A labeller, such as a language model, must read one conversation at a time: labels
that it learnt from the whole table would depend on everybody. Then `items` finds the labels that
many people share, and `counts` says how many people have each in each week. Some labels are of one
person alone, and do not come out. Downloads nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import polars as pl

import dphh

WEEKS = ["2026-W45", "2026-W46", "2026-W47", "2026-W48"]
#: What people talk about, and how likely in each week.
TOPICS = {
    "late delivery": [0.30, 0.28, 0.25, 0.22],
    "refund not received": [0.10, 0.12, 0.18, 0.30],
    "password reset": [0.15, 0.15, 0.14, 0.15],
    "change of address": [0.08, 0.09, 0.08, 0.09],
    "app crashes on start": [0.00, 0.02, 0.25, 0.10],
    "thanks": [0.20, 0.20, 0.20, 0.20],
}


def write_conversations(path: Path, people: int) -> pl.DataFrame:
    """One row a conversation; a person has one to four in each week."""
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(people), len(WEEKS))
    week = np.tile(np.arange(len(WEEKS)), people)
    talks = rng.integers(1, 5, len(person))
    person, week = np.repeat(person, talks), np.repeat(week, talks)
    likely = np.array([*TOPICS.values()])[:, week]
    said = rng.random(likely.shape) < likely / 2
    names = np.array([*TOPICS])
    labels = [[*names[said[:, talk]]] for talk in range(len(person))]
    for talk in range(0, len(person), 50):  # what only this person would say
        labels[talk].append(f"order {person[talk]:06} for {person[talk] % 97}, the red house")
    rows = pl.DataFrame(
        {"person": person, "week": [WEEKS[number] for number in week], "labels": labels}
    )
    rows.write_parquet(path)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("conversations"))
    parser.add_argument("--people", type=int, default=4_000)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    table = asked.out / "conversations.parquet"
    write_conversations(table, asked.people)

    # Who is protected: a person, with all conversations of all weeks. What pays: one account.
    corpus = dphh.Corpus(table, user="person", text="labels", as_="list")
    ledger = dphh.Ledger(asked.out / "ledger.sqlite")
    ledger.add("conversations", corpus, 2.0, 1e-6, if_missing=True)

    found = dphh.items(corpus, max_items=8, epsilon=1.0, delta=1e-7, counts=0).run(ledger=ledger)
    plan = dphh.counts(
        corpus, of=found, by="week", groups=WEEKS, max_held=24, epsilon=1.0, delta=1e-7
    )
    people = plan.run(ledger=ledger).to_polars()

    shown = (
        people.filter(pl.col("group_name").is_in(WEEKS))
        .with_columns(people=pl.format("{} ({} to {})", "users", "low", "high"))
        .pivot("group_name", index="item", values="people", sort_columns=True)
        .select("item", *WEEKS)
        .sort("item")
    )
    with pl.Config(tbl_width_chars=120, tbl_hide_dataframe_shape=True, fmt_str_lengths=40):
        sys.stdout.write(f"People, with intervals of 95%\n{shown}\n")
    shown.write_csv(asked.out / "by-week.csv")


if __name__ == "__main__":
    main()
