"""The ledger, runs that go on, what errors tell, and the gateway's guard."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_LEDGER = "tests/ledger/test_ledger"
_MOVED = f"{_LEDGER}_moved.py"
_LOGS = "tests/engines/test_lake_logs.py"
_RUN = "tests/unit/test_run.py"
_RESUME = "tests/engines/test_resume.py"
_GUARD = "tests/gateway/test_guard.py"

MUTANTS = (
    Mutant(
        "two draws of a run may have one name",
        "self._drawn.add(step)",
        "self._drawn.discard(step)",
        ("tests/unit/test_journal.py::test_no_two_draws_of_a_run_have_one_name",),
    ),
    Mutant(
        "a run that fails costs nothing",
        '            run = records.sequence_in_state(records.held(con, hold), "cancel", "reserved")\n',
        '            con.execute("DROP TRIGGER states_move_forward")\n'
        '            run = int(records.held(con, hold)["sequence"])\n',
        (f"{_LEDGER}_runs.py::test_a_run_that_began_stays_spent",),
    ),
    Mutant(
        "one who asked again gives back what another holds",
        "    return bool(con.execute(query, (run,)).fetchone()[0] == 0)\n",
        "    return True\n",
        ("tests/ledger/test_ledger_orders.py",),
    ),
    Mutant(
        "the file lets a running run go back",
        "OR OLD.state = 'running' AND NEW.state = 'settled')",
        "OR OLD.state = 'running' AND NEW.state IN ('settled', 'cancelled'))",
        (f"{_LEDGER}_runs.py::test_the_file_itself_refuses_to_take_a_price_back",),
    ),
    Mutant(
        "the ledger forgets the last run",
        "return self.price is not None and fits([*self.prices, self.price], self.cap)",
        "return self.price is not None and fits([*self.prices[1:], self.price], self.cap)",
        (
            f"{_LEDGER}_caps.py::test_a_near_miss_in_epsilon",
            f"{_RUN}::test_a_cap_is_kept_and_a_refusal_spends_nothing",
        ),
    ),
    Mutant(
        "a cap may be passed by a little",
        "    return _composition_of(prices).delta(cap.epsilon) <= cap.delta\n",
        "    return _composition_of(prices).delta(cap.epsilon) <= cap.delta * 1.01\n",
        (f"{_LEDGER}_caps.py::test_what_is_left_is_granted_and_no_more",),
    ),
    Mutant(
        "a power cut takes a commit back",
        'SYNCHRONOUS = "EXTRA"\n',
        'SYNCHRONOUS = "NORMAL"\n',
        (f"{_LEDGER}_file.py::test_a_commit_waits_for_the_disk",),
    ),
    Mutant(
        "a run is charged to the first of its periods alone",
        "for start, following in zip(starts, [*starts[1:], last + 1], strict=True):",
        "for start, following in [(first, last + 1)]:",
        (f"{_LEDGER}_periods.py::test_a_run_over_several_periods_is_charged_to_each_of_them",),
    ),
    Mutant(
        "a run over several periods costs a person one unit",
        "    if price.of_a_person == 1:\n",
        "    if True:\n",
        (f"{_LEDGER}_periods.py::test_a_run_over_several_periods_costs_a_person_as_many_units",),
    ),
    Mutant(
        "runs from before a corpus was named are charged to their own periods",
        "return theirs.reads if theirs.unit == ours.unit else {}",
        "return theirs.reads",
        (f"{_LEDGER}_periods.py::test_runs_from_before_it_was_named_count_in_all_periods",),
    ),
    Mutant(
        "runs that count users by another column pay as if by this one",
        "        same_user = account.source.unit == request.source.unit\n",
        "        same_user = True\n",
        ("tests/ledger/test_ledger_sources.py::test_another_user_column_is_refused",),
    ),
    Mutant(
        "a used run id takes another request",
        '    if found["digest"] not in request.digest_now_and_before:\n',
        "    if False:\n",
        (f"{_LEDGER}_runs.py::test_another_request_with_a_used_id_is_a_mistake",),
    ),
    Mutant(
        "a level that stands is drawn again",
        "            if (standing := unfinished.level(con, run, step)) is None:\n",
        "            standing = None\n            if unfinished.level(con, run, step) is None:\n",
        (f"{_LEDGER}_runs.py::test_a_level_stands_as_it_was_first_stored",),
    ),
    Mutant(
        "a run may be tried for ever",
        "    if attempts >= MOST_ATTEMPTS:\n",
        "    if attempts >= 10**9:\n",
        (f"{_LEDGER}_runs.py::test_attempts_at_a_run_are_numbered_and_few",),
    ),
    Mutant(
        "a run goes on over files that changed",
        "        if began.get(what) != setting.get(what):\n",
        '        if what != "files" and began.get(what) != setting.get(what):\n',
        (f"{_RESUME}::test_a_changed_corpus_cannot_go_on",),
    ),
    Mutant(
        "a settled run's key stays in the ledger",
        '    con.execute("DELETE FROM unfinished WHERE run = ?", (run,))\n',
        "",
        (f"{_LEDGER}_runs.py::test_a_settled_run_leaves_neither_key_nor_levels_in_the_file",),
    ),
    Mutant(
        "an analyst's plan tells what its owner's accounts have",
        '    return plan_table([*price_sections(plan.price, plan.corpus), ("ledger", told)])\n',
        "    from dphh.report.terminal import plan_sections\n"
        '    both = [*plan_sections(plan.price, plan.corpus, book), ("ledger", told)]\n'
        "    return plan_table(both)\n",
        ("tests/gateway/test_job.py::test_a_plan_tells_an_analyst_of_their_share_alone",),
    ),
    Mutant(
        "an analyst spends past their share",
        "    check_share(con, analyst, named, request)\n",
        "",
        ("tests/ledger/test_ledger_shares.py::test_a_share_is_spent_and_then_refuses",),
    ),
    Mutant(
        "a seeded release does not say so",
        'return "a test\'s seed: this release is NOT private"',
        'return "operating system"',
        (f"{_RUN}::test_a_seeded_run_says_that_it_is_not_private",),
    ),
    Mutant(
        "a seeded release is taken for one that keeps its promise",
        '        "is_test": randomness.is_test,\n',
        '        "is_test": False,\n',
        (f"{_RUN}::test_a_seeded_run_says_that_it_is_not_private",),
    ),
    Mutant(
        "progress tells how many items there are",
        'say(f"level {step.level.level}: {step.rows.num_rows:,} released")',
        'say(f"level {step.level.level}: {step.rows.num_rows:,} released of '
        "{session.con.execute('SELECT count(*) FROM held').fetchone()[0]}\")",
        (f"{_RUN}::test_progress_tells_what_is_released_and_nothing_else",),
    ),
    Mutant(
        "errors keep the engine's own behind them",
        "        told.__cause__ = told.__context__ = None\n",
        "",
        (
            "tests/unit/test_errors.py::test_what_fails_in_memory_quotes_nothing",
            "tests/unit/test_errors.py::test_an_error_comes_without_those_behind_it_and_without_its_frames",
        ),
    ),
    Mutant(
        "errors keep the frames they came through",
        "            raise told.with_traceback(None)\n",
        "            raise told\n",
        (
            "tests/unit/test_errors.py::test_an_error_comes_without_those_behind_it_and_without_its_frames",
        ),
    ),
    Mutant(
        "a folder of private rows is for all to read",
        "        _restrict_to_owner(made)\n",
        "        os.chmod(made, 0o755)\n",
        ("tests/unit/test_private_folder.py::test_it_is_for_its_user_alone_and_goes",),
    ),
    Mutant(
        "living processes' folders are swept",
        "        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    except OSError:\n        os.close(lock)\n        return None\n    return lock",
        "        pass\n    except OSError:\n        os.close(lock)\n        return None\n    return lock",
        (
            "tests/unit/test_private_folder.py"
            "::test_what_a_killed_process_left_is_swept_and_what_a_living_one_has_is_not",
        ),
    ),
    Mutant(
        "a signal ends the process at once",
        "        signal.signal(number, _raise_stopped)\n",
        "        signal.signal(number, signal.SIG_DFL)\n",
        (
            "tests/unit/test_stopping.py"
            "::test_a_run_that_is_stopped_leaves_no_row_and_says_what_is_spent",
        ),
    ),
    Mutant(
        "a device takes any coin",
        '    if not told <= epsilon:  # no number is not enough either\n        raise UsageError(\n            "ballot: its coin',
        '    if False:\n        raise UsageError(\n            "ballot: its coin',
        (
            "tests/engines/test_federated.py::test_a_device_that_was_told_nothing_refuses_a_sure_coin",
        ),
    ),
    Mutant(
        "an engine's own message is passed on",
        '                f"{self.engine} failed in the step {step!r} with {type(problem).__name__}; its "\n',
        '                f"{self.engine} failed in the step {step!r} with {problem}; its "\n',
        ("tests/unit/test_errors.py::test_an_engines_own_message_stops_at_its_edge",),
    ),
    Mutant(
        "the guard looks at no table's name",
        'elif kind == "BASE_TABLE" and node["table_name"].lower() not in scope:',
        'elif kind == "BASE_TABLE" and not node["table_name"]:',
        (f"{_GUARD}::test_all_else_is_refused",),
        older=True,
    ),
    Mutant(
        "the guard takes every function",
        '    if name not in allowed or node["schema"] not in ("", "main") or node["catalog"]:\n',
        '    if node["schema"] not in ("", "main") or node["catalog"]:\n',
        (f"{_GUARD}::test_all_else_is_refused",),
        older=True,
    ),
    Mutant(
        "the guard runs the text instead of the tree",
        "        written = self._canonical_statement(statement)\n",
        "        self._written(statement)\n        written = statement\n",
        (f"{_GUARD}::test_what_runs_is_written_from_the_tree_not_the_text",),
        older=True,
    ),
    Mutant(
        "data that were moved have a fresh cap",
        "        if (moved := marks.known_to(row.id, of_files or {})) is not None:\n",
        "        if (moved := None) is not None:\n",
        (f"{_MOVED}::test_data_that_were_moved_pay_on_the_account_that_they_had",),
    ),
    Mutant(
        "a mark tells contents by themselves",
        'told = blake2b(b"%d %d " % (size, changed), key=key, digest_size=BYTES_OF_MARK)',
        'told = blake2b(b"%d %d " % (size, 0), key=key, digest_size=BYTES_OF_MARK)',
        (f"{_MOVED}::test_what_changes_at_an_end_or_in_size_or_time_is_another_file",),
    ),
    Mutant(
        "an account has as many slots as files",
        "    slots = _split_into_marks(secrets.token_bytes(SLOTS * BYTES_OF_MARK) if row is None else row[0])\n",
        "    slots = _split_into_marks(secrets.token_bytes(len(found) * BYTES) if row is None else row[0])\n",
        (
            f"{_MOVED}::test_marks_tell_neither_how_many_files_there_are_nor_the_same_in_two_ledgers",
        ),
    ),
    Mutant(
        "an account is moved to other data",
        "    known = row.id in earlier.moved or old.overlap(earlier.here)\n",
        "    known = True\n",
        (f"{_MOVED}::test_an_account_is_not_moved_to_other_data",),
    ),
    Mutant(
        "tabs and backslashes in a Delta log lead out of the folder",
        "        _DROPPED_CHARACTERS.search(each) or _OUTSIDE.search(each.strip()) for each in readings\n",
        "        _OUTSIDE.search(each.strip()) for each in readings\n",
        (f"{_LOGS}::test_no_spelling_in_a_delta_log_leads_out_of_the_folder",),
    ),
    Mutant(
        "a manifest of Iceberg names any file",
        "        if _DROPPED_CHARACTERS.search(location) or not leads_in:\n",
        "        if _DROPPED_CHARACTERS.search(location):\n",
        (f"{_LOGS}::test_no_spelling_in_an_iceberg_manifest_leads_out_of_the_folder",),
    ),
)
