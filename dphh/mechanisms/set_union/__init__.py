"""Set union: items that many users hold, by DPSU's weighted Gaussian and methods built on it.

A method is a file, which `methods.py` lists; `levels.py` has the rounds and their costs, `draws.py`
draws them. `items` runs all methods, `ngrams` the rounds of words. May import `counts/` and what
`mechanisms/` may. Begin at `gaussian.py`.
"""
