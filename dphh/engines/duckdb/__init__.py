"""The default engine: an embedded DuckDB of its own for every run, gone when the run ends."""
