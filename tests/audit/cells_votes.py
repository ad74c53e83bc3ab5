"""Audited pairs of neighbours: `trie` and `ldp_trie`."""

from dataclasses import replace
from itertools import product
from math import comb, exp
from pathlib import Path

import numpy as np
import polars as pl

from dphh import Corpus, ldp_trie, trie
from dphh.mechanisms.trie.path import path_guarantee
from tests.audit.corpora import extra, groups_of, others, written
from tests.audit.measure import Measured, counted, in_turn, released_once, scores


def trie_path(engine: str, folder: Path, size: int) -> Measured:
    """theta - 1 others hold the user's first token: without the user it never grows."""
    p, theta, epsilon, groups = 0.6, 2, 1.0, 4000 * size
    delta = path_guarantee(epsilon, p, theta, 2)[1] * 1.001
    plan = trie(epsilon=epsilon, delta=delta, max_length=2, theta=theta, p=p)
    word = "[g || '/x']"
    corpus = written(
        folder, others(theta - 1, word, groups), extra(word, groups), text="what", as_="list"
    )
    grown = groups_of(scores(released_once(plan, corpus, engine), "level"), groups)
    says = f"a user of a token that {theta - 1} other holds"
    return replace(Measured.of(plan, says, in_turn(grown), p**theta), method="path")


def ldp_trie_sums(engine: str, folder: Path, size: int) -> Measured:
    """One contribution is "ab" or "cd", all others are "ef": by how many reports hold the two."""
    users = 20
    plan = ldp_trie(
        local_epsilon=2.0, delta=0.2, users_per_level=users, contributions=1, max_length=1,
        keep=110, character_set="abcdefghij",
    )  # fmt: skip
    mechanism, epsilon = plan.levels[0].mechanism, plan.privacy.central_epsilon
    assert epsilon is not None
    law, other = _laws(users, mechanism)
    likelier = law > exp(epsilon) * other
    speaks: list[list[bool]] = [[], []]
    for row, word in enumerate(("ab", "cd")):
        frame = pl.DataFrame({"who": range(users), "what": [word] + ["ef"] * (users - 1)})
        corpus = Corpus(frame, user="who", item="what")
        for _ in range(30 * size):
            found = scores(released_once(plan, corpus, engine))
            of = [_reports(found.get(name), users, mechanism) for name in ("ab", "cd")]
            speaks[row].append(bool(likelier[of[0], of[1]]))
    exact = float(np.maximum(law - exp(epsilon) * other, 0.0).sum())
    says = f"one of {users} contributions replaced, by the counts of both"
    seen = counted(*map(np.array, speaks))
    return replace(Measured.of(plan, says, seen, exact), epsilon=epsilon)


def _reports(score: float | None, users: int, mechanism) -> int:
    """How many reports held a value, from its published estimate; what none holds is not kept."""
    if score is None:
        return 0
    p, q = mechanism.p, mechanism.q
    return round(score * (p - q) + users * q)


def _laws(users: int, mechanism) -> tuple[np.ndarray, np.ndarray]:
    """P[so many reports hold "ab", so many "cd"], where one user holds the first, or the second."""
    s, d, p = mechanism.domain, mechanism.size, mechanism.p
    q = mechanism.q
    # Of one report: (first, second) in it, where it holds a third value, or the first.
    both = comb(s - 3, d - 3) / comb(s - 1, d - 1) * p + comb(s - 3, d - 2) / comb(s - 1, d) * (
        1 - p
    )
    third = np.array([[1 - 2 * q + both, q - both], [q - both, both]])
    beside = p * (d - 1) / (s - 1)
    first = np.array([[1 - p - (q - beside), q - beside], [p - beside, beside]])
    law = np.ones((1, 1))
    for _ in range(users - 1):
        law = _added(law, third)
    return _added(law, first), _added(law, first.T)


def _added(law: np.ndarray, one: np.ndarray) -> np.ndarray:
    result = np.zeros((law.shape[0] + 1, law.shape[1] + 1))
    for x, y in product(range(2), repeat=2):
        result[x : x + law.shape[0], y : y + law.shape[1]] += one[x, y] * law
    return result


CELLS = (trie_path, ldp_trie_sums)
