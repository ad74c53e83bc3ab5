"""The ladder of n-grams in DuckDB: positions of what is released, and candidates among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dphh.ladder import Integers, ValidGrams
from dphh.levels import PrunedLevel, Pruning
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.spurious import draw_spurious
from dphh.sql import query

if TYPE_CHECKING:
    from dphh.engines.duckdb.session import DuckDBSession


def hold_words(session: DuckDBSession) -> None:
    session.execute("texts")
    session.refuse_rows_of_nobody("texts")
    session.execute("held_words")


def place_words(session: DuckDBSession, released: Any) -> None:
    session.drop("held")
    _place(session, "positions_of_words", released)
    session.drop("texts")


def hold_grams(session: DuckDBSession, level: int, pruning: Pruning) -> None:
    session.drop("candidates")
    if pruning == "both":
        session.execute("candidates_both")
    else:
        if level == 2:
            session.con.execute("CREATE TEMP TABLE word_positions AS FROM positions")
        session.execute("candidates_single", level=level)
    session.drop("positions")
    session.drop("held")
    session.execute("held_grams")


def pruned_level(
    session: DuckDBSession, level: PrunedLevel, valid: ValidGrams, purpose: str
) -> Any:
    assert level.threshold_grid is not None
    session.noise_level(level, purpose)
    session.drop("held")
    passed = session.passed(level.threshold_grid)
    keys, scores = draw_spurious(
        valid,
        session.con.execute("SELECT count(*) FROM noised").fetchall()[0][0],
        lambda proposed: _held(session, proposed),
        rounded_gaussian(level.sigma_grid),
        level.threshold_grid,
        session.randomness,
        purpose,
    )
    session.drop("noised")
    return pa.concat_tables([passed, pa.table({"key": keys, "noisy": scores})])


def place_grams(session: DuckDBSession, released: Any) -> None:
    _place(session, "positions_of_grams", released)


def _place(session: DuckDBSession, step: str, released: Any) -> None:
    session.con.register("released", released)
    session.execute(step)
    session.rename("next_positions", "positions")
    session.con.unregister("released")


def _held(session: DuckDBSession, keys: Integers) -> Any:
    """Which of these keys have a row in `noised`."""
    found = np.zeros(len(keys), dtype=np.bool_)
    session.con.register(
        "proposed", pa.table({"key": keys, "number": np.arange(len(keys), dtype=np.int64)})
    )
    rows = session.con.sql(query("supported")).fetchnumpy()["number"]
    session.con.unregister("proposed")
    found[np.asarray(rows, dtype=np.int64)] = True
    return found
