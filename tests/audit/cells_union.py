"""Audited pairs of neighbours: `items`, `ngrams` and `counts`, the verbs of Gaussian noise.

Where the noise and the threshold are fixed beforehand, many copies of one pair stand side by side
in one corpus, with users and items of their own: each is an independent trial. The forecast ladder
plans from what it sees, so its trials are grams of many runs, and those of one run share a plan.
"""

from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from dphh import Corpus, Plan, counts, items, ngrams
from dphh.mechanisms.ngrams.levels import PrunedLevel
from dphh.mechanisms.set_union.levels import SetUnionLevel, SingleLevel
from dphh.mechanisms.set_union.methods import Method
from dphh.privacy.gaussian import gaussian_delta
from dphh.udfs.noise.table import rounded_gaussian
from dphh.udfs.rules.weights import weight
from dphh.wording.lines import with_noun
from tests.audit.corpora import WORDS, extra, groups_of, of_rows, others, written
from tests.audit.measure import Measured, counted, in_turn, released_once, scores
from tests.draws import curve

Floats = NDArray[np.float64]
#: So few others that runs are small, so many that what they hold passes.
OTHERS = 12
#: Small epsilons and large deltas: what is claimed is then seen in few runs.
UNION = {"epsilon": 2.0, "delta": 0.125, "counts": 0}
LADDER = {"epsilon": 0.2, "delta": 0.6, "counts": 0}


def _passes(level: SetUnionLevel, held: int) -> float:
    """How often a new item of a user who holds so many passes."""
    tail = rounded_gaussian(level.sigma_grid).tail_upper_bound(
        level.threshold_grid - weight(level.grid_bits, held)
    )
    return float(tail)


# items


#: What everybody else shares, so that the first round finds enough for the others to be run.
_COMMON = """
    SELECT 'common' || c || '-' || u AS who, 'common' || c AS what
    FROM range(8) AS a(c), range(300) AS b(u)
"""


def items_new(engine: str, folder: Path, size: int) -> Measured:
    return _new_item(engine, folder, size, "gaussian")


def sips_new(engine: str, folder: Path, size: int) -> Measured:
    return _new_item(engine, folder, size, "sips", _COMMON)


def _new_item(engine: str, folder: Path, size: int, method: Method, *beside: str) -> Measured:
    plan, groups = items(**UNION, max_items=1, method=method), 8000 * size
    corpus = written(folder, extra("g || '/new'", groups), *beside, item="what")
    found = scores(released_once(plan, corpus, engine))
    seen = groups_of([name for name in found if name.endswith("/new")], groups)
    none = np.prod([1 - _passes(x, 1) for x in plan.levels if isinstance(x, SetUnionLevel)])
    return Measured.of(plan, "a user of one new item", in_turn(seen), float(1 - none))


def single_new(engine: str, folder: Path, size: int) -> Measured:
    plan, groups = items(**UNION, max_items=1, method="single"), 8000 * size
    corpus = written(folder, extra("g || '/new'", groups), item="what")
    seen = groups_of([*scores(released_once(plan, corpus, engine))], groups)
    (level,) = plan.levels
    assert isinstance(level, SingleLevel)
    return Measured.of(plan, "a user of one new item", in_turn(seen), level.edge / 2**64)


def single_shared(engine: str, folder: Path, size: int) -> Measured:
    """An item of as many others as the noise reaches. Its highest score tells of the user, which
    nothing else does for sure; lower ones are likelier by at most e^epsilon."""
    plan, groups = items(**UNION, max_items=1, method="single"), 8000 * size
    (level,) = plan.levels
    assert isinstance(level, SingleLevel)
    shared = "g || '/shared'"
    corpus = written(
        folder, others(2 * level.reach, shared, groups), extra(shared, groups), item="what"
    )
    found = scores(released_once(plan, corpus, engine))
    speaks = groups_of([name for name in found if found[name] > 3 * level.reach], groups)
    says = f"a user of an item of {with_noun(2 * level.reach, 'other')}"
    return Measured.of(plan, says, in_turn(speaks), level.edge / 2**64)


def items_shared(engine: str, folder: Path, size: int) -> Measured:
    return _items_beside_others(engine, folder, size, 0)


def items_new_and_shared(engine: str, folder: Path, size: int) -> Measured:
    return _items_beside_others(engine, folder, size, 1)


