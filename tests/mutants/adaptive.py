"""Rounds whose weights follow earlier noise, and thresholds for any weights."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_ANY = "tests/privacy/test_any_weights.py"
_FOLLOWS = "tests/unit/test_following.py"
_ROUNDS = "tests/engines/test_adaptive.py"
_CHOSEN = "tests/privacy/test_chosen_union.py"
_AUTO = "tests/engines/test_auto.py"
_NEIGHBOURS = ("tests/engines/test_neighbours.py::test_rounds_whose_weights_follow_earlier_noise",)
_PLAIN = (
    "tests/engines/test_plain_sql.py"
    "::test_rounds_whose_weights_follow_one_another_are_the_plain_ones",
)
_BOOKED = (
    "tests/engines/test_drawn_as_booked.py"
    "::test_what_is_drawn_is_what_is_priced_booked_and_written",
)
_CASES = (f"{_ANY}::test_no_vector_that_looks_for_it_passes_more_often_than_delta",)
_SMALL = (f"{_ANY}::test_no_small_vector_costs_more_than_is_said",)
_NORM = (f"{_FOLLOWS}::test_a_user_gives_a_norm_of_a_unit_to_so_many_items_and_names_all",)

MUTANTS = (
    Mutant(
        "adaptive: later rounds have the threshold of equal weights",
        "        return any_weights_threshold(noise, 2**bits, max_items, delta)\n",
        "        return new_item_threshold(noise, bits, max_items, delta)\n",
        _BOOKED,
    ),
    Mutant(
        "adaptive: a round's parts leave out how fine its grid is",
        "(FIRST_PARTS * first.sigma**2 << each.bits - first.bits) // each.sigma**2",
        "FIRST_PARTS * first.sigma**2 // each.sigma**2",
        (_FOLLOWS,),
    ),
    Mutant(
        "adaptive: between rounds of words the texts of longer n-grams are cut",
        "    keeps_texts: bool = True\n",
        "    keeps_texts: bool = False\n",
        (
            "tests/engines/test_plain_sql.py::test_every_level_of_the_forecast_ladder_is_the_plain_one",
        ),
    ),
    Mutant(
        "adaptive: a heavy item's interval is taken at its beginning",
        "tail(end) + others * tail(_weight_left_for_others(unit, start, others))",
        "tail(start) + others * tail(_weight_left_for_others(unit, end, others))",
        _SMALL,
    ),
    Mutant(
        "adaptive: no light items beside the heavy one",
        "tail(end) + others * tail(_weight_left_for_others(unit, start, others))",
        "tail(end)",
        _SMALL,
    ),
    Mutant(
        "adaptive: the certificate is never asked",
        "        if any_weights_cost(noise, unit, max_items, at) <= budget\n",
        "        if any_weights_cost(noise, unit, max_items, at + unit) <= budget\n",
        (f"{_ANY}::test_what_floats_say_is_where_the_search_begins_and_no_more",),
    ),
    Mutant(
        "adaptive: past the theorem's condition something is promised",
        "    if alone > MOST_ALONE:\n",
        "    if alone > 1:\n",
        (f"{_ANY}::test_where_the_theorem_does_not_hold_nothing_is_promised",),
    ),
    Mutant(
        "adaptive: the ledger is told what equal weights would cost",
        "    if isinstance(level, WeighedLevel):\n",
        "    if False:\n",
        (f"{_ROUNDS}::test_later_rounds_thresholds_cover_any_weights",),
        within="dphh/mechanisms/set_union/rounds.py",
    ),
    Mutant(
        "adaptive: what nobody keeps has no noise, in the first round",
        "return equal_weights(max_items, grid_bits, salt, self.hashed_words, keeps_zeros=True)",
        "return equal_weights(max_items, grid_bits, salt, self.hashed_words, keeps_zeros=False)",
        _NEIGHBOURS,
    ),
    Mutant(
        "adaptive: what nobody keeps has no noise, in a later round",
        "    hashed: Callable[[Integers], Words] = of_numbers\n    keeps_zeros: bool = True\n",
        "    hashed: Callable[[Integers], Words] = of_numbers\n    keeps_zeros: bool = False\n",
        _NEIGHBOURS,
    ),
    Mutant(
        "adaptive: what nobody held before has a weight of its own",
        "        if not w.all():\n            raise",
        "        w = np.where(w == 0, 1638, w)\n        if not w.all():\n            raise",
        (f"{_FOLLOWS}::test_an_item_without_a_noised_weight_is_an_error_and_not_a_default",),
    ),
    Mutant(
        "adaptive: noise alone lets out what nobody keeps",
        "WHERE given AND noisy >= $threshold",
        "WHERE noisy >= $threshold",
        (f"{_ROUNDS}::test_what_nobody_keeps_never_leaves_by_noise_alone",),
        within="sql/set_union/released_of_round.sql",
    ),
    Mutant(
        "adaptive: noise alone lets out what nobody keeps, in Polars",
        'filter("given", pl.col("noisy") >= threshold)',
        'filter(pl.col("noisy").ge(threshold))',
        (f"{_ROUNDS}::test_what_nobody_keeps_never_leaves_by_noise_alone",),
    ),
    Mutant(
        "adaptive: a user's norm is of all that is held, not of what is kept",
        "            w[over] *= below_cut(owner, priorities, number, self.max_items)\n"
        "        return shared_out(self.unit, w, held.owner, len(held.number))\n",
        "            norm = shared_out(self.unit, w, held.owner, len(held.number))\n"
        "            return norm * 2\n"
        "        return shared_out(self.unit, w, held.owner, len(held.number))\n",
        _NORM,
    ),
    Mutant(
        "adaptive: an over-full user gives to all",
        "            w[over] *= below_cut(owner, priorities, number, self.max_items)\n",
        "",
        _NORM,
    ),
    Mutant(
        "adaptive: an over-full user keeps the least weights",
        "(WHOLE - w.take(over)).view(np.uint64)",
        "w.take(over).view(np.uint64)",
        _NORM,
    ),
    Mutant(
        "adaptive: weights follow the sums before their noise",
        "coalesce(told_before.told, 0) + CAST($parts AS BIGINT) * noised.noisy AS told",
        "coalesce(told_before.told, 0) + CAST($parts AS BIGINT)"
        " * (noised.noisy - noised.noisy % 1024) AS told",
        _PLAIN,
        within="sql/set_union/told_so_far.sql",
    ),
    Mutant(
        "adaptive: a later round forgets what the first told",
        'told=pl.col("told") + pl.col("told_before").fill_null(0)',
        'told=pl.col("told") + 0 * pl.col("told_before").fill_null(0)',
        _PLAIN,
    ),
    Mutant(
        "adaptive: all rounds draw under one name",
        'self._write_noised_round(level, following, f"{purpose}/round {level.round}")',
        'self._write_noised_round(level, following, f"{purpose}/round 1")',
        _PLAIN,
    ),
    Mutant(
        "adaptive: what a round released stays with its users",
        "                self.forget(before, rounds.keeps_texts)\n",
        "",
        _PLAIN,
        within="dphh/engines/rounds.py",
    ),
    Mutant(
        "adaptive: the later rounds run after the one in their place",
        "return [round_alone(planned)] if few",
        "return [round_alone(planned), planned[-1]] if few",
        _BOOKED,
    ),
    Mutant(
        "adaptive: rounds are draws of their own, and stored one by one",
        "    @draws\n    def union_rounds(",
        "    def union_rounds(",
        (f"{_ROUNDS}::test_what_is_stored_is_what_was_released",),
    ),
    Mutant(
        "auto: the larger price of both ways at the promised epsilon, and no mean",
        "        losses = mu * _NORMAL_CELLS + mu * mu / 2\n",
        "        losses = 0.0 * _NORMAL_CELLS\n",
        (f"{_CHOSEN}::test_no_attacker_gets_more_and_the_bound_is_close",),
    ),
    Mutant(
        "auto: the rounds are left out of the price",
        "        return replace(whole, by_share=(*union, rounds), before=parts.before)\n",
        "        return replace(whole, by_share=union, before=parts.before)\n",
        (f"{_CHOSEN}::test_no_attacker_gets_more_and_the_bound_is_close",),
    ),
    Mutant(
        "auto: the first round releases what it finds",
        "    yield first, passed.slice(0, 0)\n",
        "    yield first, passed\n",
        (f"{_AUTO}::test_common_items_choose_rounds_and_too_few_one_round",),
    ),
    Mutant(
        "auto: the first round's threshold is free",
        "(chosen, new, *counts, DeltaEvent(spare, TABLE_NOTE)),\n",
        "(chosen, *counts, DeltaEvent(spare, TABLE_NOTE)),\n",
        (f"{_CHOSEN}::test_the_price_of_auto_is_what_its_levels_cost",),
    ),
)
