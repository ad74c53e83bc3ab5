"""What DuckDB decides, asked on its long-term line too: `make test-duckdb15`.

On the current line these tests stand where they are imported from. What users are bounded to,
prices, draws, the journal and the command line are the same Python, called with the same batches.
"""

# ruff: noqa: F401
import duckdb
import pytest

# Odd texts, and its errors.
from tests.engines.test_content import (
    test_binary_content_is_decoded_and_what_is_not_utf8_ignored,
    test_text_that_is_not_utf8_is_a_clear_error,
)

# Its SQL and the functions registered in it: against the specification, and against Polars.
from tests.engines.test_engines_agree import test_a_seeds_release_is_the_same_on_every_engine

# Its memory.
from tests.engines.test_memory import (
    test_a_corpus_larger_than_the_memory_limit_spills_and_cleans_up,
)
from tests.engines.test_plain_sql import (
    test_a_set_union_of_anything_is_the_plain_one,
    test_counts_are_the_plain_ones,
    test_every_level_of_a_trie_is_the_plain_one,
    test_every_level_of_dpne_is_the_plain_one,
    test_every_level_of_local_reports_is_the_plain_one,
    test_every_level_of_the_forecast_ladder_is_the_plain_one,
    test_over_full_users_keep_what_the_plain_form_keeps_whatever_names_them,
    test_rounds_whose_weights_follow_one_another_are_the_plain_ones,
)

# Files, tables and their types.
from tests.engines.test_sources import (
    test_columns_that_do_not_fit_are_named,
    test_files_of_every_format_are_read,
    test_opening_looks_at_no_row_and_a_bad_one_is_not_quoted,
    test_tables_in_memory_are_read,
    test_what_cannot_be_read_says_what_to_do_and_costs_nothing,
)
from tests.engines.test_stores import bucket, test_parquet_in_a_store_is_read
from tests.engines.test_users import (
    test_a_type_of_several_spellings_is_refused_before_anything_is_paid,
    test_dropped_they_change_nothing,
    test_each_combination_of_values_is_one_unit,
    test_users_of_one_hash_are_told_apart,
)

# Which rows count.
from tests.engines.test_which_rows import (
    path,
    test_the_rows_count_of_which_a_condition_is_true,
    test_what_asks_more_than_one_row_is_refused,
    test_what_does_not_go_with_the_columns_is_refused_before_payment,
)

# dphh's table functions in a connection.
from tests.unit.test_connect import (
    con,
    test_a_macro_that_runs_after_many_results_keeps_nobody_waiting,
    test_a_refusal_fails_the_statement_whatever_else_it_asks,
    test_cursors_asking_at_once_pay_once,
    texts,
)

pytestmark = pytest.mark.skipif(
    int(duckdb.__version__.partition(".")[0]) >= 2,
    reason="these run where they are imported from",
)


@pytest.fixture(params=["duckdb"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)
