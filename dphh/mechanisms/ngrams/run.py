"""Runs the levels of `ngrams`, one after another: level 1 is words; each further level sees valid
grams alone. By DPNE: `dpne.py`. By the forecast ladder, the default:

Level 1: words (`forecast/words.py`). Level k: the valid grams of k tokens, by two rounds
(`forecast/two_rounds.py`) and, after all levels, a late one (`forecast/late_rounds.py`). A level's
valid grams and forecasts follow from the releases below it; what a user spends on it, from the
user's purse and from public numbers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import sorted_rows
from dphh.counting import FoundCounts
from dphh.engines.host import DrawOnce, Host
from dphh.mechanisms.counts.run import (
    COUNTS_WITHIN_PURSES,
    cap_by_purses,
    find_items,
    noised_counts,
    to_count,
)
from dphh.mechanisms.ngrams.dpne import dpne_draws, dpne_levels
from dphh.mechanisms.ngrams.forecast.late_rounds import (
    KEPT_TABLES,
    Undecided,
    draw_late_rounds,
    keep_undecided,
)
from dphh.mechanisms.ngrams.forecast.purses import (
    FIRST_OF_TWO_ROUNDS_PART,
    LATE_PURSES_PART,
    counted_in_full,
    reserve_for_counts,
)
from dphh.mechanisms.ngrams.forecast.two_rounds import (
    LATER_ROUND,
    ROUND_1,
    TwoRoundLevel,
    draw_two_rounds,
)
from dphh.mechanisms.ngrams.forecast.words import (
    ReleasedWords,
    words_with_prior,
    words_without_prior,
)
from dphh.mechanisms.ngrams.ladder.classes import LiftCounts, lift_counts, valid_classes
from dphh.mechanisms.ngrams.ladder.rungs import (
    Ladder,
    add_finds,
    first_ladder,
    number_positions,
    positions_steps,
    texts_of_grams,
    update_positions,
)
from dphh.mechanisms.ngrams.levels import ForecastLevel, ListedWordsLevel
from dphh.mechanisms.running import (
    BEFORE_LEVELS,
    GATHER,
    Draws,
    LevelDone,
    as_array,
    integer_columns,
    renamed,
    scored_rows,
    steps_of,
    words_of_texts,
)
from dphh.mechanisms.set_union.draws import rounds_steps
from dphh.mechanisms.set_union.levels import SetUnionLevel
from dphh.price import Price
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import BIN_STARTS_IN_SIGMAS


def ngrams_levels(price: Price, host: Host, once: DrawOnce) -> Iterator[LevelDone]:
    levels = forecast_levels if price.method == "forecast" else dpne_levels
    return levels(price, host, once)


def ngrams_draws(price: Price) -> Draws:
    """What `ngrams_levels` asks."""
    return forecast_draws(price) if price.method == "forecast" else dpne_draws(price)


def forecast_levels(price: Price, host: Host, once: DrawOnce) -> Generator[LevelDone, None, Any]:
    """Runs all levels. Returns how what was found was counted, and its noised counts, if it is."""
    host.gather("users", words_of_texts(price, marks_ends=True))
    # users (block, user_hashes, lengths, ids, words)
    max_n = price["max_n"]
    level_1 = words_without_prior if price.prior is None else words_with_prior
    words = yield from level_1(price, host, once, max_n)
    planned = forecast_levels_of(price)
    if not planned:
        return None
    # The levels above words are one draw: a purse cannot be made again from what was released.
    purse = full_purse(planned[0], 1 - words.even_shares / max_n)
    drawn = once("ngrams/forecast", partial(draw_levels_above, price, host, words, purse))
    # drawn (level, key, mass, late)
    yield from levels_of_grams(planned, words.words, drawn, host.joiner)
    return None if price.counting is None else counts_of_grams(drawn, price.counting)


def forecast_levels_of(price: Price) -> list[ForecastLevel]:
    return [level for level in price.levels if isinstance(level, ForecastLevel)]


def full_purse(level: ForecastLevel, share: float) -> int:
    """What a user may spend on all levels above words, which is this share of the whole mu^2: a
    squared norm in units of the noise's grid."""
    return int(level.whole * share * (1 - 2**-40))


