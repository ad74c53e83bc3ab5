"""What one user adds to the sums of every verb, before any noise: the same whoever else is there.

D, D + u and u alone are three corpora, each read by itself, with its own rows, keys and numbers of
words. What is public (what is released, the salt) is the same. So D + u is D and u added up, in
every level and round, and what u adds is within what was priced. `ngrams` by forecast has tests of
its own (`test_forecast_neighbours.py`), and `counts` (`test_counts.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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

from dphh import Corpus, ldp_trie
from dphh.corpus import as_sequences
from dphh.engines import ENGINES
from dphh.levels.ldp_trie import LocalOn, Seats
from dphh.levels.ngrams import PrunedLevel
from dphh.levels.set_union import SetUnionLevel, WeighedLevel
from dphh.levels.trie import VoteLevel
from dphh.mechanisms.counts.of_found import Counting
from dphh.mechanisms.set_union.adaptive import follows
from dphh.mechanisms.set_union.levels import set_union_levels
from dphh.mechanisms.set_union.price import price_set_union
from dphh.session.ladder.rungs import first_ladder
from dphh.session.trie import OneSequence, Trie, TrieOn
from dphh.testing import SeededRandomness
from dphh.udfs.kernel.reading import Reading
from tests.conftest import NoNoise
from tests.engines.levels import bare_level, session_on

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
    tried = settings(max_examples=10)(example(OTHERS, NEW)(given(others, newcomer)(test)))
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
        with session_on(engine, corpus, randomness) as session:
            yield session


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


@pytest.mark.parametrize("keep_texts", [False, True])
@of_neighbours
def test_words_of_every_round_of_a_set_union(engine, keep_texts, others, newcomer):
    """Three words a user, chosen anew in each round among what is left."""

    def rounds(rows: Rows) -> Iterator[Counter[Any]]:
        with opened(engine, rows, NoNoise()) as session:
            session.hold(Reading(ends=True)) if keep_texts else session.hold(Reading())
            for number, released in enumerate([*ROUNDS, []]):
                yield sums(session.draw(bare_level(3, bits=BITS), f"round {number}"))
                table = pa.table(
                    {"key": pa.array(released, pa.string()), "noisy": [0] * len(released)}
                )
                session.forget(table, keep_texts=keep_texts)

    is_added_up(rounds, others, newcomer, 2**BITS)


@pytest.mark.parametrize("pruning", ["both", "single"])
@of_neighbours
def test_grams_of_every_level_of_dpne(engine, pruning, others, newcomer):
    def levels(rows: Rows) -> Iterator[Counter[Any]]:
        ladder = first_ladder(pa.array(WORDS), pruning)
        with opened(engine, rows, NoNoise()) as session:
            session.hold(Reading(ends=True))
            for number in (2, 3, 4):
                level = PrunedLevel(number, 4, BITS, 16, 0.01, pruning, threshold_grid=-(10**9))
                session._find_missing_positions(ladder)
                session._write_noised_grams(level, f"level {number}")
                yield sums(noised(session))
                session.drop("noised")
                valid = ladder.valid_grams()
                keys = np.sort(valid.keys(np.arange(len(valid))))
                ladder = ladder.with_next(keys[np.arange(len(keys)) % 4 > 0])

    is_added_up(levels, others, newcomer, 2**BITS)


def walkers(session: Any) -> Counter[Any]:
    """How many users hold which sequence, at which node of the trie."""
    if session.name == "duckdb":
        rows = session.con.execute("SELECT node, tokens, users FROM walkers").fetchall()
    elif session.name == "polars":
        rows = session.tables["walkers"].select("node", "tokens", "users").rows()
    else:
        rows = session.spark.sql("SELECT node, tokens, users FROM walkers").collect()
    return Counter({(node, *tokens): users for node, tokens, users in rows})


@pytest.mark.parametrize("choice", ["drawn", "most-frequent"])
@of_neighbours
def test_who_walks_where_on_a_trie(engine, choice, others, newcomer):
    """Each user has one sequence, and is one walker or none; the draw depends on the user alone."""

    def steps(rows: Rows) -> Iterator[Counter[Any]]:
        with opened(engine, rows, SeededRandomness(3)) as session:
            session.hold(OneSequence(choice))
            trie = Trie()
            for level, token in enumerate(["w0", "w1", "w2"], start=1):
                session.draw(TrieOn(VoteLevel(level, 1 << 63, 2), trie), f"level {level}")
                yield walkers(session)
                step = {"node": [0, 0], "token": [token, None], "ended": [False, True]}
                trie = trie.with_next(pa.table(step))

    is_added_up(steps, others, newcomer, 1)


class InTheirSeat(SeededRandomness):
    """The newcomer's draw is that of the idle user who sits there when the newcomer is away."""

    def __reduce__(self) -> tuple[type[SeededRandomness], tuple[int]]:
        return InTheirSeat, (self.seed,)

    def words(self, count: int, purpose: str, keys: Any = None) -> Any:
        if keys is not None:
            named = [key.replace("new", "\x1f0") for key in keys.to_pylist()]
            keys = pa.array(named, pa.string())
        return super().words(count, purpose, keys)


