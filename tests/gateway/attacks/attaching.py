"""Kind: attach."""

GUARD = [
    "ATTACH '{raw}'",
    "ATTACH '{out}/x.duckdb'",
    "ATTACH OR REPLACE ':memory:' AS memory",
    "USE pg_catalog",
]

#: Refused as well, though this DuckDB would not do them.
GUESSES = [
    "ATTACH '{ledger}'",
    "ATTACH ':memory:'",
    "ATTACH 'http://h/x.db'",
    "ATTACH 'ducklake:x'",
    "ATTACH 'quack:localhost:1'",
    "ATTACH '{ledger}' AS l (TYPE sqlite)",
    "ATTACH IF NOT EXISTS '{ledger}' AS l (READ_ONLY)",
    "DETACH memory",
    "DETACH DATABASE memory",
    "USE system",
    "USE temp",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a')",
    "CREATE PERSISTENT SECRET s (TYPE quack, TOKEN 'x')",
    "DROP SECRET s",
    "FROM duckdb_secrets(redact := false)",
    "FROM which_secret('s3://x','s3')",
]
