"""The forecast ladder: two rounds a length, with noise shared by what is likely to be found.

Here belong its price, the plan of a round from noised masses, users' purses and late rounds;
weights are in `udfs/rules/forecast.py`, queries in `sql/ngrams/`. May import `ladder/` and what
`ngrams/` may. Begin at `two_rounds.py`, which is one level, then `plan_round.py`.
"""
