"""Prices that several mechanisms share: calibration, accounting, events, thresholds, intervals.

Here belongs mathematics from parameters to epsilon and delta; nothing that sees a row. What a user
adds is in `udfs/rules/`, the noise's table in `udfs/noise/`. May import: udfs and errors.
Begin at `events.py` (what costs), then `accounting.py` (what it comes to).
"""
