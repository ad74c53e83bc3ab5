"""`ldp_trie`: what a user reports, what its sums are said to tell, and reports by coins."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_ENGINES = "tests/engines/test_ldp_trie.py"
_DEVICES = "tests/unit/test_ldp_device_collector.py"
_PLAN = "tests/unit/test_ldp_trie_plan.py"
_SUMS = "tests/privacy/test_sums.py"
_COINS = "tests/udfs/test_coin_reports.py"
_SIZES = "tests/privacy/test_sizes_of_reports.py"
_TWICE = f"{_ENGINES}::test_no_user_reports_a_value_twice"

MUTANTS = (
    # What a user reports
    Mutant(
        "a device repeats its prefixes where it has nothing more to say",
        "    kept = [value for _, _, value in sorted(rank)[: said.contributions]]\n",
        "    kept = [value for _, _, value in sorted(rank)[: said.contributions]]\n"
        "    kept = (kept * said.contributions)[: said.contributions]\n",
        (f"{_DEVICES}::test_no_user_reports_a_value_twice_whatever_they_hold",),
    ),
    Mutant(
        "a simulated user repeats a prefix",
        "    FROM next_prefixes\n",
        "    FROM next_prefixes, range(2)\n",
        (_TWICE,),
        within="sql/ldp_trie/ldp_choice.sql",
    ),
    Mutant(
        "one nothing for all reports of a device",
        "self.domain - self.contributions + report",
        "self.domain - self.contributions + 0 * report",
        (f"{_DEVICES}::test_no_user_reports_a_value_twice_whatever_they_hold",),
    ),
    Mutant(
        "one nothing for all reports of a simulated user",
        "$domain - $nothings + least(due.report, $nothings) - 1",
        "$domain - 1",
        (_TWICE,),
        within="sql/ldp_trie/ldp_messages.sql",
    ),
    Mutant(
        "one nothing for all reports of a simulated user, in Polars",
        "level.values + np.minimum(np.arange(level.contributions), level.nothings - 1)",
        "level.values + np.zeros(level.contributions, dtype=np.int64)",
        (_TWICE,),
    ),
    Mutant(
        "a count is drawn of those who say nothing",
        '    nothings = contributions if form == "subsets" else 0\n',
        "    nothings = contributions\n",
        (f"{_PLAN}::test_how_many_values_there_are_follows_from_the_plan_alone",),
    ),
    Mutant(
        "users of one level are asked at the next one too",
        "            first_seat=place * users_per_level,\n",
        "            first_seat=place // 2 * users_per_level,\n",
        (f"{_PLAN}::test_gboards_plan_has_the_papers_numbers",),
    ),
    Mutant(
        "the first user of the next level is asked at this one too",
        "contributions.seat <= $last_seat",
        "contributions.seat <= $last_seat + 1",
        (f"{_ENGINES}::test_nobody_is_asked_twice_and_everybody_once_if_all_are_needed",),
        within="sql/ldp_trie/ldp_choice.sql",
    ),
    # What sums tell
    Mutant(
        "losses between two points of the grid are rounded down",
        "    upper = chances * np.minimum(part, 1.0)\n",
        "    upper = 0 * chances * np.minimum(part, 1.0)\n",
        (f"{_SUMS}::test_a_grid_dominates_and_is_close",),
    ),
    Mutant(
        "losses are rounded down where a grid is made coarser",
        "        even[1 : len(odd) + 1] += odd * up\n",
        "        even[: len(odd)] += odd * up\n",
        (f"{_SUMS}::test_a_coarser_grid_dominates_the_finer",),
    ),
    Mutant(
        "what is cut off at the high end of losses costs nothing",
        "chances=kept, infinite=self.infinite + lost)",
        "chances=kept, infinite=self.infinite)",
        (f"{_SUMS}::test_what_is_cut_off_is_paid",),
    ),
    Mutant(
        "a user pays for one report of all",
        "            for replaced in (1, of.contributions)\n",
        "            for replaced in (1, 1)\n",
        (f"{_PLAN}::test_gboards_plan_has_the_papers_numbers",),
    ),
    Mutant(
        "sums of subsets are priced as sums of coins",
        '    if of.form == "subsets":\n        found = epsilon_of_subsets(',
        '    if of.form == "neither":\n        found = epsilon_of_subsets(',
        (f"{_PLAN}::test_gboards_plan_has_the_papers_numbers",),
    ),
    Mutant(
        "devices that a plan of counts asks send sets",
        "        form=level.form,\n        domain=",
        '        form="subsets",\n        domain=',
        (f"{_DEVICES}::test_devices_that_a_plan_of_counts_asks_send_what_it_is_priced_for",),
        within="dphh/mechanisms/ldp_trie/collector.py",
    ),
    Mutant(
        "fewer reports than the price is for are counted",
        "    if accepted < (level.reports if at_least is None else at_least):\n",
        "    if False:\n",
        (f"{_DEVICES}::test_fewer_reports_than_the_plan_is_priced_for_are_refused",),
    ),
    # Reports by coins
    Mutant(
        "a device prices coins as sets",
        "    tells = coin_reports.local_epsilon(mechanism, said.form)\n",
        "    tells = mechanism.epsilon\n",
        (f"{_DEVICES}::test_by_coins_a_device_prices_a_report_as_coins",),
    ),
    Mutant(
        "by coins the own value comes as often as any other",
        "            for own, coin in ((True, heads), (False, (1 << 64) - heads))\n",
        "            for own, coin in ((True, heads // 2), (False, (1 << 64) - heads // 2))\n",
        (f"{_COINS}::test_a_report_is_a_coin_for_every_value",),
    ),
    Mutant(
        "by coins a report holds as many values as any other",
        "    return own[passed], others[passed]\n",
        "    return own[passed], np.full(len(passed), mechanism.size)\n",
        (f"{_COINS}::test_a_report_is_a_coin_for_every_value",),
    ),
    Mutant(
        "by coins a value that came twice is kept once",
        "        if not len(again):\n            return reports % mechanism.domain, sizes\n",
        "        if True:\n            return reports % mechanism.domain, sizes\n",
        (f"{_COINS}::test_a_report_is_a_coin_for_every_value",),
    ),
    Mutant(
        "long reports by coins are cut off where they are not rare",
        "_RARE_WEIGHT = 1 << BITS - 160\n",
        "_RARE_WEIGHT = 1 << BITS - 60\n",
        (f"{_SIZES}::test_hardly_any_report_is_of_another_size",),
    ),
    Mutant(
        "a forged report by coins may hold all values",
        "            WHEN len(subset) < $least OR len(subset) > $most THEN 'malformed'\n",
        "            WHEN len(subset) < $least THEN 'malformed'\n",
        (f"{_DEVICES}::test_by_coins_sets_of_any_size_that_is_drawn_count",),
    ),
    Mutant(
        "what the limit of size leaves out costs nothing",
        "    return epsilon if paid <= _DELTA_SHARE_FOR_DRAWS * of.delta else math.inf\n",
        "    return epsilon\n",
        (f"{_PLAN}::test_what_is_drawn_by_coins_pays_for_its_limit_of_size",),
    ),
)
