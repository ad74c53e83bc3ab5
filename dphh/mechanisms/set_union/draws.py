"""Draws rounds of a set union on a host: each a query over `users`, its noise and its threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.host import DrawOnce, Host, Lookup
from dphh.mechanisms.running import (
    Draws,
    Step,
    as_array,
    integer_columns,
    parameters_of,
    renamed,
    steps_of,
)
from dphh.mechanisms.set_union.levels import DrawnRound, NextRound, ReweighedLevel, SetUnionLevel
from dphh.udfs.kernel.positions import indices_by_word
from dphh.udfs.rules.weights import ReweighingNumbers, RoundNoise, round_precision


def draw_in_order(
    levels: Sequence[SetUnionLevel], host: Host, once: DrawOnce
) -> Iterator[DrawnRound]:
    """Draw these rounds one after the other, whatever each finds."""
    return draw_together(host, once, "items", lambda ran: next(iter(levels[len(ran) :]), None))


def draw_together(
    host: Host, once: DrawOnce, purpose: str, next_round: NextRound
) -> Iterator[DrawnRound]:
    """Draw rounds as one draw (`draw_rounds`)."""
    drawn = once(purpose, partial(draw_rounds, host, next_round, purpose))
    # drawn (round, key, noisy)
    (numbers,) = integer_columns(drawn, "round")
    ran: list[DrawnRound] = []
    while (level := next_round(ran)) is not None:
        ran.append((level, drawn.filter(pa.array(numbers == level.round))))
        yield ran[-1]


def draw_rounds(host: Host, next_round: NextRound, purpose: str) -> Any:
    """Draw rounds, each without the words that earlier ones released. Returns all that they release
    as one table (round, key, noisy).

    They are one draw of the run. Noised weights of unreleased items exist only in the engine, so a
    run that was interrupted between rounds redraws all of them, none of which was seen
    (`dphh.run`); one that was interrupted later finds all rounds stored.

    In a `ReweighedLevel`, as are then all rounds but the first, a user's weight on an item depends
    on the noised weights of earlier rounds, also of items that were not released. So these weights
    are an output in the analysis (docs/items.md), and must depend on the raw data in no other way:
    every item that some user holds has a noised weight in every round, whether or not any user put
    weight on it. To be released, an item also needs some user's weight.
    """
    ran: list[DrawnRound] = []
    released = pa.array([], pa.string())
    while (level := next_round(ran)) is not None:
        weights = {"w": Lookup(None)}
        if ran:
            (first, _), (last, passed) = ran[0], ran[-1]
            released = pa.concat_arrays([released, as_array(passed.column("key"), pa.string())])
            if isinstance(level, ReweighedLevel):
                if len(ran) == 1:
                    host.run("no_earlier_sums")
                    # earlier_sums (key, noisy_sum), empty
                precision = round_precision(first.round_noise, last.round_noise)
                host.run("sums_so_far", precision=precision)
                # sums_so_far (key, noisy_sum), of every word that a user holds
                host.rename_replacing("sums_so_far", "earlier_sums")
                noises = [each.round_noise for each, _ in ran]
                weights = {}
                host.bring("w", "weights_of_round", to="users", **_reweighing(noises, level))
                # brought to users: each word's w
            host.drop("noised")
        passed = _draw_round(host, level, f"{purpose}/round {level.round}", released, weights)
        # noised (key, has_weight, noisy) and passed (key, noisy)
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


def draw_words(
    host: Host, level: SetUnionLevel, purpose: str, released: Any = (), w: Any = None
) -> Any:
    """Draw one round of the weighted Gaussian policy over `users`, without the words in `released`.
    Returns (key, noisy) of the words that reach its threshold. `w`: public relative weights of
    words (`ValuesByWord`), each from 1 to ONE_W; equal weights if None."""
    passed = _draw_round(host, level, purpose, released, {"w": Lookup(w)})
    # noised (key, has_weight, noisy) and passed (key, noisy)
    host.drop("noised")
    return passed


def _draw_round(
    host: Host, level: SetUnionLevel, purpose: str, released: Any, weights: dict[str, Lookup]
) -> Any:
    """Draw one round. `weights`: w as a parameter, unless it was brought to users. The table
    `noised` is left to the caller."""
    host.run(
        "words_of_round",
        released=Lookup(indices_by_word(released) if len(released) else None),
        **weights,
        **bounding_parameters(host, level, purpose),
    )
    # noised (key, has_weight, noisy); has_weight: whether some user put weight on the key
    return host.take("released_words", threshold=level.threshold_grid)
    # (key, noisy), those with weight that reach the threshold


def _reweighing(earlier: Sequence[RoundNoise], level: SetUnionLevel) -> dict[str, Any]:
    """The public numbers of a round's weights, after rounds of this noise."""
    return asdict(ReweighingNumbers.after_rounds(earlier, level.threshold_grid, level.grid_bits))


def bounding_parameters(host: Host, level: Any, purpose: str) -> dict[str, Any]:
    """The parameters of a step that bounds and weighs users and draws the noise of their sums."""
    return parameters_of(level, purpose, salt=drawn_salt(host, purpose))


def drawn_salt(host: Host, purpose: str) -> Lookup:
    """A salt of 64 random bits. It decides which keys of an over-full user count."""
    return Lookup(int(host.randomness.random_words(1, f"{purpose}/salt")[0]))


def draws_in_order(levels: Sequence[SetUnionLevel]) -> Draws:
    """What `draw_in_order` asks, and `draw_together` if no release cuts the rounds short."""
    yield "items", rounds_steps(levels, "items")


def words_steps(level: SetUnionLevel, purpose: str) -> list[Step]:
    """What `draw_words` asks."""
    return steps_of(level, purpose, "words_of_round", "released_words", w=None, released=None)


def rounds_steps(levels: Sequence[SetUnionLevel], purpose: str) -> list[Step]:
    """What `draw_rounds` asks for all of these rounds."""
    steps: list[Step] = []
    for number, level in enumerate(levels):
        noises = [each.round_noise for each in levels[:number]]
        known = {} if number else {"released": None}
        if not isinstance(level, ReweighedLevel):
            known["w"] = None
        else:
            steps += [
                *([("no_earlier_sums", {})] if number == 1 else []),
                ("sums_so_far", {"precision": round_precision(noises[0], noises[-1])}),
                (renamed("sums_so_far", "earlier_sums"), {}),
                ("weights_of_round", _reweighing(noises, level)),
            ]
        named = f"{purpose}/round {level.round}"
        steps += steps_of(level, named, "words_of_round", "released_words", **known)
    return steps
