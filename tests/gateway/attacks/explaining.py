"""Kind: explain."""

GUARD = [
    "EXPLAIN FROM reviews",
    "EXPLAIN FROM dphh_items('reviews', epsilon := 0.1, delta := 1e-9)",
    "EXPLAIN COPY (SELECT 1) TO '{out}/x'",
    "EXPLAIN ANALYZE FROM reviews",
    "EXPLAIN ANALYZE FROM dphh_items('reviews', epsilon := 0.1, delta := 1e-9)",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}/x'",
    "EXPLAIN (ANALYZE, FORMAT json) FROM reviews",
    "EXPLAIN (ANALYZE, FORMAT json) FROM dphh_items('reviews', epsilon := 0.1, delta := 1e-9)",
    "EXPLAIN (ANALYZE, FORMAT json) COPY (SELECT 1) TO '{out}/x'",
    "EXPLAIN (FORMAT html) FROM reviews",
    "EXPLAIN (FORMAT html) FROM dphh_items('reviews', epsilon := 0.1, delta := 1e-9)",
    "EXPLAIN (FORMAT html) COPY (SELECT 1) TO '{out}/x'",
    "EXPLAIN EXECUTE p",
    "EXPLAIN ANALYZE DROP TABLE releases",
    "FROM duckdb_profiling_settings()",
    "SELECT json_serialize_plan('FROM reviews')",
    "PRAGMA explain_output='all'",
]

#: Refused as well, though this DuckDB would not do them.
GUESSES = [
    "FROM explain('FROM reviews')",
    "PRAGMA last_profiling_output",
]
