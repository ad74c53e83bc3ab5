"""Noise, in one place: the exact table, its sampler, bins, binomials, absent keys, randomness.

Here belongs what draws or says how likely a draw is; nothing knows a user. May import:
`arrays.py`. Begin at `table.py`, whose docstring has the proof, then `sampler.py`.
"""
