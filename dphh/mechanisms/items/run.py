"""`items`: runs the levels of the mechanism that its price chose: the rounds of a set union, two
rounds beside a prior, or counts of a domain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from dphh.engines.host import DrawOnce, Host
from dphh.mechanisms.counts.run import count_listed_items, counts_draws
from dphh.mechanisms.ngrams.forecast.words import words_with_prior
from dphh.mechanisms.ngrams.run import forecast_draws
from dphh.mechanisms.running import (
    BEFORE_LEVELS,
    GATHER,
    Draws,
    LevelDone,
    as_array,
    integer_columns,
    scored_words,
    words_of_texts,
)
from dphh.mechanisms.set_union.levels import ChoiceLevel, SetUnionLevel
from dphh.mechanisms.set_union.methods import METHODS
from dphh.price import Price


def items_levels(price: Price, host: Host, once: DrawOnce) -> Iterator[LevelDone]:
    if price.method == "domain":
        yield from count_listed_items(price["domain"], price, host, once)
        return
    host.gather("users", words_of_texts(price))
    # users (block, user_hashes, lengths, ids, words)
    if price.prior is not None:
        yield from words_with_prior(price, host, once, 1)
        return
    planned = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    most: int | None = None
    for level, passed in METHODS[price.method].run(planned, host, once):
        # passed (key, noisy), what the round released
        items = as_array(passed.column("key"), pa.string())
        (noisy,) = integer_columns(passed, "noisy")
        # The round before did not release these items: no score is above that round's threshold.
        scored = noisy if most is None else np.minimum(noisy, most)
        most = None if isinstance(level, ChoiceLevel) else level.threshold_grid
        yield LevelDone(level, scored_words(items, scored, level.grid_bits))


def items_draws(price: Price) -> Draws:
    """What `items_levels` asks."""
    if price.method == "domain":
        yield from counts_draws(price)
    elif price.prior is not None:
        yield from forecast_draws(price)
    else:
        yield BEFORE_LEVELS, GATHER
        planned = [level for level in price.levels if isinstance(level, SetUnionLevel)]
        yield from METHODS[price.method].draws(planned)
