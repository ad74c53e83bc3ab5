"""Kind: pragma."""

GUARD = [
    "PRAGMA database_list",
    "PRAGMA show_tables",
    "PRAGMA show_tables_expanded",
    "PRAGMA table_info('reviews')",
    "PRAGMA database_size",
    "PRAGMA functions",
    "PRAGMA version",
    "PRAGMA platform",
    "PRAGMA enable_profiling",
    "PRAGMA enable_profiling='json'",
    "PRAGMA profiling_mode='detailed'",
    "PRAGMA disable_optimizer",
    "PRAGMA memory_limit='1TB'",
    "PRAGMA threads=1",
    "PRAGMA user_agent",
    "PRAGMA collations",
    "PRAGMA force_checkpoint",
    "PRAGMA enable_progress_bar",
    "PRAGMA metadata_info",
    "PRAGMA log_query_path='{out}/log'",
]

#: Refused as well, though this DuckDB would not do them.
GUESSES = [
    "PRAGMA storage_info('reviews')",
    "PRAGMA profile_output='{out}/p'",
    "PRAGMA enable_verification",
    "PRAGMA import_database('{out}/x')",
]
