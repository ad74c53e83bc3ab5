"""Set union: DPSU runs one round; DP-SIPS several, each without the items released earlier; "auto"
chooses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.levels.set_union import CHOICE_COMMON, ChoiceLevel, SetUnionLevel
from dphh.mechanisms.released_rows import LevelDone, rows, singles, whole
from dphh.mechanisms.set_union.adaptive import AdaptiveRounds
from dphh.mechanisms.set_union.rounds import SIPS_COMMON, round_alone
from dphh.price import Price
from dphh.session.protocol import Session
from dphh.session.rounds import RoundsAsOne
from dphh.udfs.kernel.reading import Reading


def set_union_levels(price: Price, session: Session, _: str) -> Iterator[LevelDone]:
    session.hold(Reading())
    planned = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    if price.method == "auto":
        drawn = _run_chosen(planned, session)
    elif price.method == "adaptive":
        drawn = _run_adaptive(planned, session)
    else:
        drawn = _run_separately(planned, session)
    most: int | None = None
    for level, passed in drawn:
        items = whole(passed.column("key"), pa.string())
        noisy = whole(passed.column("noisy"), pa.int64()).to_numpy()
        # An item that the previous round did not release scores at most that round's threshold.
        scored = noisy if most is None else np.minimum(noisy, most)
        most = None if isinstance(level, ChoiceLevel) else level.threshold_grid
        yield LevelDone(level, rows(level.level, items, singles(items), scored, level.grid_bits))


def _run_chosen(
    levels: list[SetUnionLevel], session: Session
) -> Iterator[tuple[SetUnionLevel, Any]]:
    """Run one round or several, by how many items the first round finds; it releases none."""
    first, alone, *rounds = levels
    passed = session.draw(first, "items/choice")
    yield first, passed.slice(0, 0)
    if passed.num_rows < CHOICE_COMMON:
        yield from _run_separately([alone], session)
    else:
        yield from _run_adaptive(rounds, session)


def _run_adaptive(
    levels: list[SetUnionLevel], session: Session
) -> Iterator[tuple[SetUnionLevel, Any]]:
    adaptive = AdaptiveRounds(tuple(levels))
    return adaptive.read(session.draw(RoundsAsOne(adaptive), "items"))


def _run_separately(
    levels: list[SetUnionLevel], session: Session
) -> Iterator[tuple[SetUnionLevel, Any]]:
    """Run each round as a separate draw."""
    passed: Any = None
    while levels:
        level, *levels = levels
        if passed is not None:
            session.forget(passed)
        passed = session.draw(level, f"items/round {level.round}")
        yield level, passed
        if level.round == 1 and levels and passed.num_rows < SIPS_COMMON:
            levels = [round_alone(levels)]
