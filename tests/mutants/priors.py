"""What may be public knowledge, how it is counted, and what is kept of it."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_ASKED = "tests/priors/test_asked.py"
_COUNTED = "tests/priors/test_counted.py"
_STORED = "tests/priors/test_stored.py"
_LISTED = "tests/engines/test_listed_words.py"
_KNOWN = "tests/ledger/test_known.py"

MUTANTS = (
    Mutant(
        "priors: nobody need declare them public",
        "    if not declared:\n",
        "    if declared is None:\n",
        (f"{_ASKED}::test_what_is_not_declared_public_is_refused",),
        "dphh/private_priors.py",
    ),
    Mutant(
        "priors: the ledger of a run is not asked",
        "    refuse_prior(price.prior, corpus, book)\n    _say",
        "    _say",
        (f"{_ASKED}::test_what_the_ledger_of_a_run_knows_is_refused_when_it_is_run",),
    ),
    Mutant(
        "priors: a copy of private files passes",
        "return one.overlap(other) or _have_equal_files(one.paths, other.paths)",
        "return one.overlap(other)",
        (f"{_KNOWN}::test_a_corpus_is_known_by_another_name",),
    ),
    Mutant(
        "priors: moved private files pass",
        "if any(of_files.known_to(account.id, found) for account in accounts):",
        "if any(of_files.known_to(account.id, {}) for account in accounts):",
        (f"{_KNOWN}::test_moved_files_are_known_by_their_marks",),
    ),
    Mutant(
        "priors: the run's own rows pass from memory",
        "        or _have_same_rows(prior, corpus)\n",
        "",
        (f"{_ASKED}::test_rows_in_memory_are_no_prior_of_their_own",),
    ),
    Mutant(
        "priors: two of them are one request",
        '*(() if given is None else (("prior", given.prior.digest),)),',
        '*(() if given is None else (("prior", "given"),)),',
        (f"{_ASKED}::test_the_digest_is_of_the_request",),
    ),
    Mutant(
        "priors: whatever lies in the folder is used",
        'return prior if prior.digest == found["digest"].tobytes().hex() else None',
        "return prior",
        (f"{_STORED}::test_a_file_that_was_changed_is_not_used",),
    ),
    Mutant(
        "priors: a folder that others may enter is used",
        "        and stat.S_IMODE(found.st_mode) & 0o077 == 0\n",
        "",
        (f"{_STORED}::test_a_folder_that_others_may_enter_is_neither_read_nor_written",),
    ),
    Mutant(
        "priors: links are followed",
        'os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)',
        "os.O_RDONLY",
        (f"{_STORED}::test_no_link_is_followed",),
    ),
    Mutant(
        "priors: n-grams run on over a word that is not listed",
        "words.number * (CAST($longest AS BIGINT) + 2) + words.place AS place",
        "row_number() OVER (ORDER BY words.number, words.place) AS place",
        (f"{_COUNTED}::test_every_run_of_listed_words_is_counted",),
    ),
    Mutant(
        "priors: the folder grows without end",
        "        if held > MOST_BYTES:\n",
        "        if held < 0:\n",
        (f"{_STORED}::test_what_was_used_longest_ago_goes_where_it_is_too_much",),
    ),
    Mutant(
        "priors: the lift is heeded whatever round 1 shows",
        "max(places, key=lambda place: planned(place, budget, even).finds)",
        "0",
        ("tests/forecast/test_lift.py::test_after_round_1_the_forecasts_that_hold_are_chosen",),
    ),
    Mutant(
        "priors: thresholds are those of rows that were not merged",
        "rounds.passed(_thresholds_for_tails(tails, law).reshape(shape)[merged])",
        "rounds.passed(_thresholds_for_tails(tails, law).reshape(shape)[np.arange(len(merged)) % shape[0]])",
        ("tests/forecast/test_lift.py::test_after_round_1_the_forecasts_that_hold_are_chosen",),
    ),
    Mutant(
        "priors: others have no bound",
        "    keys[other[np.isin((users << 32) | keys.take(other), pairs)]] = -1\n",
        "",
        (f"{_LISTED}::test_a_user_of_many_other_words_counts_for_so_many_of_them",),
    ),
    Mutant(
        "priors: words of the list that nobody holds are in no table",
        "SELECT\n        classes.class,\n        classes.valid - coalesce(held.grams, 0) AS grams\n",
        "SELECT\n        classes.class,\n        0 * classes.valid AS grams\n",
        (f"{_LISTED}::test_how_many_words_of_the_list_are_held_shows_nowhere",),
    ),
    Mutant(
        "priors: a domain is cut to what its intervals do not reach",
        'least = dict(price.parameters).get("min_users")',
        'least = dict(price.parameters).get("min_users", 1)',
        ("tests/priors/test_items.py::test_all_of_a_domain_is_shown_and_nothing_else",),
    ),
)
