"""The ladder of n-grams in DuckDB: positions of what is released, and candidates among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dphh.engines.duckdb.parts import in_parts
from dphh.errors import EngineError
from dphh.ladder import Integers, ValidGrams
from dphh.levels import PrunedLevel, Pruning
from dphh.spurious import with_spurious

if TYPE_CHECKING:
    from dphh.engines.duckdb.session import DuckDBSession


def hold_texts(session: DuckDBSession) -> None:
    session.load()
    session.execute("texts")
    session.refuse_rows_of_nobody("texts")


def hold_words(session: DuckDBSession) -> None:
    hold_texts(session)
    _hold(session, "held_words", "unnest(tokens)", "texts")


def place_words(session: DuckDBSession, released: Any) -> None:
    session.drop("held")
    session.con.register("released", released)
    session.con.execute("CREATE TEMP TABLE released_words AS FROM released")
    session.con.unregister("released")


def hold_grams(session: DuckDBSession, level: int, pruning: Pruning) -> None:
    session.drop("held")
    session.drop("candidates")
    if level == 2:
        # Two joins beside each other: DuckDB's joins keep no order, and a sort of all places of
        # words takes longer than the second join.
        session.execute("candidates_of_words")
        if pruning == "single":
            session.execute("positions_of_words")
        session.drop("texts")
    elif pruning == "both":
        _check_order(session)
        session.execute("candidates_both")
    else:
        session.execute("candidates_single", level=level)
    session.drop("positions")
    _hold(session, "held_grams", "key", "candidates")


def _hold(session: DuckDBSession, step: str, key: str, table: str) -> None:
    """Fill `held`, in as few parts as the memory allows."""
    in_parts(
        lambda: session.empty("held", f"user_id, {key} AS key FROM {table}"),
        lambda part: session.execute(step, **part),
    )


def _check_order(session: DuckDBSession) -> None:
    if session.fetch("out_of_order").column(0)[0].as_py():
        raise EngineError(
            "DuckDB did not keep positions in the order they were written in, and neighbours would "
            "be missed: nothing was released at this level; report this with DuckDB's version "
            f"({session.version})"
        )


def pruned_level(
    session: DuckDBSession, level: PrunedLevel, valid: ValidGrams, purpose: str
) -> Any:
    assert level.threshold_grid is not None
    session.noise_level(level, purpose)
    session.drop("held")
    passed = session.fetch("released", threshold=level.threshold_grid)
    released = with_spurious(
        passed,
        level,
        valid,
        session.con.execute("SELECT count(*) FROM noised").fetchall()[0][0],
        lambda proposed: _held(session, proposed),
        session.randomness,
        purpose,
    )
    session.drop("noised")
    return released


def hold_whole_grams(session: DuckDBSession, lengths: Sequence[int]) -> None:
    """All n-grams of these lengths, unpruned; lengths may only grow from call to call."""
    if session.whole_length == 0:
        hold_texts(session)
        session.execute("words_in_order")
        session.drop("texts")
        session.whole_length = 1
    session.empty("held", "user_id, gram AS key FROM grams")
    for length in lengths:
        while session.whole_length < length:
            session.whole_length += 1
            session.execute("longer_grams", length=session.whole_length)
            session.rename("longer_grams", "grams")
        session.execute("held_whole_grams")


def exact_counts(session: DuckDBSession, at_least: int) -> Any:
    return session.fetch("exact_counts", at_least=at_least)


def place_grams(session: DuckDBSession, released: Any) -> None:
    session.con.register("released", released)
    session.execute("positions_of_grams")
    session.con.unregister("released")


def _held(session: DuckDBSession, keys: Integers) -> Any:
    """Which of these keys have a row in `noised`."""
    found = np.zeros(len(keys), dtype=np.bool_)
    session.con.register(
        "proposed", pa.table({"key": keys, "number": np.arange(len(keys), dtype=np.int64)})
    )
    rows = session.fetch("supported").column("number").to_numpy()
    session.con.unregister("proposed")
    found[rows] = True
    return found