def _items_beside_others(engine: str, folder: Path, size: int, new: int) -> Measured:
    """A user of one shared item and so many new ones: whichever shows first."""
    held = 1 + new
    plan, groups = items(**UNION, max_items=held, method="gaussian"), 8000 * size
    corpus = written(
        folder,
        others(OTHERS, "g || '/shared'", groups),
        extra(f"g || '/' || unnest(['shared', 'new'][:{held}])", groups),
        item="what",
    )
    found = scores(released_once(plan, corpus, engine))
    (level,) = plan.levels
    assert isinstance(level, SetUnionLevel)
    epsilon, step = plan.privacy.epsilon, weight(level.grid_bits, held) / 2.0**level.grid_bits
    mu, passes = step / level.sigma, _passes(level, held) if new else 0.0
    drawn = np.array([found[f"{g}/shared"] for g in range(groups)]) - OTHERS
    loss = step * drawn / level.sigma**2 - mu**2 / 2 + log(1 - passes)
    news = groups_of([name for name in found if name.endswith("new")], groups)
    speaks = (loss > epsilon) | news
    least = (epsilon - log(1 - passes)) / mu - mu / 2
    exact = passes + (1 - passes) * norm.sf(least) - exp(epsilon) * norm.sf(least + mu)
    says = f"a user of an item of {with_noun(OTHERS, 'other')}" + (", and a new one" if new else "")
    return Measured.of(plan, says, in_turn(speaks), float(exact))


def _sips_densities(levels: list[SetUnionLevel], users: int, at: Floats) -> tuple[Floats, float]:
    """Of an item of so many users: the density of its score, and how often it never passes."""
    left, density = 1.0, np.zeros(len(at))
    for level in levels:
        passing = at >= level.threshold
        density += left * passing * norm.pdf(at, users, level.sigma)
        left *= float(norm.cdf(level.threshold, users, level.sigma))
    return density, left


def _sips_delta(levels: list[SetUnionLevel], users: int, epsilon: float) -> float:
    at = np.linspace(0, users + 40, 40_000)
    (there, never), (away, never_away) = (
        _sips_densities(levels, number, at) for number in (users + 1, users)
    )
    more = np.maximum(there - exp(epsilon) * away, 0.0).sum() * (at[1] - at[0])
    return float(more) + max(0.0, never - exp(epsilon) * never_away)


def sips_shared(engine: str, folder: Path, size: int) -> Measured:
    """An item of as many others as tell most; it passes in whichever of the rounds it does."""
    plan, groups = items(**UNION, max_items=1, method="sips"), 8000 * size
    levels = [level for level in plan.levels if isinstance(level, SetUnionLevel)]
    epsilon = plan.privacy.epsilon
    held_by = max(range(1, 20), key=lambda users: _sips_delta(levels, users, epsilon))
    shared = "g || '/shared'"
    corpus = written(
        folder, others(held_by, shared, groups), extra(shared, groups), _COMMON, item="what"
    )
    found = scores(released_once(plan, corpus, engine))
    passed = np.array([f"{g}/shared" in found for g in range(groups)])
    drawn = np.array([found.get(f"{g}/shared", 0.0) for g in range(groups)])
    (there, never), (away, never_away) = (
        _sips_densities(levels, number, drawn) for number in (held_by + 1, held_by)
    )
    speaks = np.where(passed, there > exp(epsilon) * away, never > exp(epsilon) * never_away)
    says = f"a user of an item of {with_noun(held_by, 'other')}"
    return Measured.of(plan, says, in_turn(speaks), _sips_delta(levels, held_by, epsilon))


# ngrams


def dpne_words(engine: str, folder: Path, size: int) -> Measured:
    return _new_text(engine, folder, size, ngrams(**LADDER, max_n=2, max_items=2, method="dpne"))


def forecast_words(engine: str, folder: Path, size: int) -> Measured:
    plan = ngrams(**LADDER, max_n=2, max_items=2, method="forecast")
    return _new_text(engine, folder, size, plan)


