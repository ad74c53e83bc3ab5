"""`items`: single items, by set union, by a list of public words, or over a known domain.

Here belongs the choice between these and the order of their levels; the rounds themselves are in
`set_union/`, listed words in `ngrams/forecast/words.py`, a domain's counts in `counts/`. May import
these three and what `mechanisms/` may. Begin at `price.py`, then `run.py`.
"""
