"""`counts`: how many users hold each of given items; and the counts of what another verb found.

Here belong the option `counts=` (`of_found.py`), and the one level of noised sums with its
intervals (`run.py`). May import what `mechanisms/` may, and no other verb's folder: items, ngrams
and trie import this one. Begin at `price.py`, then `run.py`.
"""
