"""The callers in a process: SQL macros, and the namespace of Polars frames.

Here belongs what turns a call into a plan, a run and a table; a verb's rules are in the registry.
May import: plan and all below. Begin at `frames.py`, for SQL at `connect.py`.
"""
