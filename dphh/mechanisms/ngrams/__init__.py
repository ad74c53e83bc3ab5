"""`ngrams`: runs of up to `max_n` tokens, by the forecast ladder or by the paper's DPNE.

`forecast/` has the default method, `dpne.py` the paper's; `ladder/` has what both know of released
n-grams. May import `set_union/` (level 1), `counts/`, and what `mechanisms/` may. Begin at
`run.py`, then `forecast/two_rounds.py`.
"""
