"""Rows, and what plain Python makes of them."""

from __future__ import annotations

from collections import defaultdict
from math import isqrt

import polars as pl

ROWS = [(1, "a b"), (1, "b c"), (2, "b"), (3, "a"), (3, "a")]
WHITE_SPACE = "\t\n\v\f\r\x85\xa0\u1680\u2000\u2007\u200a\u2028\u2029\u202f\u205f\u3000 "


def expected(rows, tokens=str.split):
    """H before noise: what `tokens` makes of each row, by plain Python."""
    held = defaultdict(set)
    for user, content in rows:
        held[user] |= {token for token in tokens(content) if token}
    weights = defaultdict(int)
    for words in held.values():
        for word in words:
            weights[word] += isqrt(4**10 // len(words))
    return dict(weights)


def frame(rows):
    return pl.DataFrame(
        {"who": [row[0] for row in rows], "what": [row[1] for row in rows]}, strict=False
    )
