"""Apple's sequence fragment puzzle, as section D of TrieHH's supplement gives it: for comparison.

Client. A word s is cut or padded to 10 characters. A user draws one of five positions l and sends
l with the count mean sketch's message for r = h(s) || s[l : l + 1], where h has 8 bits. For that,
draw j from k = 2048 hash functions onto m = 1024 cells; let v be -1 everywhere but +1 at h_j(r);
flip each entry with probability q = 1 / (1 + e^(epsilon / 2)); send v and j.

Server. One sketch a position, M[j, c] = k sum (c_eps / 2 v_c + 1/2) over the users who sent j, with
c_eps = (e^(epsilon/2) + 1) / (e^(epsilon/2) - 1), and the frequency oracle

    f(d) = m / (m - 1) ((1/k) sum_j M[j, h_j(d)] - n / m),

which in the number B(d) of +1 entries that users sent at d's cells is

    f(d) = m / (m - 1) ((B(d) - n q) / (1 - 2 q) - n / m).

Q_l holds the T tuples w || fragment with the largest f_l over all hashes w and pairs of Omega; for
each w the Cartesian product of Q_1, ..., Q_9's fragments under w gives words.

What is private. The local model: words of two users give v's that differ in two entries at most, so
any message is at most (e^(epsilon/2))^2 = e^epsilon times likelier under one than under the other,
whatever l and j, which do not look at the word. Each user's word is epsilon-LDP against a server
that sees everything, and all of `SfpResult` is post-processing. q is a multiple of 2^-64, rounded
up, so that this holds of the coins that are drawn. As a baseline it makes no Release and asks no
ledger.

How it is drawn. The server looks only at sums over users, so the sums are drawn. Given who sent
which j and holds which cell, the entries are independent: a cell that N of a row's n users hold has
N - Bin(N, q) + Bin(n - N, q) entries of +1. Positions, functions j and the hash functions' tables
are exactly uniform; a sum of t coins is drawn within (t + 1) 2^-144 + 2^-212 of its law in total
variation. Fragments are ranked by the integer B.

The hash functions. Simple tabulation, the exclusive or of one random table entry a character of the
key, is three-wise independent (Carter and Wegman 1979), exactly uniform, and lets a row of the
sketch be asked for all fragments at once.

Where section D is silent or slips (its authors' code read for intent):

- It writes v as +1 but -1 at the cell, which turns the oracle's sign; the code does as here.
- It takes Omega to be 26 letters, though words are padded: none of fewer than ten letters could be
  found. Padding is a symbol of Omega here, out of band. `alphabet` names the others; a word with
  characters outside is sent like any other but cannot be found.
- A product with a letter after padding is no word. It is dropped (the code cuts at the padding).
- All of epsilon goes to the fragment, and nothing checks what was assembled. Apple's client also
  sends a sketch of the whole word, for which epsilon is split: `word_share` gives it that share,
  and words are kept whose estimate is at least `deviations` standard deviations of an absent word.
- `check_hash` drops words whose own 8-bit hash is not w. It costs nothing, but section D lacks it.
- The comparison with TrieHH is at a central (epsilon, delta). With `delta`, epsilon is that, and
  `local_epsilon` says what each user may use, by the bound that the authors' code uses.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, inf, isfinite, ldexp, log, sinh, sqrt, tanh

import numpy as np
from numpy.typing import NDArray

from dphh.errors import UsageError
from dphh.udfs.noise import binomial_weights
from dphh.udfs.randomness import Randomness, SystemRandomness, join, uniform_below

Cells = NDArray[np.uint16]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: What the TrieHH experiments' preprocessing leaves in a word.
TWEET_CHARACTERS = LETTERS + "_@#-;()*:.'/"

_HASHES = 256  # values of the 8-bit hash h
_FRAGMENT = 2  # characters
_TAIL = 128  # bits of a binomial draw after the first 16
_CHUNK = 1 << 16  # fragments asked at a time: they stay in the processor's cache
_MOST_WORDS = 10_000_000
# More than exp and a quotient come to, so that q is never rounded down.
_ROUNDINGS = 2.0**-48


@dataclass(frozen=True)
class Fragment:
    """A tuple of Q_l: a fragment, its word's hash, and f_l, the estimate among l's users."""

    hash: int
    text: str
    estimate: float


@dataclass(frozen=True)
class SfpResult:
    """What the server ends with. All of it is post-processing of locally private messages."""

    words: tuple[str, ...]
    #: Q_l by position, most frequent first, without what no padded word contains.
    fragments: tuple[tuple[Fragment, ...], ...]
    #: Each user's, for all that it sends.
    local_epsilon: float
    #: With a word sketch: the estimated number of users of each word, in the words' order.
    estimates: tuple[float, ...] | None = None


def sfp(
    words: Iterable[str],
    *,
    epsilon: float,
    delta: float | None = None,
    threshold: int,
    functions: int = 2048,
    cells: int = 1024,
    positions: int = 5,
    alphabet: str = LETTERS,
    word_share: float = 0.0,
    deviations: float = 4.0,
    check_hash: bool = False,
    randomness: Randomness | None = None,
) -> SfpResult:
    """The words that the sequence fragment puzzle finds; `words` is one word a user.

    `threshold` is T, `functions` k, `cells` m. Without `delta`, epsilon is local; with it, central.
    """
    _check(epsilon, threshold, functions, cells, positions, alphabet, word_share)
    source = randomness or SystemRandomness()
    held = _checked_words(words)
    local = epsilon if delta is None else local_epsilon(epsilon, delta, len(held))
    symbols, spelled = _spell(held, alphabet, positions * _FRAGMENT)
    searched = 1 + len(alphabet)

    word_hash = draw_hashes(source, 1, _HASHES, [len(symbols)] * spelled.shape[1], "sfp hash")
    hashes = draw_hashes(
        source, functions, cells, [_HASHES, *[len(symbols)] * _FRAGMENT], "sfp fragment hashes"
    )
    hashed = word_hash.of(np.zeros(len(held), dtype=np.int64), spelled)
    position = uniform_below(source, positions, len(held), "sfp positions").astype(np.int64)
    function = uniform_below(source, functions, len(held), "sfp functions").astype(np.int64)
    flip = flip_numerator(local * (1 - word_share))
    sketches = np.empty((positions, functions, cells), dtype=np.int32)
    users = np.bincount(position, minlength=positions)
    for at in range(positions):
        mine = np.flatnonzero(position == at)
        fragment = spelled[mine, at * _FRAGMENT : (at + 1) * _FRAGMENT]
        key = np.column_stack([hashed[mine], fragment])
        sketches[at] = draw_sketch(
            source, function[mine], hashes.of(function[mine], key), (functions, cells), flip
        )

    sums = _fragment_sums(hashes, sketches, searched)
    fragments = tuple(
        _most_frequent(sums[at], int(users[at]), threshold, cells, flip, symbols[:searched])
        for at in range(positions)
    )
    found = assemble([[(one.hash, one.text) for one in q] for q in fragments])
    if check_hash:
        found = {
            w: [s for s in of_w if _rehash(word_hash, s, symbols) == w] for w, of_w in found.items()
        }
    listed = sorted({word for of_w in found.values() for word in of_w})
    if not word_share:
        return SfpResult(tuple(listed), fragments, local)

    flip = flip_numerator(local * word_share)
    hashes = draw_hashes(
        source, functions, cells, [len(symbols)] * spelled.shape[1], "sfp word hashes"
    )
    function = uniform_below(source, functions, len(held), "sfp word functions").astype(np.int64)
    sketch = draw_sketch(source, function, hashes.of(function, spelled), (functions, cells), flip)
    candidates = _codes(listed, symbols, spelled.shape[1])
    estimates = estimate(sketch_sums(hashes, sketch, candidates), len(held), cells, flip)
    least = deviations * sqrt(estimate_variance(len(held), (), 0, functions, cells, flip))
    kept = [(word, f) for word, f in zip(listed, estimates.tolist(), strict=True) if f >= least]
    return SfpResult(tuple(word for word, _ in kept), fragments, local, tuple(f for _, f in kept))


# The privacy of a message.


def flip_numerator(epsilon: float) -> int:
    """q 2^64, rounded up: entries flip with a probability of at least 1 / (1 + e^(epsilon / 2))."""
    q = 1 / (1 + exp(min(epsilon / 2, 700.0)))
    numerator = ceil(ldexp(q * (1 + _ROUNDINGS), 64))
    if not 0 < numerator < 1 << 63:
        raise UsageError(f"a message's epsilon must be above 1e-12, found {epsilon!r}")
    return numerator


def local_epsilon(epsilon: float, delta: float, users: int) -> float:
    """A local epsilon that shuffling `users` messages makes (epsilon, delta)-DP, as in the code.

    The authors' code solves, for e0, the privacy blanket's bound for any e0-LDP randomiser (Balle,
    Bell, Gascon and Nissim 2019) with Hoeffding's inequality, loosened: with
    t = ((e^epsilon - 1) / ((e^epsilon + 1) (e^e0 - e^-e0)))^2,

        delta = (e^epsilon - 1) / (4 n t) exp(-(1 - e^-2) n min(e^-e0, t)).

    It is taken over as it stands, so that comparisons are the published ones; later amplification
    theorems allow more. The bound grows with e0. At e0 = epsilon no shuffling is needed.
    """
    if not 0 < epsilon <= 700:
        raise UsageError(f"epsilon must be above 0 and at most 700, found {epsilon!r}.")
    if not 0 < delta < 1:
        raise UsageError(f"delta must lie between 0 and 1, found {delta!r}; give a probability.")
    if users < 1:
        raise UsageError("there must be at least one user.")

    def log_delta(local: float) -> float:
        root = tanh(epsilon / 2) / (2 * sinh(local))
        t = root * root
        if not t:
            return inf
        exponent = -expm1(-2) * users * min(exp(-local), t)
        return log(expm1(epsilon)) - log(4 * users) - log(t) - exponent

    low, high = epsilon, epsilon + 100.0
    if high > 350 or log_delta(low) > log(delta):
        return epsilon
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(middle) <= log(delta) else (low, middle)
    return low


# Count mean sketch.


@dataclass(frozen=True, eq=False)
class Hashes:
    """k hash functions onto m cells by simple tabulation; tables[c][j, symbol] for character c."""

    tables: tuple[Cells, ...]

    def of(self, functions: Integers | int, keys: Integers) -> Integers:
        """Each key (a row of symbols) under its function."""
        value = np.zeros(len(keys), dtype=np.uint16)
        for table, symbol in zip(self.tables, keys.T, strict=True):
            value ^= table[functions, symbol]
        return value.astype(np.int64)


def draw_hashes(
    randomness: Randomness, functions: int, cells: int, sizes: Sequence[int], purpose: str
) -> Hashes:
    """Uniform tables, for keys whose characters take `sizes` values; `cells` a power of two."""
    return Hashes(
        tuple(
            (_shorts(randomness, functions * size, purpose) & np.uint16(cells - 1)).reshape(
                functions, size
            )
            for size in sizes
        )
    )


def draw_sketch(
    randomness: Randomness,
    function: Integers,
    cell: Integers,
    shape: tuple[int, int],
    flip: int,
) -> NDArray[np.int32]:
    """How many users sent +1, by function and cell; user i drew function[i] and holds cell[i]."""
    functions, cells = shape
    in_row = np.bincount(function, minlength=functions)
    sums = np.empty(shape, dtype=np.int32)
    for users in np.unique(in_row).tolist():
        rows = np.flatnonzero(in_row == users)
        coins = draw_binomials(randomness, users, flip, len(rows) * cells)
        sums[rows] = coins.reshape(len(rows), cells)
    # Cells that somebody holds, anew: their first draw is looked at by nobody.
    at, holders = np.unique(function * cells + cell, return_counts=True)
    others = in_row[at // cells] - holders
    flat = sums.reshape(-1)
    flat[at] = (
        holders - _binomials_of(randomness, holders, flip) + _binomials_of(randomness, others, flip)
    )
    return sums


def sketch_sums(hashes: Hashes, sketch: NDArray[np.int32], keys: Integers) -> Integers:
    """B(d) for each key d: +1 entries over all functions at its cells."""
    sums = np.zeros(len(keys), dtype=np.int64)
    for j, row in enumerate(sketch):
        sums += row[hashes.of(j, keys)]
    return sums


def estimate(sums: Integers, users: int, cells: int, flip: int) -> Floats:
    """f(d) from B(d): unbiased over hash functions, coins and choices of j."""
    q = ldexp(flip, -64)
    in_cells = (sums - users * q) / (1 - 2 * q)
    return np.asarray(cells / (cells - 1) * (in_cells - users / cells), dtype=np.float64)


def estimate_variance(
    users: int, others: Sequence[int], own: int, functions: int, cells: int, flip: int
) -> float:
    """Var f(d) where `own` of the users hold d and `others` count the holders of each other word.

    (m / (m-1))^2 (n q (1-q) / (1-2q)^2 + (1/m) (1 - 1/m) (sum f' + (1/k) sum f' (f' - 1))): coins;
    whether another user's word falls into d's cell; and that users of one word who drew one j do so
    together. Users of two words do not, by three-wise independence. Users not in `own` or `others`
    count as each alone with a word.
    """
    q = ldexp(flip, -64)
    together = sum(f * (f - 1) for f in others) / functions
    collisions = (users - own + together) * (1 - 1 / cells) / cells
    return (cells / (cells - 1)) ** 2 * (users * q * (1 - q) / (1 - 2 * q) ** 2 + collisions)


# Sums of coins.


@dataclass(frozen=True, eq=False)
class _Binomial:
    """Inversion. The first 16 bits of a uniform number decide, but where an entry lies among them.

    `entries` are P[X <= lowest + i] in units of 2^-144, rounded down.
    """

    lowest: int
    entries: tuple[int, ...]
    guide: NDArray[np.int32]


@lru_cache(maxsize=4096)
def _binomial(coins: int, flip: int) -> _Binomial:
    weights = sorted(binomial_weights(coins, Fraction(flip, 1 << 64)))
    total, running, entries = sum(weight for _, weight in weights), 0, []
    for _, weight in weights:
        running += weight
        entries.append((running << (16 + _TAIL)) // total)
    tops = np.array([entry >> _TAIL for entry in entries[:-1]], dtype=np.int64)
    guide = weights[0][0] + np.searchsorted(tops, np.arange(1 << 16), side="right")
    guide[tops] = -1
    return _Binomial(weights[0][0], tuple(entries), guide.astype(np.int32))


def draw_binomials(randomness: Randomness, coins: int, flip: int, count: int) -> NDArray[np.int32]:
    """`count` sums of `coins` coins that are 1 with probability flip / 2^64."""
    if not coins:
        return np.zeros(count, dtype=np.int32)
    table = _binomial(coins, flip)
    heads = _shorts(randomness, count, "sfp coins")
    drawn = table.guide[heads]
    open_ones = np.flatnonzero(drawn < 0)
    tails = randomness.words(2 * len(open_ones), "sfp coins, further bits").reshape(-1, 2)
    for i, tail in zip(open_ones.tolist(), tails, strict=True):
        uniform = int(heads[i]) << _TAIL | join(tail)
        drawn[i] = table.lowest + bisect_right(table.entries, uniform)
    return drawn


def _binomials_of(randomness: Randomness, coins: Integers, flip: int) -> Integers:
    """One sum for each number of coins."""
    drawn = np.empty(len(coins), dtype=np.int64)
    for number in np.unique(coins).tolist():
        rows = np.flatnonzero(coins == number)
        drawn[rows] = draw_binomials(randomness, number, flip, len(rows))
    return drawn


def _shorts(randomness: Randomness, count: int, purpose: str) -> Cells:
    """Uniform 16-bit numbers, four a word."""
    return randomness.words(-(-count // 4), purpose).view(np.uint16)[:count]


# The server's puzzle.


def _fragment_sums(hashes: Hashes, sketches: NDArray[np.int32], searched: int) -> Integers:
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
    sums = np.zeros((positions, _HASHES, pairs), dtype=np.int64)
    step = max(1, _CHUNK // pairs)
    for start in range(0, positions, fields):
        group = range(start, min(start + fields, positions))
        packed = np.zeros(sketches.shape[1:], dtype=np.int64)
        for place, at in enumerate(group):
            packed |= sketches[at].astype(np.int64) << (place * bits)
        for low in range(0, _HASHES, step):
            rows = slice(low, min(low + step, _HASHES))
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


def _most_frequent(
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
        whole = at * _FRAGMENT
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


def _rehash(word_hash: Hashes, word: str, symbols: Sequence[str]) -> int:
    return int(word_hash.of(0, _codes([word], symbols, len(word_hash.tables)))[0])


# Words as rows of symbols.


def _spell(held: list[str], alphabet: str, length: int) -> tuple[list[str], Integers]:
    """The symbols, padding ("") first, then the alphabet, then what else occurs; and the words.

    Tables of hash functions have an entry for every character that any client could hold; those
    that none holds and no server asks for are left out.
    """
    points = _points(held, length)
    occurring = {chr(point) for point in np.unique(points).tolist() if point}
    symbols = ["", *alphabet, *sorted(occurring - set(alphabet))]
    return symbols, _symbols_of(points, symbols)


def _codes(words: list[str], symbols: Sequence[str], length: int) -> Integers:
    return _symbols_of(_points(words, length), symbols)


def _points(words: list[str], length: int) -> NDArray[np.uint32]:
    """Code points, cut or padded with 0."""
    return np.array(words, dtype=f"<U{length}").view("<u4").reshape(len(words), length)


def _symbols_of(points: NDArray[np.uint32], symbols: Sequence[str]) -> Integers:
    known = np.array([ord(symbol) if symbol else 0 for symbol in symbols], dtype=np.uint32)
    order = np.argsort(known)
    return order[np.searchsorted(known[order], points)]


def _checked_words(words: Iterable[str]) -> list[str]:
    held = list(words)
    if not held:
        raise UsageError("there are no words; give one a user.")
    if not all(isinstance(word, str) and "\0" not in word for word in held):
        raise UsageError("every word must be a text without NUL characters; give one a user.")
    return held


def _check(
    epsilon: float,
    threshold: int,
    functions: int,
    cells: int,
    positions: int,
    alphabet: str,
    word_share: float,
) -> None:
    if not (isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon must be finite and above 0, found {epsilon!r}.")
    for name, value in (
        ("threshold", threshold),
        ("functions", functions),
        ("positions", positions),
    ):
        if value < 1:
            raise UsageError(f"{name} must be 1 or more, found {value!r}.")
    if not (2 <= cells <= 1 << 16 and cells & (cells - 1) == 0):
        raise UsageError(f"cells must be a power of two from 2 to 65,536, found {cells!r}.")
    if not alphabet or len(set(alphabet)) < len(alphabet) or "\0" in alphabet:
        raise UsageError("alphabet must name each character once, and none of them NUL.")
    if not 0 <= word_share < 1:
        raise UsageError(f"word_share must be at least 0 and below 1, found {word_share!r}.")
