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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, expm1, inf, isfinite, log, sinh, sqrt, tanh

import numpy as np

from baselines.sfp_puzzle import (
    FRAGMENT,
    HASHES,
    Fragment,
    assemble,
    fragment_sums,
    most_frequent,
)
from baselines.sfp_sketch import (
    Hashes,
    draw_binomials,
    draw_hashes,
    draw_sketch,
    estimate,
    estimate_variance,
    flip_numerator,
    sketch_sums,
)
from baselines.sfp_words import codes, spell
from dphh.errors import UsageError
from dphh.udfs.noise.randomness import Randomness, SystemRandomness, uniform_below

__all__ = [
    "LETTERS",
    "TWEET_CHARACTERS",
    "Fragment",
    "Hashes",
    "SfpResult",
    "assemble",
    "draw_binomials",
    "draw_hashes",
    "draw_sketch",
    "estimate",
    "estimate_variance",
    "flip_numerator",
    "local_epsilon",
    "sfp",
    "sketch_sums",
]

LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: What the TrieHH experiments' preprocessing leaves in a word.
TWEET_CHARACTERS = LETTERS + "_@#-;()*:.'/"


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
    symbols, spelled = spell(held, alphabet, positions * FRAGMENT)
    searched = 1 + len(alphabet)

    word_hash = draw_hashes(source, 1, HASHES, [len(symbols)] * spelled.shape[1], "sfp hash")
    hashes = draw_hashes(
        source, functions, cells, [HASHES, *[len(symbols)] * FRAGMENT], "sfp fragment hashes"
    )
    hashed = word_hash.of(np.zeros(len(held), dtype=np.int64), spelled)
    position = uniform_below(source, positions, len(held), "sfp positions").astype(np.int64)
    function = uniform_below(source, functions, len(held), "sfp functions").astype(np.int64)
    flip = flip_numerator(local * (1 - word_share))
    sketches = np.empty((positions, functions, cells), dtype=np.int32)
    users = np.bincount(position, minlength=positions)
    for at in range(positions):
        mine = np.flatnonzero(position == at)
        fragment = spelled[mine, at * FRAGMENT : (at + 1) * FRAGMENT]
        key = np.column_stack([hashed[mine], fragment])
        sketches[at] = draw_sketch(
            source, function[mine], hashes.of(function[mine], key), (functions, cells), flip
        )

    sums = fragment_sums(hashes, sketches, searched)
    fragments = tuple(
        most_frequent(sums[at], int(users[at]), threshold, cells, flip, symbols[:searched])
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
    candidates = codes(listed, symbols, spelled.shape[1])
    estimates = estimate(sketch_sums(hashes, sketch, candidates), len(held), cells, flip)
    least = deviations * sqrt(estimate_variance(len(held), (), 0, functions, cells, flip))
    kept = [(word, f) for word, f in zip(listed, estimates.tolist(), strict=True) if f >= least]
    return SfpResult(tuple(word for word, _ in kept), fragments, local, tuple(f for _, f in kept))


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
        raise UsageError(f"delta must be from 0 to 1, found {delta!r}; give a probability.")
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


def _rehash(word_hash: Hashes, word: str, symbols: Sequence[str]) -> int:
    return int(word_hash.of(0, codes([word], symbols, len(word_hash.tables)))[0])


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
