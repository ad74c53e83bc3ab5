"""Runs the levels of the forecast ladder, one after another."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import SCORED_SCHEMA
from dphh.engines.host import DrawOnce, Host
from dphh.levels.ngrams import ForecastLevel, ListedWordsLevel
from dphh.mechanisms.ngrams.forecast.climb import ForecastRelease, LadderState, LevelToRun
from dphh.mechanisms.ngrams.forecast.listed_words import (
    WordsLevelToRun,
    words_level_to_run,
    words_masses_and_bound,
)
from dphh.mechanisms.ngrams.forecast.shares import WORD_ROUND_PARTS, BudgetLeft, one_round_part
from dphh.mechanisms.ngrams.forecast.two_rounds import LEVEL_TABLES, TwoRounds
from dphh.mechanisms.ngrams.forecast.words_rounds import words_rounds
from dphh.mechanisms.ngrams.ladder.lift import lift_counts
from dphh.mechanisms.ngrams.ladder.positions_table import PositionsTable
from dphh.mechanisms.ngrams.ladder.rungs import Ladder, first_ladder, texts_of_grams
from dphh.mechanisms.released_rows import (
    LevelDone,
    as_array,
    integer_columns,
    scored_rows,
    scored_words,
)
from dphh.mechanisms.set_union.levels import draw_rounds, drawn_salt, rounds_of_table
from dphh.price import Price
from dphh.privacy.forecast_rounds import Floats
from dphh.udfs.kernel.reading import ReadWords

#: The words that level 1 released, in ascending order; their masses; and how many even shares of
#: the budget the level took.
ReleasedWords = tuple[Any, Floats, float]


def forecast_levels(price: Price, host: Host, once: DrawOnce, joiner: str) -> Iterator[LevelDone]:
    host.gather("users", ReadWords(marks_ends=True))
    # users (user_hashes, lengths, ids, words)
    max_n = price["max_n"]
    level_1 = _word_levels_without_prior if price.prior is None else word_level_with_prior
    words, masses, even_shares = yield from level_1(price, host, once, max_n)

    budget = BudgetLeft(1 - even_shares / max_n, 2, max_n)
    state = LadderState(first_ladder(words), masses, np.array([masses.sum()]), budget)
    positions = PositionsTable(host)
    for planned in (x for x in price.levels if isinstance(x, ForecastLevel)):
        lift = None if price.prior is None else lift_counts(price.prior, state.ladder)
        level_to_run = state.next_level(planned, lift)
        # No gram below was released, so none is valid: no text is read.
        if len(level_to_run.valid) == 0:
            yield LevelDone(replace(planned, valid=0), SCORED_SCHEMA.empty_table())
            continue
        purpose = f"ngrams/forecast, level {planned.level}"
        draw = partial(draw_forecast_level, positions, level_to_run, state.ladder, purpose)
        released = ForecastRelease.from_table(once(purpose, draw))
        state = state.after_level(released)
        first, second = (planned.total_sigma / share**0.5 for share in released.shares)
        valid = len(level_to_run.valid)
        level = replace(planned, valid=valid, first_sigma=first, second_sigma=second)
        spelling = texts_of_grams(state.ladder.top, words, joiner)
        yield LevelDone(level, scored_rows(level.level, *spelling, released.masses, 0))


def word_level_with_prior(
    price: Price, host: Host, once: DrawOnce, max_n: int
) -> Generator[LevelDone, None, ReleasedWords]:
    """Runs level 1 with a prior. Both rounds are one entry of the journal, and one even share."""
    level = price.levels[0]
    assert isinstance(level, ListedWordsLevel) and price.prior is not None
    level_to_run = words_level_to_run(level, price.prior, max_n)
    purpose = "ngrams/forecast, level 1"
    draw = partial(draw_words_with_prior, host, level_to_run, level.max_items, purpose)
    words, masses, most_spurious = words_masses_and_bound(once(purpose, draw))
    done = replace(level, spurious_words=most_spurious)
    yield LevelDone(done, scored_words(words, masses, 0))
    return words, masses, 1.0


def _word_levels_without_prior(
    price: Price, host: Host, once: DrawOnce, max_n: int
) -> Generator[LevelDone, None, ReleasedWords]:
    """Runs level 1, whose rounds are one entry of the journal."""
    next_round = words_rounds(price)
    drawn = once("ngrams/words", partial(draw_rounds, host, next_round, "ngrams/words"))
    words, masses, even_shares = pa.array([], pa.string()), np.empty(0), 0.0
    for number, (level, passed) in enumerate(rounds_of_table(drawn, next_round), start=1):
        is_planned = level.round == number  # else it is the one round in place of the later ones
        even_shares += WORD_ROUND_PARTS[number - 1] if is_planned else one_round_part(max_n)
        new_words = as_array(passed.column("key"), pa.string())
        (noisy,) = integer_columns(passed, "noisy")
        words = pa.concat_arrays([words, new_words])
        masses = np.concatenate([masses, noisy / 2.0**level.grid_bits])
        yield LevelDone(level, scored_words(new_words, noisy, level.grid_bits))
    order = pc.sort_indices(words)
    return words.take(order), masses[order.to_numpy()], even_shares


def draw_forecast_level(
    positions: PositionsTable, level_to_run: LevelToRun, ladder: Ladder, purpose: str
) -> Any:
    """Draw both rounds of the level above this ladder."""
    positions.update_positions(ladder)
    # positions (user_hashes, lengths, keys): the valid gram at each position
    return _drawn_in_two_rounds(positions.host, level_to_run, purpose)


def draw_words_with_prior(
    host: Host, level_to_run: WordsLevelToRun, max_items: int, purpose: str
) -> Any:
    """Draw both rounds of level 1 with a prior."""
    listed = len(level_to_run.words)
    numbers = pa.array(np.arange(listed, dtype=np.int64))
    host.put("listed", pa.table({"word": level_to_run.words.cast(pa.string()), "key": numbers}))
    host.run("unlisted_words", first_unlisted_key=listed)
    # unlisted_words (word, key)
    host.bring("keys", "keys_by_list", to="users")
    # brought to users: each word's key
    salt = drawn_salt(host, purpose)
    host.run("positions_with_list", first_unlisted_key=listed, max_items=max_items, salt=salt)
    # positions (user_hashes, lengths, keys)
    released = _drawn_in_two_rounds(host, level_to_run, purpose)
    host.drop("positions", "listed")
    return released


def _drawn_in_two_rounds(host: Host, level_to_run: LevelToRun, purpose: str) -> Any:
    released = level_to_run.run(TwoRounds(host, purpose))
    host.drop(*LEVEL_TABLES)
    return released
