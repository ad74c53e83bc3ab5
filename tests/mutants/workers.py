"""The Spark path: what workers are given to call, and what a session asks of them."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_WORKERS = "tests/udfs/test_spark_ladder.py"
_WORDS = f"{_WORKERS}::test_users_add_their_weight_to_each_of_their_words_once"
_GRAMS = f"{_WORKERS}::test_users_add_their_weight_to_each_valid_gram_once"
_LADDER = "udfs/spark/ladder.py"
_SPARK = "dphh/engines/spark/*.py"

MUTANTS = (
    Mutant(
        "Spark: which words are kept depends on a block's numbers",
        "            by_spelling = replace(rule, hashed=of_spellings(words).__getitem__)\n",
        "            by_spelling = replace(rule)\n",
        (f"{_WORKERS}::test_which_words_an_over_full_user_keeps_hangs_on_nobody_else",),
        within=_LADDER,
    ),
    Mutant(
        "Spark: what a round released stays with its users",
        "np.where(np.append(gone, True)[block.positions], -1, block.positions)",
        "np.where(np.append(gone & False, True)[block.positions], -1, block.positions)",
        (f"{_WORKERS}::test_what_a_round_released_is_taken_from_everyone_and_nothing_else",),
        within=_LADDER,
    ),
    Mutant(
        "Spark: a word that is taken goes with the one before it",
        "np.where(np.append(gone, True)[block.positions], -1, block.positions)",
        "np.where(np.append(gone, True)[block.positions - 1], -1, block.positions)",
        (f"{_WORKERS}::test_what_a_round_released_is_taken_from_everyone_and_nothing_else",),
        within=_LADDER,
    ),
    Mutant(
        "Spark: of a batch the first block alone is weighed",
        '            block = block_at(rows, row, "keys")\n            added = _contributions_of_block(',
        '            block = block_at(rows, 0, "keys")\n            added = _contributions_of_block(',
        (_GRAMS,),
        within=_LADDER,
    ),
    Mutant(
        "Spark: what a worker still has is lost when it ends",
        "                yield from self.sums.with_more(made)\n\n"
        "        def terminate(self) -> Iterator[pa.Table]:\n"
        "            yield from self.sums.last_sums()\n",
        "                yield from self.sums.with_more(made)\n\n"
        "        def terminate(self) -> Iterator[pa.Table]:\n"
        "            yield from ()\n",
        (_WORDS,),
        within=_LADDER,
    ),
    Mutant(
        "Spark: what a worker gives on early it gives on again",
        "        parts, self._parts, self._count = self._parts, [], 0\n",
        "        parts = self._parts\n",
        (f"{_WORKERS}::test_sums_that_leave_a_worker_early_are_not_lost",),
    ),
    Mutant(
        "Spark: workers share what they have added up",
        "        def __init__(self) -> None:\n            self.sums = Sums()\n\n",
        "        sums = Sums()\n\n",
        (f"{_WORKERS}::test_each_worker_adds_up_what_it_was_given_alone",),
        within=_LADDER,
    ),
    Mutant(
        "Spark: rows with a NULL user id are taken for a user's",
        'raise RuntimeError("dphh: NULL user")',
        "pass",
        (f"{_WORKERS}::test_texts_of_no_user_are_refused_where_they_hold_something",),
        within="udfs/spark/blocks.py",
    ),
    Mutant(
        "Spark: a user whose texts come in two batches is two users",
        "return Piece(block, words, names[0].as_py() == before)",
        "return Piece(block, words, False)",
        (f"{_WORKERS}::test_users_are_whole_however_their_texts_come",),
    ),
    Mutant(
        "Spark: a user whose texts fill a block has no more of them",
        "                *full, rest = block.in_pieces()\n",
        "                full, rest = list(block.in_pieces()), block.of_users(0, 0)\n",
        (f"{_WORKERS}::test_users_are_whole_however_their_texts_come",),
    ),
    Mutant(
        "Spark: the place ahead is the next one, whatever the pruning",
        "            yield from _positions_of_block(block, grams, ends, ahead)\n",
        "            yield from _positions_of_block(block, grams, ends, 1)\n",
        (_GRAMS,),
        within=_LADDER,
    ),
    Mutant(
        "Spark: a released word has the number of the next",
        "            grams = np.append(numbers, -1)[block.positions]\n",
        "            grams = np.append(numbers, -1)[block.positions] + 1\n",
        (_GRAMS,),
        within=_LADDER,
    ),
    Mutant(
        "Spark: a text runs on into the next",
        "            grams = np.append(numbers, -1)[block.positions]\n",
        "            grams = numbers[block.positions]\n",
        (_GRAMS,),
        within=_LADDER,
    ),
    Mutant(
        "Spark: users of a block are one",
        "    return contributions(block.user_hashes, block.lengths, keys, weigh)\n",
        "    return contributions(block.user_hashes[:1], block.lengths.sum(keepdims=True), keys, weigh)\n",
        (_WORDS, _GRAMS),
        within=_LADDER,
    ),
    Mutant(
        "Spark: users whose places matter have the names of others",
        "        placed = Block(block.user_hashes[some], lengths[some], keys)\n",
        "        placed = Block(block.user_hashes[: some.sum()], lengths[some], keys)\n",
        (f"{_WORKERS}::test_which_grams_an_over_full_user_keeps_hangs_on_nobody_else",),
        within=_LADDER,
    ),
    Mutant(
        "Spark: counts are of texts, and not of users",
        "np.diff(of_texts[np.append(0, ends)])",
        "np.diff(of_texts)",
        (f"{_WORKERS}::test_counts_are_of_whole_users_within_their_groups",),
        within="udfs/spark/counts.py",
    ),
    Mutant(
        "Spark: counts' groups are those of the texts' places",
        "given.keys(tokens, groups.flatten().to_numpy())",
        "given.keys(tokens, np.arange(len(tokens)) % given.groups)",
        (f"{_WORKERS}::test_counts_are_of_whole_users_within_their_groups",),
        within="udfs/spark/counts.py",
    ),
    Mutant(
        "Spark: what draws may be called twice for a row, or moved",
        "declared.asNondeterministic() if draws else declared)",
        "declared)",
        (f"{_WORKERS}::test_what_draws_is_called_once_a_row_and_never_moved",),
        within="udfs/spark/functions.py",
    ),
    Mutant(
        "Spark: noise takes its purpose for its key",
        "        return noise(key, sigma, purpose)\n\n    register_arrow",
        "        return noise(purpose, sigma, purpose)\n\n    register_arrow",
        (f"{_WORKERS}::test_noise_is_that_of_its_key_sigma_and_purpose",),
        within="udfs/spark/functions.py",
    ),
    Mutant(
        "Spark: coins are tossed for a voter more",
        "        return votes(key, users, numerator, theta, purpose)\n\n    register_arrow",
        "        return votes(key, one_more(users), numerator, theta, purpose)\n\n"
        "    def one_more(users: Any) -> Any:\n"
        "        return pa.array([count + 1 for count in users.to_pylist()])\n\n    register_arrow",
        (f"{_WORKERS}::test_votes_are_those_of_their_rate_and_threshold",),
        within="udfs/spark/functions.py",
    ),
    Mutant(
        "Spark: a level's noise is half of its sigma's",
        'self.execute("noised", sigma=level.sigma_grid, purpose=purpose)',
        'self.execute("noised", sigma=level.sigma_grid // 2, purpose=purpose)',
        (
            f"{_WORKERS}::test_a_level_of_words_is_asked_for_with_its_own_noise_and_threshold",
            f"{_WORKERS}::test_a_level_of_grams_is_asked_for_with_its_own_noise_and_threshold",
        ),
        within=_SPARK,
    ),
    Mutant(
        "Spark: all levels' noise has one purpose",
        'self.execute("noised", sigma=level.sigma_grid, purpose=purpose)',
        'self.execute("noised", sigma=level.sigma_grid, purpose=step)',
        (f"{_WORKERS}::test_a_level_of_words_is_asked_for_with_its_own_noise_and_threshold",),
        within=_SPARK,
    ),
    Mutant(
        "Spark: the salt is the same at every level",
        'self.randomness.words(1, f"{purpose}/salt")[0]',
        'self.randomness.words(1, "salt")[0]',
        (f"{_WORKERS}::test_a_level_of_words_is_asked_for_with_its_own_noise_and_threshold",),
        within=_SPARK,
    ),
    Mutant(
        "Spark: round 2 adds up by the unit of round 1",
        "            register_shared_contributions(self.session.spark, unit)\n",
        "            register_shared_contributions(self.session.spark, 900)\n",
        (f"{_WORKERS}::test_each_round_of_a_forecast_adds_up_by_its_own_rule",),
        within=_SPARK,
    ),
    Mutant(
        "Spark: a gram of weight 0 has no row in round 1",
        "summed(keys.take(order), weights.take(order), keeps_zeros=True)",
        "summed(keys.take(order), weights.take(order))",
        (f"{_WORKERS}::test_round_1_adds_plain_weights_and_the_sizes_of_lists",),
        within=_LADDER,
    ),
    Mutant(
        "Spark: round 2 weighs by another gram's row",
        "WeightsByGram(unit, Released(grams), g)",
        "WeightsByGram(unit, Released(grams), g[::-1])",
        (f"{_WORKERS}::test_round_2_shares_out_the_norm_by_weights",),
        within=_LADDER,
    ),
    Mutant(
        "Spark: a block is weighed by the grams of the one before too",
        "                    self.block, self.parts = named[start], []\n",
        "                    self.block = named[start]\n",
        (f"{_WORKERS}::test_a_block_whose_grams_did_not_come_fails",),
        within=_LADDER,
    ),
    Mutant(
        "Spark: a forecast's rounds draw noise of half their sigma",
        "            sigma=self.law.noise.sigma,\n            purpose=self.purpose,\n            is_test",
        "            sigma=self.law.noise.sigma // 2,\n            purpose=self.purpose,\n"
        "            is_test",
        (f"{_WORKERS}::test_each_round_of_a_forecast_adds_up_by_its_own_rule",),
        within="dphh/engines/spark/forecast.py",
    ),
    Mutant(
        "Spark: what bounding took gets no noise, for no row is asked for",
        "keys = np.arange(weighing.keys + weighing.octaves, dtype=np.int64)",
        "keys = np.arange(weighing.keys, dtype=np.int64)",
        (f"{_WORKERS}::test_counts_are_asked_for_with_their_own_noise",),
        within=_SPARK,
    ),
    Mutant(
        "Spark: a level's query adds its noise twice over",
        "    weight + dphh_noise(CAST(key AS STRING), $sigma, $purpose) AS noisy\n",
        "    weight + 2 * dphh_noise(CAST(key AS STRING), $sigma, $purpose) AS noisy\n",
        (f"{_WORKERS}::test_a_levels_query_adds_one_draw_of_noise_to_each_sum",),
        within="sql/spark/noised.sql",
    ),
    Mutant(
        "Spark: noise is a view, and drawn by whoever reads",
        'self.execute("noised", sigma=level.sigma_grid, purpose=purpose)',
        'self.look("noised", sigma=level.sigma_grid, purpose=purpose)',
        (f"{_WORKERS}::test_no_query_that_draws_is_looked_at_or_fetched",),
        within=_SPARK,
    ),
    Mutant(
        "Spark: steps are not written",
        "                    self.write(made, rows)\n",
        "                    rows.createOrReplaceTempView(made)\n",
        (f"{_WORKERS}::test_a_step_is_written_whole_and_read_anew",),
        within=_SPARK,
    ),
    Mutant(
        "Spark: steps are written, and then read as they came about",
        "        self._folder.write(name, rows).createOrReplaceTempView(table)\n",
        "        self._folder.write(name, rows)\n        rows.createOrReplaceTempView(table)\n",
        (f"{_WORKERS}::test_a_step_is_written_whole_and_read_anew",),
        within=_SPARK,
    ),
)
