"""TrieHH: one sequence a user, and the votes of users whose prefix is in the trie: `sql/trie`.
What draws, draws on collected frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dphh.engines.polars.steps import SEPARATOR, Tables, step
from dphh.errors import CorpusError
from dphh.reader.corpus import ROWS_WITHOUT_USER_MESSAGE
from dphh.udfs.noise.randomness import needs_keys
from dphh.udfs.rules.votes import draw_votes

if TYPE_CHECKING:
    from dphh.engines.polars.host import PolarsHost


@step
def contents_of_users(host: PolarsHost) -> Tables:
    """(In SQL this table has each user's contents, which are not yet tokens.)"""
    rows = host.table("tokens_of_rows")
    held = rows.filter((pl.col("tokens").list.len() > 0) | pl.col("user_id").is_null())
    sequences = host.collect("contents_of_users", held)
    refuse_null_users(sequences["user_id"])
    return {"contents_of_users": sequences}


def refuse_null_users(users: pl.Series) -> None:
    """Refuse the corpus if there is a NULL among the user ids of its rows."""
    if users.null_count():
        raise CorpusError(ROWS_WITHOUT_USER_MESSAGE)


@step
def sequences_drawn(host: PolarsHost, *, purpose: str) -> Tables:
    """(To sort each user's sequences alone would take three times as long as this one sort.)"""
    sequences = host.table("contents_of_users")
    counts = sequences.group_by("user_id").agg(rows=pl.len().cast(pl.UInt64))
    of_several = counts.filter(pl.col("rows") > 1).with_row_index("user")
    users = host.collect("sequences_drawn", of_several)
    names = host.names_for_draws(users["user_id"], purpose)
    words = pl.Series(host.randomness.random_words(users.height, purpose, names), dtype=pl.UInt64)
    numbered = sequences.join(users.lazy().select("user_id", "user"), on="user_id")
    in_order = numbered.select("user", "tokens").sort("user", *_order_of_sequences())
    places = users["rows"].cum_sum() - users["rows"] + words % users["rows"]
    chosen = host.collect("sequences_drawn", in_order)["tokens"].gather(places)
    return {"chosen": users.select("user_id").with_columns(chosen)}


@step
def sequences_most_frequent(host: PolarsHost) -> Tables:
    local_counts = (
        host.table("contents_of_users")
        .group_by("user_id", "tokens")
        .agg(appearances=pl.len().cast(pl.Int64))
    )
    chosen = local_counts.group_by("user_id").agg(
        pl.col("tokens").sort_by(-pl.col("appearances"), *_order_of_sequences()).first()
    )
    return {"chosen": chosen}


def _order_of_sequences() -> list[pl.Expr]:
    """The sort order of sequences: by their spelling, which every engine orders alike. If a
    separator inside a token gives two sequences the same spelling, the other keys decide."""
    tokens = pl.col("tokens")
    return [tokens.list.join(SEPARATOR), tokens.list.len(), tokens]


@step
def walkers(host: PolarsHost) -> Tables:
    chosen = host.table("chosen")
    of_one_row = host.table("contents_of_users").join(chosen, on="user_id", how="anti")
    sequences = pl.concat([of_one_row, chosen])
    together = sequences.group_by("tokens").agg(users=pl.len().cast(pl.Int64))
    return {"walkers": together.select(pl.lit(0, pl.Int64).alias("node"), "tokens", "users")}


@step
def trie_votes(host: PolarsHost, *, level: int, numerator: int, theta: int, purpose: str) -> Tables:
    """One draw gives how many users of the same next prefix toss heads, as far as theta asks
    (`draw_votes`). The end of a sequence is a token of its own kind, `ended`. (Counts are Int64:
    Polars counts in 32 bits.)"""
    next_prefixes = host.table("walkers").select("node", *_next_token_and_end(level), "users")
    eligible = host.collect(
        "trie_votes", next_prefixes.group_by("node", "token", "ended").agg(pl.col("users").sum())
    )
    names = None
    if needs_keys(host.randomness, purpose):
        token = pl.col("token").fill_null("")
        spelled = pl.concat_str("node", "ended", token, separator=SEPARATOR)
        names = eligible.select(spelled).to_series().to_arrow()
    users = eligible["users"].to_numpy()
    votes = draw_votes(host.randomness, users, numerator, theta, purpose, names)
    return {"votes": eligible.with_columns(votes=pl.Series(votes, dtype=pl.Int64))}


def _next_token_and_end(level: int) -> list[pl.Expr]:
    tokens = pl.col("tokens")
    return [
        tokens.list.get(level - 1, null_on_oob=True).alias("token"),
        (tokens.list.len() < level).alias("ended"),
    ]


@step
def grown(host: PolarsHost, *, theta: int) -> pl.LazyFrame:
    enough = host.table("votes").filter(pl.col("votes") >= theta)
    return enough.select("node", "token", "ended").sort("node", "ended", "token")


@step
def walk_on(host: PolarsHost, *, level: int) -> Tables:
    token, _ = _next_token_and_end(level)
    walkers = host.table("walkers").with_columns(token)
    moved = walkers.join(host.table("grown"), on=["node", "token"])
    return {"next_walkers": moved.select("tokens", "users", node="next_node")}
