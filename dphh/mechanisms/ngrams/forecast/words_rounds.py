"""Level 1 of the forecast ladder without a prior: rounds of set union over words.

The later rounds' weights depend on earlier noised weights (`set_union.levels`). What earlier
rounds released decides how many rounds there are.
"""

from __future__ import annotations

from collections.abc import Sequence

from dphh.mechanisms.ngrams.forecast.shares import one_round_part
from dphh.mechanisms.released_rows import integer_columns
from dphh.mechanisms.set_union.levels import SetUnionLevel
from dphh.mechanisms.set_union.rounds import (
    DrawnRound,
    NextRound,
    round_level,
    rounds_after_first,
)
from dphh.price import Price
from dphh.privacy.events import DeltaEvent, GaussianEvent
from dphh.privacy.gaussian import split_sigma


def words_rounds(price: Price) -> NextRound:
    """The rounds of level 1 without a prior. Earlier ones decide what follows: weights, rounds."""
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
