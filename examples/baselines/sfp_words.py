"""Words of the sequence fragment puzzle as rows of symbols, which its hash functions take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from baselines.sfp_sketch import Integers


def spell(held: list[str], alphabet: str, length: int) -> tuple[list[str], Integers]:
    """The symbols, padding ("") first, then the alphabet, then what else occurs; and the words.

    Tables of hash functions have an entry for every character that any client could hold; those
    that none holds and no server asks for are left out.
    """
    points = _points(held, length)
    occurring = {chr(point) for point in np.unique(points).tolist() if point}
    symbols = ["", *alphabet, *sorted(occurring - set(alphabet))]
    return symbols, _symbols_of(points, symbols)


def codes(words: list[str], symbols: Sequence[str], length: int) -> Integers:
    return _symbols_of(_points(words, length), symbols)


def _points(words: list[str], length: int) -> NDArray[np.uint32]:
    """Code points, cut or padded with 0."""
    return np.array(words, dtype=f"<U{length}").view("<u4").reshape(len(words), length)


def _symbols_of(points: NDArray[np.uint32], symbols: Sequence[str]) -> Integers:
    known = np.array([ord(symbol) if symbol else 0 for symbol in symbols], dtype=np.uint32)
    order = np.argsort(known)
    return order[np.searchsorted(known[order], points)]
