"""The two rounds of the forecast ladder: what is noised, counted, compared, planned and
reported."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_HAND = "tests/engines/test_rounds_by_hand.py"
_STEP = "tests/forecast/test_step.py"
_BOOKED = "tests/engines/test_drawn_as_booked.py"
_ABSENT = "tests/forecast/test_absent.py"
_CLASSES = "tests/forecast/test_classes.py"
_LIFT = "tests/forecast/test_lift.py"
_LISTED = "tests/engines/test_listed_words.py"
_GRID = "tests/forecast/test_rounds.py"
_PLANNING = "tests/forecast/test_planning.py"
_SIGNS = "tests/forecast/test_spurious.py"
_EVERY = (f"{_HAND}::test_where_every_gram_is_held_both_rounds_are_what_they_say",)
_SOME = (f"{_HAND}::test_where_some_are_held_those_are_counted_as_they_are_and_the_others_beside",)
_ZERO = (f"{_HAND}::test_a_gram_that_comes_to_nothing_is_counted_with_those_below",)

QUERIES = (
    Mutant(
        "rounds, DuckDB: bins are those of sums without their noise",
        "    dphh_bin(noised.noisy, $sigma) AS bin\n",
        "    dphh_bin(\n"
        "        (SELECT weight FROM plain_sums WHERE plain_sums.key = noised.key), $sigma\n"
        "    ) AS bin\n",
        _EVERY,
        within="sql/ngrams/forecast_round_1.sql",
    ),
    Mutant(
        "rounds, DuckDB: list sizes go out without noise",
        "coalesce(plain_sums.weight, 0) + dphh_noise(",
        "coalesce(plain_sums.weight, 0) + 0 * dphh_noise(",
        _EVERY,
    ),
    Mutant(
        "rounds, DuckDB: a gram that nobody gave anything in round 2 has no noise",
        "coalesce(histogram.weight, 0) + dphh_noise(",
        "coalesce(histogram.weight, 0)\n"
        "    + CAST(coalesce(histogram.weight, 0) > 0 AS BIGINT) * dphh_noise(",
        (f"{_HAND}::test_grams_that_get_nothing_have_their_noise_all_the_same",),
    ),
    Mutant(
        "rounds, DuckDB: a gram that nobody gave anything in round 2 is forgotten",
        "LEFT JOIN histogram ON round_1.key = histogram.key",
        "INNER JOIN histogram ON round_1.key = histogram.key",
        (f"{_HAND}::test_grams_that_get_nothing_have_their_noise_all_the_same",),
        within="sql/ngrams/forecast_round_2.sql",
    ),
    Mutant(
        "rounds, DuckDB: both rounds' noise has one name",
        "$purpose || '/round 2'",
        "$purpose || '/round 1'",
        _EVERY,
        within="sql/ngrams/forecast_round_2.sql",
    ),
    Mutant(
        "rounds, DuckDB: users give twice the norm in round 1",
        "dphh_plain_contributions(user_hashes, keys, owners, $unit)",
        "dphh_plain_contributions(user_hashes, keys, owners, 2 * $unit)",
        _EVERY,
    ),
    Mutant(
        "rounds, DuckDB: users give a little more than the norm in round 2",
        "dphh_shared_contributions(user_hashes, keys, owners, $grams, $unit)",
        "dphh_shared_contributions(user_hashes, keys, owners, $grams, $unit + 1)",
        _EVERY,
    ),
    Mutant(
        "rounds, DuckDB: held grams are counted with those that nobody holds too",
        "classes.valid - coalesce(held.grams, 0) AS grams",
        "classes.valid AS grams",
        _EVERY,
    ),
    Mutant(
        "rounds, DuckDB: a gram at 0 is not counted as below",
        "    WHERE second <= 0 AND class >= 0\n",
        "    WHERE second < 0 AND class >= 0\n",
        _ZERO,
        within="sql/ngrams/forecast_signs.sql",
    ),
    Mutant(
        "rounds, DuckDB: grams pass by the better of both rounds",
        "WHERE round_2.second >= thresholds.threshold",
        "WHERE greatest(round_2.first, round_2.second) >= thresholds.threshold",
        _EVERY,
        within="sql/ngrams/forecast_released.sql",
    ),
    Mutant(
        "rounds, DuckDB: a gram at its threshold does not pass",
        "WHERE round_2.second >= thresholds.threshold",
        "WHERE round_2.second > thresholds.threshold",
        _EVERY,
        within="sql/ngrams/forecast_released.sql",
    ),
    Mutant(
        "rounds, DuckDB: a held gram may come out as one that nobody holds, a second chance",
        "lambda keys: held.positions(keys) >= 0",
        "lambda keys: held.positions(keys) > len(keys)",
        (*_SOME, f"{_BOOKED}::test_what_is_drawn_is_what_is_priced_booked_and_written"),
        within="dphh/engines/duckdb/*.py",
    ),
    Mutant(
        "rounds: an engine's rows are told by bin and class",
        'rows = {"class": group.ravel(), "bin": column.ravel(), name: values.ravel()}',
        'rows = {"class": group.ravel(), "bin": column.ravel(), name: values.ravel("F")}',
        _EVERY,
    ),
    Mutant(
        "rounds, Polars: bins are those of sums without their noise",
        'bins = pl.Series(self.law.of(classed["noisy"].to_numpy()))',
        'without = classed.join(plain, on="key", maintain_order="left")["weight"]\n'
        "        bins = pl.Series(self.law.of(without.to_numpy()))",
        _EVERY,
    ),
    Mutant(
        "rounds, Polars: list sizes go out without noise",
        'self._write_noised(sizes.with_columns(pl.col("weight").fill_null(0)), "list sizes")',
        'sizes.select(noisy=pl.col("weight").fill_null(0))',
        _EVERY,
    ),
    Mutant(
        "rounds, Polars: a gram that nobody gave anything in round 2 is forgotten",
        'round_1.join(histogram, on="key", how="left")',
        'round_1.join(histogram, on="key")',
        (f"{_HAND}::test_grams_that_get_nothing_have_their_noise_all_the_same",),
    ),
    Mutant(
        "rounds, Polars: users give twice the norm in round 1",
        "self._sums(PlainWeights(unit), ",
        "self._sums(PlainWeights(2 * unit), ",
        _EVERY,
        within="dphh/engines/polars/forecast.py",
    ),
    Mutant(
        "rounds, Polars: users give a little more than the norm in round 2",
        "WeightsByGram(unit, self.held",
        "WeightsByGram(unit + 1, self.held",
        _EVERY,
        within="dphh/engines/polars/forecast.py",
    ),
    Mutant(
        "rounds, Polars: held grams are counted with those that nobody holds too",
        'grams = pl.col("valid") - pl.col("held").fill_null(0)',
        'grams = pl.col("valid")',
        _EVERY,
    ),
    Mutant(
        "rounds, Polars: a gram at 0 is not counted as below",
        'in_classes.filter(pl.col("second") <= 0)',
        'in_classes.filter(pl.col("second") < 0)',
        _ZERO,
    ),
    Mutant(
        "rounds, Polars: a gram at its threshold does not pass",
        'reaches = pl.col("second") >= pl.col("threshold")',
        'reaches = pl.col("second") > pl.col("threshold")',
        _EVERY,
    ),
    Mutant(
        "rounds, Polars: noise of a smaller table than the one that is priced",
        "            self.law.noise.sigma,\n",
        "            self.law.noise.sigma // 2,\n",
        (*_EVERY, f"{_BOOKED}::test_what_is_drawn_is_what_is_priced_booked_and_written"),
    ),
    Mutant(
        "rounds: grams that users give nothing in round 1 are forgotten",
        "keeps_zeros: ClassVar[bool] = True",
        "keeps_zeros: ClassVar[bool] = False",
        (
            f"{_HAND}::test_grams_that_get_nothing_have_their_noise_all_the_same",
            "tests/engines/test_forecast_neighbours.py",
        ),
    ),
    Mutant(
        "rounds: a gram that round 1 did not name weighs nothing in round 2",
        "        if positions.min(initial=0) < 0:\n",
        "        if False:\n",
        (
            "tests/forecast/test_two_rounds.py"
            "::test_round_2_refuses_a_gram_that_round_1_did_not_name",
        ),
    ),
)

ABSENT = (
    Mutant(
        "absent: signs are even, as if noise were never 0",
        "at_most_zero = 1 - Fraction(law.noise.survival(1), ONE)",
        "at_most_zero = Fraction(1, 2)",
        (f"{_ABSENT}::test_draws_are_asked_for_with_the_noises_own_probabilities",),
    ),
    Mutant(
        "absent: half as many pass as the noise lets through",
        "Fraction(noise.survival(threshold), positive)",
        "Fraction(noise.survival(threshold), ONE)",
        (f"{_ABSENT}::test_draws_are_asked_for_with_the_noises_own_probabilities",),
    ),
    Mutant(
        "absent: passing is drawn at a threshold that is one too high",
        "Fraction(noise.survival(threshold), positive)",
        "Fraction(noise.survival(threshold + 1), positive)",
        (f"{_ABSENT}::test_draws_are_asked_for_with_the_noises_own_probabilities",),
    ),
    Mutant(
        "absent: spurious grams are drawn from what is held too",
        "lifted.proposed[~held(lifted.proposed)][",
        "lifted.proposed[",
        (f"{_ABSENT}::test_a_spurious_gram_is_valid_unheld_and_in_its_bin",),
    ),
    Mutant(
        "absent: a first weight may be of the next bin",
        "after = int(law.starts[column + 1])",
        "after = 2 * int(law.starts[column + 1])",
        (f"{_ABSENT}::test_draws_are_asked_for_with_the_noises_own_probabilities",),
    ),
    Mutant(
        "classes: the last token's mass stands for the first's",
        "_forecast_steps(masses, masses_before[pre])",
        "_forecast_steps(masses, masses_before[suf])",
        (f"{_CLASSES}::test_a_class_holds_the_pairs_of_its_forecast",),
    ),
    Mutant(
        "classes: a class has one gram too few",
        "cumulative = np.cumsum(sizes)\n",
        "cumulative = np.cumsum(sizes) - 1\n",
        (f"{_CLASSES}::test_every_valid_gram_is_in_one_class",),
    ),
    Mutant(
        "classes: what the public text has is counted in two classes",
        "return sizes + moved_in - np.bincount(self.public.classes_before, minlength=classes)",
        "return sizes + moved_in",
        (f"{_LIFT}::test_every_pair_is_in_the_class_of_its_forecast_and_its_lift",),
    ),
    Mutant(
        "classes: what the public text has may be drawn of a class that it is not in",
        'within = within + np.searchsorted(away - np.arange(len(away)), within, side="right")',
        "within = within + 0",
        (f"{_LIFT}::test_every_pair_is_in_the_class_of_its_forecast_and_its_lift",),
    ),
    Mutant(
        "list: a user counts for all other words",
        "    keys[other[np.isin((users << 32) | keys.take(other), pairs)]] = -1\n",
        "",
        (f"{_LISTED}::test_a_user_of_many_other_words_counts_for_so_many_of_them",),
    ),
    Mutant(
        "list: other words that round 1 released weigh in round 2 too",
        "beside = None if others is None else (others.weight, 0)",
        "beside = None if others is None else (others.weight, others.weight)",
        (f"{_LISTED}::test_both_rounds_are_the_plain_ones",),
    ),
    Mutant(
        "list: the threshold of round 1 is that of round 2's share of delta",
        "threshold_of(noise, of_first, part_1 * budget.new_words)",
        "threshold_of(noise, of_first, part_2 * budget.new_words)",
        (f"{_LISTED}::test_new_words_of_a_user_pass_no_more_often_than_is_priced",),
    ),
)

DRIVER = (
    Mutant(
        "step: round 1 spends the whole budget",
        "first_unit = unit_for(1 / (self.mu * first_share**0.5), self.sigma_grid)",
        "first_unit = unit_for(1 / self.mu, self.sigma_grid)",
        (f"{_STEP}::test_each_round_has_the_norm_that_its_share_pays_for_and_says_so",),
    ),
    Mutant(
        "step: round 1's share is taken for its noise, and not the square of it",
        "first_unit = unit_for(1 / (self.mu * first_share**0.5), self.sigma_grid)",
        "first_unit = unit_for(1 / (self.mu * first_share**0.4), self.sigma_grid)",
        (f"{_BOOKED}::test_what_is_drawn_is_what_is_priced_booked_and_written",),
    ),
    Mutant(
        "step: round 2 spends a third more than it says",
        "second_unit = unit_for(1 / (self.mu * second_share**0.5), self.sigma_grid)",
        "second_unit = unit_for(1 / (self.mu * (4 * second_share / 3)**0.5), self.sigma_grid)",
        (
            f"{_STEP}::test_each_round_has_the_norm_that_its_share_pays_for_and_says_so",
            f"{_BOOKED}::test_what_is_drawn_is_what_is_priced_booked_and_written",
        ),
    ),
    Mutant(
        "step: a level says that it took half of what round 2 took",
        "(first_share, second_share), plan.finds",
        "(first_share, second_share / 2), plan.finds",
        (f"{_STEP}::test_each_round_has_the_norm_that_its_share_pays_for_and_says_so",),
    ),
    Mutant(
        "step: a level says that its list sizes cost nothing",
        "(first_share, second_share), plan.finds",
        "(first_share * (1 - 1 / LISTS_PART), second_share), plan.finds",
        (
            f"{_STEP}::test_each_round_has_the_norm_that_its_share_pays_for_and_says_so",
            f"{_BOOKED}::test_what_is_drawn_is_what_is_priced_booked_and_written",
        ),
    ),
    Mutant(
        "step: later levels go by the larger of both shares alone",
        "            left=self.left - sum(released.shares),\n",
        "            left=self.left - max(released.shares),\n",
        (
            f"{_STEP}::test_the_last_level_takes_what_is_left",
            f"{_BOOKED}::test_what_is_drawn_is_what_is_priced_booked_and_written",
        ),
    ),
    Mutant(
        "step: later levels have a little less noise",
        "            mu=self.mu,\n",
        "            mu=self.mu * 1.01 ** (self.top.level - 1),\n",
        (
            f"{_STEP}::test_levels_climb_one_by_one",
            f"{_BOOKED}::test_what_is_drawn_is_what_is_priced_booked_and_written",
        ),
    ),
    Mutant(
        "step: the spurious budget is a share of all that is valid",
        "return self.spurious * self.below",
        "return self.spurious * len(self.valid)",
        (f"{_STEP}::test_thresholds_keep_the_rule_of_signs",),
    ),
    Mutant(
        "step: signs are not looked at",
        "tails_by_signs(plan.tails, negatives.ravel(), budget)",
        "tails_by_signs(plan.tails, 0 * negatives.ravel(), budget)",
        (f"{_STEP}::test_thresholds_keep_the_rule_of_signs",),
    ),
    Mutant(
        "step: tails are the planned ones",
        "tails = tails_by_signs(plan.tails, negatives.ravel(), budget)",
        "tails = plan.tails",
        (f"{_STEP}::test_thresholds_keep_the_rule_of_signs",),
    ),
    Mutant(
        "step: thresholds are reached twice as often as planned",
        "noise.smallest_with_tail_at_most(Fraction(tail))",
        "noise.smallest_with_tail_at_most(min(2 * Fraction(tail), Fraction(1, 2)))",
        (f"{_STEP}::test_thresholds_keep_the_rule_of_signs",),
    ),
    Mutant(
        "step: list sizes that noise may have made count",
        "np.where(seen.lists > 2 * self.sigma_grid, seen_lists, 0.0)",
        "np.where(seen.lists > 2, seen_lists, 0.0)",
        (f"{_STEP}::test_list_sizes_that_noise_may_have_made_are_none",),
    ),
    Mutant(
        "step: scores are in weights of round 1 for both rounds",
        "            passed.second / second_unit,\n",
        "            passed.second / first_unit,\n",
        (f"{_STEP}::test_scores_are_masses_in_plain_weights",),
    ),
    Mutant(
        "step: a level that comes back from the journal has its shares exchanged",
        "predicted, second, first = masses[:3].tolist()",
        "predicted, first, second = masses[:3].tolist()",
        (f"{_STEP}::test_what_is_journalled_of_a_level_comes_back_as_it_was",),
    ),
)

ARITHMETIC = (
    Mutant(
        "signs: twice the budget",
        "r = budget / (2 * (planned * negatives).sum() + 2 * most)",
        "r = budget / ((planned * negatives).sum() + most)",
        (f"{_SIGNS}::test_the_rule_of_signs_keeps_the_budget",),
    ),
    Mutant(
        "signs: a row's own nulls are not made up for",
        "r = budget / (2 * (planned * negatives).sum() + 2 * most)",
        "r = budget / max(2 * (planned * negatives).sum(), 1e-9)",
        (f"{_SIGNS}::test_the_rule_of_signs_keeps_the_budget",),
    ),
    Mutant(
        "plan: thresholds let twice the budget through",
        "(self.null * _tails_of_thresholds()[at(nu)]).sum() <= self.budget",
        "(self.null * _tails_of_thresholds()[at(nu)]).sum() <= 2 * self.budget",
        (f"{_PLANNING}::test_planned_tails_keep_the_budget",),
    ),
    Mutant(
        "plan: weights have no price",
        "(mass * WEIGHTS[at(price)] ** 2).sum() <= mass.sum()",
        "(mass * WEIGHTS[at(price)] ** 2).sum() <= 4 * mass.sum()",
        (f"{_PLANNING}::test_weights_have_a_mass_weighted_mean_square_of_one_at_most",),
    ),
    Mutant(
        "shares: round 2 may take round 1's part again",
        "            return left - first\n",
        "            return left\n",
        (f"{_PLANNING}::test_shares_never_pass_what_is_left_and_the_last_takes_all",),
    ),
    Mutant(
        "shares: a level may take what later ones need",
        "most = left - first - self.after * part / 2",
        "most = 2 * left",
        (f"{_PLANNING}::test_shares_never_pass_what_is_left_and_the_last_takes_all",),
    ),
    Mutant(
        "grid: list sizes weigh twice what is left for them",
        "    return isqrt(unit * unit // LISTS_PART)\n",
        "    return isqrt(4 * unit * unit // LISTS_PART)\n",
        (f"{_GRID}::test_round_1_stays_within_the_norm",),
    ),
    Mutant(
        "grid: a list of so many grams is in the bin below",
        'np.searchsorted(LIST_SIZES, held, side="right") - 1',
        'np.searchsorted(LIST_SIZES, held, side="left") - 1',
        (f"{_GRID}::test_list_sizes_have_bins",),
    ),
    Mutant(
        "grid: a noised weight on a bin's edge is in the bin below",
        'np.maximum(np.searchsorted(self.starts, noised, side="right") - 1, 0)',
        'np.maximum(np.searchsorted(self.starts, noised, side="left") - 1, 0)',
        (f"{_GRID}::test_a_bin_begins_where_it_says",),
    ),
    Mutant(
        "grid: the distance of draws is charged for few of a level's rows",
        "Fraction(2**18, 2**150)",
        "Fraction(2**8, 2**150)",
        (f"{_GRID}::test_draws_distance_is_charged_for_all_that_may_be_drawn",),
    ),
)

MUTANTS = (*QUERIES, *ABSENT, *DRIVER, *ARITHMETIC)
