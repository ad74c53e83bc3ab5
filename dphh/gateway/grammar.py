"""The grammar of an analyst's statement. Whatever is not listed here is refused.

Each line lists the fields of one kind of node of DuckDB's parsed tree, as `json_serialize_sql` of
DuckDB 1.5 writes it. `field` contains plain names and numbers; `field*` contains nodes, which are
checked in turn; `field*KIND` contains nodes that do not name their own kind; `field!` must be
empty.
"""

from __future__ import annotations

_GRAMMAR_LINES = """
SELECT_NODE: modifiers* cte_map select_list* from_table* where_clause* group_expressions*
    group_sets aggregate_handling having* sample! qualify*
SET_OPERATION_NODE: modifiers* cte_map setop_type left* right* setop_all
RECURSIVE_CTE_NODE: modifiers* cte_map cte_name union_all left* right* aliases key_targets!
STATEMENT: node* named_param_map!

ORDER_MODIFIER: orders*
ASCENDING: null_order expression*
DESCENDING: null_order expression*
ORDER_DEFAULT: null_order expression*
LIMIT_MODIFIER: limit* offset*
LIMIT_PERCENT_MODIFIER: limit* offset*
DISTINCT_MODIFIER: distinct_on_targets*

EMPTY: alias sample! query_location
BASE_TABLE: alias sample! query_location schema_name! table_name column_name_alias catalog_name!
    at_clause!
TABLE_SUBQUERY: alias sample! query_location subquery*STATEMENT column_name_alias
TABLE_FUNCTION: alias sample! query_location function* column_name_alias with_ordinality
JOIN: alias sample! query_location left* right* condition* join_type ref_type using_columns
    delim_flipped duplicate_eliminated_columns!
EXPRESSION_LIST: alias sample! query_location expected_names expected_types! values*

BETWEEN: alias query_location input* lower* upper*
CASE: alias query_location case_checks*CASE_CHECK else_expr*
CASE_CHECK: when_expr* then_expr*
CAST: alias query_location child* cast_type*TYPE try_cast
COLUMN_REF: alias query_location column_names
COMPARISON: alias query_location left* right*
CONJUNCTION: alias query_location children*
CONSTANT: alias query_location value*VALUE
VALUE: type*TYPE is_null value
FUNCTION: alias query_location function_name schema children* filter* order_bys* distinct
    is_operator export_state catalog!
LAMBDA: alias query_location lhs* expr*
OPERATOR: alias query_location children*
POSITIONAL_REFERENCE: alias query_location index
STAR: alias query_location relation_name exclude_list replace_list*REPLACED columns expr*
    qualified_exclude_list! rename_list*RENAMED
REPLACED: key value*
RENAMED: key value
SUBQUERY: alias query_location subquery_type subquery*STATEMENT child* comparison_type
WINDOW: alias query_location function_name schema catalog! children* partitions* orders* start end
    start_expr* end_expr* offset_expr* default_expr* ignore_nulls filter_expr* exclude_clause
    distinct arg_orders*

TYPE: id type_info*
DECIMAL_TYPE_INFO: alias extension_info! width scale
LIST_TYPE_INFO: alias extension_info! child_type*TYPE
STRUCT_TYPE_INFO: alias extension_info! child_types*CHILD_TYPE
CHILD_TYPE: first second*TYPE
"""


def _parse_grammar() -> dict[str, dict[str, str]]:
    kinds: dict[str, dict[str, str]] = {}
    for line in _GRAMMAR_LINES.replace("\n    ", " ").split("\n"):
        kind, _, fields = line.partition(": ")
        for field in fields.split():
            name = field.rstrip("!").partition("*")[0]
            kinds.setdefault(kind, {})[name] = field.removeprefix(name)
    return kinds


GRAMMAR = _parse_grammar()

