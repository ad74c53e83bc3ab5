"""The default engine: an embedded DuckDB instance for each run, closed when the run ends."""
