"""Interfaces to the verbs: SQL macros and connections, and the namespace of Polars frames."""
