"""What is drawn is what is priced, what is booked and what is written: every verb, every method.

Each run below is recorded where it asks its generator (`asked.py`). What was asked for, draw by
draw, is compared with the manifest's levels, with the events that the ledger booked before, and
with those that it still counts after it gave back what never ran. What a level has to draw is
worked out from its texts and from what was released below, in plain Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import exp, log, log1p, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from dphh import Corpus, Ledger, Plan, Release, counts, items, ldp_trie, ngrams, trie
from dphh.ledger import source_of
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.udfs.randomness import ONCE_A_RUN
from tests.engines.asked import Asked, Draw, Listening, is_of, recorded
from tests.engines.ladders import Gram, grams_of, valid

#: What sums of floats lose, here and there.
CLOSE = 1e-6
Tokens = list[str]
Rows = list[tuple[int, Tokens]]


@dataclass(frozen=True)
class Case:
    plan: Callable[[Corpus], Plan]
    rows: Rows
    #: The levels that draw, as (level, round), or the level alone: the way that this run takes.
    way: tuple[Any, ...]
    #: Whether something that was priced never runs.
    gives_back: bool = False


def words_of(user: int, *how_many: int) -> Tokens:
    return [f"w{user % many}" for many in how_many]


#: Words that everybody meets.
COMMON: Rows = [(user, [f"w{(7 * user + i) % 12}" for i in range(5)]) for user in range(900)]
#: The same, and as many that just pass the second round's threshold.
NEAR: Rows = [*COMMON, *((1_000 + user, [f"v{user % 60}"]) for user in range(900))]
#: Three words, and nothing else: fewer than any round of common ones.
FEW: Rows = [(user, ["a", "b", "a", "c", "b", f"own {user}"]) for user in range(600)]
#: Nothing that two people share.
ALONE: Rows = [(user, [f"own {user}", f"other {user}"]) for user in range(40)]
#: Everybody has a word of common words, in two rows, and lone letters.
SPELLED: Rows = [
    (user, tokens)
    for user in range(600)
    for tokens in 2 * [["a", "bc"[user % 2], "d"][: 2 + user % 2]]
] + [(user, ["z", str(user)]) for user in range(600, 640)]

LOOSE = {"epsilon": 8.0, "delta": 1e-4}
FORECAST = partial(ngrams, max_items=5, spurious=0.5, **LOOSE)
LOCAL = partial(
    ldp_trie, local_epsilon=6, delta=1e-6, users_per_level=200, contributions=2, max_length=2,
    keep=6, character_set=list("abcdz"), pad=True,
)  # fmt: skip
PAIRS = [("w1",), ("w2",), ("w1", "w8"), ("not", "there")]

CASES = {
    "items": Case(partial(items, max_items=4, **LOOSE), COMMON, ((1, 1),)),
    "items, counted": Case(partial(items, max_items=4, counts=0.3, **LOOSE), COMMON, ((1, 1),)),
    "sips": Case(
        partial(items, max_items=4, method="sips", **LOOSE), NEAR, ((1, 1), (1, 2), (1, 3))
    ),
    "sips, one round for two": Case(
        partial(items, max_items=4, method="sips", counts=0.3, **LOOSE), FEW, ((1, 1), (1, 2)), True
    ),
    "forecast, three rounds of words": Case(
        partial(FORECAST, max_n=3), NEAR, ((1, 1), (1, 2), (1, 3), 2, 3)
    ),
    "forecast, words found early": Case(
        partial(FORECAST, max_n=3, counts=0.3), COMMON, ((1, 1), (1, 2), 2, 3), True
    ),
    "forecast, words in one round": Case(
        partial(FORECAST, max_n=3), FEW, ((1, 1), (1, 3), 2, 3), True
    ),
    "forecast, words in one round, counted": Case(
        partial(FORECAST, max_n=3, counts=0.5), FEW, ((1, 1), (1, 3), 2, 3), True
    ),
    "forecast of words alone": Case(partial(FORECAST, max_n=1), FEW, ((1, 1), (1, 3)), True),
    "forecast of nothing": Case(
        partial(FORECAST, max_n=4, counts=0.3), ALONE, ((1, 1), (1, 3)), True
    ),
    "dpne": Case(partial(FORECAST, max_n=3, method="dpne"), COMMON, ((1, 1), 2, 3)),
    "dpne, one side": Case(
        partial(FORECAST, max_n=3, method="dpne", pruning="single", decay=0.8, counts=0.3),
        COMMON,
        ((1, 1), 2, 3),
    ),
    "dpne of nothing": Case(partial(FORECAST, max_n=3, method="dpne"), ALONE, ((1, 1),), True),
    "dpsu-all": Case(partial(FORECAST, max_n=2, method="dpsu-all"), COMMON, ((1, 1),)),
    "dpsu-even": Case(
        partial(FORECAST, max_n=2, method="dpsu-even", counts=0.3), COMMON, ((1, 1), (2, 1))
    ),
    "dpsu-single": Case(partial(FORECAST, max_n=2, method="dpsu-single"), COMMON, ((2, 1),)),
    "counts": Case(partial(counts, of=PAIRS, max_items=3, **LOOSE), COMMON, (1,)),
    "trie": Case(partial(trie, max_length=4, **LOOSE), SPELLED, (1, 2, 3, 4)),
    "trie that stops growing, counted": Case(
        partial(trie, max_length=6, counts=0.3, max_items=2, **LOOSE), SPELLED, (1, 2, 3, 4)
    ),
    "trie of the paper": Case(
        partial(trie, max_length=3, accounting="paper", users=2_000, epsilon=8.0, delta=1e-2),
        SPELLED,
        (1, 2, 3),
    ),
    "ldp_trie": Case(LOCAL, SPELLED, (1, 2)),
    "ldp_trie, aggregate": Case(partial(LOCAL, mode="aggregate"), SPELLED, (1, 2)),
}


@dataclass
class Run:
    """One run, as each of those who tell of it tells it."""

    plan: Plan
    rows: Rows
    release: Release
    asked: Asked
    booked: tuple[Any, ...]
    #: What the ledger counts since it gave back what never ran.
    kept: tuple[Any, ...]

    @property
    def levels(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.release.manifest["levels"]
        return found

    def released(self, level: int) -> set[Gram]:
        table = self.release.to_polars().filter(pl.col("level") == level)
        return {tuple(tokens) for tokens in table["tokens"].to_list()}

    def held(self, length: int) -> set[Gram]:
        return set().union(*(grams_of(tokens, length) for _, tokens in self.rows))


def corpus_of(folder: Path, rows: Rows) -> Corpus:
    path = folder / "corpus.parquet"
    pl.DataFrame(
        {"who": [user for user, _ in rows], "what": [tokens for _, tokens in rows]}
    ).write_parquet(path)
    return Corpus(path, user="who", text="what", as_="list")


def ran(engine: str, case: Case, folder: Path, *, is_test: bool = False) -> Run:
    corpus = corpus_of(folder, case.rows)
    book = Ledger(folder / "ledger.sqlite")
    book.add("corpus", source_of(corpus), 1_000.0, 0.5)
    plan = case.plan(corpus)
    with recorded(engine) as asked:
        randomness = Listening(asked, 1, is_test=is_test)
        release = plan.run(engine=engine, ledger=book, run_id="one", randomness=randomness)
    (entry,) = book.runs()
    assert entry.state == "settled"
    kept = entry.events if entry.drawn is None else entry.drawn
    written = release.manifest.get("drawn")
    assert written == (None if entry.drawn is None else [event.to_json() for event in kept])
    assert release.manifest["events"] == [event.to_json() for event in entry.events]
    given_back = book.status("corpus").given_back
    assert (given_back is not None) == (entry.drawn is not None) == case.gives_back
    return Run(plan, case.rows, release, asked, entry.events, kept)


# What events say, and what the noise and the thresholds that were asked for come to.


def noise_of(events: Sequence[Any]) -> float:
    """The sum of 1 / sigma^2."""
    return sum(event.sigma**-2 for event in events if event.kind in ("gaussian", "set union"))


def delta_of(events: Sequence[Any]) -> float:
    return sum(event.delta for event in events if event.kind in ("delta", "set union"))


def curve(epsilon: float, mu: float) -> float:
    """Delta of a Gaussian mechanism (Balle & Wang 2018)."""
    return float(ndtr(mu / 2 - epsilon / mu) - exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def new_items(level: dict[str, Any]) -> float:
    """How likely one of a user's own new items, whatever their number, passes the threshold."""
    held = np.arange(1, level["max_items"] + 1)
    own = np.floor(2 ** level["grid_bits"] / np.sqrt(held))
    passes = norm.sf((level["threshold_grid"] - own - 0.5) / level["sigma_grid"])
    return float((-np.expm1(held * np.log1p(-passes))).max())


