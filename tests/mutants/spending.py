"""What is priced, drawn, booked, written and given back; and the journal, by which a run goes
on."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_BOOKED = (
    "tests/engines/test_drawn_as_booked.py::test_what_is_drawn_is_what_is_priced_booked_and_written"
)
_ONCE = (
    "tests/engines/test_drawn_once.py"
    "::test_a_run_that_goes_on_draws_each_step_once_and_books_the_same"
)
_ADDED = "tests/engines/test_noise_added.py::test_what_comes_out_is_the_sum_and_the_noise"
_JOURNAL = "tests/unit/test_journal.py"

PRICED = (
    Mutant(
        "forecast: one round of words has 3% less noise than it pays for",
        "    bits = _grid_of_round_1(budget, max_n, max_items)[1] + len",
        "    sigma *= 0.97\n    bits = _grid_of_round_1(budget, max_n, max_items)[1] + len",
        (_BOOKED,),
    ),
    Mutant(
        "forecast: one round of words books a quarter of its share",
        'words_alone_share(price["max_n"])\n',
        'words_alone_share(price["max_n"]) / 4\n',
        (_BOOKED,),
        within="dphh/mechanisms/ngrams/forecast/words_rounds.py",
    ),
    Mutant(
        "forecast: of what words' rounds used, the largest part alone is counted",
        "            self.used + share,\n",
        "            max(self.used, share),\n",
        (_BOOKED,),
    ),
    Mutant(
        "forecast: one round of words runs in the place of each of the others",
        "return [self.rest_in_one_round()] if words < WORDS_COMMON",
        "return [self.rest_in_one_round(), *planned] if words < WORDS_COMMON",
        (_BOOKED,),
    ),
    Mutant(
        "forecast: one round of words lets more new words through than is booked",
        "delta, number = WORDS_DELTA[-1], len(WORDS_ROUNDS)",
        "delta, number = 2.0, len(WORDS_ROUNDS)",
        (_BOOKED,),
    ),
    Mutant(
        "forecast: new words of the last round are booked for nothing",
        "    new[-1] = WORDS_DELTA[-1] * budget.new_words",
        "    new[-1] = 0.0 * budget.new_words",
        (_BOOKED,),
    ),
    Mutant(
        "forecast: rounds of words have a quarter of the noise of the one before",
        "            bits + index,\n",
        "            bits + 2 * index,\n",
        (_BOOKED,),
    ),
    Mutant(
        "forecast: the ladder takes finding's noise for twice what it is",
        "        1 / above[0].total_sigma,\n",
        "        2 / above[0].total_sigma,\n",
        (_BOOKED,),
    ),
    Mutant(
        "forecast: the ladder has what counting has, too",
        "            ForecastLevel(level, budget.sigma, words[0].sigma_grid, spurious)\n",
        "            ForecastLevel(level, budget.total, words[0].sigma_grid, spurious)\n",
        (_BOOKED,),
    ),
    Mutant(
        "forecast: what a level took is not taken off for the next",
        "        run = run.after(released_grams)\n",
        "        run = replace(run.after(released_grams), left=run.left)\n",
        (_BOOKED,),
    ),
    Mutant(
        "forecast: the distance of draws from the exact noise is not charged",
        "        + (max_n if with_list else max_n - 1) * draws_delta(epsilon)\n",
        "",
        (
            "tests/unit/test_ngrams_plan.py"
            "::test_a_ladder_is_charged_for_the_distance_of_all_its_draws",
        ),
    ),
    Mutant(
        "sips: one round for two has less noise than both pay for",
        "    told = sum(Fraction(1, level.sigma_grid**2) for level in rounds)\n",
        "    told = sum(Fraction(5, 4 * level.sigma_grid**2) for level in rounds)\n",
        (_BOOKED,),
    ),
    Mutant(
        "sips: one round for two lets through what three would",
        "    delta = nextafter(float(together), 0.0)\n",
        "    delta = float(sum(new_delta(level) for level in rounds))\n",
        (
            "tests/engines/test_sips.py"
            "::test_one_round_alone_costs_no_more_than_those_it_replaces_compose_to",
        ),
    ),
    Mutant(
        "sips: the later rounds run after the one in their place",
        "            levels = [round_alone(levels)]\n",
        "            levels = [round_alone(levels), levels[-1]]\n",
        (_BOOKED,),
        within="dphh/mechanisms/set_union/levels.py",
    ),
    Mutant(
        "counts of finds: a third less noise than is priced",
        "            self.relative_sigma, keys, self.max_items, self.confidence, False, "
        "self.beginnings\n",
        "            self.relative_sigma / 1.5, keys, self.max_items, self.confidence, False, "
        "self.beginnings\n",
        (_BOOKED,),
    ),
)

ADDED = (
    Mutant(
        "Polars adds half of the noise",
        'noisy = sums["weight"] + pl.Series(noise, dtype=pl.Int64)',
        'noisy = sums["weight"] + pl.Series(noise, dtype=pl.Int64) // 2',
        (_ADDED,),
    ),
    Mutant(
        "Polars draws a level's noise at half of its sigma",
        "self.noised(histogram, level.sigma_grid, purpose, spelled)",
        "self.noised(histogram, level.sigma_grid // 2, purpose, spelled)",
        (_BOOKED, _ADDED),
    ),
    Mutant(
        "DuckDB adds half of the noise to words",
        "    weight + dphh_noise(name, $sigma, $purpose) AS noisy\n",
        "    weight + dphh_noise(name, $sigma, $purpose) // 2 AS noisy\n",
        (_ADDED,),
        within="sql/set_union/words_level.sql",
    ),
    Mutant(
        "DuckDB adds noise to grams that are held by two alone",
        "    weight + dphh_noise(CAST(key AS VARCHAR), $sigma, $purpose) AS noisy\n",
        "    weight + (weight > 1024)::BIGINT\n"
        "    * dphh_noise(CAST(key AS VARCHAR), $sigma, $purpose) AS noisy\n",
        ("tests/engines/test_noise_added.py::test_a_sum_of_one_user_gets_its_noise_as_any_other",),
        within="sql/ngrams/grams_level.sql",
    ),
    Mutant(
        "DuckDB draws a level's noise at half of its sigma",
        "                sigma=level.sigma_grid,\n                purpose=purpose,\n"
        "                **parameters,\n",
        "                sigma=level.sigma_grid // 2,\n                purpose=purpose,\n"
        "                **parameters,\n",
        (_BOOKED, _ADDED),
    ),
    Mutant(
        "counts: what bounding took goes out without noise, in Polars",
        'asked = pl.DataFrame({"key": range(weighing.keys + weighing.octaves)})',
        'asked = pl.DataFrame({"key": range(weighing.keys)})',
        (_BOOKED, _ADDED),
    ),
    Mutant(
        "counts: noise is added twice",
        "coalesce(sums.weight, 0) + dphh_noise(CAST(asked.key AS STRING), $sigma, $purpose)",
        "coalesce(sums.weight, 0) + 2 * dphh_noise(CAST(asked.key AS STRING), $sigma, $purpose)",
        (_ADDED,),
        within="sql/counts/counts_level.sql",
    ),
)

GIVEN_BACK = (
    Mutant(
        "the manifest says that a round had twice its noise",
        "first, second = (planned.total_sigma / share**0.5 for",
        "first, second = (2 * planned.total_sigma / share**0.5 for",
        (_BOOKED,),
    ),
    Mutant(
        "the manifest says that rounds had their noise by the share, and not its root",
        "first, second = (planned.total_sigma / share**0.5 for",
        "first, second = (planned.total_sigma / share for",
        (_BOOKED,),
    ),
    Mutant(
        "the manifest has the noise of the rounds exchanged",
        "first_sigma=first, second_sigma=second",
        "first_sigma=second, second_sigma=first",
        (_BOOKED,),
    ),
    Mutant(
        "levels that ran are given back",
        "            return bool(valid)\n",
        "            return not valid\n",
        (_BOOKED,),
    ),
    Mutant(
        "a level of few valid grams is given back",
        "            return bool(valid)\n",
        "            return bool(valid and valid > 20)\n",
        (_BOOKED,),
    ),
    Mutant(
        "a level that could not draw keeps its share",
        "            return bool(valid)\n",
        "            return True\n",
        (_BOOKED,),
    ),
    Mutant(
        "round 2 of a forecast is given back",
        '                GaussianEvent(second, f"round 2, level {level.level}"),\n',
        "",
        (_BOOKED,),
    ),
    Mutant(
        "what a round's threshold let through is given back",
        'DeltaEvent(new_delta(level), f"new items over the threshold, {said}")',
        'DeltaEvent(new_delta(level) / 2, f"new items over the threshold, {said}")',
        (_BOOKED,),
    ),
    Mutant(
        "rounds of set union are given back in part",
        'GaussianEvent(level.sigma, f"weighted Gaussian, {said}")',
        'GaussianEvent(1.01 * level.sigma, f"weighted Gaussian, {said}")',
        (_BOOKED,),
    ),
    Mutant(
        "counts that were drawn are given back",
        "    found = any(step.rows.num_rows for step in done)\n",
        "    found = not any(step.rows.num_rows for step in done)\n",
        (_BOOKED,),
    ),
    Mutant(
        "the ledger keeps what was reserved, whatever was drawn",
        "            if drew is not None and tuple(drew) != (booked := ",
        "            if drew is None and tuple(drew) != (booked := ",
        (_BOOKED,),
    ),
    Mutant(
        "a run may have drawn more noise if it had less delta, or the other way round",
        "    return noise <= most_noise * most and delta",
        "    return noise <= most_noise * most or delta",
        (
            "tests/ledger/test_ledger_given_back.py::test_a_run_cannot_have_drawn_more_than_it_reserved",
        ),
    ),
)

JOURNAL = (
    Mutant(
        "journal: what stands is drawn again, and thrown away",
        "            stored = self._book.level(self._hold, step)\n",
        "            drawn = as_stored(draw(*asked))\n"
        "            stored = self._book.level(self._hold, step)\n",
        (f"{_JOURNAL}::test_what_stands_is_handed_out_and_not_drawn_again", _ONCE),
    ),
    Mutant(
        "journal: a process goes by what it drew, though another was first",
        "                stored = self._book.keep_level(self._hold, step, drawn)\n",
        "                self._book.keep_level(self._hold, step, drawn)\n"
        "                stored = drawn\n",
        (f"{_JOURNAL}::test_what_another_process_stored_first_is_what_both_go_by",),
    ),
    Mutant(
        "journal: a level is handed out for another whose name begins alike",
        "WHERE run = ? AND step = ? ORDER BY number",
        "WHERE run = ? AND step LIKE ? || '%' ORDER BY step, number",
        (f"{_JOURNAL}::test_each_name_stands_for_itself_and_within_its_run",),
    ),
    Mutant(
        "journal: a level is handed out to another run",
        "WHERE run = ? AND step = ? ORDER BY number",
        "WHERE run <= ? AND step = ? ORDER BY number",
        (f"{_JOURNAL}::test_each_name_stands_for_itself_and_within_its_run",),
    ),
    Mutant(
        "journal: the second level of a ladder has the name of the first",
        'f"ngrams/forecast, level {planned.level}"',
        '"ngrams/forecast, level"',
        (_BOOKED,),
    ),
    Mutant(
        "journal: all rounds of sips have one name",
        'f"items/round {level.round}"',
        '"items/round"',
        (_BOOKED,),
        within="dphh/mechanisms/*/*",
    ),
    Mutant(
        "journal: counts are not stored, and drawn anew by whoever goes on",
        "        return self._draw_once(found) if name in DRAWING else found\n",
        '        return self._draw_once(found) if name in DRAWING - {"counts_level"} else found\n',
        (f"{_JOURNAL}::test_what_stands_is_handed_out_and_not_drawn_again", _BOOKED),
    ),
    Mutant(
        "journal: whoever goes on places the words alone",
        "range(self.placed + 1, len(ladder.rungs) + 1)",
        "range(self.placed + 1, min(self.placed + 1, len(ladder.rungs)) + 1)",
        (_ONCE,),
    ),
    Mutant(
        "journal: walkers who go on start again at the root",
        "        for step in trie.steps[self.gone :]:\n",
        "        for step in trie.steps[-1:]:\n",
        (_ONCE,),
    ),
    Mutant(
        "journal: purposes of both rounds of a level are one",
        'self._write_noised(sums, "round 2")',
        'self._write_noised(sums, "round 1")',
        (
            "tests/engines/test_rounds_by_hand.py"
            "::test_where_every_gram_is_held_both_rounds_are_what_they_say",
        ),
        within="dphh/engines/polars/forecast.py",
    ),
    Mutant(
        "journal: a level's purpose is the one below's, so that a test's noise comes again",
        'session.grams_level(level, ladder, valid, f"ngrams/level {level.level}")',
        'session.grams_level(level, ladder, valid, f"ngrams/level {max(level.level - 1, 2)}")',
        (_BOOKED,),
    ),
)

MUTANTS = (*PRICED, *ADDED, *GIVEN_BACK, *JOURNAL)
