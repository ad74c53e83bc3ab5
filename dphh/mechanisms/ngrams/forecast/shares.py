"""How the levels share mu^2: by the finds that round 1 and the releases below let them expect."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

#: For each round of level 1, by DP-SIPS: its part of an even share, and of the delta of level 1's
#: thresholds. Each round has half the noise of the one before it.
ROUND_PARTS = (1 / 21, 4 / 21, 16 / 21)
WORDS_DELTA_SHARES = (0.02, 0.03, 0.95)
#: With a prior, level 1 has two rounds: the parts of the delta of the words that its list lacks.
UNLISTED_WORDS_DELTA_SHARES = (0.05, 0.95)
#: The share of the run's delta for level 1's thresholds; the Gaussian rounds have the rest. A half
#: would serve words alone best, but all lengths need little noise and only level 1 has thresholds.
NEW_WORDS_DELTA_SHARE = 0.25
#: If round 1 finds fewer words than this, one round replaces rounds 2 and 3. It gets ONE_ROUND_PART
#: of an even share, a little more than DPNE gets for half the delta.
MIN_FINDS_OF_ROUND_1 = 5
ONE_ROUND_PART = 1.05
#: The part of a level's even share that round 1 gets.
FIRST_ROUND_PART = 0.25
#: Finds per gram of the level below: at the level of the key they are expected to be this factor
#: times what they are one level below.
FIND_RATE_FACTORS = {3: 0.25, 4: 0.35}
FIND_RATE_FACTOR_ABOVE_4 = 0.65
#: The worth of a gram of a later level, where one of this level is worth 1.
LATER_WORTH = 0.3
#: With twice the budget a level is expected to find at least 2 to this power times as much.
LEAST_GAIN = 0.05
#: A share computed from few finds is uncertain. So it is averaged with the even share, which counts
#: as much as EVEN_SHARE_FINDS finds, or EVEN_SHARE_FINDS_IF_MORE finds if the computed share is
#: larger than the even share, since longer lengths have only what this one leaves.
EVEN_SHARE_FINDS = 30
EVEN_SHARE_FINDS_IF_MORE = 120


#: No round of a level above the first gets less than this part of an even share, part = 1 / levels.
#:
#: Proof. Before a level above the first, with A levels after it, at least (A + 1) part / 2 is left.
#: It is so before level 2, since level 1 takes 1.1 parts at most. If it is so before a level, then
#: even() <= most, so round 2 gets `most` or less, which leaves the A later levels A part / 2. Round
#: 1 therefore gets FIRST_ROUND_PART / 2 of a part or more. Round 2 of the last level gets the rest,
#: (1 - FIRST_ROUND_PART) / 2 of a part or more; that of another a mean of even(), which is no less,
#: and of `least` or `most`, which are .16 and .37 of a part at least.
LEAST_PART = FIRST_ROUND_PART / 2


@dataclass(frozen=True)
class Shares:
    """The share of the whole mu^2 that is left for the remaining levels, and the number of
    levels."""

    left: float
    level: int
    levels: int

    @property
    def levels_after(self) -> int:
        return self.levels - self.level

    def first_round_share(self) -> float:
        return FIRST_ROUND_PART * self.left / (self.levels_after + 1)

    def even(self) -> float:
        """Round 2's share if all remaining levels got the same."""
        return (1 - FIRST_ROUND_PART) * self.left / (self.levels_after + 1)

    def second_round_share(self, finds: float, finds_twice: float, below: int) -> float:
        """Round 2's share, from the expected finds at an even share and at twice that."""
        first, left = self.first_round_share(), self.left
        if not self.levels_after:
            return left - first
        gain = min(max(log2(max(finds_twice, 1) / max(finds, 1)), LEAST_GAIN), 1.0)
        rate, later, ahead = finds / max(below, 1), finds, 0.0
        for level in range(self.level + 1, self.levels + 1):
            rate *= FIND_RATE_FACTORS.get(level, FIND_RATE_FACTOR_ABOVE_4)
            later *= rate
            ahead += LATER_WORTH * later
        wanted = left * finds * gain / max(finds * gain + ahead, 1e-9)
        part = 1 / self.levels
        least = (part / 2) * (1 - FIRST_ROUND_PART) * min(1, 0.3 + 3 * gain)
        share = max(min(wanted, 2 * part) - first, least)
        most = left - first - self.levels_after * part / 2
        if most <= 0:
            return self.even()
        share, even = min(share, most), self.even()
        of_even = EVEN_SHARE_FINDS_IF_MORE if share > even else EVEN_SHARE_FINDS
        return (finds * share + of_even * even) / (finds + of_even)
