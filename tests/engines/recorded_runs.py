"""Runs of every verb and every method, whichever way they go: a table of cases for several tests;
and what these runs ask of their generator, draw by draw, and under which name each draw is stored.

Every function of `udfs/` that draws something that is priced is wrapped wherever it was imported,
and so are the words that it takes, the journal, the rounds of a level of the forecast ladder, and
the purses that users get. Draws are seen in this process alone: on DuckDB, through what is
registered, and in Polars.
"""

import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl

from dphh import Corpus, Ledger, Plan, Release, counts, items, ldp_trie, ngrams, trie
from dphh.engines.duckdb.host import DuckDBHost
from dphh.sql import query
from dphh.testing import SeededRandomness
from dphh.udfs.rules.forecast import full_purses
from tests.engines.forecasts import Seen, watched_rounds
from tests.engines.ladders import Gram, grams_of

Tokens = list[str]
Rows = list[tuple[int, Tokens]]


@dataclass(frozen=True)
class Case:
    plan: Callable[[Corpus], Plan]
    rows: Rows
    #: The levels that draw, as (level, round), or the level alone: the way that this run takes.
    way: tuple[Any, ...]


#: Words that everybody meets.
COMMON: Rows = [(user, [f"w{(7 * user + i) % 12}" for i in range(5)]) for user in range(900)]
#: The same, and as many that just pass the second round's threshold.
NEAR: Rows = [*COMMON, *((1_000 + user, [f"v{user % 60}"]) for user in range(900))]
#: Two words, and nothing else: fewer than any round of common ones.
FEW: Rows = [(user, ["a", "b", "a", "a", "b", f"own {user}"]) for user in range(600)]
#: Everybody holds most of the pairs of a few words: many finds, of which each is kept less for.
FULL: Rows = [
    (user, [f"w{(user + place * place // 3) % 9}" for place in range(60)]) for user in range(300)
]
#: Words that everybody knows, and no two of them beside each other.
APART: Rows = [(user, ["ab"[user % 2]]) for user in range(600)]
#: Nothing that two people share.
ALONE: Rows = [(user, [f"own {user}", f"other {user}"]) for user in range(40)]
#: As little, of so many that something popular would be seen.
MANY_ALONE: Rows = [(user, [f"own {user}", f"other {user}"]) for user in range(9_000)]
#: Everybody has a word of common words, in two rows, and lone letters.
SPELLED: Rows = [
    (user, tokens)
    for user in range(600)
    for tokens in 2 * [["a", "bc"[user % 2], "d"][: 2 + user % 2]]
] + [(user, ["z", str(user)]) for user in range(600, 640)]

#: Some of the words of COMMON, and words that nobody has.
PUBLIC = pl.DataFrame(
    {"item": [*([f"w{i}"] for i in range(9)), *([f"public {i}"] for i in range(40))],
     "count": [900 - 10 * i for i in range(49)]}
)  # fmt: skip

LOOSE = {"epsilon": 8.0, "delta": 1e-4}
ITEMS = partial(items, max_items=4, counts=0, **LOOSE)
ROUNDS = (1, 1), (1, 2), (1, 3)
FORECAST = partial(ngrams, max_items=5, spurious=0.5, counts=0, **LOOSE)
WITH_PRIOR = partial(FORECAST, prior=PUBLIC, prior_is_public=True)
LOCAL = partial(
    ldp_trie, local_epsilon=6, delta=1e-6, users_per_level=200, contributions=2, max_length=2,
    keep=6, character_set=list("abcdz"), pad=True,
)  # fmt: skip
PAIRS = [("w1",), ("w2",), ("w1", "w8"), ("not", "there")]

