"""How the levels share mu^2: by the finds that round 1 and the releases below let them expect."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

#: The share of the run's delta for level 1's thresholds; the Gaussian rounds have the rest. A half
#: would be best for words alone. But the Gaussian rounds' delta lowers the noise of all lengths,
#: and only level 1 has thresholds.
THRESHOLDS_DELTA_SHARE = 0.25
#: Without a prior, level 1 has three rounds. For each: its part of an even share of mu^2, and its
#: share of the thresholds' delta. Each has half the noise of the one before it.
WORD_ROUND_PARTS = (1 / 21, 4 / 21, 16 / 21)
WORD_ROUND_DELTA_SHARES = (0.02, 0.03, 0.95)
#: If round 1 of these finds very few words, one round replaces rounds 2 and 3. It gets this part of
#: an even share of mu^2, a little more than DPNE gets for half the delta.
ONE_ROUND_PART = 1.05
#: With a prior, level 1 has two rounds, each with a threshold for unlisted words. For each round:
#: its share of the thresholds' delta.
UNLISTED_WORDS_DELTA_SHARES = (0.05, 0.95)
#: Where a level has two rounds, the first gets this part of the level's even share of mu^2.
FIRST_OF_TWO_ROUNDS_PART = 0.25
#: How the finds per gram of the level below are expected to change: on the level of the key they
#: are this factor times those on the level below it. The last factor is for all levels above 4.
FIND_RATE_FACTORS = {3: 0.25, 4: 0.35}
FIND_RATE_FACTOR_ABOVE_4 = 0.65
#: The worth of a gram of a later level, where one of the level whose share is chosen is worth 1.
WORTH_OF_LATER_GRAM = 0.3
#: Twice the share is taken to multiply a level's finds by 2^LEAST_GAIN_EXPONENT or more.
LEAST_GAIN_EXPONENT = 0.05
#: A share computed from few finds is uncertain. So it is averaged with the even share. The computed
#: share has a weight of its number of finds; the even share has the first weight, or the second one
#: if the computed share is larger, since longer lengths have only what this one leaves.
EVEN_SHARE_WEIGHT = 30
EVEN_SHARE_WEIGHT_IF_MORE = 120


#: No round of a level above the first gets less than this part of an even share.
#:
#: Proof. A part is an even share, 1 / levels; f is FIRST_OF_TWO_ROUNDS_PART. Before a level above
#: the first, with A levels after it, at least (A + 1) / 2 parts are left. This holds before level
#: 2, since level 1 takes 1.1 parts at most. If it holds before a level, then `even` <= `most`, so
#: round 2 gets `most` or less, which leaves A / 2 parts to the later levels. Round 1 therefore gets
#: f / 2 parts or more. On the last level, round 2 gets the rest, (1 - f) / 2 parts or more. On any
#: other level it gets a mean of `even`, which is no less, and of `least` or `most`, which are .16
#: and .37 parts at least.
LEAST_ROUND_PART = FIRST_OF_TWO_ROUNDS_PART / 2


def one_round_part(max_n: int) -> float:
    """The part of an even share for the one round that replaces rounds 2 and 3 of level 1. With
    max_n = 1 it is all that round 1 left."""
    return min(ONE_ROUND_PART, max_n - WORD_ROUND_PARTS[0])


@dataclass(frozen=True)
class BudgetLeft:
    """The share of the whole mu^2 that is left for this level and all later ones."""

    left: float
    level: int
    levels: int

    @property
    def levels_after(self) -> int:
        return self.levels - self.level

    def after_level(self, spent: float) -> BudgetLeft:
        """What the next level and all later ones have, if this one spent this share."""
        return BudgetLeft(self.left - spent, self.level + 1, self.levels)

    def first_round_share(self) -> float:
        return FIRST_OF_TWO_ROUNDS_PART * self.left / (self.levels_after + 1)

    def even_second_share(self) -> float:
        """Round 2's share if this level and all later ones got the same."""
        return (1 - FIRST_OF_TWO_ROUNDS_PART) * self.left / (self.levels_after + 1)

    def second_round_share(self, finds: float, finds_at_twice: float, grams_below: int) -> float:
        """Round 2's share, from the finds that are expected with an even share and with twice
        that, and from how many grams the level below released."""
        first, left = self.first_round_share(), self.left
        if not self.levels_after:
            return left - first
        gain = min(max(log2(max(finds_at_twice, 1) / max(finds, 1)), LEAST_GAIN_EXPONENT), 1.0)
        rate, later, ahead = finds / max(grams_below, 1), finds, 0.0
        for level in range(self.level + 1, self.levels + 1):
            rate *= FIND_RATE_FACTORS.get(level, FIND_RATE_FACTOR_ABOVE_4)
            later *= rate
            ahead += WORTH_OF_LATER_GRAM * later
        wanted = left * finds * gain / max(finds * gain + ahead, 1e-9)
        part = 1 / self.levels
        least = (part / 2) * (1 - FIRST_OF_TWO_ROUNDS_PART) * min(1, 0.3 + 3 * gain)
        share = max(min(wanted, 2 * part) - first, least)
        most = left - first - self.levels_after * part / 2
        if most <= 0:
            return self.even_second_share()
        share, even = min(share, most), self.even_second_share()
        of_even = EVEN_SHARE_WEIGHT_IF_MORE if share > even else EVEN_SHARE_WEIGHT
        return (finds * share + of_even * even) / (finds + of_even)
