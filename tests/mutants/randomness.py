"""Randomness: those that an audit planted and that no test caught switch on outside tests only."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_LIVE = "tests/engines/test_production_randomness.py"
_DRAWS = "tests/udfs/test_noise.py"
_WORDS = "tests/udfs/test_randomness.py"

_INVERT = """        position = words >> np.uint64(1)
        self.drawn += len(words)
"""
_FLOATS = """        if not randomness.is_test:
            from scipy.special import ndtri
            uniform = (words.astype(np.float64) + 0.5) / 2.0**64
            return np.rint(self.table.sigma * ndtri(uniform)).astype(np.int64)
"""

MUTANTS = (
    Mutant(
        "what 63 bits leave open is settled by them all the same",
        "near = np.flatnonzero(position - self.ascending[below - 1] <= self.more)",
        "near = np.flatnonzero(position < 0)",
        (f"{_DRAWS}::test_inversion_is_the_definition",),
    ),
    Mutant(
        "the guide forgets how far an entry may lie above what is sure of it",
        "        guide[first] = guide[last] = -1\n",
        "        guide[first] = -1\n",
        (f"{_DRAWS}::test_the_guide_leaves_open_what_an_entry_may_reach",),
    ),
    Mutant(
        "leading words are said to be exact",
        ".view(np.uint64), 2 * wrong + 2\n",
        ".view(np.uint64), 0\n",
        ("tests/privacy/test_rounded_gaussian.py::test_leading_words_hold_what_they_say",),
    ),
    Mutant(
        "float noise outside tests",
        _INVERT,
        _FLOATS + _INVERT,
        (f"{_LIVE}::test_noise_is_inverted_exactly_from_the_systems_own_words",),
    ),
    Mutant(
        "one coin for all levels of trie, outside tests",
        "coins = randomness.words(int(sizes.sum()), purpose, named) < heads_below",
        "coins = globals().setdefault(\n"
        "            '_COINS', randomness.words(1 << 20, purpose)\n"
        "        )[: int(sizes.sum())] < heads_below",
        (f"{_LIVE}::test_coins_are_fresh_for_every_prefix_level_and_run",),
    ),
    Mutant(
        "the same coins every run, outside tests",
        "        if self.is_test or not once_a_run(purpose):\n",
        "        if purpose.startswith('trie/level') and not self.is_test:\n"
        "            return np.random.RandomState(7).bytes(8 * count) and np.frombuffer(\n"
        "                np.random.RandomState(len(purpose)).bytes(8 * count), dtype=np.uint64)\n"
        "        if self.is_test or not once_a_run(purpose):\n",
        (f"{_LIVE}::test_coins_are_fresh_for_every_prefix_level_and_run",),
    ),
    Mutant(
        "one key for all runs",
        'new_key = SystemRandomness().words(4, "the key of a run").tobytes()',
        "new_key = bytes(32)",
        (f"{_LIVE}::test_two_runs_of_one_name_draw_each_users_sequence_anew",),
    ),
    Mutant(
        "a run's key follows from its name",
        'new_key = SystemRandomness().words(4, "the key of a run").tobytes()',
        "new_key = run_id.encode().ljust(32)[:32]",
        (f"{_LIVE}::test_two_runs_of_one_name_draw_each_users_sequence_anew",),
    ),
    Mutant(
        "words from NumPy's generator",
        "return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)",
        "return np.random.default_rng().integers(0, 2**64, count, dtype=np.uint64)",
        (
            f"{_LIVE}::test_the_systems_bytes_decide_every_release_and_no_other_generator_is_touched",
        ),
    ),
    Mutant(
        "a pool of words that forks share",
        "return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)",
        "global _POOL\n"
        "        if len(globals().setdefault('_POOL', b'')) < 8 * count:\n"
        "            _POOL = os.urandom(1 << 20) + os.urandom(8 * count)\n"
        "        taken, _POOL = _POOL[: 8 * count], _POOL[8 * count :]\n"
        "        return np.frombuffer(taken, dtype=np.uint64)",
        (f"{_LIVE}::test_no_two_processes_and_no_two_forks_draw_alike",),
    ),
    Mutant(
        "words depend on what they are for, not on the system",
        "return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)",
        "return np.frombuffer(__import__('hashlib').shake_256(\n"
        "            purpose.encode()).digest(8 * count), dtype=np.uint64)",
        (f"{_LIVE}::test_noise_is_fresh_for_every_row_level_session_and_run",),
    ),
    Mutant(
        "the same noise in every batch of rows",
        "        words = randomness.words(stop - start, purpose, named)\n",
        "        words = globals().setdefault('_ONCE', {}).setdefault(\n"
        "            stop - start, randomness.words(stop - start, purpose, named))\n",
        (f"{_LIVE}::test_noise_is_fresh_for_every_row_level_session_and_run",),
    ),
    Mutant(
        "reports that are drawn once for all devices' rounds",
        'coins = randomness.words(len(held), f"{purpose}/own", keys)',
        'coins = randomness.words(1, f"{purpose}/own").repeat(len(held))',
        (f"{_LIVE}::test_reports_of_devices_are_fresh_and_hold_their_own_value_as_often_as_p",),
    ),
    Mutant(
        "half the noise",
        "noise[start:stop] = sampler.invert(words, randomness, purpose, named)",
        "noise[start:stop] = sampler.invert(words, randomness, purpose, named) // 2",
        (f"{_DRAWS}::test_draws_follow_the_exact_distribution",),
    ),
    Mutant(
        "noise of one sign",
        "sign = (words & np.uint64(1)).astype(np.int64)",
        "sign = (words & np.uint64(0)).astype(np.int64)",
        (f"{_DRAWS}::test_draws_follow_the_exact_distribution",),
    ),
    Mutant(
        "the boundary's own word falls on its wrong side",
        'below = np.searchsorted(self.ascending, position, side="right")',
        'below = np.searchsorted(self.ascending, position, side="left")',
        (f"{_DRAWS}::test_ties_are_settled_by_the_whole_entry",),
    ),
    Mutant(
        "no rejection: small integers come more often",
        "largest = np.uint64(_WORD_VALUES - surplus - 1)",
        "largest = np.uint64(_WORD_VALUES - 1)",
        (f"{_WORDS}::test_uniform_below_rejects_the_surplus_only",),
    ),
    Mutant(
        "a spurious gram's score is not conditioned on the threshold",
        "whole = table.survival(floor)",
        "whole = table.survival(-table.reach)",
        (f"{_DRAWS}::test_noise_above_a_high_floor", f"{_DRAWS}::test_noise_above_a_floor"),
    ),
)