def _new_text(engine: str, folder: Path, size: int, plan: Plan) -> Measured:
    """A text of two words that nobody else has; any piece of it in the release gives it away."""
    groups = 4000 * size
    corpus = written(folder, extra("g || '/a ' || g || '/b'", groups), **WORDS)
    release = released_once(plan, corpus, engine).to_arrow()
    # Longer grams may be nobody's: words alone give away.
    names = [tokens[0] for tokens in release["tokens"].to_pylist() if len(tokens) == 1]
    seen = groups_of(names, groups)
    words = [level for level in plan.levels if isinstance(level, SetUnionLevel)]
    exact = None  # which rounds are run follows from what all users hold
    if plan.method == "dpne":
        exact = float(1 - np.prod([(1 - _passes(level, 2)) ** 2 for level in words]))
    return Measured.of(plan, "a user of new words", in_turn(seen), exact)


GRAMS = ("a", "b", "c", "a b", "b c", "a b c")


def dpne_all_levels(engine: str, folder: Path, size: int) -> Measured:
    """A text of three words that others have too, by all six scores of its grams."""
    plan, groups = ngrams(**LADDER, max_n=3, max_items=3, method="dpne"), 4000 * size
    text = "g || '/a ' || g || '/b ' || g || '/c'"
    corpus = written(folder, others(4 * OTHERS, text, groups), extra(text, groups), **WORDS)
    found = scores(released_once(plan, corpus, engine))
    loss, squares = np.zeros(groups), 0.0
    for gram in GRAMS:
        words = gram.split()
        level = plan.levels[len(words) - 1]
        assert isinstance(level, (SetUnionLevel, PrunedLevel))
        step = weight(level.grid_bits, 4 - len(words)) / 2.0**level.grid_bits
        names = [" ".join(f"{g}/{word}" for word in words) for g in range(groups)]
        drawn = np.array([found[name] for name in names]) - 4 * OTHERS * step
        loss += step * drawn / level.sigma**2
        squares += (step / level.sigma) ** 2
    speaks = loss - squares / 2 > plan.privacy.epsilon
    exact = gaussian_delta(plan.privacy.epsilon, 1 / sqrt(squares))
    says = "a user whose words and grams others hold, all levels"
    return Measured.of(plan, says, in_turn(speaks), exact)


#: So few words that their pairs pass often by noise alone: what a new pair then tells is most.
FEW = 8
NEW_PAIR = "a user of a new pair of words that others hold"


def _pairs(alone: int) -> tuple[Corpus, list[str], list[str]]:
    """Texts of words that everybody knows, the pairs of one user each, and those of nobody."""
    words = [f"w{i}" for i in range(FEW)]
    pairs = [f"{x} {y}" for x in words for y in words]
    order = np.random.default_rng().permutation(len(pairs))
    held, absent = [pairs[i] for i in order[:alone]], [pairs[i] for i in order[alone:]]
    rows = [(f"many {i} {word}", word) for word in words for i in range(100)]
    rows += [(f"alone {i}", pair) for i, pair in enumerate(held)]
    return of_rows(rows, **WORDS), held, absent


def _new_pairs(engine: str, plan: Plan, runs: int, least: float) -> list[int]:
    """How often a new pair of released words comes out with such a score, held by one or nobody.

    With a pair fewer where nobody's are counted: what is compared are neighbours.
    """
    seen = np.zeros((2, 2), dtype=np.int64)
    for _ in range(runs):
        for row, alone in enumerate((30, 29)):
            corpus, held, absent = _pairs(alone)
            found = scores(released_once(plan, corpus, engine))
            asked = (held, absent)[row]
            seen[row] += sum(found.get(pair, -1e9) >= least for pair in asked), len(asked)
    return list(seen.ravel().tolist())


def dpne_new_pair(engine: str, folder: Path, size: int) -> Measured:
    plan = ngrams(**LADDER, max_n=2, max_items=2, spurious=0.5, method="dpne")
    level, epsilon = plan.levels[1], plan.privacy.epsilon
    assert isinstance(level, PrunedLevel)
    noise, unit = rounded_gaussian(level.sigma_grid), 2**level.grid_bits
    least = noise.smallest_with_tail_at_most(
        level.spurious * noise.tail_upper_bound(-(10**9)) / FEW
    )
    best = max(least, round((epsilon / unit * level.sigma_grid**2) + unit / 2))
    exact = float(noise.tail_upper_bound(best - unit)) - exp(epsilon) * float(
        noise.tail_upper_bound(best)
    )
    return Measured.of(plan, NEW_PAIR, _new_pairs(engine, plan, 12 * size, best / unit), exact)


