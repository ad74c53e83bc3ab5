"""`sql/` once more, in Polars. None of these draws anything: noise needs frames that stand."""
