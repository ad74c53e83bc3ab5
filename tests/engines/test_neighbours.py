"""What one user adds to the sums of every verb, before any noise: the same whoever else is there.

D, D + u and u alone are three corpora, each read by itself, with its own rows, keys and numbers of
words. What is public (what is released, the salt) is the same. So D + u is D and u added up, in
every level and round, and what u adds is within what was priced. `ngrams` by forecast has a test of
its own (`test_forecast_neighbours.py`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import chain, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dphh import Corpus, counts, items, ldp_trie
from dphh.engines import ENGINES
from dphh.engines.host import Lookup
from dphh.mechanisms.counts.run import (
    find_items,
    find_listed_items,
    noised_by_key,
    noised_counts,
    noised_histogram,
    noised_rough_counts,
)
from dphh.mechanisms.items.price import price_items
from dphh.mechanisms.items.run import items_levels
from dphh.mechanisms.ldp_trie.run import most_reported_values, seat_users
from dphh.mechanisms.ngrams.dpne import draw_dpne_level
from dphh.mechanisms.ngrams.ladder.rungs import first_ladder, number_positions, update_positions
from dphh.mechanisms.ngrams.levels import PrunedLevel
from dphh.mechanisms.set_union import single
from dphh.mechanisms.set_union.draws import draw_rounds, draw_words
from dphh.mechanisms.set_union.levels import ReweighedLevel, SetUnionLevel
from dphh.mechanisms.trie.price import VoteLevel
from dphh.mechanisms.trie.run import grow_by_coins, place_walkers, walk_on
from dphh.reader.corpus import as_sequences
from dphh.testing import SeededRandomness
from dphh.udfs.kernel.contributions import ONE_W
from dphh.udfs.kernel.gathering import ReadWords
from dphh.udfs.kernel.positions import ValuesByWord
from dphh.udfs.rules.counts import GivenGrams
from tests.conftest import NoNoise, full
from tests.engines.ladders import Quiet
from tests.engines.levels import bare_level, host_on, unstored

Rows = Sequence[tuple[str, str]]
BITS = 10
WORDS = [f"w{number}" for number in range(6)]
#: What earlier rounds and levels released, also what only one side holds, or nobody.
ROUNDS = [["w0", "w3"], ["w1", "held by nobody", "w4"]]
words = st.sampled_from([*WORDS, *WORDS, "rare", "odd"])
texts = st.lists(words, max_size=12).map(" ".join)
others = st.lists(st.tuples(st.sampled_from("abcd"), texts), max_size=8)
newcomer = st.lists(texts, min_size=1, max_size=3).map(
    lambda texts: [("new", text) for text in texts]
)
#: Rows of one user among another's, twice the same, empty ones; a newcomer of what nobody else has.
OTHERS = [("a", "w0 w1 w2"), ("b", "w0 w1"), ("a", "w2 w3"), ("", "w1"), ("c", ""), ("b", "w0 w1")]
NEW = [("new", "rare w0 w1 w2 w3 w4 w5"), ("new", "w0 w1"), ("new", "w0 w1")]


def of_neighbours(test: Any) -> Any:
    """For D and u of chance, and for these, on every engine."""
    of_chance = given(others, newcomer)(test)
    tried = settings(max_examples=3 if full() else 1)(example(OTHERS, NEW)(of_chance))
    return pytest.mark.parametrize("engine", ENGINES)(tried)


@contextmanager
def opened(engine: str, rows: Rows, randomness: Any, **reading: Any) -> Iterator[Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.parquet"
        schema = {"who": pl.String, "what": pl.String}
        pl.DataFrame(rows, schema=schema, orient="row").write_parquet(path)
        corpus = Corpus(path, user="who", **({"text": "what"} | reading))
        if "item" in reading:
            corpus = as_sequences(corpus, 1)
        with host_on(engine, corpus, randomness) as host:
            yield host


def sums(table: Any) -> Counter[Any]:
    """What is above 0: where all that users add to a key comes to nothing, there is no trace."""
    columns = (table.column(name).to_pylist() for name in ("key", "noisy"))
    found = Counter(dict(zip(*columns, strict=True)))
    assert min(found.values(), default=1) > 0
    return found


def is_added_up(looked_at: Any, others: Rows, user: Rows, *norms: int) -> None:
    """`looked_at` gives, for a corpus, the sums of one level after the other. The last norm is that
    of all further levels too."""
    looked = zip(*map(looked_at, (others, user, [*others, *user])), strict=True)
    for norm, (without, alone, both) in zip(chain(norms, repeat(norms[-1])), looked, strict=False):
        assert both == without + alone
        assert sum(weight**2 for weight in alone.values()) <= norm**2


@pytest.mark.parametrize("of_ngrams", [False, True])
@of_neighbours
def test_words_of_every_round_of_a_set_union(engine, of_ngrams, others, newcomer):
    """Three words a user, chosen anew in each round among what is left."""

    def rounds(rows: Rows) -> Iterator[Counter[Any]]:
        known: list[str] = []
        with opened(engine, rows, NoNoise()) as host:
            host.gather("users", ReadWords(marks_ends=of_ngrams))
            for number, released in enumerate([*ROUNDS, []]):
                level = bare_level(3, bits=BITS)
                yield sums(draw_words(host, level, f"round {number}", pa.array(known, pa.string())))
                known += released

    is_added_up(rounds, others, newcomer, 2**BITS)


@of_neighbours
def test_one_word_of_each_user_by_optimal_selection(engine, others, newcomer):
    """All words at the top of their noise: each that anybody keeps reaches the threshold."""
    (level,) = items(epsilon=1, delta=1e-6, max_items=1, counts=0).levels

    def one(rows: Rows) -> Iterator[Counter[Any]]:
        with opened(engine, rows, NoNoise()) as host:
            host.gather("users", ReadWords())
            ((_, passed),) = single.run([level], host, unstored)
        yield Counter({key: noisy - level.reach for key, noisy in sums(passed).items()})

    is_added_up(one, others, newcomer, 1)


@of_neighbours
def test_words_weighed_by_a_public_list(engine, others, newcomer):
    """Three words a user, those of the largest w. Who holds which leaves others' weights alone."""
    w = ValuesByWord(pa.array(["w1", "rare"]), np.array([ONE_W, ONE_W // 3]), other_value=7)

    def one(rows: Rows) -> Iterator[Counter[Any]]:
        with opened(engine, rows, NoNoise()) as host:
            host.gather("users", ReadWords())
            found = sums(draw_words(host, bare_level(3, bits=BITS), "one", w=w))
            assert found["w1"] >= 900 * len({who for who, text in rows if "w1" in text.split()})
            yield found

    is_added_up(one, others, newcomer, 2**BITS)


@of_neighbours
def test_grams_of_every_level_of_dpne(engine, others, newcomer):
    def levels(rows: Rows) -> Iterator[Counter[Any]]:
        ladder = first_ladder(pa.array(WORDS))
        with opened(engine, rows, Quiet()) as host:
            host.gather("users", ReadWords(marks_ends=True))
            for number in (2, 3, 4):
                # What somebody gives to is at least 512, and at noise of 16 nothing else is 200.
                level = PrunedLevel(number, 4, BITS, 16, 0.01, threshold_grid=200)
                valid = ladder.valid_grams()
                number_positions(host, ladder)
                update_positions(host, ladder)
                yield sums(draw_dpne_level(host, level, valid, f"level {number}"))
                keys = np.sort(valid.keys(np.arange(len(valid))))
                ladder = ladder.with_next(keys[np.arange(len(keys)) % 4 > 0])

    is_added_up(levels, others, newcomer, 2**BITS)


@pytest.mark.parametrize("listed", [False, True])
@of_neighbours
def test_counts_of_public_items(engine, listed, others, newcomer):
    """Some of them in a text beside others, some held by nobody. Given the noised rough counts,
    keys have factors, and the square of a user's norm is at most 100 users."""
    of = [("w0",), ("w1",), ("w2",), ("w0", "w1"), ("rare",), ("rare", "w0"), ("of nobody",)]
    plan = counts(of=of, max_held=4, epsilon=1.0, delta=1e-8)
    level = replace(plan.levels[0], rough_sigma=60, rough_bits=6, held_sigma=1, max_items=100)
    level = level.weighed_by(np.array([60, 9_000, -40, 400, 2_000, 0, 100]))
    assert len({*level.factors}) > 4

    def keys(rows: Rows) -> Iterator[Counter[Any]]:
        with opened(engine, rows, NoNoise()) as host:
            if listed:
                find_listed_items(host, level, plan["of"], plan["groups"])
            else:
                host.gather("users", ReadWords(marks_ends=True))
                find_items(host, level, plan["of"])
            drawn = [
                noised_by_key(noised(host, level)).tolist()
                for noised in (noised_rough_counts, noised_histogram, noised_counts)
            ]
        assert len(drawn[2]) == level.weighing.coordinates > len(of)
        yield from (+Counter(dict(enumerate(each))) for each in drawn)

    is_added_up(keys, others, newcomer, 64, 1, 10 * level.weighing.unit)


def rows_of(host: Any, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """A private table of an engine."""
    asked = f"SELECT {', '.join(columns)} FROM {table}"
    if host.name == "duckdb":
        return [*host.con.execute(asked).fetchall()]
    if host.name == "polars":
        return [*host.tables[table].select(columns).rows()]
    return [*map(tuple, host.spark.sql(asked).collect())]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_block_has_the_same_users_in_the_same_order_in_every_table(engine, monkeypatch):
    """By the block's number, what two steps made of a user is put side by side: never by a hash,
    which two users may have in common."""
    monkeypatch.setattr("dphh.udfs.kernel.gathering.POSITIONS_PER_ROW", 20)
    names = [f"w{user}" for user in range(200)]
    rows = [(f"u{user}", name + " a b" * (user % 5)) for user, name in enumerate(names)]

    def of_each_user(table: str, values: str) -> dict[tuple[int, int], list[int]]:
        """The values of each user, by block and place in the block."""
        found = {}
        for block, *columns in rows_of(host, table, "block", "lengths", values):
            kinds = "<i4", "<i8" if values == "keys" else "<i4"
            lengths, held = (
                np.frombuffer(column, kind) if isinstance(column, bytes) else np.array(column)
                for column, kind in zip(columns, kinds, strict=True)
            )
            for place, of_user in enumerate(np.split(held, np.cumsum(lengths)[:-1])):
                assert (block, place) not in found
                found[block, place] = of_user.tolist()
        return found

    with opened(engine, [*rows, *rows], NoNoise()) as host:
        host.gather("users", ReadWords(marks_ends=True))
        users = of_each_user("users", "ids")
        hashes = dict(rows_of(host, "users", "block", "user_hashes"))
        assert len(users) == len(rows)
        ladder = first_ladder(pa.array(["a", "b"]))
        number_positions(host, ladder)
        update_positions(host, ladder, keeps_users=True)
        host.run(
            "counted_users",
            given=Lookup(GivenGrams([(name,) for name in names], 1, beginnings=False)),
        )
        counted = of_each_user("counted_users", "ids")
        positions = of_each_user("positions", "keys")
        assert dict(rows_of(host, "positions", "block", "user_hashes")) == hashes
    assert users.keys() == counted.keys() == positions.keys()
    assert sorted(counted.values()) == [[user] for user in range(len(rows))]
    for place, (user,) in counted.items():
        pairs = sum(key >= 0 for key in positions[place])
        assert pairs == 2 * max(2 * (user % 5) - 1, 0)
        assert len(users[place]) == 2 * (2 + 2 * (user % 5))


def walkers(host: Any) -> Counter[Any]:
    """How many users hold which sequence, at which node of the trie."""
    rows = rows_of(host, "walkers", "node", "tokens", "users")
    return Counter({(node, *tokens): users for node, tokens, users in rows})


@pytest.mark.parametrize("choice", ["drawn", "most-frequent"])
@of_neighbours
def test_who_walks_where_on_a_trie(engine, choice, others, newcomer):
    """Each user has one sequence, and is one walker or none; the draw depends on the user alone."""

    def steps(rows: Rows) -> Iterator[Counter[Any]]:
        with opened(engine, rows, SeededRandomness(3)) as host:
            place_walkers(host, choice)
            for number, token in enumerate(["w0", "w1", "w2"], start=1):
                level = VoteLevel(number, 1 << 63, 2)
                grow_by_coins(host, level, f"level {number}")
                yield walkers(host)
                step = {"node": [0], "token": [token], "next_node": [0]}
                walk_on(host, level, pa.table(step))

    is_added_up(steps, others, newcomer, 1)


class InTheirSeat(SeededRandomness):
    """The newcomer's draw is that of the idle user who sits there when the newcomer is away."""

    def __reduce__(self) -> tuple[type[SeededRandomness], tuple[int]]:
        return InTheirSeat, (self.seed,)

    def random_words(self, count: int, purpose: str, keys: Any = None) -> Any:
        if keys is not None:
            named = [key.replace("new", "\x1f0") for key in keys.to_pylist()]
            keys = pa.array(named, pa.string())
        return super().random_words(count, purpose, keys)


letters = st.text(st.sampled_from("abc-"), max_size=4)
words_of_others = st.lists(st.tuples(st.sampled_from("defg"), letters), max_size=10)
words_of_newcomer = st.lists(letters, min_size=1, max_size=6)


@contextmanager
def heard_of_each_level(engine: str) -> Iterator[list[Counter[Any]]]:
    """How many reports are for each value, before an engine draws them."""
    heard: list[Counter[Any]] = []
    module = import_module(f"dphh.engines.{engine}.host")
    names = {"duckdb": "DuckDBHost", "polars": "PolarsHost", "spark": "SparkHost"}
    kind = getattr(module, names[engine])
    run = kind.run

    def listen(self: Any, step: str, **parameters: Any) -> None:
        if step == "ldp_reports":
            heard.append(Counter(value for (value,) in rows_of(self, "chosen", "value")))
        run(self, step, **parameters)

    with patch.object(kind, "run", listen):
        yield heard


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sampling", ["random", "greedy"])
@settings(max_examples=3 if full() else 1)
@example([("d", "ab"), ("e", "ab"), ("f", ""), ("d", "ab"), ("g", "-")], ["ab", "a", "ab", "c", ""])
@given(words_of_others, words_of_newcomer)
def test_who_is_asked_what_on_devices(engine, sampling, others, newcomer):
    """A user who comes takes the seat of one who had nothing to say: no other report changes."""
    plan = ldp_trie(
        local_epsilon=8, delta=1e-6, users_per_level=100, contributions=2, max_length=3, keep=10,
        character_set="abc", sampling=sampling, pad=True,
    )  # fmt: skip
    present = {user for user, _ in others}

    def levels(rows: Rows) -> Iterator[Counter[Any]]:
        """Of each seat by itself, so that one user's reports are never another's."""
        seats = len(present) + 1
        with (
            heard_of_each_level(engine) as heard,
            opened(engine, rows, InTheirSeat(3), text=None, item="what") as host,
        ):
            seat_users(host, "abc", seats, pad=True)
            for seat in range(seats):
                level = replace(plan.levels[0], first_seat=seat, users=1)
                prefixes = ["\x01", "\x02", "\x03"]
                most_reported_values(host, level, prefixes, ["\x02"], f"seat {seat}")
        return iter(heard)

    user = [("new", word) for word in newcomer]
    without, both = [*levels(others)], [*levels([*others, *user])]
    moved = [pair for pair in zip(without, both, strict=True) if pair[0] != pair[1]]
    assert len(moved) <= 1
    for nothing, said in moved:
        assert not nothing
        assert said.total() <= 2


class Shown:
    """An engine on which each round of a set union releases what a test says, and tells of each
    item what a test says, as another user's noise would have it. Keeps what users gave."""

    def __init__(
        self, host: Any, released: Sequence[Sequence[str]], told: Callable[[str, int], int]
    ) -> None:
        self._host, self._told, self._released = host, told, iter(released)
        #: Of each round: each item, whether it may be released, and what it was given.
        self.looked: list[list[tuple[str, bool, int]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    def run(self, step: str, **parameters: Any) -> None:
        self._host.run(step, **parameters)
        if step == "sums_so_far":
            words = pa.array([word for word, *_ in self.looked[-1]], pa.string())
            sums = [self._told(word, len(self.looked) - 1) for word in words.to_pylist()]
            keys = words if self.name == "spark" else pa.array(self.words.ids(words), pa.int64())
            rows = pa.table({"key": keys, "noisy_sum": pa.array(sums, pa.int64())})
            if self.name == "spark":  # there a table that is put is no table of the run
                self._host.write("sums_so_far", self._host.spark.createDataFrame(rows))
            else:
                self._host.put("sums_so_far", rows)

    def take(self, step: str, **parameters: Any) -> Any:
        if step != "released_words":
            return self._host.take(step, **parameters)
        self.looked.append(noised(self._host))
        released = pa.array(next(self._released), pa.string())
        return pa.table({"key": released, "noisy": pa.array([0] * len(released), "int64")})


def noised(host: Any) -> list[tuple[str, bool, int]]:
    """(word, whether it was given something, noised weight) of all that somebody holds."""
    rows = rows_of(host, "noised", "key", "has_weight", "noisy")
    keys = [row[0] for row in rows]
    if host.name != "spark":
        keys = host.words.spellings(pa.array(keys, pa.int32())).to_pylist()
    return [(key, *row[1:]) for key, row in zip(keys, rows, strict=True)]


@pytest.mark.parametrize("of_ngrams", [False, True])
@of_neighbours
def test_rounds_whose_weights_follow_earlier_noise(engine, of_ngrams, others, newcomer):
    """What earlier rounds' noise told of each item that anybody holds, kept or not, is the same
    for both neighbours: it is an output. Each item must have it, whoever holds it and whatever was
    given to it; and then no other user's part moves, of what a newcomer holds too, or alone. In
    level 1 of `ngrams` texts are kept, and each round has a grid twice as fine as the last."""
    threshold, sigma = 40 << BITS, 16 << BITS
    finer = [number * of_ngrams for number in range(3)]
    levels = [
        SetUnionLevel(1, 2, BITS, sigma, threshold),
        *(
            ReweighedLevel(1, 2, BITS + more, sigma // 2 << more, threshold << more, round=number)
            for number, more in ((2, finer[1]), (3, finer[2]))
        ),
    ]

    def told(word: str, number: int) -> int:
        """By the round, of any word that there may be: below, at and far above the threshold."""
        place = [*WORDS, "rare", "odd"].index(word)
        return (-3 + 9 * place * place * number) << BITS

    def rounds(rows: Rows) -> Iterator[Counter[Any]]:
        with opened(engine, rows, NoNoise()) as host:
            host.gather("users", ReadWords(marks_ends=of_ngrams))
            shown = Shown(host, [*ROUNDS, []], told)
            # All of the planned rounds, whatever they release.
            draw_rounds(shown, lambda ran: next(iter(levels[len(ran) :]), None), "rounds")
        looked = shown.looked
        held = {word for _, text in rows for word in text.split()}
        for number, each in enumerate(looked):
            # Every item that somebody holds has its row, and is released only if somebody gave.
            gone = {word for released in ROUNDS[:number] for word in released}
            assert {word for word, *_ in each} == held - gone
            assert all(given == (weight > 0) for _, given, weight in each)
            yield Counter({word: weight for word, _, weight in each if weight})

    is_added_up(rounds, others, newcomer, *(2 ** (BITS + more) for more in finer))


#: Whether one round suffices by the buckets, what each round releases, and the levels that run.
NOBODYS = [f"held by nobody {number}" for number in range(4)]
WAYS = [
    (True, [[]], ["choice", "alone"]),
    (
        False,
        [["w0", *NOBODYS], ["w1", "w4"], []],
        ["choice", "set_union", "weighed", "weighed"],
    ),
]


@pytest.mark.parametrize(
    ("suffices", "released", "kinds", "epsilon", "first_bits"),
    [*((*way, 1.0, 9) for way in WAYS), (*WAYS[1], 0.0004, 0)],
)
def test_items_by_auto_whichever_way_it_goes(
    engine, suffices, released, kinds, epsilon, first_bits, monkeypatch
):
    """The whole driver, from a price: the noised buckets, which are the same for both neighbours,
    decide, and no level depends on who else is there. At the small epsilon a user counts for one
    bucket."""
    price = price_items(epsilon=epsilon, delta=1e-5, max_items=3, counts=0)
    first, *rest = (level for level in price.levels if isinstance(level, SetUnionLevel))
    assert (first.grid_bits, first.max_items) == (first_bits, min(12, 4**first_bits))
    (bits,) = {level.grid_bits for level in rest}
    seen: list[Counter[Any]] = []

    def decided(_: Any, noisy: Any) -> bool:
        assert len(noisy) == first.buckets
        seen.append(Counter({key: int(sum_) for key, sum_ in enumerate(noisy) if sum_}))
        return bool(suffices)

    monkeypatch.setattr("dphh.mechanisms.set_union.auto.one_round_suffices", decided)

    def told(word: str, _: int) -> int:
        return (5 * [*WORDS, "rare", "odd"].index(word) ** 2 - 3) << bits + 4

    def levels(rows: Rows) -> Iterator[Counter[Any]]:
        with opened(engine, rows, NoNoise()) as host:
            shown = Shown(host, released, told)
            ran = [done.level for done in items_levels(price, shown, unstored)]
        assert [level.kind for level in ran] == kinds
        assert len(shown.looked) == len(released)
        yield seen[-1]
        for each in shown.looked:
            yield Counter({word: weight for word, _, weight in each if weight})

    is_added_up(levels, OTHERS, NEW, 2**first_bits, 2**bits)
