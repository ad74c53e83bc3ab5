"""Runs the levels of the forecast ladder, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dphh.columns import SCORED_SCHEMA
from dphh.engines.host import DrawOnce, Host
from dphh.levels.ngrams import ForecastLevel, ListedWordsLevel
from dphh.mechanisms.ngrams.forecast.climb import ForecastRelease, LevelToRun, climb_start
from dphh.mechanisms.ngrams.forecast.listed_words import WordsRelease, words_level_to_run
from dphh.mechanisms.ngrams.forecast.price import share_of_one_round
from dphh.mechanisms.ngrams.forecast.shares import ROUND_PARTS
from dphh.mechanisms.ngrams.forecast.two_rounds import TwoRounds
from dphh.mechanisms.ngrams.forecast.words_rounds import WordsRounds
from dphh.mechanisms.ngrams.ladder.lift import public_lift
from dphh.mechanisms.ngrams.ladder.placed import PlacedRungs
from dphh.mechanisms.ngrams.ladder.rungs import Integers, Ladder, first_ladder, texts_of_grams
from dphh.mechanisms.released_rows import LevelDone, as_array, scored_rows, scored_words
from dphh.mechanisms.set_union.levels import draw_rounds, drawn_salt
from dphh.price import Price
from dphh.prior import Prior
from dphh.udfs.kernel.reading import ReadWords


@dataclass(frozen=True, eq=False)
class ReleasedWords:
    """The words released at level 1, their masses, and how much of an even share of the budget they
    took."""

    words: Any
    masses: NDArray[np.float64]
    budget_used: float

    def with_more(self, words: Any, masses: NDArray[np.float64], share: float) -> ReleasedWords:
        return ReleasedWords(
            pa.concat_arrays([self.words, words]),
            np.concatenate([self.masses, masses]),
            self.budget_used + share,
        )

    def sorted(self) -> ReleasedWords:
        order = pc.sort_indices(self.words)
        masses = self.masses[order.to_numpy()]
        return ReleasedWords(self.words.take(order), masses, self.budget_used)


def forecast_levels(price: Price, host: Host, once: DrawOnce, joiner: str) -> Iterator[LevelDone]:
    host.gather("users", ReadWords(marks_ends=True))
    # users (user_hashes, lengths, ids, words)
    found = ReleasedWords(pa.array([], pa.string()), np.empty(0), 0.0)
    max_n = price["max_n"]
    if price.prior is None:
        rounds = WordsRounds.from_price(price)
        drawn = once("ngrams/words", partial(draw_rounds, host, rounds, "ngrams/words"))
        words = _levels_of_words(rounds, drawn, max_n)
    else:
        words = word_level_with_prior(price, host, once, max_n)
    for done, so_far in words:
        yield done
        found = so_far
    found = found.sorted()

    above = [x for x in price.levels if isinstance(x, ForecastLevel)]
    if not above:
        return
    climb = climb_start(
        first_ladder(found.words, "both"),
        found.masses,
        1 - found.budget_used / max_n,
        max_n,
        above[0].total_sigma,
        above[0].spurious,
        above[0].sigma_grid,
    )
    placed = PlacedRungs(host)
    numbers = None if price.prior is None else _numbers_of_prior_words(price.prior, found.words)
    for planned in above:
        lift = None
        if price.prior is not None and numbers is not None:
            lift = public_lift(price.prior, numbers, climb.ladder.rungs)
        level_to_run = climb.next_level(lift)
        # No gram below was released, so none is valid: no text is read.
        if len(level_to_run.valid) == 0:
            yield LevelDone(replace(planned, valid=0), SCORED_SCHEMA.empty_table())
            continue
        purpose = f"ngrams/forecast, level {planned.level}"
        table = once(purpose, partial(draw_level, placed, level_to_run, climb.ladder, purpose))
        released_grams = ForecastRelease.from_table(table)
        level = _level_as_run(planned, released_grams, len(level_to_run.valid))
        climb = climb.after_level(released_grams)
        spelling = texts_of_grams(climb.ladder.top, found.words, joiner)
        yield LevelDone(level, scored_rows(level.level, *spelling, released_grams.masses, 0))


def _numbers_of_prior_words(prior: Prior, words: Any) -> Integers:
    """For each word of a prior, its number among the released words, or -1."""
    numbers = pc.index_in(prior.vocabulary.cast(words.type), value_set=words).fill_null(-1)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.int64)


def word_level_with_prior(
    price: Price, host: Host, once: DrawOnce, lengths: int
) -> Iterator[tuple[LevelDone, ReleasedWords]]:
    """Level 1 with a prior: both rounds as one draw, within an even share."""
    level = price.levels[0]
    assert isinstance(level, ListedWordsLevel) and price.prior is not None
    prior = price.prior
    level_to_run = words_level_to_run(level, prior, lengths)
    purpose = "ngrams/forecast, level 1"
    words = prior.vocabulary
    table = once(
        purpose, partial(draw_words_with_prior, host, level_to_run, words, level.max_items, purpose)
    )
    found = WordsRelease.from_table(table)
    done = replace(level, spurious_words=found.most_spurious)
    released = scored_words(found.words, found.masses, 0)
    yield LevelDone(done, released), ReleasedWords(found.words, found.masses, 1.0)


def _levels_of_words(
    rounds: WordsRounds, drawn: Any, max_n: int
) -> Iterator[tuple[LevelDone, ReleasedWords]]:
    """Rounds of set union, each without what the earlier ones released."""
    found = ReleasedWords(pa.array([], pa.string()), np.empty(0), 0.0)
    for number, (level, passed) in enumerate(rounds.rounds_of_table(drawn), start=1):
        is_planned = level.round == number  # else it is the one round in place of the later ones
        share = ROUND_PARTS[number - 1] if is_planned else share_of_one_round(max_n)
        words = as_array(passed.column("key"), pa.string())
        noisy = as_array(passed.column("noisy"), pa.int64()).to_numpy()
        found = found.with_more(words, noisy / 2.0**level.grid_bits, share)
        yield LevelDone(level, scored_words(words, noisy, level.grid_bits)), found


def _level_as_run(planned: ForecastLevel, released: ForecastRelease, valid: int) -> ForecastLevel:
    first, second = (planned.total_sigma / share**0.5 for share in released.shares)
    return replace(planned, valid=valid, first_sigma=first, second_sigma=second)


def draw_level(placed: PlacedRungs, level_to_run: LevelToRun, ladder: Ladder, purpose: str) -> Any:
    """Draw both rounds of the level above this ladder: a `ForecastRelease` as a table."""
    placed.place_rungs(ladder)
    # positions (user_hashes, lengths, keys, ends): the valid gram at each position
    return _drawn_in_two_rounds(placed.host, level_to_run, purpose)


def draw_words_with_prior(
    host: Host, level_to_run: LevelToRun, words: Any, max_items: int, purpose: str
) -> Any:
    """Both rounds of level 1 with a list of words: a `WordsRelease` as a table."""
    numbers = pa.array(np.arange(len(words), dtype=np.int64))
    host.put("listed", pa.table({"word": words.cast(pa.string()), "key": numbers}))
    host.run("unlisted_words", first_unlisted_key=len(words))
    # unlisted_words (word, key), of the words that the list lacks
    host.bring("keys", "keys_by_list", to="users")
    # brought to users: each word's key
    salt = drawn_salt(host, purpose)
    host.run("positions_of_listed", first_unlisted_key=len(words), max_items=max_items, salt=salt)
    # positions (user_hashes, lengths, keys)
    released = _drawn_in_two_rounds(host, level_to_run, purpose)
    host.drop("positions", "listed")
    return released


def _drawn_in_two_rounds(host: Host, level_to_run: LevelToRun, purpose: str) -> Any:
    rounds = TwoRounds(host, purpose)
    released = level_to_run.run(rounds).to_table()
    rounds.close()
    return released
