"""`ngrams`, the forecast ladder: how its levels follow one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dphh.columns import SCORED
from dphh.levels.ngrams import ForecastLevel, ListedWordsLevel
from dphh.mechanisms.ngrams.forecast.climb import ForecastRelease, begun
from dphh.mechanisms.ngrams.forecast.listed_words import WordsRelease, words_step
from dphh.mechanisms.ngrams.forecast.words_rounds import WordsRounds, words_rounds_run
from dphh.mechanisms.released_rows import LevelDone, rows, singles, whole
from dphh.price import Price
from dphh.prior import Prior
from dphh.session.ladder.forecast_rounds import ForecastOn
from dphh.session.ladder.lift import public_lift
from dphh.session.ladder.rungs import Integers, first_ladder, spelled
from dphh.session.ladder.word_list import WordList
from dphh.session.protocol import Session
from dphh.session.rounds import RoundsAsOne
from dphh.udfs.kernel.reading import Reading


@dataclass(frozen=True, eq=False)
class Words:
    """The words released at level 1, their masses, and how much of an even share of the budget they
    took."""

    words: Any
    masses: NDArray[np.float64]
    used: float

    def __len__(self) -> int:
        return len(self.words)

    def with_more(self, words: Any, masses: NDArray[np.float64], share: float) -> Words:
        return Words(
            pa.concat_arrays([self.words, words]),
            np.concatenate([self.masses, masses]),
            self.used + share,
        )

    def sorted(self) -> Words:
        order = pc.sort_indices(self.words)
        return Words(self.words.take(order), self.masses[order.to_numpy()], self.used)


def forecast_levels(price: Price, session: Session, joiner: str) -> Iterator[LevelDone]:
    session.hold(Reading(ends=True))
    found = Words(pa.array([], pa.string()), np.empty(0), 0.0)
    max_n = price["max_n"]
    words = (
        _levels_of_words(price, session)
        if price.prior is None
        else listed_words(price, session, max_n)
    )
    for done, so_far in words:
        yield done
        found = so_far
    found = found.sorted()

    above = [x for x in price.levels if isinstance(x, ForecastLevel)]
    if not above:
        return
    ladder = first_ladder(found.words, "both")
    run = begun(
        len(found),
        found.masses,
        1 - found.used / max_n,
        max_n,
        1 / above[0].total_sigma,
        above[0].spurious,
        above[0].sigma_grid,
    )
    numbers = None if price.prior is None else _numbers_of(price.prior.prior, found.words)
    for planned in above:
        lift = None
        if price.prior is not None and numbers is not None:
            lift = public_lift(price.prior.prior, numbers, ladder.rungs)
        step = run.step(lift)
        if len(step.valid) == 0:  # nothing below was released: nothing is valid, nothing is read
            yield LevelDone(replace(planned, valid=0), SCORED.empty_table())
            continue
        table = session.draw(ForecastOn(step, ladder), f"ngrams/forecast, level {planned.level}")
        released_grams = ForecastRelease.from_table(table)
        ladder = ladder.with_next(released_grams.keys)
        level = _level_as_run(planned, released_grams, len(step.valid))
        run = run.after(released_grams)
        spelling = spelled(ladder.top, found.words, joiner)
        yield LevelDone(level, rows(level.level, *spelling, released_grams.masses, 0))


def _numbers_of(prior: Prior, words: Any) -> Integers:
    """For each word of a prior, its number among the released words, or -1."""
    numbers = pc.index_in(prior.vocabulary.cast(words.type), value_set=words).fill_null(-1)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.int64)


def listed_words(price: Price, session: Session, lengths: int) -> Iterator[tuple[LevelDone, Words]]:
    """With a prior: both rounds in one step, within an even share."""
    level = price.levels[0]
    assert isinstance(level, ListedWordsLevel) and price.prior is not None
    prior = price.prior.prior
    step = words_step(level, prior, lengths, 1 / level.total_sigma)
    table = session.draw(
        ForecastOn(step, WordList(prior.vocabulary, level.max_items)), "ngrams/forecast, level 1"
    )
    found = WordsRelease.from_table(table)
    done = replace(level, spurious_words=found.budget)
    released = rows(1, found.words, singles(found.words), found.masses, 0)
    yield LevelDone(done, released), Words(found.words, found.masses, 1.0)


def _levels_of_words(price: Price, session: Session) -> Iterator[tuple[LevelDone, Words]]:
    """Rounds of set union, each without what the earlier ones released."""
    found = Words(pa.array([], pa.string()), np.empty(0), 0.0)
    rounds = WordsRounds.of(price)
    drawn = session.draw(RoundsAsOne(rounds), "ngrams/words")
    for (level, passed), share in words_rounds_run(rounds, drawn, price["max_n"]):
        words = whole(passed.column("key"), pa.string())
        noisy = whole(passed.column("noisy"), pa.int64()).to_numpy()
        found = found.with_more(words, noisy / 2.0**level.grid_bits, share)
        released = rows(1, words, singles(words), noisy, level.grid_bits)
        yield LevelDone(level, released), found


def _level_as_run(planned: ForecastLevel, released: ForecastRelease, valid: int) -> ForecastLevel:
    first, second = (planned.total_sigma / share**0.5 for share in released.shares)
    return replace(planned, valid=valid, first_sigma=first, second_sigma=second)
