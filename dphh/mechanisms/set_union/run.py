"""Set union: DPSU runs one round; DP-SIPS several, each without the items released earlier; "auto"
chooses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.host import DrawOnce, Host, Lookup
from dphh.mechanisms.released_rows import LevelDone, as_array, integer_columns, scored_words
from dphh.mechanisms.set_union.levels import (
    LEAST_ITEMS_FOR_ROUNDS,
    ChoiceLevel,
    ReweighedLevel,
    SetUnionLevel,
)
from dphh.mechanisms.set_union.rounds import DrawnRound, NextRound, adaptive_rounds
from dphh.mechanisms.steps import BEFORE_LEVELS, GATHER, Draws, Step, planned, steps_of
from dphh.price import Price
from dphh.udfs.kernel.numbering import ReadWords
from dphh.udfs.kernel.words import indices_by_word
from dphh.udfs.rules.reweighing import ReweighingNumbers, round_precision


def set_union_levels(price: Price, host: Host, once: DrawOnce, _: str) -> Iterator[LevelDone]:
    host.gather("users", ReadWords())
    # users (user_hashes, lengths, ids, words)
    levels = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    if price.method == "auto":
        drawn = _run_with_choice(levels, host, once)
    elif price.method == "adaptive":
        drawn = _run_adaptive(levels, host, once)
    else:
        drawn = _run_separately(levels, host, once)
    most: int | None = None
    for level, passed in drawn:
        items = as_array(passed.column("key"), pa.string())
        (noisy,) = integer_columns(passed, "noisy")
        # The round before did not release these items: no score is above that round's threshold.
        scored = noisy if most is None else np.minimum(noisy, most)
        most = None if isinstance(level, ChoiceLevel) else level.threshold_grid
        yield LevelDone(level, scored_words(items, scored, level.grid_bits))


def _run_with_choice(
    levels: list[SetUnionLevel], host: Host, once: DrawOnce
) -> Iterator[DrawnRound]:
    """Runs the first round, which releases no item, and then one round or several: the number of
    items that the first round finds decides."""
    first, alone, *rounds = levels
    passed = once("items/choice", partial(draw_words, host, first, "items/choice"))
    yield first, passed.slice(0, 0)
    if passed.num_rows < LEAST_ITEMS_FOR_ROUNDS:
        yield from _run_separately([alone], host, once)
    else:
        yield from _run_adaptive(rounds, host, once)


def _run_adaptive(levels: list[SetUnionLevel], host: Host, once: DrawOnce) -> Iterator[DrawnRound]:
    next_round = adaptive_rounds(levels)
    drawn = once("items", partial(draw_rounds, host, next_round, "items"))
    return rounds_of_table(drawn, next_round)


def _run_separately(
    levels: list[SetUnionLevel], host: Host, once: DrawOnce
) -> Iterator[DrawnRound]:
    """Run each round as a draw of its own, which is stored before the next begins, without the
    words that earlier rounds released."""
    released = pa.array([], pa.string())
    for level in levels:
        purpose = f"items/round {level.round}"
        passed = once(purpose, partial(draw_words, host, level, purpose, released))
        yield level, passed
        released = pa.concat_arrays([released, as_array(passed.column("key"), pa.string())])


def draw_words(host: Host, level: SetUnionLevel, purpose: str, released: Any = ()) -> Any:
    """Draw one round of the weighted Gaussian policy over `users`, without the words in `released`.
    Returns (key, noisy) of the words that reach its threshold."""
    host.run(
        "words_level",
        released=_lookup_of_released(released),
        **bounding_parameters(host, level, purpose),
    )
    # noised (key, has_weight, noisy)
    passed = host.take("released_words", threshold=level.threshold_grid)
    host.drop("noised")
    return passed


def draw_rounds(host: Host, next_round: NextRound, purpose: str) -> Any:
    """Draw rounds that depend on one another. Returns all that they release as one table (round,
    key, noisy), which `rounds_of_table` reads.

    They are one draw of the run. Noised weights of unreleased items exist only in the engine, so a
    run that was interrupted between rounds redraws all of them, none of which was seen
    (`dphh.journal`); one that was interrupted later finds all rounds stored.

    From the second round on, a user's weight on an item depends on the noised weights of earlier
    rounds, also of items that were not released. So these weights are an output in the analysis
    (docs/items.md), and must depend on the raw data in no other way: every item that some user
    holds has a noised weight in every round, whether or not any user put weight on it. To be
    released, an item also needs some user's weight.
    """
    ran: list[DrawnRound] = []
    released = pa.array([], pa.string())
    while (level := next_round(ran)) is not None:
        if ran:
            (first, _), (last, passed) = ran[0], ran[-1]
            if len(ran) == 1:
                host.run("no_earlier_sums")
                # earlier_sums (key, noisy_sum), empty
            host.run("sums_so_far", precision=round_precision(first.round_noise, last.round_noise))
            # sums_so_far (key, noisy_sum), of every word that a user holds
            host.rename_replacing("sums_so_far", "earlier_sums")
            host.drop("noised")
            released = pa.concat_arrays([released, as_array(passed.column("key"), pa.string())])
        weights = {"w": Lookup(None)}
        if isinstance(level, ReweighedLevel):
            weights = {}
            reweighing = reweighing_after([each for each, _ in ran], level)
            host.bring("w", "weights_of_round", to="users", **reweighing)
            # brought to users: each word's w
        within = bounding_parameters(host, level, f"{purpose}/round {level.round}")
        host.run("words_of_round", released=_lookup_of_released(released), **weights, **within)
        # noised (key, has_weight, noisy); has_weight: whether some user put weight on the key
        passed = host.take("released_words", threshold=level.threshold_grid)
        # (key, noisy), those with weight that reach the threshold
        ran.append((level, passed))
    host.drop("noised", "earlier_sums")
    return pa.concat_tables(
        pa.table(
            {
                "round": np.full(passed.num_rows, level.round, np.int64),
                "key": as_array(passed.column("key"), pa.string()),
                "noisy": as_array(passed.column("noisy"), pa.int64()),
            }
        )
        for level, passed in ran
    )


def rounds_of_table(drawn: Any, next_round: NextRound) -> Iterator[DrawnRound]:
    """Yields each round as it was run, and what it released, of a table that `draw_rounds` made."""
    (numbers,) = integer_columns(drawn, "round")
    ran: list[DrawnRound] = []
    while (level := next_round(ran)) is not None:
        ran.append((level, drawn.filter(pa.array(numbers == level.round))))
        yield ran[-1]


def bounding_parameters(host: Host, level: Any, purpose: str) -> dict[str, Any]:
    """The parameters of a step that bounds and weighs users and draws the noise of their sums."""
    return planned(level, purpose, salt=drawn_salt(host, purpose))


def drawn_salt(host: Host, purpose: str) -> Lookup:
    """A salt of 64 random bits. It decides which keys of an over-full user count."""
    return Lookup(int(host.randomness.random_words(1, f"{purpose}/salt")[0]))


def _lookup_of_released(released: Any) -> Lookup:
    return Lookup(indices_by_word(released) if len(released) else None)


def reweighing_after(ran: Sequence[SetUnionLevel], level: SetUnionLevel) -> dict[str, Any]:
    """The parameters of the weights of this round after those that ran."""
    noises = [each.round_noise for each in ran]
    return asdict(ReweighingNumbers.after_rounds(noises, level.threshold_grid, level.grid_bits))


def set_union_draws(price: Price) -> Draws:
    """What `set_union_levels` asks."""
    yield BEFORE_LEVELS, GATHER
    levels = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    if price.method == "auto":
        choice, alone, *levels = levels
        yield "items/choice", words_steps(choice, "items/choice")
        purpose = f"items/round {alone.round}"
        yield f"{purpose}, if little is found before", words_steps(alone, purpose)
        yield "items, if much is found before", rounds_steps(levels, "items")
    elif price.method == "adaptive":
        yield "items", rounds_steps(levels, "items")
    else:
        for level in levels:
            purpose = f"items/round {level.round}"
            yield purpose, words_steps(level, purpose, is_first=level is levels[0])


def words_steps(level: SetUnionLevel, purpose: str, *, is_first: bool = True) -> list[Step]:
    """What `draw_words` asks. `is_first`: nothing is released before."""
    known = {"released": None} if is_first else {}
    return steps_of(level, purpose, "words_level", "released_words", **known)


def rounds_steps(levels: Sequence[SetUnionLevel], purpose: str) -> list[Step]:
    """What `draw_rounds` asks if no release cuts the rounds short."""
    steps: list[Step] = []
    for number, level in enumerate(levels):
        ran, known = levels[:number], {} if number else {"released": None, "w": None}
        if ran:
            precision = round_precision(ran[0].round_noise, ran[-1].round_noise)
            steps += [
                *([("no_earlier_sums", {})] if number == 1 else []),
                ("sums_so_far", {"precision": precision}),
                ("ALTER TABLE sums_so_far RENAME TO earlier_sums;", {}),
                ("weights_of_round", reweighing_after(ran, level)),
            ]
        named = f"{purpose}/round {level.round}"
        steps += steps_of(level, named, "words_of_round", "released_words", **known)
    return steps