letters = st.text(st.sampled_from("abc-"), max_size=4)
words_of_others = st.lists(st.tuples(st.sampled_from("defg"), letters), max_size=10)
words_of_newcomer = st.lists(letters, min_size=1, max_size=6)


def reports_for_values(session: Any) -> Counter[Any]:
    """How many reports are for each value, before any is drawn."""
    asked = "SELECT value FROM chosen"
    if session.name == "duckdb":
        rows = session.con.execute(asked).fetchall()
    else:
        rows = session.spark.sql(asked).collect()
    return Counter(value for (value,) in rows)


@contextmanager
def heard_of_each_level(engine: str) -> Iterator[list[Counter[Any]]]:
    """How many reports are for each value, where an engine draws them."""
    heard: list[Counter[Any]] = []
    if engine == "polars":
        module = import_module("dphh.engines.polars.ldp_trie")

        def count(session: Any, level: Any, chosen: Any, purpose: str) -> Any:
            heard.append(Counter(chosen["value"].to_list()))
            return reports_by_value(session, level, chosen, purpose)

        reports_by_value = module._reports_by_value
        with patch.object(module, "_reports_by_value", count):
            yield heard
        return
    module = import_module(f"dphh.engines.{engine}.run")
    run = module.DuckDBRun if engine == "duckdb" else module.SparkRun
    execute = run.execute

    def listen(self: Any, name: str, **parameters: Any) -> None:
        if name == "ldp_messages":
            heard.append(reports_for_values(self))
        execute(self, name, **parameters)

    with patch.object(run, "execute", listen):
        yield heard


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sampling", ["random", "greedy"])
@settings(max_examples=10)
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
            opened(engine, rows, InTheirSeat(3), text=None, item="what") as session,
        ):
            session.hold(Seats("abc", seats, True))
            prefixes = pa.table({"prefix": ["\x01", "\x02", "\x03"], "value": [0, 4, 8]})
            known = pa.table({"word": pa.array(["\x02"], pa.string())})
            for seat in range(seats):
                level = replace(plan.levels[0], first_seat=seat, users=1)
                session.draw(LocalOn(level, prefixes, known), f"seat {seat}")
        return iter(heard)

    user = [("new", word) for word in newcomer]
    without, both = [*levels(others)], [*levels([*others, *user])]
    moved = [pair for pair in zip(without, both, strict=True) if pair[0] != pair[1]]
    assert len(moved) <= 1
    for nothing, said in moved:
        assert not nothing
        assert said.total() <= 2


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
            WeighedLevel(1, 2, BITS + more, sigma // 2 << more, threshold << more, round=number)
            for number, more in ((2, finer[1]), (3, finer[2]))
        ),
    ]

    def told(number: int) -> dict[str, int]:
        """By the round, of every word that there may be: below, at and far above the threshold."""
        return {
            word: (-3 + 9 * place * place * number) << BITS
            for place, word in enumerate([*WORDS, "rare", "odd"])
        }

    def rounds(rows: Rows) -> Iterator[Counter[Any]]:
        looked = []
        with opened(engine, rows, NoNoise()) as session:
            session.hold(Reading(ends=of_ngrams))
            session._start_rounds()
            for number, level in enumerate(levels):
                following = follows(levels[:number], level)
                session._write_noised_round(level, following, f"round {level.round}")
                looked.append(noised_by_spelling(session))
                session._add_to_earlier_rounds(0)
                noised = [(word, told(number)[word]) for word, *_ in looked[-1]]
                tell(session, noised)
                released = pa.array(ROUNDS[number] if number < 2 else [], pa.string())
                table = pa.table({"key": released, "noisy": [0] * len(released)})
                session.forget(table, keep_texts=of_ngrams)
        held = {word for _, text in rows for word in text.split()}
        for number, each in enumerate(looked):
            # Every item that somebody holds has its row, and is released only if somebody gave.
            gone = {word for released in ROUNDS[:number] for word in released}
            assert {word for word, *_ in each} == held - gone
            assert all(given == (weight > 0) for _, given, weight in each)
            yield Counter({word: weight for word, _, weight in each if weight})

    is_added_up(rounds, others, newcomer, *(2 ** (BITS + more) for more in finer))


