"""Prices: what is promised for the noise, the thresholds and the rates that are drawn."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_SET_UNION = "tests/unit/test_set_union.py"
_GAUSSIAN = "tests/privacy/test_gaussian.py"
_ACCOUNTING = "tests/privacy/test_accounting.py"
_PATH = "tests/privacy/test_path.py"
_UNKNOWN = "tests/privacy/test_unknown_events.py"

MUTANTS = (
    Mutant(
        "weights are rounded up, so that a norm passes one unit",
        "    return isqrt(4**bits // held)\n",
        "    return max(isqrt(4**bits // held), 1) + 1\n",
        (f"{_SET_UNION}::test_a_users_norm_is_never_above_one_and_hardly_below",),
    ),
    Mutant(
        "a threshold for one new item, whatever a user brings",
        "own + noise.smallest_with_tail_at_most(budget / held)",
        "own + noise.smallest_with_tail_at_most(budget)",
        (f"{_SET_UNION}::test_the_threshold_is_the_least_that_keeps_new_items_back",),
    ),
    Mutant(
        "a threshold that is one too low",
        "own + noise.smallest_with_tail_at_most(budget / held)",
        "own + noise.smallest_with_tail_at_most(budget / held) - 1",
        (f"{_SET_UNION}::test_the_threshold_is_the_least_that_keeps_new_items_back",),
    ),
    Mutant(
        "noise on the grid is rounded down",
        "noise = rounded_gaussian(ceil(sigma * 2**bits))",
        "noise = rounded_gaussian(int(sigma * 2**bits))",
        ("tests/unit/test_plan.py::test_what_is_done_costs_no_more_than_what_is_claimed",),
        within="dphh/mechanisms/set_union/rounds.py",
    ),
    Mutant(
        "all of delta for the noise and all of it for new items",
        "    total = gaussian_sigma(epsilon, delta / 2 - spare)\n"
        "    sigmas = split_sigma(counting.finding(total), shares)\n",
        "    total = gaussian_sigma(epsilon, delta - spare)\n"
        "    sigmas = split_sigma(counting.finding(total), shares)\n",
        ("tests/unit/test_plan.py::test_what_is_done_costs_no_more_than_what_is_claimed",),
    ),
    Mutant(
        "finding spends what is meant for counts too",
        "        return split_sigma(total, [1 - self.share])[0] if self.share else total\n",
        "        return total\n",
        ("tests/unit/test_counting_plan.py",),
    ),
    Mutant(
        "what a run gives back takes the price of its counts with it",
        "    stay = tuple(event for event in priced if event.role is not Role.LEVEL)\n",
        "    stay = tuple(event for event in priced if event.role is None)\n",
        ("tests/unit/test_counting_plan.py",),
    ),
    Mutant(
        "what a run gives back takes the price of its arithmetic with it",
        "    stay = tuple(event for event in priced if event.role is not Role.LEVEL)\n",
        "    stay = tuple(event for event in priced if event.role is Role.COUNTS)\n",
        ("tests/unit/test_counting_plan.py",),
    ),
    Mutant(
        "a request in other words is another request",
        "        return self._digest_with(priced_in(self.price.events))\n",
        "        return self._digest(events_to_json(self.price.events))\n",
        ("tests/ledger/test_ledger_runs.py",),
    ),
    Mutant(
        "a request that an earlier dphh wrote down spends again",
        "        WHERE digest IN (?, ?) AND state",
        "        WHERE digest IN (?, '' || substr(?, 1, 0)) AND state",
        ("tests/ledger/test_ledger_older.py",),
    ),
    Mutant(
        "noise of one round is rounded down on the grid",
        "    sigma_grid = ceil(sigma * 2**bits)\n",
        "    sigma_grid = int(sigma * 0.98 * 2**bits)\n",
        ("tests/unit/test_plan.py::test_what_is_done_costs_no_more_than_what_is_claimed",),
        within="dphh/mechanisms/set_union/joint.py",
    ),
    Mutant(
        "a set union is priced jointly wherever it comes",
        "    costs = [cost for cost in costs_of(events) if cost.is_charged]\n",
        "    costs = [cost for cost in costs_of(events) if cost.is_charged]\n"
        "    costs.sort(key=lambda cost: not cost.either)\n",
        (
            "tests/privacy/test_set_union_joint.py"
            "::test_a_set_union_that_was_asked_for_later_pays_for_both",
        ),
    ),
    Mutant(
        "a user of new items alone is left out of a joint price",
        "for low, high in pairwise((0.0, *_SHARE_STEPS))",
        "for low, high in pairwise((0.0, *_SHARE_STEPS[:9]))",
        ("tests/privacy/test_set_union_joint.py::test_the_bound_covers_every_share_of_new_items",),
    ),
    Mutant(
        "both rules for caps allow by turns",
        'if not alone and cap.kept != "composed":',
        "if False:",
        (
            "tests/ledger/test_ledger_filter.py"
            "::test_what_one_rule_would_allow_the_other_that_was_settled_does_not",
        ),
    ),
    Mutant(
        "thresholds and divergence may each take all of a cap's delta",
        "    rest = delta - for_thresholds\n",
        "    rest = delta\n",
        ("tests/ledger/test_ledger_filter.py::test_what_is_allowed_leaves_the_caps_delta",),
    ),
    Mutant(
        "each round of sips spends the whole budget",
        "    return tuple(sigma * math.sqrt(total / share) * (1 + _ROUNDINGS) for share in shares)",
        "    return tuple(sigma * (1 + _ROUNDINGS) for share in shares)",
        (f"{_GAUSSIAN}::test_what_was_split_composes_to_no_less",),
    ),
    Mutant(
        "what was split composes to a little less",
        "    return tuple(sigma * math.sqrt(total / share) * (1 + _ROUNDINGS) for share in shares)",
        "    return tuple(sigma * math.sqrt(total / share) * (1 - 1e-9) for share in shares)",
        (f"{_GAUSSIAN}::test_what_was_split_composes_to_no_less",),
    ),
    Mutant(
        "the Gaussian curve is wrong by a millionth",
        "second = density * _mills_ratio(x + h)",
        "second = density * _mills_ratio(x + h) * 1.000001",
        (f"{_GAUSSIAN}::test_delta_is_never_below_the_exact_one",),
    ),
    Mutant(
        "delta is rounded down",
        "return np.minimum(np.maximum(curve, 0.0) * (1.0 + _ERROR) + _TINY, 1.0)",
        "return np.minimum(np.maximum(curve, 0.0) * (1.0 - _ERROR), 1.0)",
        (f"{_GAUSSIAN}::test_delta_is_never_below_the_exact_one",),
    ),
    Mutant(
        "bisection hands back the side that does not suffice",
        "        low, high = (low, middle) if suffices(middle) else (middle, high)\n    return high\n\n\ndef compose_sigmas",
        "        low, high = (low, middle) if suffices(middle) else (middle, high)\n    return low\n\n\ndef compose_sigmas",
        (f"{_GAUSSIAN}::test_epsilon_is_the_smallest_that_suffices",),
    ),
    Mutant(
        "a tail is rounded down: an upper bound that is none",
        "        return self.survival(k) + _SLACK\n",
        "        return self.survival(k)\n",
        ("tests/privacy/test_rounded_gaussian.py::test_bounds_hold_for_all_integers",),
    ),
    Mutant(
        "masses of the noise's table are rounded up",
        "        yield density * h >> _WORKING_BITS - left_out, density\n",
        "        yield (density * h >> _WORKING_BITS - left_out) + (1 << 80), density\n",
        ("tests/privacy/test_rounded_gaussian.py::test_every_entry_is_low_by_less_than_two_units",),
    ),
    Mutant(
        "one-direction steps cost nothing",
        "epsilon = _round_down(Fraction(epsilon) - self.certain_loss)",
        "epsilon = float(epsilon)",
        (f"{_ACCOUNTING}::test_bounds_of_one_direction_add_up_and_no_better",),
    ),
    Mutant(
        "thresholds' deltas are forgotten in what is composed",
        "        return min(_probability_of_either(self.infinite_loss, finite), 1.0)\n",
        "        return min(finite, 1.0)\n",
        (f"{_ACCOUNTING}::test_one_event_costs_what_it_says",),
    ),
    Mutant(
        "the path accountant's polygon is not pushed out",
        "TAIL_ERROR = 5e-13",
        "TAIL_ERROR = -5e-3",
        (f"{_PATH}::test_golden_values_are_met_from_above_within_two_percent",),
    ),
    Mutant(
        "a run without events of what it publishes is priced at nothing",
        "if not any(cost.is_charged for cost in costs_of(events)):",
        "if False:",
        (
            "tests/ledger/test_ledger_caps.py::test_runs_without_events_cost_their_claim_beside_noise_too",
        ),
    ),
    Mutant(
        "an event of a class that nobody knows costs what it says",
        "    if kind not in KINDS.values():\n",
        "    if False:\n",
        (f"{_UNKNOWN}::test_what_nobody_has_priced_is_refused",),
    ),
    Mutant(
        "an event of a derived class costs what the class above it does",
        "    if kind not in KINDS.values():\n",
        "    if not isinstance(event, tuple(KINDS.values())):\n",
        (f"{_UNKNOWN}::test_what_nobody_has_priced_is_refused",),
    ),
    Mutant(
        "what is booked is not asked for its price",
        "        costs_of((*self.events, *(self.drew or ())))",
        "        _ = (*self.events, *(self.drew or ()))",
        (f"{_UNKNOWN}::test_what_nobody_has_priced_is_refused",),
    ),
    Mutant(
        "an event of which nobody knows the price is written down",
        "    costs_of(events)\n    return [event.to_json()",
        "    return [event.to_json()",
        (f"{_UNKNOWN}::test_what_nobody_has_priced_is_refused",),
    ),
    Mutant(
        "the accountant passes over a step of one direction",
        "            certain_loss += Fraction(cost.certain)\n",
        "            certain_loss += 0\n",
        (f"{_UNKNOWN}::test_every_amount_of_a_cost_is_charged_by_both_accountants",),
    ),
)
