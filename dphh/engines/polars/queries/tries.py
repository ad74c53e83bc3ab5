"""TrieHH: one sequence per user, and the votes of users whose prefix is in the trie."""

from __future__ import annotations

import polars as pl

SEPARATOR = "\x1f"


def sequences_of_rows(tokens_of_rows: pl.LazyFrame) -> pl.LazyFrame:
    """The rows that contain a sequence, without empty tokens."""
    rows_of_users = tokens_of_rows.select(
        "user_id", tokens=pl.col("tokens").list.eval(pl.element().filter(pl.element() != ""))
    )
    return rows_of_users.filter(pl.col("tokens").list.len() > 0)


def order_of_sequences() -> list[pl.Expr]:
    """The sort order of sequences: by their spelling, which every engine orders alike. If a
    separator inside a token gives two sequences the same spelling, the other keys decide."""
    tokens = pl.col("tokens")
    return [tokens.list.join(SEPARATOR), tokens.list.len(), tokens]


def users_of_several(sequences: pl.LazyFrame) -> pl.LazyFrame:
    """The users with several rows, and how many they have; their sequence is drawn."""
    counts = sequences.group_by("user_id").agg(rows=pl.len().cast(pl.UInt64))
    return counts.filter(pl.col("rows") > 1)


def sequences_drawn(sequences: pl.LazyFrame, draws: pl.LazyFrame) -> pl.LazyFrame:
    """One sequence per user, for the whole run. Of several, the row at `place` among the user's
    sorted rows. draws (user_id, place): the user's random word modulo the number of rows."""
    alone = sequences.join(draws, on="user_id", how="anti")

    sequences_of_users = (
        sequences.join(draws, on="user_id")
        .group_by("user_id", "place")
        .agg(pl.col("tokens").sort_by(*order_of_sequences()))
    )
    drawn = sequences_of_users.select("user_id", pl.col("tokens").list.get(pl.col("place")))

    return pl.concat([alone, drawn])


def sequences_most_frequent(sequences: pl.LazyFrame) -> pl.LazyFrame:
    """One sequence per user: the one in most of the user's rows; ties by sort order."""
    local_counts = sequences.group_by("user_id", "tokens").agg(appearances=pl.len().cast(pl.Int64))
    return local_counts.group_by("user_id").agg(
        pl.col("tokens").sort_by(-pl.col("appearances"), *order_of_sequences()).first()
    )


def walkers(one_each: pl.LazyFrame) -> pl.LazyFrame:
    """All walkers start at the root, node 0. Users with the same sequence form one walker."""
    together = one_each.group_by("tokens").agg(users=pl.len().cast(pl.Int64))
    return together.select(pl.lit(0, pl.Int64).alias("node"), "tokens", "users")


def trie_level(walkers: pl.LazyFrame, level: int) -> pl.LazyFrame:
    """Algorithm 2: how many users could vote for each prefix that is longer by one token. The end
    of a sequence is a token of its own, `ended`. (Counts are Int64: Polars counts in 32 bits.)"""
    next_prefixes = walkers.select("node", *next_token(level), "users")
    return next_prefixes.group_by("node", "token", "ended").agg(pl.col("users").sum())


def next_token(level: int) -> list[pl.Expr]:
    tokens = pl.col("tokens")
    return [
        tokens.list.get(level - 1, null_on_oob=True).alias("token"),
        (tokens.list.len() < level).alias("ended"),
    ]


def walk_on(walkers: pl.LazyFrame, grown: pl.LazyFrame, level: int) -> pl.LazyFrame:
    """The walkers whose prefix has just grown, moved to its new node."""
    token, _ = next_token(level)
    return (
        walkers.with_columns(token)
        .join(grown, on=["node", "token"])
        .select("tokens", "users", node="next_node")
    )


def trie_batch_level(batch: pl.LazyFrame, trie: pl.LazyFrame, level: int) -> pl.LazyFrame:
    """Algorithms 1 and 2 of the papers: the drawn users vote for the next prefix of their sequence
    if the prefix before it is in the trie. trie (node, tokens): the nodes of the level below."""
    next_prefixes = batch.select(
        *next_token(level), before=pl.col("tokens").list.head(level - 1), held=pl.col("tokens")
    ).filter(pl.col("held").list.len() >= level - 1)
    voters = next_prefixes.join(trie.rename({"tokens": "before"}), on="before")
    return voters.group_by("node", "token", "ended").agg(votes=pl.len().cast(pl.Int64))
