"""The forecast ladder on NumPy arrays: an engine in a page, and level 1 by DP-SIPS."""

from __future__ import annotations

import numpy as np

from dphh.absent import absent_bins, absent_negatives, spurious_grams
from dphh.classes import ValidClasses
from dphh.forecast import FirstRound, Found, Passed, climb
from dphh.ladder import PAIR, Integers, first_rung
from dphh.privacy.forecast.rounds import SIGMA_GRID, Bins, list_bin, list_weight, LIST_SIZES, norms_up
from dphh.privacy.forecast.rounds import plain_weight
from dphh.privacy.gaussian import gaussian_sigma
from dphh.udfs.noise import draw_rounded_gaussian
from dphh.udfs.randomness import SystemRandomness

OS = SystemRandomness()


def noise(sigma, n, rng):
    return draw_rounded_gaussian(OS, sigma, n, "x")


class Corpus:
    def __init__(self, P, U, W, totals):
        self.P, self.U, self.W, self.tot = P, U.astype(np.int64), W.astype(np.int64), totals
        self.users = int(U.max()) + 1


class InMemory:
    def __init__(self, P, U, G, users, rng):
        self.P, self.U, self.G, self.users, self.rng = P, U, G, users, rng

    def first_round(self, level, valid: ValidClasses, law: Bins, unit):
        self.valid, self.law = valid, law
        self.idx = np.flatnonzero(self.P[1:] == self.P[:-1] + 1)
        key = (self.G[self.idx] << PAIR) | self.G[self.idx + 1]
        self.keys, self.inv = np.unique(key, return_inverse=True)
        K = max(len(self.keys), 1)
        held = np.unique(self.U[self.idx] * K + self.inv)
        self.hu, self.hk = held // K, held % K
        self.n = np.bincount(self.hu, minlength=self.users)
        table = np.array([0] + [plain_weight(unit, t) for t in range(1, max(int(self.n.max(initial=0)), 1) + 1)])
        H = np.zeros(len(self.keys), np.int64)
        np.add.at(H, self.hk, table[self.n[self.hu]])
        self.x1 = H + noise(SIGMA_GRID, len(H), self.rng)
        self.true1 = H
        self.cls = valid.of(self.keys)
        self.bin = law.of(self.x1)
        C, J = len(valid.forecasts), len(law.starts)
        sup = np.bincount(self.cls * J + self.bin, minlength=C * J).reshape(C, J)
        self.n0 = absent_bins(valid, np.bincount(self.cls, minlength=C), law, OS, 'x')
        lists = np.bincount(list_bin(self.n[self.n > 0]), minlength=len(LIST_SIZES)) * list_weight(unit)
        return FirstRound(sup + self.n0, lists + noise(SIGMA_GRID, len(LIST_SIZES), self.rng))

    def second_round(self, weights, unit):
        C, J = weights.shape
        self.row = self.cls * J + self.bin
        g = weights.ravel()[self.row][self.hk]
        n2 = np.bincount(self.hu, weights=(g * g).astype(float), minlength=self.users).astype(np.int64)
        w = unit * g // norms_up(n2)[self.hu]
        H = np.zeros(len(self.keys), np.int64)
        np.add.at(H, self.hk, w)
        self.x2 = H + noise(SIGMA_GRID, len(H), self.rng)
        self.neg0 = absent_negatives(self.n0, self.law, OS, 'x')
        return np.bincount(self.row[self.x2 <= 0], minlength=C * J).reshape(C, J) + self.neg0

    def _held(self, keys):
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.keys[at] == keys if len(self.keys) else np.zeros(len(keys), bool)

    def passed(self, thresholds):
        keep = self.x2 >= thresholds.ravel()[self.row]
        drawn = spurious_grams(self.valid, self.n0, self.neg0, thresholds, self._held, self.law, OS, "x")
        self.spurious = len(drawn.keys)
        k = np.r_[self.keys[keep], drawn.keys]
        order = np.argsort(k)
        kept = np.flatnonzero(keep)
        released = k[order]
        # walk on: positions of released grams
        g2 = -np.ones(len(self.keys), np.int64)
        g2[kept] = np.searchsorted(released, self.keys[kept])
        G = g2[self.inv]
        a = G >= 0
        self.occ = int(a.sum())
        self.P, self.U, self.G = self.P[self.idx][a], self.U[self.idx][a], G[a]
        return Passed(released, np.r_[self.bin[kept], drawn.bins][order],
                      np.r_[self.x1[kept], drawn.first][order], np.r_[self.x2[kept], drawn.second][order])