def forecast_new_pair(engine: str, folder: Path, size: int) -> Measured:
    plan = ngrams(**LADDER, max_n=2, max_items=2, spurious=0.5, method="forecast")
    return Measured.of(plan, NEW_PAIR, _new_pairs(engine, plan, 12 * size, -1e6), None)


def forecast_shared_pair(engine: str, folder: Path, size: int) -> Measured:
    """A pair that others hold, by its score: the sum of what both rounds saw."""
    plan = ngrams(**LADDER, max_n=2, max_items=2, spurious=0.5, method="forecast")
    groups, held_by, drawn, there = 60, 40, [], []
    for _ in range(8 * size):
        present = np.random.default_rng().random(groups) < 0.5
        rows = [(f"{g} {h}", f"a{g} b{g}") for g in range(groups) for h in range(held_by)]
        rows += [(f"extra {g}", f"a{g} b{g}") for g in np.flatnonzero(present)]
        found = scores(released_once(plan, of_rows(rows, **WORDS), engine))
        drawn += [found[f"a{g} b{g}"] for g in range(groups)]
        there += present.tolist()
    # The score is near to its mass + noise of all that level 2 has of the budget.
    speaks, with_user = np.array(drawn) - held_by - 0.5 > 0.2, np.array(there)
    says = f"a user of a pair that {held_by} others hold, by its score"
    return Measured.of(plan, says, counted(speaks[with_user], speaks[~with_user]), None)


def purse_counts(engine: str, folder: Path, size: int) -> Measured:
    return _counts_within_purses(engine, size, leaves=False)


def purse_counts_without(engine: str, folder: Path, size: int) -> Measured:
    return _counts_within_purses(engine, size, leaves=True)


def _counts_within_purses(engine: str, size: int, leaves: bool) -> Measured:
    """A user of what 60 others hold, by the counts of it all, for which finding left enough; who
    comes, or `leaves`. With the rounds of words, what the user added is within the price."""
    plan = ngrams(**{**LADDER, "counts": 0.999}, max_n=3, max_items=6, method="forecast")
    epsilon, gaussian, groups, held_by = plan.privacy.epsilon, 0.0, 30, 60
    texts = [" ".join(f"w{group}/{place}" for place in range(6)) for group in range(groups)]
    losses, there, exact = [], [], []
    for _ in range(8 * size):
        present = np.random.default_rng().random(groups) < 0.5
        rows = [(f"{text} {other}", text) for text in texts for other in range(held_by)]
        rows += [(f"extra {group}", texts[group]) for group in np.flatnonzero(present)]
        release = released_once(plan, of_rows(rows, **WORDS), engine)
        sigma, found = release.manifest["counting"]["sigma"], scores(release, "estimate")
        (gaussian,) = (x for name, x in plan.privacy.delta_shares if name.startswith("Gaussian"))
        words = [level for level in release.manifest["levels"] if level["level"] == 1]
        of_words = sum((2.0 ** x["grid_bits"] / x["sigma_grid"]) ** 2 for x in words)
        for text in texts:
            told = [found[gram] - held_by for gram in found if gram in text]
            assert curve(epsilon, sqrt(of_words + len(told) / sigma**2)) <= gaussian
            losses.append((sum(told) - len(told) / 2) / sigma**2)
            exact.append(gaussian_delta(epsilon, sigma / sqrt(len(told))))
        there += present.tolist()
    speaks, with_user = np.array(losses) > epsilon, np.array(there)
    if leaves:  # the other direction
        speaks, with_user = np.array(losses) < -epsilon, ~with_user
    says = f"a user of finds that {held_by} others hold, by their counts"
    says += ", the other direction" if leaves else ""
    seen = counted(speaks[with_user], speaks[~with_user])
    return Measured.of(plan, says, seen, float(np.mean(exact)))


# counts


