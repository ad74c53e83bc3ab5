"""What is drawn is what is priced, what is booked and what is written: every verb, every method.

Each run is recorded where it asks its generator (`recorded_runs.py`). What was asked for, draw by
draw, is compared with the manifest's levels, with the events that the ledger booked before, and
with those that it still counts after it gave back what never ran. What a level has to draw is
worked out from its texts and from what was released below, in plain Python.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, log1p, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from dphh import Corpus
from dphh.mechanisms.set_union.methods import METHODS
from dphh.udfs.noise.randomness import PURPOSES_FIXED_IN_RUN
from dphh.udfs.noise.table import rounded_gaussian
from tests.conftest import full
from tests.draws import curve
from tests.engines.ladders import Gram, valid
from tests.engines.recorded_runs import CASES, LADDER, Draw, Run, is_of, ran

#: What sums of floats lose, here and there.
CLOSE = 1e-6


def test_every_method_of_a_set_union_has_its_run_here():
    """A new one too: it is in the registry."""
    nowhere = Corpus("nowhere.parquet", user="who", text="what", as_="list")
    assert {case.plan(nowhere).price.method for case in CASES.values()} >= {*METHODS}


# What events say, and what the noise and the thresholds that were asked for come to.


def noise_of(events: Sequence[Any]) -> float:
    """The sum of 1 / sigma^2; of two ways, of the one with less noise."""
    told = [event.sigma for event in events if event.kind in ("gaussian", "set union")]
    for event in events:
        if event.kind == "chosen set union":
            told += [event.before, min(event.sigma, event.rounds_sigma)]
    return sum(sigma**-2 for sigma in told)


def delta_of(events: Sequence[Any]) -> float:
    chosen = [event for event in events if event.kind == "chosen set union"]
    return sum(event.delta for event in events if event.kind in ("delta", "set union")) + sum(
        max(event.delta, event.rounds_delta) for event in chosen
    )


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
    draws = run.asked.of(step)
    drawn = of_noise(draws, level["sigma_grid"])
    assert drawn == len(run.held(level["level"])) - before
    assert {draw.name for draw in draws} <= {"draw_rounded_gaussian"}
    words_for(run, step, draws, drawn)
    sigma = level["sigma_grid"] / 2.0 ** level["grid_bits"]
    assert level["sigma"] == sigma
    assert level["threshold"] == level["threshold_grid"] / 2.0 ** level["grid_bits"]
    return Spent(sigma**-2, new_items(level))


def any_new_items(level: dict[str, Any]) -> float:
    """The same whatever a user gives to each: one heavy item and others alike, or all alike."""
    unit, most = 2 ** level["grid_bits"], level["max_items"]
    heavy = np.linspace(0, unit, 4 * unit + 1)
    rest = np.sqrt((unit**2 - heavy**2) / max(most - 1, 1))
    one, others = (
        norm.sf((level["threshold_grid"] - own - 0.5) / level["sigma_grid"])
        for own in (heavy, rest)
    )
    return float((one + (most - 1) * others).max())


def weighed(run: Run, step: str, level: dict[str, Any], before: int) -> Spent:
    """A later round, inside the one draw of all."""
    return Spent(set_union(run, step, level, before).noise, any_new_items(level))


def above(run: Run, level: dict[str, Any]) -> tuple[set[Gram], set[Gram]]:
    """Of a longer length: the valid grams that somebody holds, and the others that came out."""
    length = level["level"]
    parts = (set(run.early(each)) if run.asked.rounds else run.released(each)
             for each in range(1, length))  # fmt: skip
    below = [*parts]
    held = {gram for gram in run.held(length) if valid(gram, below)}
    return held, run.released(length) - held


def pruned(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    held, spurious = above(run, level)
    draws = run.asked.of(step)
    drawn = of_noise(draws, level["sigma_grid"])
    assert drawn == len(held)
    words_for(run, step, draws, drawn)
    (number,) = (draw for draw in draws if draw.name == "draw_binomial")
    tail = rounded_gaussian(level["sigma_grid"]).tail_upper_bound(level["threshold_grid"])
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
        if draw.name == "draw_noise_at_least" and draw.asked.get("below") is None:
            assert draw.asked["sigma"] == sigma_grid
            found[draw.asked["least"]] += draw.asked["count"]
    return {floor: count for floor, count in found.items() if count}


def forecast(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    held, spurious = above(run, level)
    (rounds,) = (each for each in run.asked.rounds if each.level == level["level"])
    draws, late = run.asked.of(step), run.asked.of(f"{step}, late")
    assert rounds.law.noise.sigma == level["sigma_grid"]
    drawn = of_noise(draws, level["sigma_grid"])
    # Either round once for each gram that is held; and users by list size and by purse.
    assert drawn == 2 * len(held) + rounds.users.size
    words_for(run, step, draws, drawn)
    # The late round once for each gram that is held or was released.
    early_spurious = sum(drawn_above(draws, level["sigma_grid"]).values())
    drawn_late = of_noise(late, level["sigma_grid"])
    assert drawn_late == len(held) + early_spurious == len(held | set(run.early(level["level"])))
    words_for(run, step, late, drawn_late)
    late_spurious = sum(drawn_above(late, level["sigma_grid"]).values())
    assert early_spurious + late_spurious == len(spurious)
    # All rounds of all levels take from the one purse that users got.
    purse = run.asked.purses[-1]
    taken = rounds.first, rounds.second, rounds.late.spending
    assert {each.full for each in taken} == {purse}
    assert taken[0].first == taken[1].first and taken[2].first == 0
    return Spent()


def late_purses(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    """The ladder's purses: what all of it may cost; and users counted once more."""
    draws, rounds = run.asked.of(step), run.asked.rounds
    drawn = of_noise(draws, level["sigma_grid"])
    assert drawn == 8 * len([each for each in rounds if each.level > 1])
    words_for(run, step, draws, drawn)
    assert rounds.counted is not None and rounds.counted.full == run.asked.purses[-1]
    return Spent(run.asked.purses[-1] / level["sigma_grid"] ** 2)


