"""The forecast ladder: what a round weighs, what it counts, and what its forecast may look at."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_ROUNDS = "tests/forecast/test_rounds.py"
_TWO = "tests/forecast/test_two_rounds.py"
_SPURIOUS = "tests/forecast/test_spurious.py"
_ABSENT = "tests/forecast/test_absent.py"
_ATTACKED = "tests/privacy/test_forecast_end_to_end.py"

MUTANTS = (
    Mutant(
        "weights of round 2 are not shared out among a user's grams",
        "return unit * g // np.maximum(norms_up(squares), 1)[holder]",
        "return unit * g // 64",
        (f"{_ROUNDS}::test_round_2_stays_within_the_norm_whatever_the_weights",),
    ),
    Mutant(
        "users tell how long their lists are on top of a whole norm",
        "return isqrt(unit * unit * (LISTS_PART - 1) // (LISTS_PART * held))",
        "return isqrt(unit * unit // held)",
        (f"{_ROUNDS}::test_round_1_stays_within_the_norm",),
    ),
    Mutant(
        "bins of grams that nobody holds are left out",
        "return FirstRound(self._by_row(self._row) + self._absent, lists)",
        "return FirstRound(self._by_row(self._row), lists)",
        (f"{_TWO}::test_round_1_counts_every_valid_gram_held_or_not",),
    ),
    Mutant(
        "the forecast looks at which grams somebody holds",
        "absent = valid.sizes - supported",
        "absent = np.where(supported > 0, valid.sizes - supported, 0)",
        (f"{_TWO}::test_round_1_counts_every_valid_gram_held_or_not",),
    ),
    Mutant(
        "the rule of signs does not see what nobody holds",
        "return self._by_row(self._row[self._second <= 0]) + self._negatives",
        "return self._by_row(self._row[self._second <= 0])",
        (f"{_TWO}::test_signs_are_of_every_valid_gram_held_or_not",),
    ),
    Mutant(
        "the rule of signs forgets the largest tail",
        "r = budget / (2 * (planned * negatives).sum() + 2 * most)",
        "r = budget / (2 * (planned * negatives).sum() + 1e-9)",
        (f"{_SPURIOUS}::test_the_rule_of_signs_keeps_the_budget",),
    ),
    Mutant(
        "spurious grams are drawn from those of negative noise too",
        "number - int(negatives[group, column]),",
        "number,",
        (f"{_ABSENT}::test_bins_signs_and_scores_are_as_of_noise_added_to_all",),
    ),
    Mutant(
        "what is held stands before what is spurious",
        "order = np.argsort(keys)\n        return cls(keys[order]",
        "order = np.arange(len(keys))\n        return cls(keys[order]",
        (f"{_TWO}::test_rows_are_ascending_and_each_once",),
    ),
    Mutant(
        "a round takes more than its share",
        "return FIRST_ROUND * self.left / (self.after + 1)",
        "return 2 * FIRST_ROUND * self.left",
        (f"{_ATTACKED}::test_all_rounds_of_all_levels_show_no_more_than_is_priced",),
    ),
    Mutant(
        "noise of the ladder is a part of what was priced",
        "return int(sigma_grid / sigma * (1 - 2**-40))",
        "return int(1.2 * sigma_grid / sigma)",
        (
            f"{_ATTACKED}::test_all_rounds_of_all_levels_show_no_more_than_is_priced",
            f"{_ROUNDS}::test_the_noise_is_no_less_than_asked_for",
        ),
    ),
)