CASES = {
    "items": Case(partial(ITEMS, method="gaussian"), COMMON, ((1, 1),)),
    "items, counted": Case(partial(ITEMS, method="gaussian", counts=0.3), COMMON, ((1, 1),)),
    "single": Case(partial(ITEMS, max_items=1, method="single"), COMMON, ((1, 1),)),
    "single, counted": Case(partial(ITEMS, max_items=1, counts=0.3), COMMON, ((1, 1),)),
    "sips": Case(partial(ITEMS, method="sips"), NEAR, ROUNDS),
    "sips of few words": Case(partial(ITEMS, method="sips"), FEW, ROUNDS),
    "adaptive": Case(partial(ITEMS, method="adaptive"), NEAR, ROUNDS),
    "adaptive, counted": Case(partial(ITEMS, method="adaptive", counts=0.3), FEW, ROUNDS),
    "auto, rounds": Case(partial(ITEMS, method="auto"), NEAR, (*ROUNDS, (1, 4))),
    "auto of nothing, one round": Case(
        partial(ITEMS, method="auto", counts=0.3), MANY_ALONE, ROUNDS[:2]
    ),
    "forecast, three rounds of words": Case(partial(FORECAST, max_n=3), NEAR, (*ROUNDS, 2, 3)),
    "forecast, words found early": Case(
        partial(FORECAST, max_n=3, counts=0.3), COMMON, (*ROUNDS[:2], 2, 3)
    ),
    "forecast, words in one round": Case(partial(FORECAST, max_n=3), FEW, ((1, 1), (1, 3), 2, 3)),
    "forecast, words in one round, counted": Case(
        partial(FORECAST, max_n=3, counts=0.5), FEW, ((1, 1), (1, 3), 2, 3)
    ),
    "forecast, more finds than were kept for": Case(
        partial(FORECAST, max_n=3, counts=0.9), FULL, (*ROUNDS[:2], 2, 3)
    ),
    "forecast that ends at pairs": Case(
        partial(FORECAST, spurious=1e-9, max_n=4), APART, ((1, 1), (1, 3), 2)
    ),
    "forecast of words alone": Case(partial(FORECAST, max_n=1), FEW, ((1, 1), (1, 3))),
    "forecast of nothing": Case(partial(FORECAST, max_n=4, counts=0.3), ALONE, ((1, 1), (1, 3))),
    "forecast with a prior": Case(partial(WITH_PRIOR, max_n=3), COMMON, (1, 2, 3)),
    "forecast with a prior, counted": Case(partial(WITH_PRIOR, max_n=2, counts=0.3), NEAR, (1, 2)),
    "forecast of nothing with a prior": Case(
        partial(WITH_PRIOR, max_n=3, spurious=1e-9), ALONE, (1,)
    ),
    "dpne": Case(partial(FORECAST, max_n=3, method="dpne"), COMMON, ((1, 1), 2, 3)),
    "dpne, by shares": Case(
        partial(FORECAST, max_n=3, method="dpne", shares=[3, 4, 5], counts=0.3),
        COMMON,
        ((1, 1), 2, 3),
    ),
    "dpne that ends at pairs": Case(
        partial(FORECAST, spurious=1e-9, max_n=4, method="dpne"), APART, ((1, 1), 2)
    ),
    "dpne of nothing": Case(partial(FORECAST, max_n=3, method="dpne"), ALONE, ((1, 1),)),
    "counts": Case(partial(counts, of=PAIRS, max_held=3, **LOOSE), COMMON, (1,)),
    "counts, with a bound of its choice": Case(
        partial(counts, of=[*PAIRS, ("w2",), ("w3",)], **LOOSE), COMMON, (1,)
    ),
    "counts, weighed": Case(
        partial(counts, of=[(f"w{number}",) for number in range(40)], **LOOSE), COMMON, (1,)
    ),
    "trie": Case(partial(trie, max_length=4, **LOOSE), SPELLED, (1, 2, 3, 4)),
    "trie that stops growing, counted": Case(
        partial(trie, max_length=6, counts=0.3, max_items=2, **LOOSE), SPELLED, (1, 2, 3, 4)
    ),
    "trie, most frequent": Case(
        partial(trie, max_length=4, choice="most-frequent", **LOOSE), SPELLED, (1, 2, 3, 4)
    ),
    "ldp_trie": Case(LOCAL, SPELLED, (1, 2)),
    "ldp_trie, greedy": Case(partial(LOCAL, sampling="greedy", passes=2), SPELLED, (1, 2, 1, 2)),
}


# What a run asks for

#: By name; where they live is their own affair.
DRAWING = (
    "draw_rounded_gaussian",
    "draw_truncated_geometric",
    "draw_noise_at_least",
    "draw_binomial",
    "draw_binomial_of_any_size",
    "draw_votes",
    "draw_subsets",
)


@dataclass(frozen=True)
class Draw:
    """One call of a function that draws: its name, and what it was asked for, by name."""

    name: str
    asked: dict[str, Any]

    @property
    def purpose(self) -> str:
        return str(self.asked["purpose"])


@dataclass
class Asked:
    draws: list[Draw] = field(default_factory=list)
    #: How many words were taken for each purpose.
    words: Counter[str] = field(default_factory=Counter)
    #: The names of the draws that were stored, in their order.
    steps: list[str] = field(default_factory=list)
    rounds: Seen = field(default_factory=Seen)
    #: The full purses that were given out, in their order.
    purses: list[int] = field(default_factory=list)

    def of(self, step: str, name: str | None = None) -> list[Draw]:
        """The draws of a step: all of them, or those by one function."""
        return [
            draw for draw in self.draws if is_of(draw.purpose, step) and name in (None, draw.name)
        ]


#: All levels above words of the forecast ladder are one draw, of this name.
LADDER = "ngrams/forecast"


def is_of(purpose: str, step: str) -> bool:
    in_ladder = purpose.startswith(f"{LADDER}, ") and not is_of_words(purpose)
    in_ladder |= purpose == "counts"  # what is found is counted in the same draw
    return purpose == step or purpose.startswith(f"{step}/") or (step == LADDER and in_ladder)


def is_of_words(purpose: str) -> bool:
    """Of level 1 with a prior, which is a draw of its own."""
    return purpose.startswith(f"{LADDER}, level 1/")


