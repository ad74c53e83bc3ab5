"""Kind: query functions."""

GUARD = [
    "FROM query('FROM reviews')",
    "FROM query('SELECT ' || '1')",
    "FROM query_table('reviews')",
    "FROM query_table('{raw}')",
    "FROM query(concat('FR','OM reviews'))",
    "SELECT * FROM QUERY('FROM reviews')",
    "FROM \"query\"('FROM reviews')",
    "FROM main.query('FROM reviews')",
    "FROM system.main.query('FROM reviews')",
    "FROM json_execute_serialized_sql(json_serialize_sql('FROM reviews'))",
    "FROM summary((FROM reviews))",
]

#: Refused as well, though this DuckDB would not do them.
GUESSES = [
    "FROM checkpoint()",
    "FROM query_table(['reviews','releases'])",
    "FROM query('COPY (SELECT 1) TO ''{out}/x''')",
    "FROM query('SET lock_configuration=false')",
    "FROM srv.query('FROM reviews')",
    "PRAGMA json_execute_serialized_sql('{}')",
    "FROM from_substrait('x')",
    "FROM from_substrait_json('x')",
    "SELECT eval('1')",
    "FROM seq_scan('reviews')",
    "FROM pandas_scan(0)",
    "FROM python_map_function(0)",
    "FROM arrow_scan(0,0,0)",
    "FROM test_all_types()",
]
