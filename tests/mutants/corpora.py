"""What of a corpus is read, and whether it is the one that was read before."""

from __future__ import annotations

from tests.mutants.plant import Mutant

_CONTENT = "tests/engines/test_content.py"
_UNITS = "tests/engines/test_units.py"
_HOSTILE = "tests/engines/test_hostile.py"
_COUNTS = "tests/engines/test_counts.py"
_AGAIN = "tests/unit/test_replay.py"
_NEAR = "tests/engines/test_near_periods.py"
_PERIODS = "tests/engines/test_periods.py"
_SEVERAL = "tests/engines/test_several_columns.py"
_NO_FILES = "tests/engines/test_no_files.py"
_SCANS = "tests/unit/test_unchanged_scans.py"

MUTANTS = (
    Mutant(
        "a query of more than files is looked at in its files",
        " or _without_names(tree) != _without_names(_plain_tree(kind))",
        "",
        (f"{_SCANS}::test_any_other_query_is_none",),
    ),
    Mutant(
        "a view with other names for its columns is looked at in its files",
        'return () if "(" in head else _places(search, query, deepest - 1)',
        "return _places(search, query, deepest - 1)",
        (f"{_SCANS}::test_any_other_query_is_none",),
    ),
    Mutant(
        "a lazy frame with options is looked at in its files",
        "if written != _serialised_plan(pl.scan_parquet(places)):",
        "if written is None:",
        (f"{_SCANS}::test_any_other_lazy_frame_is_none",),
    ),
    Mutant(
        "files of several types are looked at in place of a query",
        "return len(kinds) == len({column for column, _ in kinds})",
        "return True",
        (f"{_SCANS}::test_files_are_taken_for_a_query_only_if_they_are_alike",),
    ),
    Mutant(
        "a first line is read whole before it is found too long",
        "text.readline(LONGEST_LINE + 1)",
        "text.readline()",
        (f"{_NO_FILES}::test_a_first_line_without_an_end_is_not_read_whole",),
    ),
    Mutant(
        "sockets and devices pass for files",
        "return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))",
        "return stat.S_ISFIFO(mode)",
        (f"{_NO_FILES}::test_sockets_and_devices_are_refused",),
    ),
    Mutant(
        "reading: a text counts however long it is",
        'return f"first_characters(CAST({column} AS VARCHAR), {longest})"',
        'return f"CAST({column} AS VARCHAR)"',
        (f"{_CONTENT}::test_every_reading_is_the_plain_python_one",),
    ),
    Mutant(
        "reading: a text counts however long it is, in Polars",
        "return texts.str.head(longest) if (texts.str.len_bytes() > longest).any() else texts",
        "return texts",
        (f"{_CONTENT}::test_every_reading_is_the_plain_python_one",),
    ),
    Mutant(
        "reading: a list counts however long it is",
        "CASE WHEN len(tokens) > longest THEN tokens[1:longest] ELSE tokens END",
        "tokens",
        (f"{_CONTENT}::test_of_a_list_so_many_tokens_count",),
    ),
    Mutant(
        "reading: of a list one token more counts, in Polars",
        "lists.list.head(longest) if",
        "lists.list.head(longest + 1) if",
        (f"{_CONTENT}::test_of_a_list_so_many_tokens_count",),
    ),
    Mutant(
        "reading: the digits of bytes are cut as if each were a byte",
        "{2 * content.max_text_length})",
        "{content.max_text_length})",
        (f"{_UNITS}::test_of_a_binary_column_so_many_bytes_count",),
    ),
    Mutant(
        "reading: a binary text counts however long it is",
        'return f"first_characters(try(decode({column})), {content.max_text_length})"',
        'return f"try(decode({column}))"',
        (f"{_UNITS}::test_a_binary_text_is_decoded_before_it_is_cut",),
    ),
    Mutant(
        "reading: files of any number of columns are opened",
        "if columns > WIDEST:",
        "if columns > 1 << 60:",
        (f"{_HOSTILE}::test_files_of_too_many_columns_are_refused_and_cost_nothing",),
    ),
    Mutant(
        "reading: a unit's columns are joined without their lengths",
        'parts.append(f"spelled_in_bytes({identifier(column)})")',
        'parts.append(f"CAST({identifier(column)} AS VARCHAR)")',
        (f"{_SEVERAL}::test_each_combination_of_values_is_one_unit",),
    ),
    Mutant(
        "periods: a user is one unit over all of them",
        'parts.append(f"spelled_in_bytes({period_sql(corpus.period, types)})")',
        "pass",
        (f"{_PERIODS}::test_a_users_rows_of_each_period_are_one_unit",),
    ),
    Mutant(
        "periods: a row without a date is passed over where periods are chosen",
        'literal_of,\n        zoned=literal_of == "TIMESTAMPTZ",\n    )\n    '
        "return f\"{holds} AND ({' OR '.join([f'{period} IS NULL', *within])}){near}\"",
        'literal_of,\n        zoned=literal_of == "TIMESTAMPTZ",\n    )\n    '
        "return f\"{holds} AND ({' OR '.join(within)}){near}\"",
        (f"{_PERIODS}::test_a_row_without_a_date_is_refused_before_anything_is_paid",),
    ),
    Mutant(
        "periods: what a zone's day begins with in UTC is passed over",
        'dt.timedelta(days=0 if self.zone == "UTC" else 1)',
        "dt.timedelta(days=0)",
        (f"{_NEAR}::test_no_row_of_a_period_is_passed_over",),
    ),
    Mutant(
        "periods: a row without a date is passed over by the comparison of its column",
        'near = [f"{column} IS NULL", f"{column} < {day(FIRST)}"',
        'near = [f"{column} < {day(FIRST)}"',
        (f"{_NEAR}::test_a_row_without_a_date_is_refused_wherever_it_is",),
    ),
    Mutant(
        "trend: what is new is not held against the noise of the earlier release",
        "            + log_ndtr((missed - weight) / spread)\n",
        "",
        ("tests/report/test_trend.py::test_the_chance_is_the_largest_over_all_weights",),
    ),
    Mutant(
        "periods: weeks begin on Thursdays",
        "CAST(floor((period_by_day(row_date) + 3) / 7) AS BIGINT)",
        "CAST(floor(period_by_day(row_date) / 7) AS BIGINT)",
        (f"{_PERIODS}::test_a_users_rows_of_each_period_are_one_unit",),
    ),
    Mutant(
        "counts: what nobody declared is in the first of the groups",
        "declared.fill_null(len(groups))",
        "declared.fill_null(0)",
        (f"{_COUNTS}::test_sums_are_those_of_looking_at_each_user",),
    ),
    Mutant(
        "counts: an item's groups run into the next item's",
        "for at, _ in found])]\n        keys = np.concatenate([sequences for _, sequences in found]) "
        "* self.groups",
        "for at, _ in found])]\n        keys = np.concatenate([sequences for _, sequences in found])",
        (f"{_COUNTS}::test_sums_are_those_of_looking_at_each_user",),
    ),
    Mutant(
        "again: a release is handed out whatever became of the files",
        'found is not None and found["files"] == files else None',
        "found is not None else None",
        (f"{_AGAIN}::test_a_file_that_changed_is_other_data",),
    ),
    Mutant(
        "again: all of the files' hash stays in the ledger",
        "return files_state(source, besides)[:CHECK]",
        "return files_state(source, besides)",
        (f"{_AGAIN}::test_what_is_kept_of_files_is_sixteen_bits_and_no_export_has_it",),
    ),
    Mutant(
        "again: what others asked for is an analyst's answer",
        "        if self.book.analyst is not None:\n            return None  # the gateway",
        "        if False:\n            return None  # the gateway",
        (f"{_AGAIN}::test_what_others_asked_for_is_no_analysts_answer",),
    ),
)
