"""The server of the sequence fragment puzzle: which fragments are frequent, and their products."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baselines.sfp_sketch import Hashes, Integers, estimate
from dphh.errors import UsageError

HASHES = 256  # values of the 8-bit hash h
FRAGMENT = 2  # characters
_CHUNK = 1 << 16  # fragments asked at a time: they stay in the processor's cache
_MOST_WORDS = 10_000_000


@dataclass(frozen=True)
class Fragment:
    """A tuple of Q_l: a fragment, its word's hash, and f_l, the estimate among l's users."""

    hash: int
    text: str
    estimate: float


def fragment_sums(hashes: Hashes, sketches: NDArray[np.int32], searched: int) -> Integers:
    """B_l(w || ab) for every position l, hash w and symbols a and b, as a row a position.

    A row of the sketch is asked by one gather for as many positions as fit side by side into 63
    bits; fields are emptied before they could overflow.
    """
    positions, functions, _ = sketches.shape
    tops = sketches.max(axis=(0, 2)).tolist()
    fields = next(g for g in range(positions, 0, -1) if g == 1 or 8 * max(tops) < 1 << (63 // g))
    bits = 63 // fields
    first, second, third = (table.astype(np.intp) for table in hashes.tables)
    second, third = second[:, :searched, np.newaxis], third[:, np.newaxis, :searched]
    pairs = searched * searched
    sums = np.zeros((positions, HASHES, pairs), dtype=np.int64)
    step = max(1, _CHUNK // pairs)
    for start in range(0, positions, fields):
        group = range(start, min(start + fields, positions))
        packed = np.zeros(sketches.shape[1:], dtype=np.int64)
        for place, at in enumerate(group):
            packed |= sketches[at].astype(np.int64) << (place * bits)
        for low in range(0, HASHES, step):
            rows = slice(low, min(low + step, HASHES))
            index = np.empty((rows.stop - low, pairs), dtype=np.intp)
            held, taken, room = np.zeros_like(index), np.empty_like(index), (1 << bits) - 1
            for j in range(functions):
                if tops[j] > room:
                    _empty(held, sums, group, rows, bits)
                    room = (1 << bits) - 1
                room -= tops[j]
                pair = (second[j] ^ third[j]).reshape(-1)
                np.bitwise_xor(first[j, rows, np.newaxis], pair, out=index)
                np.take(packed[j], index, out=taken, mode="clip")
                held += taken
            _empty(held, sums, group, rows, bits)
    return sums.reshape(positions, -1)


def _empty(held: Integers, sums: Integers, group: range, rows: slice, bits: int) -> None:
    for place, at in enumerate(group):
        sums[at, rows] += (held >> (place * bits)) & ((1 << bits) - 1)
    held[:] = 0


def most_frequent(
    sums: Integers, users: int, threshold: int, cells: int, flip: int, symbols: Sequence[str]
) -> tuple[Fragment, ...]:
    """Q_l: f_l grows with B_l, so the T largest B_l; of equal ones, those that come first."""
    top = min(threshold, len(sums))
    least = np.partition(sums, len(sums) - top)[len(sums) - top]
    reach = np.flatnonzero(sums >= least)
    kept = reach[np.argsort(-sums[reach], kind="stable")][:top]
    tuples = zip(kept.tolist(), estimate(sums[kept], users, cells, flip).tolist(), strict=True)
    fragments = []
    for code, f in tuples:
        code, b = divmod(code, len(symbols))  # noqa: PLW2901
        w, a = divmod(code, len(symbols))
        if a or not b:  # nothing follows padding
            fragments.append(Fragment(w, symbols[a] + symbols[b], f))
    return tuple(fragments)


def assemble(fragments: Sequence[Iterable[tuple[int, str]]]) -> dict[int, list[str]]:
    """Q(w): by hash, the products of a fragment from each position, where padding only ends words.

    A fragment without its padding is shorter than two characters; nothing but "" may follow it.
    """
    grown: dict[int, list[str]] = {}
    for at, tuples in enumerate(fragments):
        by_hash: defaultdict[int, list[str]] = defaultdict(list)
        for w, text in tuples:
            by_hash[w].append(text)
        before = {w: [""] for w in by_hash} if at == 0 else grown
        whole = at * FRAGMENT
        grown, size = {}, 0
        for w, starts in before.items():
            full = [start for start in starts if len(start) == whole]
            ended = [start for start in starts if len(start) < whole] if "" in by_hash[w] else []
            size += len(full) * len(by_hash[w]) + len(ended)
            if size > _MOST_WORDS:
                raise UsageError(
                    f"more than {_MOST_WORDS} words can be assembled; ask for a lower threshold."
                )
            if longer := [start + text for start in full for text in by_hash[w]] + ended:
                grown[w] = longer
    return grown
