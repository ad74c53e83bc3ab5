"""Runs the levels of the forecast ladder, one after another.

Level 1: words, by rounds of set union or, with a prior, by two rounds over a list. Level k: the
valid grams of k tokens, by two rounds (`two_rounds.py`) and, after all levels, a late one
(`late_rounds.py`). A level's valid grams and forecasts follow from the releases below it; what a
user spends on it, from the user's purse and from public numbers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import sorted_rows
from dphh.engines.host import DrawOnce, Host
from dphh.level import FoundCounts
from dphh.mechanisms.counts.run import (
    COUNTS_WITHIN_PURSES,
    cap_by_purses,
    find_items,
    noised_counts,
    to_count,
)
from dphh.mechanisms.ngrams.forecast.late_rounds import (
    SPURIOUS_PART_OF_TWO_ROUNDS,
    Undecided,
    draw_late_rounds,
    keep_undecided,
    late_rounds_steps,
    undecided_steps,
)
from dphh.mechanisms.ngrams.forecast.listed_words import (
    level_of_listed_words,
    purse_for_listed_words,
    table_of_words,
    words_masses_and_bound,
)
from dphh.mechanisms.ngrams.forecast.purses import counted_in_full, reserve_for_counts
from dphh.mechanisms.ngrams.forecast.shares import (
    FIRST_OF_TWO_ROUNDS_PART,
    LATE_PURSES_PART,
    WORD_ROUND_PARTS,
    one_round_part,
)
from dphh.mechanisms.ngrams.forecast.two_rounds import (
    ROUND_TABLES,
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
    Step,
    as_array,
    integer_columns,
    scored_rows,
    scored_words,
    steps_of,
    words_of_texts,
)
from dphh.mechanisms.set_union.draws import draw_together, drawn_salt, rounds_steps
from dphh.mechanisms.set_union.levels import (
    DrawnRound,
    NextRound,
    SetUnionLevel,
    round_level,
    rounds_after_first,
)
from dphh.price import Price
from dphh.prior import Prior
from dphh.privacy.events import DeltaEvent, GaussianEvent
from dphh.privacy.gaussian import split_sigma
from dphh.udfs.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class ReleasedWords:
    """The words that level 1 released, in ascending order; their masses; how many even shares of
    the budget the level took; and its released rows."""

    words: Any
    masses: Floats
    even_shares: float
    rows: Any


def forecast_levels(price: Price, host: Host, once: DrawOnce) -> Generator[LevelDone, None, Any]:
    """Runs all levels. Returns how what was found was counted, and its noised counts, if it is."""
    host.gather("users", words_of_texts(price, marks_ends=True))
    # users (block, user_hashes, lengths, ids, words)
    max_n = price["max_n"]
    level_1 = _words_without_prior if price.prior is None else words_with_prior
    words = yield from level_1(price, host, once, max_n)
    planned = forecast_levels_of(price)
    if not planned:
        return None
    # The levels above words are one draw: a purse cannot be made again from what was released.
    purse = full_purse(planned[0], 1 - words.even_shares / max_n)
    draw = partial(draw_levels_above, price, host, words, purse)
    drawn = once("ngrams/forecast", draw)
    yield from levels_of_grams(planned, words.words, drawn, host.joiner)
    return None if price.counting is None else counts_of_grams(drawn, price.counting)


def forecast_levels_of(price: Price) -> list[ForecastLevel]:
    return [level for level in price.levels if isinstance(level, ForecastLevel)]


def levels_of_grams(
    planned: Sequence[ForecastLevel], words: Any, drawn: Any, joiner: str
) -> Iterator[LevelDone]:
    """The levels above these words as they were run, from the table that was drawn."""
    ladder = first_ladder(words)
    for level, found in zip(planned, grams_by_level(drawn, len(planned)), strict=True):
        valid = len(ladder.valid_grams())
        # Grams that a late round found are parts of no longer gram.
        late = ladder.with_next(found.late)
        ladder = ladder.with_next(found.keys)
        items, tokens = (
            pa.concat_arrays(columns)
            for columns in zip(
                texts_of_grams(ladder.top, words, joiner),
                texts_of_grams(late.top, words, joiner),
                strict=True,
            )
        )
        masses = np.append(found.masses, found.late_masses)
        rows = scored_rows(level.level, items, tokens, masses, 0)
        yield LevelDone(replace(level, valid=valid), rows)


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
    positions = PositionsTable(host, keeps_users=counting is not None, keeps_levels=True)
    host.run("full_purses", purse=purse)
    # purses (block, purses, tops, finds)
    rows: list[tuple[int, Integers, Floats, int]] = []
    undecided: list[Undecided] = []
    likely = float(purse)
    for level in planned:
        lift = None if price.prior is None else lift_counts(price.prior, ladder)
        purses = LikelyPurses(purse, len(planned) + 1, likely, counting, in_full)
        before = level_above(level, ladder, masses, masses_before, purses, lift)
        if len(before.valid) == 0:  # no gram below was released, so none is valid
            break
        purpose = f"ngrams/forecast, level {level.level}"
        positions.update_positions(ladder)
        # positions (block, user_hashes, lengths, keys): the valid gram at each position
        drawn = draw_two_rounds(host, before, purpose)
        (keys,) = integer_columns(drawn.passed, "key")
        rows.append((level.level, keys, drawn.masses, 0))
        undecided.append(keep_undecided(host, before, drawn.seen, keys, purpose))
        ladder, masses_before, masses = ladder.with_next(keys), masses, drawn.masses
        likely, in_full = drawn.mean_purse / 2, drawn.in_full
    if undecided:
        reserve = None
        if counting is not None:
            positions.add_finds(ladder, ladder.top)
            reserve = reserve_for_counts(planned[0], purse, counting, in_full)
        positions.keep_positions(undecided[-1].level.planned.level)
        counted_for = int(LATE_PURSES_PART * planned[0].whole)
        late = draw_late_rounds(host, undecided, purse, counted_for, reserve)
        rows += [
            (each.level.planned.level, *found, 1)
            for each, found in zip(undecided, late, strict=True)
        ]
    found = table_of_grams(rows)
    if counting is not None:
        levels = levels_of_grams(planned, words.words, found, host.joiner)
        table = sorted_rows(pa.concat_tables([words.rows, *(done.rows for done in levels)]))
        counted = to_count(table, counted_in_full(counting, in_full))
        if counted.level is not None:
            find_items(host, counted.level, counted.items)
            cap_by_purses(host, counted.level, planned[0].sigma_grid)
            # counted_users (block, lengths, ids, caps): which finds each user holds
            counts = noised_counts(host, counted.level)
            found = pa.concat_tables([found, table_of_counts(counts, in_full)])
    # If another process has stored its draw first, no later step may find the purses of this one.
    host.drop("purses")
    return found


@dataclass(frozen=True)
class LikelyPurses:
    """Before a level, in squared norms: a purse of which nothing was spent, and the purse that a
    user is taken to have if round 1 tells nothing. `levels`: of the run, words too. `counting`: how
    a plan counts what is found. `in_full`: for how many finds a whole purse counts a user."""

    full: int
    levels: int
    likely: float
    counting: FoundCounts | None = None
    in_full: int = 0


@dataclass(frozen=True, eq=False)
class FoundGrams:
    """What was released of one length: by the two rounds of its level, in order of key, and by its
    late round."""

    keys: Integers
    masses: Floats
    late: Integers
    late_masses: Floats


def table_of_grams(rows: Sequence[tuple[int, Integers, Floats, int]]) -> Any:
    def column(values: Sequence[Any]) -> Any:
        return np.concatenate([np.empty(0, dtype=np.int64), *values])

    return pa.table(
        {
            "level": column([np.full(len(keys), level) for level, keys, _, _ in rows]),
            "key": column([keys for _, keys, _, _ in rows]),
            "mass": pa.array(column([masses for _, _, masses, _ in rows]), pa.float64()),
            "late": column([np.full(len(keys), late) for _, keys, _, late in rows]),
        }
    )


def table_of_counts(counts: Any, in_full: int) -> Any:
    """Noised counts (key, noisy) as rows of the same table, of level 0; and, with the key -1, for
    how many finds a whole mu^2 counted a user in full."""
    keys, noisy = integer_columns(counts, "key", "noisy")
    of_level_0 = np.append(keys, -1), np.append(noisy, in_full).astype(np.float64)
    return table_of_grams([(0, *of_level_0, 0)])


def counts_of_grams(table: Any, counting: FoundCounts) -> tuple[FoundCounts, Any]:
    """Reads what `table_of_counts` added: how finds were counted, and (key, noisy)."""
    (level, keys), masses = integer_columns(table, "level", "key"), table.column("mass")
    noisy = as_array(masses, pa.float64()).to_numpy().astype(np.int64)
    (in_full,) = noisy[(level == 0) & (keys < 0)].tolist() or [counting.within_purses]
    of_counts = np.flatnonzero((level == 0) & (keys >= 0))
    drawn = pa.table({"key": keys[of_counts], "noisy": noisy[of_counts]})
    return counted_in_full(counting, in_full), drawn


def grams_by_level(table: Any, levels: int) -> Iterator[FoundGrams]:
    """Reads the table that `draw_levels_above` returned, from level 2 on."""
    table = table.sort_by("key")
    level, keys, late = integer_columns(table, "level", "key", "late")
    masses = as_array(table.column("mass"), pa.float64()).to_numpy()
    for number in range(2, levels + 2):
        early, of_late_round = (np.flatnonzero((level == number) & (late == x)) for x in (0, 1))
        yield FoundGrams(keys[early], masses[early], keys[of_late_round], masses[of_late_round])


def level_above(
    planned: ForecastLevel,
    ladder: Ladder,
    masses: Floats,
    masses_before: Floats,
    purses: LikelyPurses,
    lift: LiftCounts | None = None,
) -> TwoRoundLevel:
    """The level above the ladder's top rung. `masses`: of the top rung's grams, and of those of the
    rung below it, for words the mass of all words. `lift`: the public text's lifts, with a prior.
    """
    valid = valid_classes(ladder.top, masses, masses_before, lift)
    below, largest_mass = len(ladder.top), float(masses.sum())
    most_spurious = SPURIOUS_PART_OF_TWO_ROUNDS * planned.spurious * below
    return TwoRoundLevel(
        planned=planned,
        valid=valid,
        below=below,
        full_purse=purses.full,
        first=int(FIRST_OF_TWO_ROUNDS_PART * planned.whole / purses.levels),
        forecasts_and_largest_mass=lambda _: (valid.forecasts, largest_mass),
        most_spurious=lambda *_: most_spurious,
        likely_purse=purses.likely,
        counting=purses.counting,
        in_full=purses.in_full,
        levels_after=purses.levels - planned.level,
    )


def words_with_prior(
    price: Price, host: Host, once: DrawOnce, max_n: int
) -> Generator[LevelDone, None, ReleasedWords]:
    """Runs level 1 with a prior. Both rounds are one entry of the journal, and one even share."""
    planned, prior = price.levels[0], price.prior
    assert isinstance(planned, ListedWordsLevel) and prior is not None
    purpose = "ngrams/forecast, level 1"
    drawn = once(purpose, partial(draw_words_with_prior, host, planned, prior, purpose))
    words, masses, most_spurious = words_masses_and_bound(drawn)
    done = LevelDone(replace(planned, spurious_words=most_spurious), scored_words(words, masses, 0))
    yield done
    return ReleasedWords(words, masses, 1.0, done.rows)


def draw_words_with_prior(host: Host, planned: ListedWordsLevel, prior: Prior, purpose: str) -> Any:
    """Draw both rounds of level 1 with a prior."""
    listed = len(prior.vocabulary)
    numbers = pa.array(np.arange(listed, dtype=np.int64))
    host.put("listed", pa.table({"word": prior.vocabulary.cast(pa.string()), "key": numbers}))
    host.run("unlisted_words", first_unlisted_key=listed)
    # unlisted_words (word, key)
    host.bring("keys", "keys_by_list", to="users")
    # brought to users: each word's key
    bound = {"max_items": planned.max_items, "salt": drawn_salt(host, purpose)}
    host.run("positions_with_list", first_unlisted_key=listed, **bound)
    # positions (user_hashes, lengths, keys)
    host.run("full_purses", purse=purse_for_listed_words(planned))
    # purses (block, purses, tops)
    drawn = draw_two_rounds(host, level_of_listed_words(planned, prior), purpose)
    host.drop("positions", "listed", "purses", *ROUND_TABLES)
    return table_of_words(prior.vocabulary, drawn)


def _words_without_prior(
    price: Price, host: Host, once: DrawOnce, max_n: int
) -> Generator[LevelDone, None, ReleasedWords]:
    """Runs level 1, whose rounds are one entry of the journal."""
    drawn = draw_together(host, once, "ngrams/words", words_rounds(price))
    words, masses, even_shares = pa.array([], pa.string()), np.empty(0), 0.0
    rows = []
    for number, (level, passed) in enumerate(drawn, start=1):
        is_planned = level.round == number  # else it is the one round in place of the later ones
        even_shares += WORD_ROUND_PARTS[number - 1] if is_planned else one_round_part(max_n)
        new_words = as_array(passed.column("key"), pa.string())
        (noisy,) = integer_columns(passed, "noisy")
        words = pa.concat_arrays([words, new_words])
        masses = np.concatenate([masses, noisy / 2.0**level.grid_bits])
        rows.append(scored_words(new_words, noisy, level.grid_bits))
        yield LevelDone(level, rows[-1])
    order = pc.sort_indices(words)
    masses = masses[order.to_numpy()]
    return ReleasedWords(words.take(order), masses, even_shares, pa.concat_tables(rows))


def forecast_draws(price: Price) -> Draws:
    """What `forecast_levels` and `words_with_prior` ask."""
    yield BEFORE_LEVELS, GATHER
    if rounds := [level for level in price.levels if isinstance(level, SetUnionLevel)]:
        yield "ngrams/words", rounds_steps(rounds, "ngrams/words")
    above = [level for level in price.levels if isinstance(level, ForecastLevel)]
    steps: list[Step] = []
    for level in price.levels:
        purpose = f"ngrams/forecast, level {level.level}"
        if isinstance(level, ListedWordsLevel):
            names = "unlisted_words", "keys_by_list", "positions_with_list", "full_purses"
            yield purpose, [*steps_of(level, purpose, *names), *two_rounds_steps(level, purpose)]
        elif isinstance(level, ForecastLevel):
            purses = ("full_purses",) if level is above[0] else ()
            before = finds_steps(price, "words" if level is above[0] else "grams")
            steps += steps_of(level, purpose, *purses, *before, *positions_steps(level))
            steps += [*two_rounds_steps(level, purpose), *undecided_steps(level, purpose)]
    if above:
        steps += steps_of(above[-1], purpose, *finds_steps(price, "grams"))
        counts = COUNTS_WITHIN_PURSES if price.counting is not None else ()
        yield "ngrams/forecast", [*steps, *late_rounds_steps(above), *counts]


def finds_steps(price: Price, pieces: str) -> tuple[str, ...]:
    """What `PositionsTable.add_finds` asks, in runs that count what they find."""
    if price.counting is None:
        return ()
    return f"finds_of_{pieces}", "ALTER TABLE next_purses RENAME TO purses;"


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