def counts_within(engine: str, folder: Path, size: int) -> Measured:
    """A user of just as many of the items as count whole, by all that is said of them."""
    groups, held = 2000 * size, 16
    names = [f"{g}/{i}" for g in range(groups) for i in range(held)]
    plan = counts(of=[[name] for name in names], epsilon=0.3, delta=0.3, max_held=held)
    all_of_group = f"g || '/' || unnest(range({held}))"
    corpus = written(
        folder, others(OTHERS, all_of_group, groups), extra(all_of_group, groups), item="what"
    )
    found = scores(released_once(plan, corpus, engine), "users")
    (level,) = plan.levels
    sigma, epsilon = level.sigma, plan.privacy.epsilon
    drawn = np.array([found[name] for name in names]).reshape(groups, held).sum(axis=1)
    speaks = (drawn - held * OTHERS - held / 2) / sigma**2 > epsilon
    says = f"a user of {held} of {held * groups:,} items, who counts whole"
    return Measured.of(plan, says, in_turn(speaks), gaussian_delta(epsilon, sigma / sqrt(held)))


def counts_over(engine: str, folder: Path, size: int) -> Measured:
    """A user of all items, four times those that count whole: weights and what bounding took."""
    return _by_all_that_is_told(engine, size, max_held=16)


def counts_weighed(engine: str, folder: Path, size: int) -> Measured:
    """The same, where rough counts and a histogram come first, by which the run weighs."""
    return _by_all_that_is_told(engine, size, max_held=None)


def _by_all_that_is_told(engine: str, size: int, max_held: int | None) -> Measured:
    """By the likelihood ratio of each release in turn, given those before it."""
    held = 64
    names = [f"i{i}" for i in range(held)]
    plan = counts(of=[[name] for name in names], epsilon=0.3, delta=0.3, max_held=max_held)
    (level,) = plan.levels
    epsilon = plan.privacy.epsilon
    rows = [(f"{i} {h}", [name]) for i, name in enumerate(names) for h in range(OTHERS)]
    losses: list[list[float]] = [[], []]

    def told(drawn: Any, without: Any, adds: Any, sigma: float) -> float:
        seen = np.asarray(drawn) - without
        return float((seen @ adds - adds @ adds / 2) / sigma**2)

    for there in (True, False):
        with_user = [*rows, ("extra", names)] if there else rows
        corpus = of_rows(with_user, text="what", as_="list")
        for _ in range(40 * size):
            release = released_once(plan, corpus, engine)
            (said,) = release.manifest["levels"]
            loss, drawn = 0.0, level
            if level.rough_sigma:
                adds = np.full(held, np.floor(2**level.rough_bits / sqrt(held)))
                without = OTHERS * 2**level.rough_bits
                loss += told(said["rough_grid"], without, adds, level.rough_sigma)
                drawn = drawn.weighed_by(np.array(said["rough_grid"]))
            if level.held_sigma:
                in_bins = np.array(said["held_grid"])
                tops = drawn.histogram.tops
                # Of others each holds one item, the user all.
                bins = np.searchsorted(tops, drawn.weighing.factor**2)
                without = OTHERS * np.bincount(bins, minlength=len(tops))
                loss += told(in_bins, without, np.eye(len(tops))[-1], level.held_sigma)
                drawn = drawn.chosen_by(in_bins)
            weighing = drawn.weighing
            weights = weighing.weights(np.array([weighing.most]), np.array([weighing.least_cap]))
            report = weighing.lost(weights)[: weighing.losses]
            user = weighing.unit * weighing.factor
            estimates = scores(release, "estimate")
            of_keys = np.array([estimates[name] for name in sorted(names)]) * user
            loss += told(
                np.append(of_keys, said["lost_grid"]),
                np.append(OTHERS * user, np.zeros(len(report))),
                np.append(weighing.factor * weights, report),
                drawn.sigma_grid,
            )
            losses[not there].append(loss)
    speaks = [np.array(loss) > epsilon for loss in losses]
    if max_held is None:
        says = f"a user of {held} items, by all that is told"
        return Measured.of(plan, says, counted(*speaks), None)
    mu = sqrt(held * weights[0] ** 2 + report[0] ** 2) / drawn.sigma_grid
    says = f"a user of {held} items, who counts for less"
    return Measured.of(plan, says, counted(*speaks), gaussian_delta(epsilon, 1 / mu))


CELLS = (
    items_new, single_new, single_shared, items_shared, items_new_and_shared, sips_new,
    sips_shared, dpne_words, dpne_new_pair, dpne_all_levels, forecast_words,
    forecast_new_pair, forecast_shared_pair, purse_counts, purse_counts_without, counts_within,
    counts_over, counts_weighed,
)  # fmt: skip
