"""TrieHH in DuckDB: one sequence a user, walking down the trie level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dphh.engines.duckdb.failures import engine_errors
from dphh.errors import CorpusError
from dphh.levels import BatchLevel, Choice, VoteLevel

if TYPE_CHECKING:
    from dphh.engines.duckdb.session import DuckDBSession


#: Users are taken part by part where there are more rows than these: about 60 bytes a user.
ROWS_OF_PART = 40_000_000


def hold_sequences(session: DuckDBSession, choice: Choice) -> None:
    """Bring the rows within reach; whose sequences are wanted, or how many, a level decides."""
    session.load()
    if session.read_once:
        with engine_errors("rows_of_corpus"):
            session.con.execute("CREATE TEMP TABLE kept_rows AS FROM rows_of_corpus")
            session.con.execute("CREATE OR REPLACE TEMP VIEW rows_of_corpus AS FROM kept_rows")
    session.execute("sequences_of_rows")
    session.refuse_rows_of_nobody("sequences_of_rows")
    session.choice = choice


def choose_for_each(session: DuckDBSession) -> None:
    """Every user with the one sequence that is theirs: `one_each`."""
    if not session.chosen:
        _choose(session, "sequences_of_rows")
        session.chosen = True


def vote_level(session: DuckDBSession, level: VoteLevel, purpose: str) -> Any:
    _set_out(session, level.level)
    session.execute(
        "trie_level",
        level=level.level,
        numerator=level.numerator,
        theta=level.theta,
        purpose=purpose,
    )
    return _grown(session, level.theta)


def batch_level(session: DuckDBSession, level: BatchLevel, trie: Any, purpose: str) -> Any:
    choose_for_each(session)
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
    _set_out(session, level)
    session.con.register("grown", grown)
    session.execute("walk_on", level=level)
    session.con.unregister("grown")
    session.rename("next_walkers", "walkers")


def _set_out(session: DuckDBSession, level: int) -> None:
    """All stand at the root before the first vote, or before the first step of a resumed run."""
    if level > 1 or session.walking:
        return
    with engine_errors("contents_of_one_row"):
        ((rows,),) = session.con.execute("SELECT count(*) FROM rows_of_corpus").fetchall()
        session.con.execute(
            "CREATE TEMP TABLE contents AS "
            "SELECT content, CAST(0 AS BIGINT) AS users FROM rows_of_corpus WITH NO DATA"
        )
        session.con.execute(
            "CREATE TEMP TABLE several AS SELECT user_id FROM rows_of_corpus WITH NO DATA"
        )
    _part_by_part(session, "contents_of_one_row", rows)
    with engine_errors("contents_of_one_row"):
        some = session.con.execute("FROM contents WHERE content IS NULL LIMIT 1").fetchall()
    if some:
        _part_by_part(session, "users_of_several_rows", rows)
    _choose(session, "sequences_of_rows SEMI JOIN several USING (user_id)")
    session.execute("walkers")
    for table in ("contents", "several", "one_each"):
        session.drop(table)
    session.walking = True


def _part_by_part(session: DuckDBSession, step: str, rows: int) -> None:
    parts = 1 + rows // ROWS_OF_PART
    for part in range(parts):
        session.execute(step, parts=parts, part=part)


def _choose(session: DuckDBSession, choices: str) -> None:
    """One of each user's rows, for the users of these rows: `one_each`."""
    with engine_errors("choices"):
        session.con.execute(f"CREATE OR REPLACE TEMP VIEW choices AS FROM {choices}")
    session.execute(f"sequences_{session.choice.replace('-', '_')}")


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
