"""Set union: items that many users hold, by DPSU's weighted Gaussian and methods built on it.

A method is a file, and `methods.py` lists them. Begin at `gaussian.py`; `levels.py` has the rounds
and what they cost, `draws.py` draws them. `items` runs all methods, `ngrams` the rounds of words.
"""
