"""TrieHH in Spark: one sequence a user, walking down the trie level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dphh.engines.spark.failures import engine_errors
from dphh.errors import CorpusError
from dphh.levels import BatchLevel, Choice, VoteLevel
from dphh.udfs.spark import register_votes, register_word

if TYPE_CHECKING:
    from dphh.engines.spark.session import SparkRun


def hold_sequences(run: SparkRun, choice: Choice) -> None:
    run.load()
    with engine_errors("dphh_word"):
        register_word(run.spark, run.randomness)
    run.look("sequences_of_rows")
    with engine_errors("sequences_of_rows"):
        run.spark.table("sequences_of_rows").createOrReplaceTempView("choices")
    run.execute(f"sequences_{choice.replace('-', '_')}")
    run.refuse_rows_of_nobody("one_each")


def vote_level(run: SparkRun, level: VoteLevel, purpose: str) -> Any:
    _set_out(run, level.level)
    with engine_errors("dphh_votes"):
        register_votes(run.spark, run.randomness)
    run.execute(
        "trie_level",
        level=level.level,
        numerator=level.numerator,
        theta=level.theta,
        purpose=purpose,
    )
    return _grown(run, level.theta)


def batch_level(run: SparkRun, level: BatchLevel, trie: Any, purpose: str) -> Any:
    run.show("trie", trie)
    # Written before they are sorted: sorting looks at them twice.
    run.execute("trie_batch_lots", idle=_idle(run, level.users), purpose=purpose)
    run.execute("trie_batch_level", level=level.level, batch=level.batch)
    run.drop("lots")
    run.drop("trie")
    return _grown(run, level.theta)


def walk_on(run: SparkRun, level: int, grown: Any) -> None:
    _set_out(run, level)
    run.show("grown", grown)
    run.execute("walk_on", level=level)
    run.drop("grown")
    run.rename("next_walkers", "walkers")


def _set_out(run: SparkRun, level: int) -> None:
    """All stand at the root before the first vote, or before the first step of a resumed run."""
    if level == 1 and not run.walking:
        run.execute("walkers")
        run.drop("one_each")
        run.walking = True


def _idle(run: SparkRun, users: int) -> int:
    """How many of so many users hold no sequence. The theorem knows no more users than these."""
    holders = run.count("one_each")
    if holders > users:
        raise CorpusError(
            f"users: the corpus holds more users than the {users:,} that were said; give a public "
            "number that is not below theirs"
        )
    return users - holders


def _grown(run: SparkRun, theta: int) -> Any:
    grown = run.fetch("grown", theta=theta)
    run.drop("votes")
    return grown