@dataclass
class Spent:
    """By one step: 1 / sigma^2, and what a threshold let through."""

    noise: float = 0.0
    delta: float = 0.0


# What each kind of level has to draw. Whatever is said of a level was asked, and just so often.


def of_noise(draws: Sequence[Draw], sigma_grid: int) -> int:
    """How many values of noise were drawn, all of this sigma."""
    noise = [draw for draw in draws if draw.name == "draw_rounded_gaussian"]
    assert {draw.asked["sigma"] for draw in noise} <= {sigma_grid}
    return sum(draw.asked["count"] for draw in noise)


def words_for(run: Run, step: str, draws: Sequence[Draw], drawn: int) -> None:
    """Each value of noise has taken a word of the run's own generator."""
    purposes = {draw.purpose for draw in draws if draw.name == "draw_rounded_gaussian"}
    assert sum(run.asked.words[purpose] for purpose in purposes) == drawn


def set_union(run: Run, step: str, level: dict[str, Any], before: int) -> Spent:
    """Of all that is held: `before` were released already."""
    lengths = [level["level"]]
    if run.plan.price.method == "dpsu-all":
        lengths = [each["level"] for each in run.levels]
    draws = run.asked.of(step)
    drawn = of_noise(draws, level["sigma_grid"])
    assert drawn == sum(len(run.held(length)) for length in lengths) - before
    assert {draw.name for draw in draws} <= {"draw_rounded_gaussian"}
    words_for(run, step, draws, drawn)
    sigma = level["sigma_grid"] / 2.0 ** level["grid_bits"]
    assert level["sigma"] == sigma
    assert level["threshold"] == level["threshold_grid"] / 2.0 ** level["grid_bits"]
    return Spent(sigma**-2, new_items(level))


