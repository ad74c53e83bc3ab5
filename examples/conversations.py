"""From messages to topics, by week and by language, without a language model.

    python examples/conversations.py [--out FOLDER] [--people 4000]

Makes up messages in two languages, and names each by the nearest of public sentences: by words
alone, and by that message alone. So the names are made row by row, and the promise holds. Clusters
that are learnt from all messages would not be: one person's message would move the centres, and
with them the names of others' rows. `items` finds the topics that many people share, `counts` says
how many people have each in each week and in each language, and `change` what rose. Downloads
nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl

import dphh

WEEKS = ["2026-W45", "2026-W46", "2026-W47", "2026-W48"]
#: Public sentences, as of a help page, of each topic in each language.
PUBLIC = {
    "late delivery": "where is my parcel it has not arrived / wo bleibt mein paket",
    "refund": "i did not get my money back refund / ich warte auf mein geld erstattung",
    "password": "i forgot my password and cannot log in / passwort vergessen",
    "crash": "the app crashes when it starts / die app stürzt beim start ab",
}
#: What people write, with something of their own in it, and how likely that is in each week.
WRITTEN = {
    "en": ["my parcel {} has not arrived", "still no refund for {}, my money please",
           "cannot log in, password {} is wrong", "since {} your app crashes", "hello {}"],
    "de": ["mein paket {} ist noch nicht da", "ich warte auf geld für {}", "passwort {} falsch",
           "seit {} stürzt die app ab", "hallo {}"],
}  # fmt: skip
LIKELY = np.array([[4, 4, 3, 3], [1, 1, 2, 4], [2, 2, 2, 2], [1, 1, 4, 2], [2, 2, 2, 2]]).T


def write_messages(path: Path, people: int) -> None:
    """One row a message; a person writes in one language, one to three times a week."""
    rng = np.random.default_rng(1)
    rows = [
        (person, WEEKS[week], language, WRITTEN[language][what].format(rng.integers(10**6)))
        for person in range(people)
        for language in [("en", "de")[person % 3 == 0]]
        for week in range(len(WEEKS))
        for what in rng.choice(5, rng.integers(1, 4), p=LIKELY[week] / LIKELY[week].sum())
    ]
    columns = ["person", "week", "language", "message"]
    pl.DataFrame(rows, columns, orient="row").write_parquet(path)


def topics_of(message: str) -> list[str]:
    """The topic whose public sentence is nearest to this message by cosine; none if none is."""
    words = {*re.findall(r"\w+", message.lower())}
    near = [
        (len(words & centre) / (len(words) * len(centre)) ** 0.5, topic)
        for topic, said in PUBLIC.items()
        for centre in ({*re.findall(r"\w+", sentence)} for sentence in said.split(" / "))
    ]
    nearness, best = max(near)
    return [best] if nearness >= 0.2 else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("conversations"))
    parser.add_argument("--people", type=int, default=4_000)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    table, named = asked.out / "messages.parquet", asked.out / "topics.parquet"
    write_messages(table, asked.people)
    pl.read_parquet(table).with_columns(
        topics=pl.col("message").map_elements(topics_of, pl.List(pl.String))
    ).drop("message").write_parquet(named)

    # Who is protected: a person, with all messages of all weeks. What pays: one account.
    corpus = dphh.Corpus(named, user="person", text="topics", as_="list")
    ledger = dphh.Ledger(asked.out / "ledger.sqlite", create=True)
    ledger.add("topics", corpus, 3.0, 1e-6, if_missing=True)
    cost = {"epsilon": 1.0, "delta": 1e-7}

    found = dphh.items(corpus, max_items=4, counts=0, **cost).run(ledger=ledger)
    weekly = dphh.counts(corpus, of=found, by="week", groups=WEEKS, **cost).run(ledger=ledger)
    spoken = dphh.counts(corpus, of=found, by="language", groups=["de", "en"], **cost)

    people = pl.format("{} ({} to {})", "users", "low", "high")
    tables = {
        "by week": weekly.to_polars(),
        "by language": spoken.run(ledger=ledger).to_polars(),
    }
    with pl.Config(tbl_width_chars=120, tbl_hide_dataframe_shape=True, fmt_str_lengths=40):
        for title, counted in tables.items():
            shown = (
                counted.filter(pl.col("group_name") != "other")
                .with_columns(people=people)
                .pivot("group_name", index="item", values="people", sort_columns=True)
                .sort("item")
            )
            sys.stdout.write(f"People {title}, with intervals of 95%\n{shown}\n")
            shown.write_csv(asked.out / f"{title.replace(' ', '-')}.csv")
        changes = weekly.change().select("item", "difference", "low", "high", "change")
        sys.stdout.write(f"What rose from week to week\n{changes}\n")


if __name__ == "__main__":
    main()