class Listening:
    """Words of a seed, and how many were taken. Unless they say that they are a test's, they hang
    on the order in which they are asked for, as the system's would."""

    def __init__(self, asked: Asked, seed: int, *, is_test: bool = False) -> None:
        self._asked, self._source = asked, SeededRandomness(seed)
        self.is_test = is_test
        self._lock = threading.Lock()

    def random_words(self, count: int, purpose: str, keys: Any = None) -> Any:
        with self._lock:
            self._asked.words[purpose] += count
        return self._source.random_words(count, purpose, keys)


@contextmanager
def recorded(engine: str) -> Iterator[Asked]:
    """Of all that runs within, on this engine."""
    import_module(f"dphh.engines.{engine}.host")
    asked, drawing = Asked(), threading.local()

    def listening(name: str, function: Any) -> Any:
        takes = signature(function)

        def listened(*given: Any, **named: Any) -> Any:
            if getattr(drawing, "inside", False):  # one draw may be made of others
                return function(*given, **named)
            drawing.inside = True
            try:
                drawn = function(*given, **named)
            finally:
                drawing.inside = False
            asked.draws.append(Draw(name, dict(takes.bind(*given, **named).arguments)))
            return drawn

        return listened

    keep_drawn = Ledger.keep_drawn

    def keeping(self: Ledger, hold: Any, step: str, data: bytes) -> bytes:
        asked.steps.append(step)
        return keep_drawn(self, hold, step, data)

    patches = [patch.object(Ledger, "keep_drawn", keeping)]
    modules = [m for name, m in list(sys.modules.items()) if name.split(".")[0] == "dphh"]
    for name in DRAWING:
        (function,) = {vars(m)[name] for m in modules if name in vars(m)}
        patches += [
            patch.object(module, name, listening(name, function))
            for module in modules
            if vars(module).get(name) is function
        ]

    def purses_given(user_hashes: Any, purse: int) -> Any:
        asked.purses += [purse] * (purse > 0 and purse not in asked.purses)
        return full_purses(user_hashes, purse)

    patches.append(patch("dphh.udfs.functions.full_purses", purses_given))
    with ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        stack.enter_context(watched_rounds(asked.rounds))
        yield asked


@dataclass
class Run:
    """One run, as each of those who tell of it tells it."""

    plan: Plan
    rows: Rows
    release: Release
    asked: Asked
    booked: tuple[Any, ...]

    @property
    def levels(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.release.manifest["levels"]
        return found

    def released(self, level: int) -> set[Gram]:
        table = self.release.to_polars().filter(pl.col("level") == level)
        return {tuple(tokens) for tokens in table["tokens"].to_list()}

    def early(self, level: int) -> list[Gram]:
        """What a level of the forecast ladder released before its late round, by number: the parts
        of longer grams."""
        if level == 1:
            return sorted(self.released(1))
        (rounds,) = (each for each in self.asked.rounds if each.level == level)
        below = self.early(level - 1)
        halves = np.divmod(rounds.passed_keys, 2**32)
        return [(*below[one], below[other][-1]) for one, other in zip(*halves, strict=True)]

    def held(self, length: int) -> set[Gram]:
        return set().union(*(grams_of(tokens, length) for _, tokens in self.rows))


def corpus_of(folder: Path, rows: Rows) -> Corpus:
    path = folder / "corpus.parquet"
    pl.DataFrame(
        {"who": [user for user, _ in rows], "what": [tokens for _, tokens in rows]}
    ).write_parquet(path)
    return corpus_at(path)


def corpus_at(path: Path) -> Corpus:
    return Corpus(path, user="who", text="what", as_="list")


def ran(engine: str, case: Case, folder: Path, *, is_test: bool = False) -> Run:
    corpus = corpus_of(folder, case.rows)
    book = Ledger(folder / "ledger.sqlite")
    book.add("corpus", corpus, 1_000.0, 0.5)
    plan = case.plan(corpus)
    with recorded(engine) as asked:
        randomness = Listening(asked, 1, is_test=is_test)
        release = plan.run(engine=engine, ledger=book, run_id="one", randomness=randomness)
    (entry,) = book.runs()
    assert entry.state == "settled"
    assert release.manifest["events"] == [event.to_json() for event in entry.events]
    return Run(plan, case.rows, release, asked, entry.events)


#: The seed of a run that several tests look at.
SEED = 11


@cache
def seeded_on_duckdb(case: str) -> tuple[Plan, Release, list[tuple[str, dict[str, Any]]]]:
    """A case's plan and its release, made once for all tests; and the steps that DuckDB ran for it,
    each with the parameters that its query names."""
    executed = []

    def telling(verb: str) -> Any:
        shipped = getattr(DuckDBHost, verb)

        def told(self: DuckDBHost, name: str, **parameters: Any) -> Any:
            named = set(re.findall(r"\$(\w+)", re.sub("--.*", "", query(name))))
            executed.append((name, {key: parameters[key] for key in named & parameters.keys()}))
            return shipped(self, name, **parameters)

        return patch.object(DuckDBHost, verb, told)

    with TemporaryDirectory() as folder, telling("run"), telling("take"):
        plan = CASES[case].plan(corpus_of(Path(folder), CASES[case].rows))
        release = plan.run(engine="duckdb", randomness=SeededRandomness(SEED))
    return plan, release, executed