SIPS = (0.07, 0.21, 0.72)
DELTAS = (0.02, 0.03, 0.95)
SKIP = 5
NORMAL = False


def level_one(c: Corpus, epsilon, delta, T, D0, rng, sips=SIPS, verbose=False):
    """DP-SIPS with its share 1/T of mu^2. Returns found word ids, masses, share used."""
    keys, inv = np.unique(c.W, return_inverse=True)
    K = len(keys)
    held = np.unique(c.U * K + inv)
    hu, hk = held // K, held % K
    total = gaussian_sigma(epsilon, delta / 2)
    from dphh.privacy.set_union import grid_bits, new_item_threshold, weight
    from dphh.privacy.rounded_gaussian import rounded_gaussian
    from math import ceil
    fr = np.array(sips) / (sum(sips) if NORMAL else 1)
    dl = fr if NORMAL else np.array(DELTAS)
    M = np.zeros(K); found = np.zeros(K, bool); used = 0.0
    for i, f in enumerate(fr):
        if i == 1 and found.sum() < SKIP and not NORMAL: continue
        if i == 2 and len(M) and used <= SIPS[0]: f = 1.03
        sigma = total * (T / f) ** .5
        bits = min(grid_bits(sigma, D0), 15 - int(np.ceil(np.log2(sigma))))
        sg = rounded_gaussian(ceil(sigma * 2**bits))
        rho = new_item_threshold(sg, bits, D0, dl[i] * delta / 2)
        a = ~found[hk]
        u, k = hu[a], hk[a]
        n = np.bincount(u, minlength=c.users)
        if (n > D0).any():
            o = np.lexsort((rng.random(len(u)), u)); v = u[o]
            start = np.r_[True, v[1:] != v[:-1]]
            idx = np.arange(len(v)); first = np.maximum.accumulate(np.where(start, idx, 0))
            sel = o[idx - first < D0]; u, k = u[sel], k[sel]
        n = np.minimum(n, D0)
        tab = np.array([0] + [weight(bits, t) for t in range(1, D0 + 1)])
        H = np.bincount(k, weights=tab[n[u]].astype(float), minlength=K).astype(np.int64)
        x = H + noise(sg.sigma, K, rng)
        new = (x >= rho) & ~found & (H > 0)
        M[new] = x[new] / 2**bits
        found |= new
        used += f
        if verbose: print('  level 1', i, int(new.sum()), round(float(M[found].sum())))
        if i<2 and found.sum() and (new & (x < 2 * rho)).sum() < .2 * found.sum() and (i == 0 or new.sum() <= .5 * found.sum()):
            break
    return keys, inv, found, M, used


def run(c: Corpus, epsilon, delta, T, D0, eta=0.01, seed=0, sips=SIPS, verbose=False):
    import time
    t0 = time.process_time()
    rng = np.random.default_rng(seed)
    keys, inv, found, M, used = level_one(c, epsilon, delta, T, D0, rng, sips, verbose)
    gid = np.where(found, np.cumsum(found) - 1, -1)
    G = gid[inv]; a = G >= 0
    S = int(found.sum())
    out = dict(found=[S], mass=[a.sum() / c.tot[0]], spur=[0], budget=[0.0], shares=[], cert=[], pred=[])
    eng = InMemory(c.P[a], c.U[a], G[a], c.users, rng)
    mu = 1 / gaussian_sigma(epsilon, delta / 2)
    below = S
    for k, f in enumerate(climb(first_rung(S), M[found], T, 1 - used / T, mu, eta, eng), 2):
        out["found"].append(len(f.rung)); out["mass"].append(eng.occ / c.tot[k - 1]); out["spur"].append(eng.spurious)
        out["budget"].append(eta * below); out["shares"].append(round(sum(f.shares), 3)); below = len(f.rung)
        out["pred"].append(round(f.predicted))
        if verbose: print(k, f.valid, len(f.rung), eng.spurious, f.units, round(time.process_time() - t0, 2))
    out["total"] = sum(out["found"]); out["t"] = time.process_time() - t0; out["used"] = used
    return out


def load(name):
    z = np.load(name)
    return Corpus(z["P"], z["U"], z["W"], z["tot"])