def draw_levels_above(price: Price, host: Host, words: ReleasedWords, purse: int) -> Any:
    """Draw all levels above these words, and the counts of what was found: the table (level, key,
    mass, late), as the journal stores it. Nothing of it is shown before all is drawn."""
    planned, counting = forecast_levels_of(price), price.counting
    ladder, masses = first_ladder(words.words), words.masses
    masses_before = np.array([masses.sum()])
    in_full = 0 if counting is None else counting.within_purses
    host.run("full_purses", purse=purse)
    # purses (block, purse)
    drawn = [table_of_grams(0, np.empty(0, np.int64), np.empty(0))]
    undecided: list[Undecided] = []
    likely = float(purse)
    for level in planned:
        lift = None if price.prior is None else lift_counts(price.prior, ladder)
        before = level_above(
            level, ladder, masses, masses_before, lift,
            purse=purse, likely=likely, levels=len(planned) + 1,
        )  # fmt: skip
        if len(before.valid) == 0:  # no gram below was released, so none is valid
            break
        number_positions(host, ladder)
        if counting is not None:
            before = replace(before, counting=counting, in_full=in_full)
            add_finds(host)
        update_positions(host, ladder, keeps_users=counting is not None, keeps_levels=True)
        # positions (block, user_hashes, lengths, keys): the valid gram at each position
        purpose = f"ngrams/forecast, level {level.level}"
        found = draw_two_rounds(host, before, purpose)
        (keys,) = integer_columns(found.passed, "key")
        drawn.append(table_of_grams(level.level, keys, found.masses))
        undecided.append(keep_undecided(host, before, found, purpose))
        ladder, masses_before, masses = ladder.with_next(keys), masses, found.masses
        likely, in_full = found.mean_purse / 2, found.in_full
    if undecided:
        reserve = None
        if counting is not None:
            number_positions(host, ladder)
            add_finds(host)
            host.drop("numbered")
            reserve = reserve_for_counts(planned[0], purse, counting, in_full)
        host.rename_replacing("positions", f"positions_{len(undecided) + 1}")
        counted_for = int(LATE_PURSES_PART * planned[0].whole)
        late = draw_late_rounds(host, undecided, purse, counted_for, reserve)
        drawn += [
            table_of_grams(each.level.planned.level, *found_late, late=1)
            for each, found_late in zip(undecided, late, strict=True)
        ]
    grams = pa.concat_tables(drawn)
    if counting is not None:
        levels = levels_of_grams(planned, words.words, grams, host.joiner)
        table = sorted_rows(pa.concat_tables([words.rows, *(done.rows for done in levels)]))
        _, items, counts_level = to_count(table, counted_in_full(counting, in_full))
        if counts_level is not None:
            find_items(host, counts_level, items)
            cap_by_purses(host, counts_level, planned[0].sigma_grid)
            # counted_users (block, lengths, ids, caps): which finds each user holds
            counts = noised_counts(host, counts_level)
            grams = pa.concat_tables([grams, table_of_counts(counts, in_full)])
    # If another process has stored its draw first, no later step may find the purses of this one.
    host.drop("purses")
    return grams


def level_above(
    planned: ForecastLevel,
    ladder: Ladder,
    masses: Floats,
    masses_before: Floats,
    lift: LiftCounts | None = None,
    *,
    purse: int,
    likely: float,
    levels: int,
) -> TwoRoundLevel:
    """The level above the ladder's top rung. `masses`: of the top rung's grams, and of those of the
    rung below it, for words the mass of all words. `lift`: the public text's lifts, with a prior.
    `purse`: a full one, and what a user `likely` has if round 1 tells nothing. `levels`: how many
    the run has, words too."""
    return TwoRoundLevel(
        planned=planned,
        valid=valid_classes(ladder.top, masses, masses_before, lift),
        below=len(ladder.top),
        full_purse=purse,
        first=int(FIRST_OF_TWO_ROUNDS_PART * planned.whole / levels),
        likely_purse=likely,
        largest_mass=float(masses.sum()),
        levels_after=levels - planned.level,
    )


# What the journal stores of the levels above words.


def table_of_grams(level: int, keys: Integers, masses: Floats, late: int = 0) -> Any:
    """What a level's two rounds, or its late round, released."""
    count = len(keys)
    return pa.table(
        {
            "level": np.full(count, level),
            "key": keys,
            "mass": pa.array(masses, pa.float64()),
            "late": np.full(count, late),
        }
    )