#: What reaches the first round's threshold, what each later round releases, and the levels that
#: run: one round; all rounds; and one round in the place of the last two.
NOBODYS = [f"held by nobody {number}" for number in range(4)]
WAYS = [
    (["w0", "rare"], [[]], ["choice", "alone"]),
    (
        ["w0", "w1", "rare"],
        [["w0", *NOBODYS], ["w1", "w4"], []],
        ["choice", "set_union", "weighed", "weighed"],
    ),
    (["w0", "w1", "rare"], [["w0", "w3"], []], ["choice", "set_union", "set_union"]),
]


@pytest.mark.parametrize(("common", "released", "kinds"), WAYS)
@pytest.mark.parametrize(("epsilon", "first_bits"), [(1.0, 9), (0.0015, 0)])
@of_neighbours
def test_items_by_auto_whichever_way_it_goes(
    engine, common, released, kinds, epsilon, first_bits, others, newcomer
):
    """The whole driver, from a price: the first round decides by what is public, and no level
    depends on who else is there. At the small epsilon a user counts for one item in it."""
    price = price_set_union(epsilon, 1e-5, 3, "auto", Counting())
    first, *rest = (level for level in price.levels if isinstance(level, SetUnionLevel))
    assert (first.grid_bits, first.max_items) == (first_bits, min(3, 4**first_bits))
    (bits,) = {level.grid_bits for level in rest}

    def public(words: Sequence[str]) -> pa.Table:
        noisy = pa.array([0] * len(words), pa.int64())
        return pa.table({"key": pa.array(words, pa.string()), "noisy": noisy})

    def levels(rows: Rows) -> Iterator[Counter[Any]]:
        looked: list[Counter[Any]] = []
        shown = iter([common, *released])
        words: list[str] = []
        with opened(engine, rows, NoNoise()) as session:
            draw, add_to_earlier = session.draw, session._add_to_earlier_rounds

            def show_level(asked: Any, purpose: str) -> pa.Table:
                if not isinstance(asked, SetUnionLevel):
                    return draw(asked, purpose)
                looked.append(sums(draw(replace(asked, threshold_grid=-(10**12)), purpose)))
                return public(next(shown))

            def show_round(_: int) -> pa.Table:
                noised = noised_by_spelling(session)
                words[:] = [word for word, *_ in noised]
                looked.append(Counter({word: weight for word, _, weight in noised if weight}))
                return public(next(shown))

            def tell_public(parts: int) -> None:
                add_to_earlier(parts)
                every = [*WORDS, "rare", "odd"]
                tell(session, [(w, (5 * every.index(w) ** 2 - 3) << bits + 4) for w in words])

            with (
                patch.object(session, "draw", show_level),
                patch.object(session, "_released_of_round", show_round),
                patch.object(session, "_add_to_earlier_rounds", tell_public),
            ):
                ran = [done.level for done in set_union_levels(price, session, "")]
        assert [level.kind for level in ran] == kinds
        assert [*shown] == []
        yield from looked

    is_added_up(levels, others, newcomer, 2**first_bits, 2**bits)


def noised(session: Any) -> Any:
    """Of a level without noise: what users gave to each gram, (key, noisy)."""
    asked = "SELECT key, noisy FROM noised"
    if session.name == "duckdb":
        return session.con.execute(asked).to_arrow_table()
    if session.name == "polars":
        return session.tables["noised"].to_arrow()
    return session.spark.sql(asked).toArrow()


def noised_by_spelling(session: Any) -> list[tuple[str, bool, int]]:
    if session.name == "duckdb":
        asked = "SELECT dphh_spelled(word_id), given, noisy FROM noised"
        return session.con.execute(asked).fetchall()
    if session.name == "polars":
        noised = session.tables["noised"]
        words = session.whole_users.spelled(noised["key"].to_arrow()).to_pylist()
        return list(zip(words, noised["given"], noised["noisy"], strict=True))
    return [
        tuple(row) for row in session.spark.sql("SELECT key, given, noisy FROM noised").collect()
    ]


def tell(session: Any, told: list[tuple[str, int]]) -> None:
    """In the place of what a round told: what another's noise would have."""
    words = pa.array([word for word, _ in told], pa.string())
    values = pa.array([value for _, value in told], pa.int64())
    if session.name == "spark":
        session.show("told_before", pa.table({"key": words, "told": values}))
        return
    ids = pa.array(session.whole_users.vocabulary.ids(words), pa.int64())
    if session.name == "duckdb":
        session.tell("told_before", pa.table({"word_id": ids, "told": values}))
    else:
        session.tables["told_before"] = pl.DataFrame({"key": ids, "told": values})