def listed_words(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    """Either round once for each word of the list that is held and each other one that somebody
    counts for, and the list sizes."""
    listed = {(word,) for word in run.plan.price.prior.vocabulary.to_pylist()}
    held, released = run.held(1), run.released(1)
    assert level["listed"] == len(listed)
    most = max(len(set(tokens)) for _, tokens in run.rows)
    assert most <= level["max_items"], "a case in which some word is counted by nobody"
    rounds, draws = run.asked.rounds[0], run.asked.of(step)
    drawn = of_noise(draws, level["sigma_grid"])
    assert drawn == 2 * len(held) + rounds.users.size
    words_for(run, step, draws, drawn)
    spurious = released - held
    assert spurious <= listed
    assert sum(drawn_above(draws, level["sigma_grid"]).values()) == len(spurious)
    both = level["first_unit"] ** 2 + level["second_unit"] ** 2
    assert (rounds.first.first, rounds.first.full) == (level["first_unit"] ** 2, both)
    assert rounds.second.parts == (2**15,) and rounds.second.saturation == 0
    assert run.asked.purses[0] == both
    new = np.arange(1, level["max_items"] + 1)
    spent = Spent()
    for unit, most, name in (
        (level["first_unit"], 0.98, "first"), (level["second_unit"], 1.0, "second")
    ):  # fmt: skip
        own = np.floor(unit * np.sqrt(most / new))
        passes = norm.sf((level[f"{name}_threshold_grid"] - own - 0.5) / level["sigma_grid"])
        spent.noise += (unit / level["sigma_grid"]) ** 2
        spent.delta += float((new * passes).max())
        assert level[f"{name}_sigma"] == level["sigma_grid"] / unit
    return spent


#: Counts of what a ladder found are part of its draw, and paid for by its purses.
LADDER_COUNTS = "counts"


def counted(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    draws = run.asked.of(step)
    drawn = of_noise(draws, level["sigma_grid"])
    assert drawn == level["keys"] + len(level["lost_grid"])
    words_for(run, step, draws, drawn)
    unit = 2.0 ** level["grid_bits"]
    if not level.get("rough_grid"):
        assert level["sigma"] == level["sigma_grid"] / unit
    sigma = level["sigma_grid"] / (unit * sqrt(level["max_items"]))
    if level.get("in_ladder"):  # what is left of purses pays, and not a norm that all share
        return Spent()
    assert level["relative_sigma"] <= sigma * (1 + CLOSE)
    return Spent(sigma**-2)


def held_by_users(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    draws = run.asked.of(step)
    assert of_noise(draws, level["held_sigma"]) == len(level["held_grid"])
    words_for(run, step, draws, len(level["held_grid"]))
    return Spent(level["held_sigma"] ** -2)


def roughly_counted(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    draws = run.asked.of(step)
    assert of_noise(draws, level["rough_sigma"]) == len(level["rough_grid"]) == level["keys"]
    words_for(run, step, draws, level["keys"])
    return Spent((level["rough_sigma"] / 2 ** level["rough_bits"]) ** -2)


def buckets(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    """Once for each public bucket, whoever holds what."""
    draws = run.asked.of(step)
    assert of_noise(draws, level["sigma_grid"]) == level["buckets"]
    words_for(run, step, draws, level["buckets"])
    return Spent((level["sigma_grid"] / 2.0 ** level["grid_bits"]) ** -2)


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
    voters = [users for draw in draws for users in draw.asked["group_sizes"].tolist()]
    assert sorted(voters) == sorted(going.values())
    assert run.asked.words[step] <= sum(going.values())
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
        assert draw.name == "draw_subsets"
        sent += len(draw.asked["values"])
    assert sent == reports
    # Subset selection: one value of s, told in a set of d with probability p.
    s, d, p = level["domain"], level["size"], level["numerator"] / 2.0**64
    tells = log(p * (s - d) / (d * (1 - p)))
    assert tells <= told.epsilon / level["contributions"] * (1 + CLOSE)
    return Spent()


def single(run: Run, step: str, level: dict[str, Any], _: int) -> Spent:
    """One draw for each held item, of noise whose law falls by no more than was booked."""
    draws = run.asked.of(step)
    assert {draw.name for draw in draws} <= {"draw_truncated_geometric"}
    laws = {draw.asked["noise"] for draw in draws}
    assert sum(draw.asked["count"] for draw in draws) == len(run.held(1)) == run.asked.words[step]
    found = next(event for event in run.booked if event.kind == "approximate")
    for law in laws:
        assert (law.ratio, law.reach, law.edge) == (
            level["ratio"], level["threshold_grid"] - 1, level["edge"],
        )  # fmt: skip
        assert law.ratio / 2.0**32 <= exp(found.epsilon)
        assert law.edge / 2.0**64 <= found.delta
    assert level["max_items"] == 1
    return Spent()


KINDS = {
    "set_union": set_union,
    "single": single,
    "choice": buckets,
    "alone": set_union,
    "weighed": weighed,
    "pruned": pruned,
    "forecast": forecast,
    "late_purses": late_purses,
    "listed_words": listed_words,
    "counts": counted,
    "rough": roughly_counted,
    "held": held_by_users,
    "vote": vote,
    "local": local,
}


def drew(run: Run) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Each stored step, its level in the manifest, and how many items of the same length were
    released before. Steps come as levels do; no level is left but those that could not draw."""
    steps = list(run.asked.steps)
    levels = list(run.levels)
    kinds = ("set_union", "weighed", "alone") if run.plan.price.method != "dpne" else ()
    rounds = [level for level in levels if level["kind"] in kinds]
    released: Counter[int] = Counter()
    grows, ladder = True, [level for level in levels if level["kind"] == "forecast"]
    for level in levels:
        if level.get("valid") == 0 or not grows:
            assert level["released"] == 0
            continue
        if level in ladder:  # all levels above words are one draw
            yield f"{LADDER}, level {level['level']}", level, released[level["level"]]
        elif level in rounds:  # all rounds are one draw
            yield f"{steps[0]}/round {level['round']}", level, released[level["level"]]
            if level is rounds[-1]:
                steps.pop(0)
        else:
            for chosen in ("rough", "held"):
                if level.get(f"{chosen}_grid"):
                    yield steps.pop(0), {**level, "kind": chosen}, 0
            yield steps.pop(0), level, released[level["level"]]
        released[level["level"]] += level["released"]
        if level["kind"] == "vote":
            table = run.release.to_polars().filter(pl.col("level") == level["level"])
            grows = not table["ended"].all()
    if ladder:
        assert steps.pop(0) == LADDER
        if run.asked.rounds and run.asked.rounds[-1].level > 1:
            yield f"{LADDER}, late purses", {**ladder[0], "kind": "late_purses"}, 0
    if (counting := run.release.manifest.get("counting")) and counting["counted"]:
        step = LADDER_COUNTS if ladder else steps.pop(0)
        yield step, {"kind": "counts", **counting, "in_ladder": bool(ladder)}, 0
    assert not steps, "something was drawn that the manifest has nothing of"


#: One of each way to draw; Polars has steps of its own, and the runs are otherwise the same.
ON_POLARS = (
    "items, counted", "adaptive", "forecast, three rounds of words", "forecast with a prior",
    "dpne", "counts, with a bound of its choice", "trie", "ldp_trie",
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_what_is_drawn_is_what_is_priced_booked_and_written(
    engine: str, case: str, tmp_path: Path
) -> None:
    if engine == "polars" and case not in ON_POLARS and not full():
        pytest.skip("on DuckDB, and on Polars with DPHH_FULL=1")
    run = ran(engine, CASES[case], tmp_path)
    told = list(drew(run))
    ways = [
        (level["level"], level["round"]) if "round" in level else level["level"]
        for _, level, _ in told
        if level["kind"] not in ("rough", "held", "counts", "late_purses")
        or (level["kind"] == "counts" and run.plan.verb == "counts")
    ]
    assert tuple(ways) == CASES[case].way

    # Nothing was drawn beside these steps, but what a run draws once.
    steps = [step for step, _, _ in told]
    assert len(set(steps)) == len(steps)
    steps += [f"{step}, late" for step, level, _ in told if level["kind"] == "forecast"]
    for purpose in run.asked.words:
        of = [step for step in steps if is_of(purpose, step)]
        assert len(of) == (not any(is_of(purpose, once) for once in PURPOSES_FIXED_IN_RUN)), purpose
    for draw in run.asked.draws:
        assert any(is_of(draw.purpose, step) for step in steps), draw

    spent = [KINDS[level["kind"]](run, step, level, before) for step, level, before in told]
    noise, delta = sum(each.noise for each in spent), sum(each.delta for each in spent)

    # All that was drawn was booked before.
    assert run.booked == run.plan.events
    assert noise <= noise_of(run.booked) * (1 + CLOSE), "more was drawn than is booked"
    assert delta <= delta_of(run.booked) * (1 + CLOSE), "more passes than is booked"
    others = [event for event in run.booked if event.kind not in ("gaussian", "delta", "set union")]

    # And keeps the promise, by the curve alone, with which thresholds share a delta.
    if not others:
        promised = run.plan.privacy
        apart = {event.kind for event in run.booked} <= {"gaussian", "delta"}
        assert curve(promised.epsilon, sqrt(noise)) + delta * apart <= promised.delta
