"""The callers in a process: SQL macros, and the namespace of Polars frames.

Here belongs what turns a call into a plan, a run and a table; no rule of a verb, which is in the
registry. May import: plan and all below. Begin at `frames.py`, for SQL at `connect.py`.
"""
