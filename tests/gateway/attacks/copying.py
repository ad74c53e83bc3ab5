"""Kind: copy."""

GUARD = [
    "COPY (SELECT 1) TO '{out}/leak.csv'",
    "COPY reviews TO '{out}/leak.parquet'",
    "COPY (FROM dphh_releases()) TO '/dev/stdout'",
    "COPY t FROM '{raw}'",
    "EXPORT DATABASE '{out}/leak'",
    "COPY (SELECT 1) TO '{out}/x' (FORMAT parquet)",
    "COPY (SELECT 1) TO '{target}'",
    "COPY (FROM reviews) TO '{target}'",
    "COPY (SELECT 1) TO '|cat'",
]

#: Refused as well, though this DuckDB would not do them.
GUESSES = [
    "COPY FROM DATABASE memory TO other",
    "IMPORT DATABASE '{out}/leak'",
    "COPY (SELECT 1) TO 's3://b/x.csv'",
]