_TYPE_NAMES = """
    BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT
    FLOAT DOUBLE DECIMAL VARCHAR DATE TIME TIMESTAMP INTERVAL LIST STRUCT NULL
"""
#: The types that a value may be cast to.
TYPES = frozenset(_TYPE_NAMES.split()) | {"TIMESTAMP WITH TIME ZONE"}

#: Table functions that are allowed besides the macros of dphh.
TABLE_FUNCTIONS = frozenset(("unnest", "range", "generate_series"))

_FUNCTION_NAMES = """
    + - * / // % ** ^ || & | << >> ~ @ ~~ !~~ ~~* !~~* ~~~ ^@ -> ->>
    abs acos asin atan atan2 cbrt ceil ceiling cos cot degrees even exp floor gamma gcd greatest
    isfinite isinf isnan lcm least lgamma ln log log10 log2 mod pi pow power radians round sign sin
    sqrt tan trunc xor bit_count

    array_to_string ascii base64 bin bit_length char_length character_length chr concat
    concat_ws contains damerau_levenshtein editdist3 ends_with from_base64 hamming hash hex
    instr jaccard jaro_similarity jaro_winkler_similarity lcase left left_grapheme len length
    length_grapheme levenshtein like_escape not_like_escape ilike_escape not_ilike_escape lower
    ltrim md5 nfc_normalize ord position prefix regexp_extract regexp_extract_all
    regexp_full_match regexp_matches regexp_replace regexp_split_to_array replace reverse right
    right_grapheme rtrim sha1 sha256 split split_part starts_with str_split
    str_split_regex string_split string_split_regex string_to_array strip_accents strlen strpos
    substr substring substring_grapheme suffix to_base64 translate trim ucase unicode upper

    list_value list_pack array_value list_any_value list_apply list_avg list_bool_and
    list_bool_or list_cat list_concat list_contains list_count list_distinct list_element
    list_extract list_filter list_first list_grade_up list_has list_has_all list_has_any
    list_indexof list_intersect list_last list_max list_median list_min list_mode list_position
    list_product list_reduce list_reverse list_reverse_sort list_select list_slice list_sort
    list_sum list_transform list_unique list_where list_zip array_length array_extract
    array_contains array_slice array_position array_distinct
    flatten unnest unlist row struct_pack struct_extract struct_insert map map_keys map_values
    map_entries map_extract element_at cardinality

    coalesce ifnull nullif if typeof error try
    date_part date_trunc date_diff datediff date_add date_sub datepart datetrunc datesub strftime
    year month day hour minute second quarter week weekday dayofweek dayofyear epoch epoch_ms
    to_days to_hours to_minutes to_seconds to_months to_years to_weeks make_date make_timestamp age
    json_extract json_extract_string json_keys json_array_length json_valid json_type to_json

    any_value approx_count_distinct approx_quantile arbitrary arg_max arg_min argmax argmin avg
    bit_and bit_or bit_xor bool_and bool_or corr count count_if count_star countif covar_pop
    covar_samp entropy first histogram kurtosis last list array_agg mad max max_by mean median min
    min_by mode product quantile quantile_cont quantile_disc regr_slope skewness stddev stddev_pop
    stddev_samp string_agg group_concat listagg sum sum_no_overflow sumkahan fsum var_pop var_samp
    variance grouping grouping_id

    row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead first_value
    last_value nth_value fill
"""
#: Scalar functions, aggregates and window functions. None reads a file, a setting, a catalogue, a
#: variable or another statement; none takes a function's name as text; none produces much output
#: from little input, as `repeat` would.
FUNCTIONS = frozenset(_FUNCTION_NAMES.split())

#: Functions that DuckDB calls by their bare names, without parentheses, like columns.
_BARE_FUNCTION_NAMES = """
current_catalog current_date current_role current_schema current_time current_timestamp current_user
localtime localtimestamp session_user user
"""
BARE_FUNCTIONS = frozenset(_BARE_FUNCTION_NAMES.split())
