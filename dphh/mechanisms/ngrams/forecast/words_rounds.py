"""Level 1 of the forecast ladder without a prior: rounds of set union over words.

The later rounds' weights depend on earlier noised weights (`set_union.adaptive`). What earlier
rounds released decides how many rounds there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dphh.levels.set_union import SetUnionLevel
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.ngrams.forecast.price import ladder_budget, one_round_of_words
from dphh.mechanisms.released_rows import as_array
from dphh.mechanisms.set_union.adaptive import DrawnRound, SipsRounds
from dphh.mechanisms.set_union.rounds import MIN_FINDS_OF_ROUND_1
from dphh.price import Price


@dataclass(frozen=True)
class WordsRounds(SipsRounds):
    """The rounds of level 1 without a prior. Earlier ones decide what follows: weights, rounds."""

    #: The one round that replaces rounds 2 and 3 if round 1 found very few words.
    one_round: SetUnionLevel

    @classmethod
    def from_price(cls, price: Price) -> WordsRounds:
        max_n, max_items = price["max_n"], price["max_items"]
        counting = CountsOptions.from_options(price["counts"])
        budget = ladder_budget(price["epsilon"], price["delta"], max_n, max_items, counting)
        rounds = tuple(level for level in price.levels if isinstance(level, SetUnionLevel))
        return cls(rounds, one_round_of_words(budget, max_n, max_items))

    def remaining_rounds(
        self, ran: Sequence[DrawnRound], planned: Sequence[SetUnionLevel]
    ) -> Sequence[SetUnionLevel]:
        level, found = ran[-1]
        words = sum(released.num_rows for _, released in ran)
        if level.round == 1:
            return [self.one_round] if words < MIN_FINDS_OF_ROUND_1 else planned
        noisy = as_array(found.column("noisy"), pa.int64()).to_numpy()
        near_threshold = int((noisy < 2 * level.threshold_grid).sum())
        # If few words are new, and few of these near the threshold, few are left to find.
        few_left = words > 5 * near_threshold and words >= 2 * found.num_rows
        return [] if few_left else planned
