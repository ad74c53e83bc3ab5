"""What bounds users, and what a level does: on DuckDB, whose queries are files, and in Polars."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_BOUND = "tests/engines/test_items_level.py"
_ADDED = "tests/engines/test_noise_added.py"
_LADDER = "tests/engines/test_ngrams.py"
_PLAIN = "tests/engines/test_plain_sql.py"
_TRIE = "tests/engines/test_trie.py"
_TRIE_AUDIT = "tests/audit/test_trie_privacy.py"
_LOCAL = "tests/engines/test_ldp_trie.py"
_SPURIOUS = "tests/unit/test_spurious.py"

MUTANTS = (
    Mutant(
        "over-full users keep one item more",
        "in_order < cuts.take(owner)",
        "in_order <= cuts.take(owner)",
        (f"{_BOUND}::test_an_over_full_user_keeps_just_as_many_items_as_allowed",),
    ),
    Mutant(
        "over-full users are not cut at all",
        "self.weights[-1] * below_cut(owner, priorities, number, max_items)",
        "self.weights[-1] + 0 * below_cut(owner, priorities, number, max_items)",
        (f"{_BOUND}::test_a_user_moves_the_histogram_by_at_most_one_unit_of_l2_norm",),
    ),
    Mutant(
        "over-full users weigh as if they held one item",
        'weight = self.weights.take(held.number, mode="clip").take(held.owner)',
        "weight = self.weights.take(np.minimum(held.number, 1)).take(held.owner)",
        (f"{_BOUND}::test_a_user_moves_the_histogram_by_at_most_one_unit_of_l2_norm",),
    ),
    Mutant(
        "items of a user are counted once a row",
        "    pairs = pairs.take(starts(pairs))\n",
        "",
        (f"{_PLAIN}::test_a_set_union_of_anything_is_the_plain_one",),
    ),
    Mutant(
        "which items are kept depends on the item alone",
        "priorities = mixed(hashed(held.keys.take(over)) ^ users.take(held.owner.take(over)))",
        "priorities = mixed(hashed(held.keys.take(over)))",
        (f"{_BOUND}::test_which_items_an_over_full_user_keeps_differs_from_user_to_user",),
    ),
    Mutant(
        "which items are kept depends on the order in which words came",
        "return self.vocabulary.hashes()[ids]",
        "return ids.astype(np.uint64)",
        (f"{_LADDER}::test_a_user_with_new_words_moves_level_one_by_at_most_one_unit",),
    ),
    Mutant(
        "the threshold lets the one below it through",
        "WHERE noisy >= $threshold",
        "WHERE noisy >= $threshold - 1",
        (f"{_ADDED}::test_what_reaches_the_threshold_passes_and_one_below_it_does_not",),
        within="sql/set_union/released.sql",
    ),
    Mutant(
        "the threshold lets the word below it through",
        "WHERE noisy >= $threshold",
        "WHERE noisy >= $threshold - 1",
        (f"{_ADDED}::test_what_reaches_the_threshold_passes_and_one_below_it_does_not",),
        within="sql/set_union/released_words.sql",
    ),
    Mutant(
        "the threshold lets the one below it through, in Polars",
        'filter(pl.col("noisy") >= threshold)',
        'filter(pl.col("noisy") >= threshold - 1)',
        (f"{_ADDED}::test_what_reaches_the_threshold_passes_and_one_below_it_does_not",),
    ),
    Mutant(
        "noise is no function of side effects: one draw for equal rows",
        "        side_effects=True,  # or DuckDB would draw once for equal arguments\n",
        "        side_effects=False,\n",
        ("tests/udfs/test_noise.py::test_duckdb_draws_once_a_row",),
    ),
    Mutant(
        "sips: what a round released stays with its users",
        "released = of_words(self._numbers_of_words, held) >= 0",
        "released = of_words(self._numbers_of_words, held) >= len(held)",
        (f"{_PLAIN}::test_each_round_of_sips_is_the_plain_one",),
    ),
    Mutant(
        "rows come in the order in which an engine found them",
        '    ordered = plain.sort_by([(name, "ascending") for name in plain.schema.names])\n',
        "    ordered = plain\n",
        (
            "tests/unit/test_journal.py"
            "::test_the_same_rows_are_stored_alike_however_an_engine_gave_them",
        ),
    ),
    Mutant(
        "the release keeps the order of its levels' rows",
        '    ("level", "ascending"),\n    ("score", "descending"),\n    ("users", "descending"),\n'
        '    ("item", "ascending"),\n    ("group", "ascending"),\n',
        '    ("level", "ascending"),\n',
        ("tests/unit/test_run.py::test_rows_come_by_score_and_not_as_they_arrived",),
    ),
    # The ladder
    Mutant(
        "no spurious grams",
        '    number = draw_binomial(randomness, absent, tail, f"{purpose}/spurious number")\n',
        "    number = 0\n",
        (f"{_LADDER}::test_spurious_grams_look_like_the_others",),
    ),
    Mutant(
        "spurious grams are drawn from what is held too",
        "    ANTI JOIN noised ON lifted.key = noised.key\n",
        "",
        (f"{_LADDER}::test_spurious_grams_look_like_the_others",),
        within="sql/ngrams/*.sql",
    ),
    Mutant(
        "spurious grams as many as of all valid ones",
        "absent = len(valid) - held",
        "absent = len(valid)",
        (f"{_SPURIOUS}::test_their_number_is_binomial",),
    ),
    Mutant(
        "spurious grams' scores lie at the threshold",
        'noisy = draw_above(randomness, sigma, threshold, number, f"{purpose}/spurious scores")',
        "noisy = np.full(number, threshold, dtype=np.int64)",
        (f"{_SPURIOUS}::test_their_scores_are_the_noise_given_that_it_passed",),
    ),
    Mutant(
        "spurious grams are not uniform: the first overlaps come more often",
        "    return LiftedGrams(valid.keys(chosen), noisy)\n",
        "    return LiftedGrams(valid.keys(np.sort(chosen)), noisy)\n",
        (f"{_SPURIOUS}::test_they_are_uniform_over_what_is_valid_and_not_held",),
        within="dphh/session/ladder/spurious.py",
    ),
    Mutant(
        "candidates across a gap",
        "        matter[start + 1 : start + 1 + len(right)] |= begins\n",
        "",
        (f"{_PLAIN}::test_every_level_of_dpne_is_the_plain_one",),
    ),
    Mutant(
        "a gram whose hash is a released one's is taken for it",
        "hit = self._held.take(there) == keys",
        "hit = there < self._none",
        ("tests/unit/test_positions.py::test_a_key_is_found_at_its_place_and_no_other_is",),
    ),
    # Tries
    Mutant(
        "a vote too few is enough",
        "WHERE votes >= $theta",
        "WHERE votes >= $theta - 1",
        (f"{_TRIE_AUDIT}::test_a_prefix_grows_as_often_as_the_binomial_tail_says",),
        within="sql/trie/grown.sql",
    ),
    Mutant(
        "a vote too few is enough, in Polars",
        'votes.filter(pl.col("votes") >= theta)',
        'votes.filter(pl.col("votes") >= theta - 1)',
        (f"{_TRIE_AUDIT}::test_a_prefix_grows_as_often_as_the_binomial_tail_says",),
    ),
    Mutant(
        "coins fall on heads at twice the rate",
        "    heads_below = np.uint64(numerator)\n",
        "    heads_below = np.uint64(min(2 * numerator, (1 << 64) - 1))\n",
        ("tests/udfs/test_votes.py::test_votes_are_binomial",),
    ),
    Mutant(
        "no coins where theta is likely",
        "_NEVER = -500 * log(2.0)",
        "_NEVER = -5 * log(2.0)",
        (
            "tests/udfs/test_votes.py::test_theta_is_reached_as_often_as_the_binomial_tail_says",
            "tests/udfs/test_votes.py::test_surely_enough_is_as_sure_as_it_says",
        ),
    ),
    Mutant(
        "a user of many rows votes with each",
        "words = self.randomness.words(users.height, ONE_SEQUENCE, names)\n",
        "words = self.randomness.words(users.height, ONE_SEQUENCE, names) * 0\n",
        (
            "tests/engines/test_one_sequence.py"
            "::test_a_sequence_is_drawn_in_proportion_to_its_local_frequency",
        ),
    ),
    Mutant(
        "users without a sequence are not drawn into a batch",
        "idle=self._idle_users(level.users)",
        "idle=0 * self._idle_users(level.users)",
        (f"{_TRIE}::test_users_who_hold_nothing_are_drawn_like_all_others",),
        within="dphh/engines/duckdb/trie.py",
    ),
    Mutant(
        "the batch is one too large",
        "    LIMIT $batch\n",
        "    LIMIT $batch + 1\n",
        (f"{_TRIE}::test_just_so_many_different_users_vote_and_anew_at_each_level",),
        within="sql/trie/trie_batch_level.sql",
    ),
    Mutant(
        "a report's own value comes as often as any other",
        "    own = coins < np.uint64(mechanism.numerator)\n",
        "    own = coins < np.uint64(mechanism.numerator // 2)\n",
        (
            "tests/udfs/test_subsets.py::test_reports_are_uniform_beside_the_own_value",
            "tests/engines/test_production_randomness.py"
            "::test_reports_of_devices_are_fresh_and_hold_their_own_value_as_often_as_p",
        ),
    ),
    Mutant(
        "the own value stands first in its report",
        "    reports.sort(axis=1)\n    attempt = 1",
        "    attempt = 1",
        ("tests/udfs/test_subsets.py::test_the_own_value_has_no_place_of_its_own",),
    ),
    Mutant(
        "a device answers a broadcast that asks for more than it allows",
        "    if not tells <= local_epsilon:  # no number is not enough either\n",
        "    if tells > 2 * local_epsilon:\n",
        (
            "tests/unit/test_ldp_device_collector.py::test_a_device_refuses_to_tell_more_than_it_allows",
        ),
    ),
)