def grams_of_level(table: Any, level: int, late: int) -> tuple[Integers, Floats]:
    """Reads what `table_of_grams` made: the keys, ascending, and the masses."""
    is_there = pc.and_(pc.equal(table.column("level"), level), pc.equal(table.column("late"), late))
    found = table.filter(is_there).sort_by("key")
    (keys,) = integer_columns(found, "key")
    return keys, as_array(found.column("mass"), pa.float64()).to_numpy()


def levels_of_grams(
    planned: Sequence[ForecastLevel], words: Any, drawn: Any, joiner: str
) -> Iterator[LevelDone]:
    """The levels above these words as they were run, from the table that was drawn."""
    ladder = first_ladder(words)
    for level in planned:
        valid = len(ladder.valid_grams())
        keys, masses = grams_of_level(drawn, level.level, late=0)
        late_keys, late_masses = grams_of_level(drawn, level.level, late=1)
        # Grams that a late round found are parts of no longer gram.
        late, ladder = ladder.with_next(late_keys), ladder.with_next(keys)
        texts = [texts_of_grams(each.top, words, joiner) for each in (ladder, late)]
        items, tokens = (pa.concat_arrays(columns) for columns in zip(*texts, strict=True))
        rows = scored_rows(level.level, items, tokens, np.append(masses, late_masses), 0)
        yield LevelDone(replace(level, valid=valid), rows)


def table_of_counts(counts: Any, in_full: int) -> Any:
    """Noised counts (key, noisy) as rows of the same table, of level 0; and, with the key -1, for
    how many finds a whole mu^2 counted a user in full."""
    keys, noisy = integer_columns(counts, "key", "noisy")
    return table_of_grams(0, np.append(keys, -1), np.append(noisy, in_full).astype(np.float64))


def counts_of_grams(table: Any, counting: FoundCounts) -> tuple[FoundCounts, Any]:
    """Reads what `table_of_counts` added: how finds were counted, and (key, noisy)."""
    keys, noisy = grams_of_level(table, 0, late=0)
    if not len(keys):
        return counting, pa.table({"key": keys, "noisy": keys})
    drawn = pa.table({"key": keys[1:], "noisy": noisy[1:].astype(np.int64)})
    return counted_in_full(counting, int(noisy[0])), drawn


def forecast_draws(price: Price) -> Draws:
    """What `forecast_levels` and `words_with_prior` ask."""
    yield BEFORE_LEVELS, GATHER
    if rounds := [level for level in price.levels if isinstance(level, SetUnionLevel)]:
        yield "ngrams/words", rounds_steps(rounds, "ngrams/words")
    bins = len(BIN_STARTS_IN_SIGMAS)
    for level in price.levels:
        if isinstance(level, ListedWordsLevel):
            purpose = "ngrams/forecast, level 1"
            names = "unlisted_words", "keys_by_list", "positions_with_list", "full_purses"
            yield purpose, steps_of(level, purpose, *names, *ROUND_1, *LATER_ROUND, bins=bins)
    if not (above := forecast_levels_of(price)):
        return
    finds = [] if price.counting is None else ["finds", renamed("next_purses", "purses")]
    early, late = steps_of(above[0], "", "full_purses"), []
    for level in above:
        purpose = f"ngrams/forecast, level {level.level}"
        before = positions_steps(level, *finds)
        keep = [renamed(table, f"{table}_{level.level}") for table in KEPT_TABLES]
        asked = [*before, *ROUND_1, *LATER_ROUND, "forecast_undecided", "forecast_cells", *keep]
        no_list = {"first_unlisted_key": -1, "unlisted_threshold": 0}
        early += steps_of(level, purpose, *asked, bins=bins, **no_list)
        take_up = [renamed(f"{table}_{level.level}", table) for table in KEPT_TABLES]
        late += steps_of(level, f"{purpose}, late", *take_up, *LATER_ROUND, bins=bins**2)
    count = "late_purses", renamed("next_purses", "purses"), "forecast_users", "user_counts"
    finds = ["numbers_of_grams", *finds] if finds else []
    between = steps_of(above[0], "ngrams/forecast, late purses", *finds, *count)
    counts = () if price.counting is None else COUNTS_WITHIN_PURSES
    yield "ngrams/forecast", [*early, *between, *late, *counts]
