"""TrieHH in DuckDB: one sequence a user, walking down the trie level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dphh.engines.duckdb.failures import engine_errors
from dphh.levels import BatchLevel, Choice, VoteLevel
from dphh.sql import query

if TYPE_CHECKING:
    from dphh.engines.duckdb.session import DuckDBSession


def hold_sequences(session: DuckDBSession, choice: Choice) -> None:
    session.load()
    session.execute(f"sequences_{choice.replace('-', '_')}")
    session.refuse_rows_of_nobody("one_each")


def vote_level(session: DuckDBSession, level: VoteLevel, purpose: str) -> Any:
    if level.level == 1:
        session.execute("walkers")
        session.drop("one_each")
    session.execute(
        "trie_level",
        level=level.level,
        numerator=level.numerator,
        theta=level.theta,
        purpose=purpose,
    )
    return _grown(session, level.theta)


def batch_level(session: DuckDBSession, level: BatchLevel, trie: Any, purpose: str) -> Any:
    session.con.register("trie", trie)
    session.execute("trie_batch_level", level=level.level, batch=level.batch, purpose=purpose)
    session.con.unregister("trie")
    return _grown(session, level.theta)


def walk_on(session: DuckDBSession, level: int, grown: Any) -> None:
    session.con.register("grown", grown)
    session.execute("walk_on", level=level)
    session.con.unregister("grown")
    session.rename("next_walkers", "walkers")


def _grown(session: DuckDBSession, theta: int) -> Any:
    with engine_errors("grown"):
        grown = session.con.sql(query("grown"), params={"theta": theta}).to_arrow_table()
    session.drop("votes")
    return grown
