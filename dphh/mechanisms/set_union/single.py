"""Method "single": optimal selection for users of one item (Desfontaines, Voss, Gipson & Mandayam
2022).

Each user counts for one item. A count gets truncated geometric noise, which is never above its
reach; an item is released if the sum is above the reach, with the sum as its score. No rule that is
(epsilon, delta)-differentially private selects an item of any count more often, but for the
rounding of the reach to an integer. So the threshold is half of a Gaussian's; but the step is an
(epsilon, delta) one, which composes less well with many others. The proof: docs/items.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from functools import lru_cache, partial
from math import floor, nextafter
from typing import Any

from dphh.engines.host import DrawOnce, Host
from dphh.errors import UsageError
from dphh.mechanisms.counts.of_found import CountsOptions, counts_event_within
from dphh.mechanisms.running import Draws, steps_of
from dphh.mechanisms.set_union.draws import bounding_parameters
from dphh.mechanisms.set_union.levels import DrawnRound, SetUnionLevel, SingleLevel
from dphh.mechanisms.terms import NOISE_TABLE_NOTE, Priced
from dphh.privacy.events import DeltaEvent, EpsilonDeltaEvent, Event
from dphh.privacy.search import least_whole
from dphh.udfs.noise.truncated import ONE_WORD, RATIO_BITS, TruncatedGeometric

THEOREM = (
    "optimal selection for users of one item (Desfontaines, Voss, Gipson & Mandayam 2022), by "
    "truncated geometric noise in exact integers: an (epsilon, delta) step; both directions "
    "(proof: docs/items.md)"
)
#: Longer tables are refused: below about epsilon 0.002 other methods find no less.
MOST_REACH = 1 << 13
#: Larger ratios do not fit a 64-bit integer.
LARGEST_EPSILON = 20.0
_EXACT = Context(prec=60)
PURPOSE = "items/single"
STEPS = "single_items", "released_words"


def price(epsilon: float, delta: float, max_items: int, counting: CountsOptions) -> Priced:
    if max_items != 1:
        raise UsageError(
            f"method: 'single' is for users who count for one item, found max_items {max_items:,}; "
            "give max_items=1, or method='auto'"
        )
    part = 1 - counting.share
    noise = selection_noise(part * epsilon, part * delta)
    level = SingleLevel(
        level=1,
        max_items=1,
        grid_bits=0,
        sigma_grid=noise.deviation,
        threshold_grid=noise.reach + 1,
        ratio=noise.ratio,
        edge=noise.edge,
    )
    found = EpsilonDeltaEvent(part * epsilon, delta_of(noise), note="optimal selection")
    events: tuple[Event, ...] = (found,)
    shares: tuple[tuple[str, float], ...] = (
        ("an item that one user alone holds, and the noise's ends", part * delta),
    )
    if counting.share:
        spare = DeltaEvent(counting.arithmetic_delta(epsilon), note=NOISE_TABLE_NOTE)
        events = (found, counts_event_within([found, spare], epsilon, delta), spare)
        shares += (
            ("counts of what is found", counting.share * delta - spare.delta),
            (NOISE_TABLE_NOTE, spare.delta),
        )
    return Priced((level,), events, shares)


def run(levels: Sequence[SetUnionLevel], host: Host, once: DrawOnce) -> Iterator[DrawnRound]:
    (level,) = levels
    yield level, once(PURPOSE, partial(_draw, host, level))


def _draw(host: Host, level: SetUnionLevel) -> Any:
    assert isinstance(level, SingleLevel)
    bounding = bounding_parameters(host, level, PURPOSE)
    host.run("single_items", reach=level.reach, **bounding)
    # noised (key, has_weight, noisy)
    passed = host.take("released_words", threshold=level.threshold_grid)
    # passed (key, noisy)
    host.drop("noised")
    return passed


def draws(levels: Sequence[SetUnionLevel]) -> Draws:
    (level,) = levels
    assert isinstance(level, SingleLevel)
    yield PURPOSE, steps_of(level, PURPOSE, *STEPS, reach=level.reach)


def ratio_below_exp(epsilon: float) -> int:
    """e^epsilon in units of 2^-RATIO_BITS, rounded down."""
    exact = _EXACT.multiply(_EXACT.exp(Decimal(epsilon)), Decimal(1 << RATIO_BITS))
    return int(_EXACT.multiply(exact, Decimal(1) - Decimal(10) ** -50))


@lru_cache(maxsize=64, typed=True)
def selection_noise(epsilon: float, delta: float) -> TruncatedGeometric:
    """The noise of the least reach for (epsilon, delta); of that reach, the least edge."""
    most_edge = floor(delta * ONE_WORD)  # exact: a product with a power of two
    if epsilon <= LARGEST_EPSILON and most_edge:
        ratio = ratio_below_exp(epsilon)

        def covers(reach: int, edge: int) -> bool:
            """Whether 0 is left with no more than its neighbours allow."""
            units = TruncatedGeometric(ratio, reach, edge).units
            return units[reach] << RATIO_BITS <= ratio * units[reach - 1]

        if covers(MOST_REACH, most_edge):
            reach = least_whole(lambda reach: covers(reach, most_edge), 0, MOST_REACH)
            edge = least_whole(lambda edge: covers(reach, edge), 0, most_edge)
            for found in (edge, most_edge):
                noise = TruncatedGeometric(ratio, reach, found)
                if noise.is_private:
                    return noise
    raise UsageError(
        f"epsilon, delta: found {epsilon:g}, {delta:g}; method 'single' has no noise for them. "
        "Give an epsilon from 0.01 to 20 and a delta above 1e-15, or method='gaussian'"
    )


def delta_of(noise: TruncatedGeometric) -> float:
    """P(noise = reach), rounded up."""
    return nextafter(noise.edge / ONE_WORD, 1.0)