def above(run: Run, level: dict[str, Any], pruning: str) -> tuple[set[Gram], set[Gram]]:
    """Of a longer length: the valid grams that somebody holds, and the others that came out."""
    length = level["level"]
    below = [run.released(each) for each in range(1, length)]
    held = {gram for gram in run.held(length) if valid(gram, below, pruning)}
    return held, run.released(length) - held


def pruned(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    held, spurious = above(run, level, level["pruning"])
    draws = run.asked.of(step)
    drawn = of_noise(draws, level["sigma_grid"])
    assert drawn == len(held)
    words_for(run, step, draws, drawn)
    (number,) = (draw for draw in draws if draw.name == "draw_binomial")
    tail = rounded_gaussian(level["sigma_grid"]).tail(level["threshold_grid"])
    assert (number.asked["n"], number.asked["p"]) == (level["valid"] - len(held), tail)
    assert drawn_above(draws, level["sigma_grid"]) == (
        {level["threshold_grid"]: len(spurious)} if spurious else {}
    )
    sigma = level["sigma_grid"] / 2.0 ** level["grid_bits"]
    assert level["sigma"] == sigma
    return Spent(sigma**-2)


def drawn_above(draws: Sequence[Draw], sigma_grid: int) -> dict[int, int]:
    """Of draws that are given to lie above something: how many above what."""
    found: Counter[int] = Counter()
    for draw in draws:
        if draw.name == "draw_between" and draw.asked.get("end") is None:
            assert draw.asked["sigma"] == sigma_grid
            found[draw.asked["floor"]] += draw.asked["count"]
    return {floor: count for floor, count in found.items() if count}


def forecast(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    held, spurious = above(run, level, "both")
    rounds, draws = run.asked.rounds[level["level"]], run.asked.of(step)
    assert rounds.sigma_grid == level["sigma_grid"]
    drawn = of_noise(draws, level["sigma_grid"])
    # Either round once for each gram that is held, and the list sizes.
    assert drawn == 2 * len(held) + rounds.lists
    words_for(run, step, draws, drawn)
    assert sum(drawn_above(draws, level["sigma_grid"]).values()) == len(spurious)
    spent = 0.0
    for name, unit in zip(("first_sigma", "second_sigma"), rounds.units, strict=True):
        sigma = rounds.sigma_grid / unit
        # A unit is a whole number, rounded down: what is drawn is no less, and hardly more.
        assert level[name] * (1 - CLOSE) <= sigma <= level[name] * (1 + CLOSE) * (1 + 1 / unit)
        spent += sigma**-2
    return Spent(spent)


def counted(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    draws = run.asked.of(step)
    drawn = of_noise(draws, level["sigma_grid"])
    assert drawn == level["keys"] + len(level["lost_grid"])
    words_for(run, step, draws, drawn)
    unit = 2.0 ** level["grid_bits"]
    assert level["sigma"] == level["sigma_grid"] / unit
    sigma = level["sigma_grid"] / (unit * sqrt(level["max_items"]))
    assert level["relative_sigma"] <= sigma * (1 + CLOSE)
    return Spent(sigma**-2)


def vote(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    draws = run.asked.of(step)
    assert {(draw.name, draw.asked["numerator"], draw.asked["theta"]) for draw in draws} == {
        ("draw_votes", level["numerator"], level["theta"])
    }
    (growing,) = (event for event in run.booked if event.kind == "approximate")
    p, theta = level["numerator"] / 2.0**64, level["theta"]
    assert -log1p(-p) <= growing.epsilon and p**theta <= growing.delta
    # One sequence of each user goes down, where its beginning has grown.
    length = level["level"]
    of_users = {user: tuple(tokens) for user, tokens in run.rows}
    there = run.released(length - 1) if length > 1 else {()}
    going = Counter(
        (tokens[:length], len(tokens) < length)
        for tokens in of_users.values()
        if len(tokens) >= length - 1 and tokens[: length - 1] in there
    )
    voters = [users for draw in draws for users in draw.asked["users"].tolist()]
    assert sorted(voters) == sorted(going.values())
    assert run.asked.words[step] <= sum(going.values())
    return Spent()


def batch(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    assert not run.asked.of(step)
    assert run.asked.words[step] == level["users"] == run.plan["users"]
    assert 0 < level["batch"] < level["users"]
    return Spent()


def local(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    reports = level["users"] * level["contributions"]
    assert level["users"] == run.plan["users_per_level"]
    (told,) = (event for event in run.booked if event.kind == "local")
    sent = 0
    for draw in run.asked.of(step):
        mechanism = draw.asked["mechanism"]
        assert (mechanism.domain, mechanism.size, mechanism.numerator) == (
            level["domain"], level["size"], level["numerator"],
        )  # fmt: skip
        if draw.name == "draw_subsets":
            sent += len(draw.asked["values"])
        else:
            assert draw.name == "draw_aggregate"
            assert draw.asked["counts"].sum() == draw.asked["users"]
            sent += draw.asked["users"]
    assert sent == reports
    # Subset selection: one value of s, told in a set of d with probability p.
    s, d, p = level["domain"], level["size"], level["numerator"] / 2.0**64
    q = (d - p) / (s - 1)
    together = log(p * (s - d) / (d * (1 - p)))
    apart = log(p * (1 - q) / (q * (1 - p)))
    tells = together if level["mode"] == "messages" else apart
    assert tells <= told.epsilon / level["contributions"] * (1 + CLOSE)
    return Spent()


KINDS = {
    "set_union": set_union,
    "pruned": pruned,
    "forecast": forecast,
    "counts": counted,
    "vote": vote,
    "batch": batch,
    "local": local,
}


def drew(run: Run) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Each step that was stored and the level that the manifest has of it; and how many items of
    the same length were released before. Steps come as levels do; no level is left but those that
    could not draw."""
    steps = list(run.asked.steps)
    levels = list(run.levels)
    if run.plan.price.method == "dpsu-all":  # one draw for all lengths
        assert len({(x["sigma_grid"], x["threshold_grid"], x["max_items"]) for x in levels}) == 1
        levels = levels[:1]
    released: Counter[int] = Counter()
    grows = True
    for level in levels:
        if level.get("valid") == 0 or not grows:
            assert level["released"] == 0
            continue
        yield steps.pop(0), level, released[level["level"]]
        released[level["level"]] += level["released"]
        if level["kind"] in ("vote", "batch"):
            table = run.release.to_polars().filter(pl.col("level") == level["level"])
            grows = not table["ended"].all()
    if (counting := run.release.manifest.get("counting")) and counting["counted"]:
        yield steps.pop(0), {"kind": "counts", **counting}, 0
    assert not steps, "something was drawn that the manifest has nothing of"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_what_is_drawn_is_what_is_priced_booked_and_written(
    engine: str, case: str, tmp_path: Path
) -> None:
    run = ran(engine, CASES[case], tmp_path)
    told = list(drew(run))
    ways = [
        (level["level"], level["round"]) if level["kind"] == "set_union" else level["level"]
        for _, level, _ in told
        if level["kind"] != "counts" or run.plan.verb == "counts"
    ]
    assert tuple(ways) == CASES[case].way

    # Nothing was drawn beside these steps, but what a run draws once.
    steps = [step for step, _, _ in told]
    assert len(set(steps)) == len(steps)
    for purpose in run.asked.words:
        of = [step for step in steps if is_of(purpose, step)]
        assert len(of) == (not any(is_of(purpose, once) for once in ONCE_A_RUN)), purpose
    for draw in run.asked.draws:
        assert any(is_of(draw.purpose, step) for step in steps), draw

    spent = [KINDS[level["kind"]](run, step, level, before) for step, level, before in told]
    noise, delta = sum(each.noise for each in spent), sum(each.delta for each in spent)

    # All that was drawn was booked before, and stays booked.
    assert run.booked == run.plan.events
    for events in (run.booked, run.kept):
        assert noise <= noise_of(events) * (1 + CLOSE), "more was drawn than is booked"
        assert delta <= delta_of(events) * (1 + CLOSE), "more passes than is booked"
    # What was not drawn comes back, but for what rounding to integers took.
    assert noise_of(run.kept) <= noise * 1.01
    assert delta_of(run.kept) <= delta * 1.03 + 1e-3 * run.plan.privacy.delta
    others = [event for event in run.booked if event.kind not in ("gaussian", "delta", "set union")]
    assert [event for event in run.kept if event in others] == others

    # And keeps the promise, by the curve alone, with which thresholds share a delta.
    if not others:
        promised = run.plan.privacy
        apart = {event.kind for event in run.booked} <= {"gaussian", "delta"}
        assert curve(promised.epsilon, sqrt(noise)) + delta * apart <= promised.delta


# A run that was cut short draws what is left, and pays for all.


class CutShortError(Exception):
    pass


SEVERAL = [name for name, case in CASES.items() if len(case.way) > 1 and "ldp" not in name]


@pytest.mark.parametrize("case", SEVERAL)
def test_a_run_that_goes_on_draws_each_step_once_and_books_the_same(
    case: str, tmp_path: Path
) -> None:
    """On one engine: what is drawn again is the journal's to say. Cut after every level, it comes
    to what it comes to in one go."""
    whole = ran("polars", CASES[case], tmp_path, is_test=True)
    corpus = corpus_of(tmp_path, CASES[case].rows)
    book = Ledger(tmp_path / "again.sqlite")
    book.add("corpus", source_of(corpus), 1_000.0, 0.5)
    plan = CASES[case].plan(corpus)
    seen: set[str] = set()
    asked, release = [], None
    while release is None:

        def stop(line: str) -> None:
            if line.startswith("level") and len(steps := asked[-1].steps) and steps[-1] not in seen:
                seen.add(steps[-1])
                raise CutShortError

        with recorded("polars") as found, suppress(CutShortError):
            asked.append(found)
            release = plan.run(
                engine="polars",
                ledger=book,
                run_id="one",
                randomness=Listening(found, 1, is_test=True),
                progress=stop,
            )
    assert len(asked) > len(CASES[case].way)
    steps = [step for each in asked for step in each.steps]
    assert steps == whole.asked.steps
    for each in asked:
        purposes = [purpose for purpose in each.words if purpose not in ONCE_A_RUN]
        assert all(any(is_of(purpose, step) for step in each.steps) for purpose in purposes)
    for step in steps:
        draws = [draw for each in asked for draw in each.of(step)]
        assert told_of(draws) == told_of(whole.asked.of(step))
    assert release.manifest == whole.release.manifest
    assert release.to_arrow() == whole.release.to_arrow()
    (entry,) = book.runs()
    assert (entry.events if entry.drawn is None else entry.drawn) == whole.kept


def told_of(draws: Sequence[Draw]) -> list[tuple[str, str, Any]]:
    return sorted(
        (draw.name, draw.purpose, str(draw.asked.get("sigma", draw.asked.get("numerator"))))
        for draw in draws
    )
