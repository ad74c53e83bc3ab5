"""The ladder of n-grams in Polars: positions of what is released, and candidates among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dphh.engines.polars.queries import ladder, whole_grams
from dphh.errors import EngineError
from dphh.ladder import Integers, ValidGrams
from dphh.levels import PrunedLevel, Pruning
from dphh.spurious import with_spurious

if TYPE_CHECKING:
    from dphh.engines.polars.session import PolarsSession


def hold_texts(session: PolarsSession) -> None:
    session.make("texts", ladder.texts(session.load()))
    session.refuse_rows_of_nobody("texts")


def hold_words(session: PolarsSession) -> None:
    hold_texts(session)
    session.make("held", ladder.held_words(session.table("texts")), step="held_words")


def place_words(session: PolarsSession, released: Any) -> None:
    # Polars' joins keep the order, so that places of words cost no sort, as they would in DuckDB
    # (sql/candidates_of_words.sql).
    session.drop("held")
    found = pl.DataFrame(released).lazy()
    positions = ladder.positions_of_words(session.table("texts"), found)
    session.make("positions", positions, step="positions_of_words")
    session.drop("texts")


def hold_grams(session: PolarsSession, level: int, pruning: Pruning) -> None:
    session.drop("held")
    session.drop("candidates")
    if pruning == "both":
        _check_order(session)
        candidates = ladder.candidates_both(session.table("positions"))
    else:
        if level == 2:
            session.tables["word_positions"] = session.tables["positions"]
        candidates = ladder.candidates_single(
            session.table("positions"), session.table("word_positions"), level
        )
    session.make("candidates", candidates, step=f"candidates_{pruning}")
    session.drop("positions")
    session.make("held", ladder.held_grams(session.table("candidates")), step="held_grams")


def _check_order(session: PolarsSession) -> None:
    if session.fetch("out_of_order", ladder.out_of_order(session.table("positions"))).item():
        raise EngineError(
            "Polars did not keep positions in the order they were read in, and neighbours would "
            "be missed: nothing was released at this level; report this with Polars' version "
            f"({session.version})"
        )


def pruned_level(
    session: PolarsSession, level: PrunedLevel, valid: ValidGrams, purpose: str
) -> Any:
    assert level.threshold_grid is not None
    session.noise_level(level, purpose)
    session.drop("held")
    passed = session.released(level.threshold_grid)
    released = with_spurious(
        passed,
        level,
        valid,
        session.tables["noised"].height,
        lambda proposed: _held(session, proposed),
        session.randomness,
        purpose,
    )
    session.drop("noised")
    return released


def hold_whole_grams(session: PolarsSession, lengths: Sequence[int]) -> None:
    """All n-grams of these lengths, unpruned; lengths may only grow from call to call."""
    if session.whole_length == 0:
        hold_texts(session)
        in_order = whole_grams.words_in_order(session.table("texts"))
        session.make("grams", in_order, step="words_in_order")
        session.drop("texts")
        session.whole_length = 1
    held = []
    for length in lengths:
        while session.whole_length < length:
            session.whole_length += 1
            longer = whole_grams.longer_grams(session.table("grams"), session.whole_length)
            session.make("grams", longer, step="longer_grams")
        of_length = whole_grams.held_whole_grams(session.table("grams"))
        held.append(session.fetch("held_whole_grams", of_length))
    session.tables["held"] = pl.concat(held)


def exact_counts(session: PolarsSession, at_least: int) -> Any:
    counts = whole_grams.exact_counts(session.table("held"), at_least)
    return session.fetch("exact_counts", counts).to_arrow()


def place_grams(session: PolarsSession, released: Any) -> None:
    found = pl.DataFrame(released).lazy()
    positions = ladder.positions_of_grams(session.table("candidates"), found)
    session.make("positions", positions, step="positions_of_grams")


def _held(session: PolarsSession, keys: Integers) -> Any:
    """Which of these keys have a row in `noised` (sql/supported.sql)."""
    proposed = pl.DataFrame({"key": keys, "number": np.arange(len(keys), dtype=np.int64)})
    supported = proposed.join(session.tables["noised"], on="key", how="semi")
    found = np.zeros(len(keys), dtype=np.bool_)
    found[supported["number"].to_numpy()] = True
    return found
