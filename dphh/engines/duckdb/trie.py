"""TrieHH in DuckDB: one sequence a user, walking down the trie level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dphh.engines.duckdb.failures import engine_errors
from dphh.errors import CorpusError
from dphh.levels import BatchLevel, Choice, VoteLevel

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
    session.execute(
        "trie_batch_level",
        level=level.level,
        batch=level.batch,
        idle=_idle(session, level.users),
        purpose=purpose,
    )
    session.con.unregister("trie")
    return _grown(session, level.theta)


def walk_on(session: DuckDBSession, level: int, grown: Any) -> None:
    session.con.register("grown", grown)
    session.execute("walk_on", level=level)
    session.con.unregister("grown")
    session.rename("next_walkers", "walkers")


def _idle(session: DuckDBSession, users: int) -> int:
    """How many of so many users hold no sequence. The theorem knows no more users than these."""
    with engine_errors("one_each"):
        ((holders,),) = session.con.execute("SELECT count(*) FROM one_each").fetchall()
    if holders > users:
        raise CorpusError(
            f"users: the corpus holds more users than the {users:,} that were said; give a public "
            "number that is not below theirs"
        )
    return int(users - holders)


def _grown(session: DuckDBSession, theta: int) -> Any:
    grown = session.fetch("grown", theta=theta)
    session.drop("votes")
    return grown
