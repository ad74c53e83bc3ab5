"""Counts with intervals, the forecast ladder, and the ledger's newer rules."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_COUNTS = "tests/privacy/test_counts.py"
_COUNTED = "tests/engines/test_counts.py"
_GRID = "tests/forecast/test_rounds.py"
_ROUNDS = "tests/forecast/test_two_rounds.py"
_ABSENT = "tests/forecast/test_absent.py"
_CLIMB = "tests/forecast/test_ladder.py"
_ATTACKED = "tests/privacy/test_forecast_end_to_end.py"
_CAPS = "tests/ledger/test_ledger_filter.py"

COUNTS = (
    Mutant(
        "counts: who holds too many counts whole all the same",
        "        return g - np.searchsorted(fits, held).astype(np.int64)\n",
        "        return g - 0 * np.searchsorted(fits, held).astype(np.int64)\n",
        (
            f"{_COUNTS}::test_whoever_comes_or_goes_moves_the_whole_vector_by_the_priced_norm_at_most",
        ),
    ),
    Mutant(
        "counts: what bounding took has no room in the norm",
        "fits = (self.most * g * g - self._octave_reports(g - adds) ** 2) // (adds * adds)",
        "fits = (self.most * g * g - 0 * self._octave_reports(g - adds) ** 2) // (adds * adds)",
        (
            f"{_COUNTS}::test_whoever_comes_or_goes_moves_the_whole_vector_by_the_priced_norm_at_most",
        ),
    ),
    Mutant(
        "counts: noise as if a user held one item",
        "    square = Fraction(sigma) ** 2 * max_items * 4**bits\n",
        "    square = Fraction(sigma) ** 2 * min(max_items, 1) * 4**bits\n",
        (f"{_COUNTS}::test_noise_on_the_grid_is_never_less_than_was_priced",),
    ),
    Mutant(
        "counts: an item that nobody holds gets no noise and no row",
        "LEFT JOIN sums ON asked.key = sums.key",
        "INNER JOIN sums ON asked.key = sums.key",
        (f"{_COUNTED}::test_a_corpus_that_nobody_is_in_counts_nobody",),
        within="sql/counts/counts_level.sql",
    ),
    Mutant(
        "counts: intervals forget what bounding took",
        "    high = (most + most_lost(most, lost, weighing, reach)) // g\n",
        "    high = most // g\n",
        (f"{_COUNTS}::test_each_interval_holds_the_truth_as_often_as_it_says",),
    ),
    Mutant(
        "counts: an item of two texts counts a user twice",
        "    owner, keys = distinct(owner, keys)\n"
        "    number = np.bincount(owner, minlength=len(lengths))\n",
        "    number = np.bincount(distinct(owner, keys)[0], minlength=len(lengths))\n",
        (f"{_COUNTED}::test_sums_are_those_of_looking_at_each_user",),
    ),
)

FORECAST = (
    Mutant(
        "forecast: list sizes on top of a whole norm",
        "    return isqrt(unit * unit * (LISTS_PART - 1) // (LISTS_PART * held))\n",
        "    return isqrt(unit * unit // held)\n",
        (f"{_GRID}::test_round_1_stays_within_the_norm",),
    ),
    Mutant(
        "forecast: a user of many grams weighs whole at each",
        "    return isqrt(unit * unit * (LISTS_PART - 1) // (LISTS_PART * held))\n",
        "    return isqrt(unit * unit * (LISTS_PART - 1) // (LISTS_PART * min(held, 1)))\n",
        (f"{_ROUNDS}::test_a_user_moves_round_1_by_the_unit_at_most",),
    ),
    Mutant(
        "forecast: weights of round 2 are not shared out among a user's grams",
        "    return unit * g // np.maximum(norms_up(squares), 1)[holder]\n",
        "    return unit * g // 64\n",
        (f"{_GRID}::test_round_2_stays_within_the_norm_whatever_the_weights",),
    ),
    Mutant(
        "forecast: classes that nobody holds a gram of are not looked at",
        'grams = pl.col("valid") - pl.col("held").fill_null(0)',
        'grams = (pl.col("valid") - pl.col("held")).fill_null(0)',
        ("tests/engines/test_rounds_by_hand.py",),
    ),
    Mutant(
        "forecast, DuckDB: classes that nobody holds a gram of are not looked at",
        "classes.valid - coalesce(held.grams, 0) AS grams",
        "coalesce(classes.valid - held.grams, 0) AS grams",
        ("tests/engines/test_rounds_by_hand.py",),
        within="sql/ngrams/*",
    ),
    Mutant(
        "forecast: a round has less noise than its share pays for",
        "    return int(sigma_grid / sigma * (1 - 2**-40))\n",
        "    return int(sigma_grid / sigma * 1.2)\n",
        (f"{_ATTACKED}::test_all_rounds_of_all_levels_show_no_more_than_is_priced",),
    ),
    Mutant(
        "forecast: round 2's norms are rounded down",
        "    return unit * g // np.maximum(norms_up(squares), 1)[holder]\n",
        "    return unit * g // np.maximum(norms_up(squares) - 1, 1)[holder]\n",
        (f"{_GRID}::test_round_2_stays_within_the_norm_whatever_the_weights",),
    ),
    Mutant(
        "forecast: a norm that is rounded up has less noise than was asked for",
        "    return int(sigma_grid / sigma * (1 - 2**-40))\n",
        "    return int(sigma_grid / sigma) + 1\n",
        (f"{_GRID}::test_the_noise_is_no_less_than_asked_for",),
    ),
    Mutant(
        "forecast: grams that nobody holds are in no bin",
        'pl.concat([held, absent.select(*BY_ROW, "grams")])\n',
        "held\n",
        (
            "tests/engines/test_rounds_by_hand.py"
            "::test_where_some_are_held_those_are_counted_as_they_are_and_the_others_beside",
        ),
    ),
    Mutant(
        "forecast: grams that nobody holds have no sign",
        "pl.concat([held_negatives, absent]).group_by(BY_ROW)",
        "held_negatives.group_by(BY_ROW)",
        ("tests/engines/test_engines_agree.py::test_a_seeds_release_is_the_same_on_every_engine",),
    ),
    Mutant(
        "forecast: no spurious grams",
        "passing[column] = draw_binomial_of_any_size(",
        "passing[column] = 0 * draw_binomial_of_any_size(",
        (f"{_ABSENT}::test_spurious_rows_have_the_law_of_noise_on_every_valid_gram",),
    ),
    Mutant(
        "forecast: a spurious gram's first weight is of any bin",
        "first.append(draw_between(randomness, noise.sigma, start, after, number, name))",
        "first.append(draw_between(randomness, noise.sigma, -noise.reach, after, number, name))",
        (_ABSENT,),
    ),
    Mutant(
        "forecast, Polars: held grams come before spurious ones",
        'spurious.select(*RELEASED_COLUMNS)]).sort("key")',
        "spurious.select(*RELEASED_COLUMNS)])",
        ("tests/engines/test_forecast_neighbours.py", "tests/engines/test_rounds_by_hand.py"),
    ),
    Mutant(
        "forecast, DuckDB: held grams come before spurious ones",
        "FROM passed\nORDER BY key;",
        "FROM passed;",
        ("tests/engines/test_forecast_neighbours.py", "tests/engines/test_rounds_by_hand.py"),
        within="sql/ngrams/forecast_released.sql",
    ),
    Mutant(
        "forecast: tails beyond a half",
        "MOST_TAIL = 0.5",
        "MOST_TAIL = 0.9",
        ("tests/forecast/test_spurious.py::test_no_tail_passes_a_half",),
    ),
    Mutant(
        "forecast: all of delta for the rounds, and a quarter for new words",
        "    rounds, new_words = (1 - NEW_WORDS) * delta, NEW_WORDS * delta\n",
        "    rounds, new_words = delta, NEW_WORDS * delta\n",
        ("tests/unit/test_ngrams_plan.py::test_what_is_done_costs_no_more_than_what_is_claimed",),
    ),
    Mutant(
        "forecast: what levels took is not taken off",
        "            left=self.left - sum(released.shares),\n",
        "            left=self.left - 0 * sum(released.shares),\n",
        (f"{_CLIMB}::test_what_is_spent_never_passes_what_was_priced",),
    ),
    Mutant(
        "forecast: level 1 costs the ladder nothing",
        "        1 - found.used / max_n,\n",
        "        1 - 0 * found.used / max_n,\n",
        (
            "tests/engines/test_forecast.py"
            "::test_the_manifest_says_what_the_rounds_took_and_no_more_than_was_priced",
        ),
    ),
)

BUDGET = (
    Mutant(
        "a cap's releases draw half of what they cost",
        "            divergences.append(order / 2 / cost.sigma**2)\n",
        "            divergences.append(order / 4 / cost.sigma**2)\n",
        (f"{_CAPS}::test_what_a_step_draws_is_its_divergence_rounded_up",),
    ),
    Mutant(
        "a set union draws no delta from a cap",
        "        if cost.delta is not None:\n            delta += Fraction(cost.delta)\n",
        "        if cost.delta is not None and not cost.either:\n"
        "            delta += Fraction(cost.delta)\n",
        (f"{_CAPS}::test_a_set_union_draws_as_its_noise_and_its_threshold_do",),
    ),
    Mutant(
        "a cap gives steps of one direction for nothing",
        "            divergences.append(cost.certain)\n",
        "            divergences.append(0.0)\n",
        (
            "tests/privacy/test_unknown_events.py"
            "::test_every_amount_of_a_cost_is_charged_by_both_accountants",
        ),
    ),
    Mutant(
        "whoever knows a run's name holds it",
        "WHERE run_id = ? AND token = ?",
        "WHERE run_id = ? AND (token = ? OR true)",
        ("tests/ledger/test_ledger_orders.py",),
    ),
    Mutant(
        "a table in memory that comes again under a run's id goes without a word",
        '    if corpus.kind != "path" and not (files and then):\n        told = (',
        "    if False:\n        told = (",
        (
            "tests/unit/test_run.py"
            "::test_a_release_of_a_table_in_memory_that_comes_again_says_that_it_is_the_first_ones",
        ),
    ),
)

LEDGER = (
    Mutant(
        "what a run gave back is counted as a run of the whole cap's",
        "    if price.drew is None or not drawn(price.events, most.order).within(most):\n",
        "    if price.drew is None:\n",
        (
            "tests/ledger/test_ledger_given_back.py"
            "::test_a_run_that_fits_by_being_alone_leaves_nothing_however_it_went",
        ),
    ),
    Mutant(
        "a run may draw more than it reserved",
        "    if not less_drawn(drew, booked):\n",
        "    if False:\n",
        (
            "tests/ledger/test_ledger_given_back.py"
            "::test_a_run_cannot_have_drawn_more_than_it_reserved",
        ),
    ),
    Mutant(
        "another table's release is handed out for the same request",
        "        return str(self.book.path), self.price, about, self.rows\n",
        "        return str(self.book.path), self.price, about, None\n",
        ("tests/unit/test_replay.py::test_another_frames_release_is_never_handed_out",),
    ),
    Mutant(
        "an older copy of the ledger is spent from",
        "    if all(number >= noted for number, noted in zip(now, before, strict=True)):\n",
        "    if True:\n",
        ("tests/ledger/test_ledger_replaced.py",),
    ),
    Mutant(
        "a ledger on a network is written",
        "    if kind is None or _NETWORK_KIND.fullmatch(kind) is None or",
        "    if kind is None or kind or",
        ("tests/ledger/test_ledger_replaced.py",),
    ),
    Mutant(
        "a score's interval forgets that it passed a threshold",
        "            return survival(y - x) * den > num * survival(rho - x)\n",
        "            return survival(y - x) * den > num * survival(-noise.reach)\n",
        ("tests/privacy/test_selective.py",),
    ),
)

MUTANTS = (*COUNTS, *FORECAST, *BUDGET, *LEDGER)
