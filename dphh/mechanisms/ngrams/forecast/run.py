"""Runs the levels of the forecast ladder, one after another.

Level 1: words, by rounds of set union or, with a prior, by two rounds over a list. Level k: the
valid grams of k tokens, by two rounds (`two_rounds.py`). A level's valid grams, forecasts and share
of the budget follow from the releases below it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import SCORED_SCHEMA
from dphh.engines.host import DrawOnce, Host
from dphh.mechanisms.ngrams.forecast.listed_words import (
    level_of_listed_words,
    table_of_words,
    words_masses_and_bound,
)
from dphh.mechanisms.ngrams.forecast.shares import WORD_ROUND_PARTS, BudgetLeft, one_round_part
from dphh.mechanisms.ngrams.forecast.two_rounds import (
    TwoRoundLevel,
    draw_two_rounds,
    two_rounds_steps,
)
from dphh.mechanisms.ngrams.ladder.classes import LiftCounts, lift_counts, valid_classes
from dphh.mechanisms.ngrams.ladder.rungs import (
    Ladder,
    PositionsTable,
    first_ladder,
    positions_steps,
    texts_of_grams,
)
from dphh.mechanisms.ngrams.levels import ForecastLevel, ListedWordsLevel
from dphh.mechanisms.running import (
    BEFORE_LEVELS,
    GATHER,
    Draws,
    LevelDone,
    as_array,
    integer_columns,
    scored_rows,
    scored_words,
    steps_of,
    words_of_texts,
)
from dphh.mechanisms.set_union.draws import draw_together, drawn_salt, rounds_steps
from dphh.mechanisms.set_union.levels import SetUnionLevel
from dphh.mechanisms.set_union.rounds import (
    DrawnRound,
    NextRound,
    round_level,
    rounds_after_first,
)
from dphh.price import Price
from dphh.prior import Prior
from dphh.privacy.events import DeltaEvent, GaussianEvent
from dphh.privacy.gaussian import split_sigma
from dphh.udfs.arrays import Floats, Integers

#: The words that level 1 released, in ascending order; their masses; and how many even shares of
#: the budget the level took.
ReleasedWords = tuple[Any, Floats, float]


def forecast_levels(price: Price, host: Host, once: DrawOnce, joiner: str) -> Iterator[LevelDone]:
    host.gather("users", words_of_texts(price, marks_ends=True))
    # users (block, user_hashes, lengths, ids, words)
    max_n = price["max_n"]
    level_1 = _words_without_prior if price.prior is None else words_with_prior
    words, masses, even_shares = yield from level_1(price, host, once, max_n)

    ladder, masses_before = first_ladder(words), np.array([masses.sum()])
    budget = BudgetLeft(1 - even_shares / max_n, 2, max_n)
    positions = PositionsTable(host, keeps_users=price.counting is not None)
    for planned in (x for x in price.levels if isinstance(x, ForecastLevel)):
        lift = None if price.prior is None else lift_counts(price.prior, ladder)
        level = level_above(planned, ladder, masses, masses_before, budget, lift)
        valid = len(level.valid)
        # No gram below was released, so none is valid: no text is read.
        if valid == 0:
            yield LevelDone(replace(planned, valid=0), SCORED_SCHEMA.empty_table())
            continue
        purpose = f"ngrams/forecast, level {planned.level}"
        drawn = once(purpose, partial(draw_level_above, positions, level, ladder, purpose))
        keys, new_masses, shares = grams_masses_and_shares(drawn)
        ladder, masses_before, masses = ladder.with_next(keys), masses, new_masses
        budget = budget.after_level(sum(shares))
        first, second = (planned.total_sigma / share**0.5 for share in shares)
        done = replace(planned, valid=valid, first_sigma=first, second_sigma=second)
        spelling = texts_of_grams(ladder.top, words, joiner)
        yield LevelDone(done, scored_rows(done.level, *spelling, masses, 0))


def level_above(
    planned: ForecastLevel,
    ladder: Ladder,
    masses: Floats,
    masses_before: Floats,
    budget: BudgetLeft,
    lift: LiftCounts | None = None,
) -> TwoRoundLevel:
    """The level above the ladder's top rung. `masses`: of the top rung's grams, and of those of the
    rung below it, for words the mass of all words. `lift`: the public text's lifts, with a prior.
    """
    valid = valid_classes(ladder.top, masses, masses_before, lift)
    below, largest_mass = len(ladder.top), float(masses.sum())
    return TwoRoundLevel(
        planned=planned,
        valid=valid,
        budget=budget,
        below=below,
        forecasts_and_largest_mass=lambda _: (valid.forecasts, largest_mass),
        most_spurious=lambda *_: planned.spurious * below,
    )


def draw_level_above(
    positions: PositionsTable, level: TwoRoundLevel, ladder: Ladder, purpose: str
) -> Any:
    """Draw the level above this ladder. The table (key, mass) of its release, as the journal stores
    it: the keys -1 and -2 stand for the shares of mu^2 of round 1 and round 2."""
    positions.update_positions(ladder)
    # positions (block, user_hashes, lengths, keys): the valid gram at each position
    drawn = draw_two_rounds(positions.host, level, purpose)
    (keys,) = integer_columns(drawn.passed, "key")
    return pa.table({"key": np.r_[-1, -2, keys], "mass": np.r_[drawn.shares, drawn.masses]})


def grams_masses_and_shares(table: Any) -> tuple[Integers, Floats, tuple[float, float]]:
    """Reads the table that `draw_level_above` returned: the released keys, ascending, their masses,
    and the share of mu^2 that each round spent."""
    table = table.sort_by("key")
    keys, masses = (table.column(name).to_numpy() for name in ("key", "mass"))
    second, first = masses[:2].tolist()
    return keys[2:], masses[2:], (first, second)


def words_with_prior(
    price: Price, host: Host, once: DrawOnce, max_n: int
) -> Generator[LevelDone, None, ReleasedWords]:
    """Runs level 1 with a prior. Both rounds are one entry of the journal, and one even share."""
    planned, prior = price.levels[0], price.prior
    assert isinstance(planned, ListedWordsLevel) and prior is not None
    purpose = "ngrams/forecast, level 1"
    drawn = once(purpose, partial(draw_words_with_prior, host, planned, prior, max_n, purpose))
    words, masses, most_spurious = words_masses_and_bound(drawn)
    done = replace(planned, spurious_words=most_spurious)
    yield LevelDone(done, scored_words(words, masses, 0))
    return words, masses, 1.0


def draw_words_with_prior(
    host: Host, planned: ListedWordsLevel, prior: Prior, max_n: int, purpose: str
) -> Any:
    """Draw both rounds of level 1 with a prior, in `max_n` levels."""
    listed = len(prior.vocabulary)
    numbers = pa.array(np.arange(listed, dtype=np.int64))
    host.put("listed", pa.table({"word": prior.vocabulary.cast(pa.string()), "key": numbers}))
    host.run("unlisted_words", first_unlisted_key=listed)
    # unlisted_words (word, key)
    host.bring("keys", "keys_by_list", to="users")
    # brought to users: each word's key
    bound = {"max_items": planned.max_items, "salt": drawn_salt(host, purpose)}
    host.run("positions_with_list", first_unlisted_key=listed, **bound)
    # positions (block, user_hashes, lengths, keys)
    drawn = draw_two_rounds(host, level_of_listed_words(planned, prior, max_n), purpose)
    host.drop("positions", "listed")
    return table_of_words(prior.vocabulary, drawn)


def _words_without_prior(
    price: Price, host: Host, once: DrawOnce, max_n: int
) -> Generator[LevelDone, None, ReleasedWords]:
    """Runs level 1, whose rounds are one entry of the journal."""
    drawn = draw_together(host, once, "ngrams/words", words_rounds(price))
    words, masses, even_shares = pa.array([], pa.string()), np.empty(0), 0.0
    for number, (level, passed) in enumerate(drawn, start=1):
        is_planned = level.round == number  # else it is the one round in place of the later ones
        even_shares += WORD_ROUND_PARTS[number - 1] if is_planned else one_round_part(max_n)
        new_words = as_array(passed.column("key"), pa.string())
        (noisy,) = integer_columns(passed, "noisy")
        words = pa.concat_arrays([words, new_words])
        masses = np.concatenate([masses, noisy / 2.0**level.grid_bits])
        yield LevelDone(level, scored_words(new_words, noisy, level.grid_bits))
    order = pc.sort_indices(words)
    return words.take(order), masses[order.to_numpy()], even_shares


def forecast_draws(price: Price) -> Draws:
    """What `forecast_levels` and `words_with_prior` ask."""
    yield BEFORE_LEVELS, GATHER
    if rounds := [level for level in price.levels if isinstance(level, SetUnionLevel)]:
        yield "ngrams/words", rounds_steps(rounds, "ngrams/words")
    for level in price.levels:
        purpose = f"ngrams/forecast, level {level.level}"
        if isinstance(level, ListedWordsLevel):
            steps = "unlisted_words", "keys_by_list", "positions_with_list"
            before = steps_of(level, purpose, *steps)
            yield purpose, [*before, *two_rounds_steps(level, purpose)]
        elif isinstance(level, ForecastLevel):
            before = steps_of(level, purpose, *positions_steps(level))
            yield purpose, [*before, *two_rounds_steps(level, purpose)]


def words_rounds(price: Price) -> NextRound:
    """Level 1 without a prior: rounds of set union over words. The later rounds' weights depend on
    earlier noised weights (`set_union.levels`). What earlier rounds released decides how many
    rounds there are."""
    first, *later = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    after_first = rounds_after_first(first, one_round_of_words(price, later[-1]), later)

    def next_round(ran: Sequence[DrawnRound]) -> SetUnionLevel | None:
        return None if few_are_left(ran) else after_first(ran)

    return next_round


def few_are_left(ran: Sequence[DrawnRound]) -> bool:
    """Whether a later round found few new words, and few of these near its threshold. Then few are
    left to find, and what another round would cost finds more among longer n-grams. `items` has
    nothing else to spend it on, and goes on."""
    if len(ran) < 2:
        return False
    level, found = ran[-1]
    new_words: int = found.num_rows
    words: int = sum(released.num_rows for _, released in ran)
    (noisy,) = integer_columns(found, "noisy")
    near_threshold = int((noisy < 2 * level.threshold_grid).sum())
    return words > 5 * near_threshold and words >= 2 * new_words


def one_round_of_words(price: Price, last: SetUnionLevel) -> SetUnionLevel:
    """The round that replaces rounds 2 and 3 if round 1 finds very few words. It has the grid of
    round 3, the `last`, and may pass new words with the probability that round 3 has paid for."""
    all_rounds, new_words = price.events[0], price.events[last.round]
    assert isinstance(all_rounds, GaussianEvent) and isinstance(new_words, DeltaEvent)
    part = one_round_part(price["max_n"])
    (sigma,) = split_sigma(all_rounds.sigma, [part / price["max_n"]])
    bits, max_items = last.grid_bits, last.max_items
    return round_level(SetUnionLevel, bits, sigma, max_items, new_words.delta, last.round)
