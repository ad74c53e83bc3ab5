"""The queries of `sql/` in Polars. None of them draws: noise needs materialised frames."""
