"""How the levels share mu^2, and a user divides a purse: by the finds that round 1 and the releases
below let them expect. These numbers decide what is found; the promise holds for any of them."""

from __future__ import annotations

from collections.abc import Sequence
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
#: Round 1 of a level gets this part of an even share of mu^2.
FIRST_OF_TWO_ROUNDS_PART = 0.25
#: The part of a level's allowed spurious grams that its first two rounds may release.
SPURIOUS_PART_OF_TWO_ROUNDS = 0.8
#: How the finds per gram of the level below are expected to change: on the level of the key they
#: are this factor times those on the level below it. The last factor is for all levels above 4.
FIND_RATE_FACTORS = {3: 0.25, 4: 0.35}
FIND_RATE_FACTOR_ABOVE_4 = 0.65
#: A gain is how often finds double where what users spend doubles: from LEAST_GAIN to 1.
LEAST_GAIN = 0.05
#: A gram of a later level is worth (gain / GAIN_OF_EQUAL_WORTH)^2 grams that this level's round 2
#: would find with twice as much, from LEAST_WORTH_OF_LATER_GRAM to 1: where twice as much finds
#: little more, nothing much is gained by keeping it either.
GAIN_OF_EQUAL_WORTH = 0.35
LEAST_WORTH_OF_LATER_GRAM = 0.1
#: A later level is worth this part of the level at hand, at least.
LEAST_WORTH_OF_LATER_LEVEL = 0.02
#: A level gets at least this part of what it would have if the purse were divided evenly over the
#: levels that the user can climb.
LEAST_OF_EVEN = 0.6
#: Where more finds more, a user keeps a part of a level's share for its late round, the more the
#: larger the share: of a share p round 2 gets 1 - KEPT_PER_GAIN gain p, LEAST_PART_OF_ROUND_2 at
#: least.
KEPT_PER_GAIN = 1.4
LEAST_PART_OF_ROUND_2 = 0.5
#: What a user spends on being counted before the late rounds, as a part of a whole mu^2.
LATE_PURSES_PART = 0.002


def one_round_part(max_n: int) -> float:
    """The part of an even share for the one round that replaces rounds 2 and 3 of level 1. With
    max_n = 1 it is all that round 1 left."""
    return min(ONE_ROUND_PART, max_n - WORD_ROUND_PARTS[0])


def gain_of(finds: float, finds_at_twice: float) -> float:
    return min(max(log2(max(finds_at_twice, 1.0) / max(finds, 1.0)), LEAST_GAIN), 1.0)


def parts_of_round_2(
    level: int, levels: int, finds: float, finds_at_twice: float, below: int
) -> list[float]:
    """The part of a purse that round 2 takes, by how many levels further up the user can climb.

    `finds` are expected if users spend what is left in equal parts on this level and all later
    ones, `finds_at_twice` if they spend twice that. `below`: the grams of the level below.
    """
    gain = gain_of(finds, finds_at_twice)
    later_gram = min(max((gain / GAIN_OF_EQUAL_WORTH) ** 2, LEAST_WORTH_OF_LATER_GRAM), 1.0)
    here = max(finds * gain, 1e-9)
    rate, later, worths = finds / max(below, 1), finds, [here]
    for longer in range(level + 1, levels + 1):
        rate *= FIND_RATE_FACTORS.get(longer, FIND_RATE_FACTOR_ABOVE_4)
        later *= rate
        worths.append(max(later_gram * later, LEAST_WORTH_OF_LATER_LEVEL * here))
    by_worth = enumerate(parts_by_climb(worths))
    parts = [max(part, LEAST_OF_EVEN / (climb + 1)) for climb, part in by_worth]
    return [part * max(1 - KEPT_PER_GAIN * gain * part, LEAST_PART_OF_ROUND_2) for part in parts]


def parts_by_climb(worths: Sequence[float]) -> list[float]:
    """The part that the first of several levels gets, by how many of the further ones a user can
    climb to. `worths`: of the level and of those above it, in order."""
    return [worths[0] / sum(worths[: climb + 1]) for climb in range(len(worths))]
