"""What Spark's workers are given to call, called as they call it, and without Java.

Functions of tables get batches of Arrow and give batches; who registers them is told what they are
called. What they make is compared with sets and dictionaries of plain Python. That Spark runs them
so is tested on Spark (`make test-spark`).
"""

from __future__ import annotations

import ast
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import isqrt
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from dphh.levels.counts import CountsLevel, CountsOn
from dphh.levels.ngrams import PrunedLevel
from dphh.levels.set_union import SetUnionLevel
from dphh.mechanisms.ngrams.forecast.climb import ForecastRelease
from dphh.privacy.counts import Weighing
from dphh.privacy.forecast_rounds import bins, list_bin, list_weight, plain_weight
from dphh.session.ladder.classes import valid_classes
from dphh.session.ladder.forecast_rounds import ForecastOn
from dphh.session.ladder.rungs import PAIR, first_ladder, first_rung
from dphh.sql import query_for
from dphh.testing import SeededRandomness
from dphh.udfs.draws.noise import draw_rounded_gaussian, register_noise
from dphh.udfs.kernel import contributions as kernel
from dphh.udfs.kernel.blocks import Block, block_at
from dphh.udfs.kernel.given_grams import GivenGrams
from dphh.udfs.text.hashes import of_spellings
from tests.conftest import HERE, NoNoise

pytest.importorskip("pyspark", reason="needs dphh[spark]")
from pyspark.core.broadcast import Broadcast
from pyspark.serializers import ChunkedStream

from dphh.engines.spark.folder import RunFolder
from dphh.engines.spark.run import _statements_of_file
from dphh.engines.spark.session import SparkSessionOfRun
from dphh.udfs.spark import blocks as made_blocks
from dphh.udfs.spark import functions as draws
from dphh.udfs.spark import ladder, table_functions
from dphh.udfs.spark.blocks import register_blocks
from dphh.udfs.spark.counts import register_counted
from dphh.udfs.spark.looked_up import brought, vocabulary
from dphh.udfs.spark.rounds import register_given_to_words

FORECAST_FUNCTIONS = HERE / "dphh" / "engines" / "spark" / "forecast_functions.py"
BITS, CAP = 10, 4
#: A user's texts, as tokens.
Users = dict[Any, list[list[str]]]
USERS: Users = {
    "ann": [["to", "be", "or"], ["not", "to", "be"]],
    "bob": [["to", "be"], []],
    "cyd": [["be", "be", "", "be"]],
    "dan": [["to", "be", "or", "not", "to", "be"], ["or"], ["to", "be"]],
}


class Spark:
    """Takes what is registered."""

    def __init__(self) -> None:
        self.functions: dict[str, Any] = {}
        registry = SimpleNamespace(register=self.functions.__setitem__)
        self.udf = self.udtf = registry
        self.sparkContext = SimpleNamespace(broadcast=self.sent)

    def sent(self, value: Any) -> Any:
        """By PySpark's own writer, as where Spark encrypts what it sends."""
        Broadcast.dump(None, value, ChunkedStream(io.BytesIO(), 8192))  # type: ignore[arg-type]
        return SimpleNamespace(value=value)

    def call(self, name: str, batches: Iterable[pa.RecordBatch], *numbers: int) -> pa.Table:
        """One worker, which is given these batches one after the other, each with the numbers as
        columns beside it."""
        function = self.functions[name]
        worker = function.func()
        made = [
            table
            for batch in batches
            for table in worker.eval(
                batch, *(pa.array([number] * batch.num_rows) for number in numbers)
            )
        ]
        if hasattr(worker, "terminate"):
            made += worker.terminate()
        return pa.concat_tables(made) if made else pa.table({})


@pytest.fixture(autouse=True)
def declared_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark asks Java what type a function of columns gives, and nothing else of it."""

    def declare(function: Any, gives: str) -> Any:
        declared = SimpleNamespace(func=function, gives=gives, deterministic=True)
        declared.asNondeterministic = lambda: SimpleNamespace(
            **{**vars(declared), "deterministic": False}
        )
        return declared

    monkeypatch.setattr(draws, "_arrow_udf", declare)


def batch_of(users: Users) -> pa.RecordBatch:
    rows = [(name, text) for name, texts in users.items() for text in texts]
    names = pa.array([None if name is None else str(name) for name, _ in rows], pa.string())
    contents = pa.array([text for _, text in rows], pa.list_(pa.string()))
    return pa.RecordBatch.from_arrays([names, contents], ["name", "content"])


def blocks_of(*parts: Users) -> list[pa.RecordBatch]:
    """Each part in a block of its own, all in one batch."""
    spark = Spark()
    register_blocks(spark, "x", "x")  # type: ignore[arg-type]
    blocks = [spark.call("dphh_blocks", [batch_of(part)]) for part in parts]
    return pa.concat_tables(blocks).combine_chunks().to_batches()


def sums(spark: Spark, name: str, rows: Iterable[pa.RecordBatch], *numbers: int) -> Counter[Any]:
    added: Counter[Any] = Counter()
    for row in spark.call(name, rows, *numbers).to_pylist():
        added[row["key"]] += row["weight"]
    return +added


def of_words(blocks: list[pa.RecordBatch], salt: int = 7, cap: int = CAP) -> Counter[str]:
    spark = Spark()
    ladder.register_contributions_of_words(spark, salt)  # type: ignore[arg-type]
    return sums(spark, "dphh_contributions_of_words", blocks, cap, BITS)


def of_grams(rows: list[pa.RecordBatch], cap: int) -> Counter[int]:
    spark = Spark()
    ladder.register_contributions_of_grams(spark, 7)  # type: ignore[arg-type]
    return sums(spark, "dphh_contributions_of_grams", rows, cap, BITS)


def weighed(held: Iterable[set[Any]], cap: int = 10**6) -> Counter[Any]:
    added: Counter[Any] = Counter()
    for keys in held:
        assert len(keys) <= cap
        added.update(dict.fromkeys(keys, isqrt(4**BITS // max(len(keys), 1))))
    return added


def words_of(texts: list[list[str]]) -> set[str]:
    return {word for text in texts for word in text if word}


def halves() -> tuple[Users, Users]:
    names = list(USERS)
    return {n: USERS[n] for n in names[:2]}, {n: USERS[n] for n in names[2:]}


@pytest.mark.parametrize("parts", [(USERS,), halves()], ids=["one block", "two blocks"])
def test_users_add_their_weight_to_each_of_their_words_once(parts: tuple[Users, ...]) -> None:
    assert of_words(blocks_of(*parts)) == weighed(map(words_of, USERS.values()), CAP)


@pytest.mark.parametrize("texts", [1 << 23, 1])
@pytest.mark.parametrize("positions", [1 << 22, 12, 1])
@pytest.mark.parametrize("cut", [1, 2, 3, 100])
def test_users_are_whole_however_their_texts_come(
    monkeypatch: pytest.MonkeyPatch, texts: int, positions: int, cut: int
) -> None:
    """A user's texts may be in several batches, and more than a block has."""
    monkeypatch.setattr(made_blocks, "TEXTS", texts)
    monkeypatch.setattr(made_blocks, "POSITIONS", positions)
    monkeypatch.setattr(Block.in_pieces, "__defaults__", (positions,))
    spark = Spark()
    register_blocks(spark, "x", "x")  # type: ignore[arg-type]
    rows = pa.Table.from_batches([batch_of(USERS)])
    found = spark.call("dphh_blocks", rows.to_batches(max_chunksize=cut))
    blocks = found.combine_chunks().to_batches()
    assert (found.num_rows == 1) == (positions > 100)
    users = [block_at(rows, row, "positions") for rows in blocks for row in range(rows.num_rows)]
    hashes = np.concatenate([block.user_hashes for block in users])
    assert hashes.view(np.uint64).tolist() == of_spellings(pa.array(USERS)).tolist()
    assert of_words(blocks) == of_words(blocks_of(USERS))


def test_a_block_has_its_own_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_blocks, "POSITIONS", 2)
    monkeypatch.setattr(made_blocks, "TEXTS", 1)
    monkeypatch.setattr(Block.in_pieces, "__defaults__", (2,))
    spark = Spark()
    register_blocks(spark, "x", "x")  # type: ignore[arg-type]
    users: Users = {"ann": [["a", "b"]], "bob": [["b", "c"]], "cyd": [["d"]]}
    found = spark.call("dphh_blocks", [batch_of({name: users[name]}) for name in users])
    lists = [
        set(vocabulary(rows, row).to_pylist())
        for rows in found.to_batches()
        for row in range(rows.num_rows)
    ]
    assert lists == [{"a", "b"}, {"b", "c"}, {"d"}]


def test_which_words_an_over_full_user_keeps_hangs_on_nobody_else() -> None:
    """Not on the block's numbers of words, which others have a part in."""
    mine = {"me": [[f"w{i}" for i in range(30)]]}
    alone = of_words(blocks_of(mine))
    assert len(alone) == CAP and set(alone.values()) == {isqrt(4**BITS // CAP)}
    others: Users = {"first": [[f"w{i}" for i in range(29, 3, -2)]]}
    assert of_words(blocks_of(others | mine)) - of_words(blocks_of(others)) == alone
    assert any(of_words(blocks_of(mine), salt) != alone for salt in range(5))


def test_what_a_round_released_is_taken_from_everyone_and_nothing_else() -> None:
    spark = Spark()
    gone = pa.chunked_array([["be"], ["nobody's", "not"]])
    ladder.register_unreleased(spark, gone)  # type: ignore[arg-type]
    left = spark.call("dphh_unreleased", blocks_of(*halves())).combine_chunks().to_batches()
    held = [words_of(texts) - {"be", "not"} for texts in USERS.values()]
    assert of_words(left) == weighed(held, CAP)


def test_empty_texts_of_no_user_shift_no_other_user() -> None:
    """They come first in their partition, and before them there is nobody whom they continue."""
    (rows,) = blocks_of({None: [[], ["", ""]], "ann": [["a", "b"]], "bob": [["c"]]})
    block = block_at(rows, 0, "positions")
    of_user = {
        user: block.positions[block.owners == index].tolist()
        for index, user in enumerate(block.user_hashes.tolist())
    }
    ann, bob = of_spellings(pa.array(["ann", "bob"])).view(np.int64).tolist()
    assert [len(of_user[ann]), len(of_user[bob])] == [3, 2]
    assert of_user[ann][-1] == of_user[bob][-1] == -1
    assert len({*of_user[ann], *of_user[bob]}) == 4


def test_texts_of_no_user_are_refused_where_they_hold_something() -> None:
    blocks_of({None: [[], ["", ""]], "ann": [["a"]]})
    with pytest.raises(RuntimeError, match="dphh: NULL user"):
        blocks_of({None: [["a"]], "ann": [["a"]]})


# The ladder: where released grams stand, and what users add to those above.

VOCABULARY = ["be", "not", "or", "to"]
Pair = tuple[int, int]


def placed(
    blocks: list[pa.RecordBatch],
    released: list[Sequence[int]],
    single: bool,
    vocabulary: Sequence[str] = VOCABULARY,
) -> list[pa.RecordBatch]:
    """From the words' positions up to those of the highest rung's."""
    spark = Spark()
    words = pa.array(vocabulary)
    ladder.register_pairs_of_words(spark, words)  # type: ignore[arg-type]
    rows = spark.call("dphh_pairs_of_words", blocks, single)
    for level, keys in enumerate(released, start=2):
        ahead = level if single else 1
        ladder.register_pairs_of_grams(spark, np.array(keys))  # type: ignore[arg-type]
        rows = spark.call("dphh_pairs_of_grams", rows.combine_chunks().to_batches(), ahead)
    return rows.combine_chunks().to_batches()


def test_large_released_sets_can_be_sent_encrypted() -> None:
    many = [f"word {i:06}" for i in range(20_000)]
    found = placed(blocks_of({"ann": [many]}), [], False, many)
    keys = np.arange(len(many) - 1) << PAIR | np.arange(1, len(many))
    spark = Spark()
    ladder.register_pairs_of_grams(spark, keys)  # type: ignore[arg-type]
    assert spark.call("dphh_pairs_of_grams", found, 1).num_rows == 1


def pairs_held(texts: list[list[str]], released: list[Sequence[int]], single: bool) -> set[int]:
    """A user's valid grams, as pairs of numbers of released ones; the plain way."""
    found = set()
    for text in texts:
        numbers = [VOCABULARY.index(word) if word in VOCABULARY else -1 for word in text if word]
        grams, ahead = numbers, 1
        for keys in [*released, None]:
            ends = numbers if single else grams
            pairs = [
                grams[i] << PAIR | ends[i + ahead]
                if i + ahead < len(ends) and min(grams[i], ends[i + ahead]) >= 0
                else -1
                for i in range(len(grams))
            ]
            if keys is None:
                found |= {pair for pair in pairs if pair >= 0}
            else:
                grams = [list(keys).index(pair) if pair in keys else -1 for pair in pairs]
                ahead += single
    return found


TO_BE, BE_OR, OR_NOT = 3 << PAIR | 0, 0 << PAIR | 2, 2 << PAIR | 1
RUNGS: list[list[Sequence[int]]] = [[], [sorted([TO_BE, BE_OR, OR_NOT])]]
#: Round 2's weights, of all that anybody holds.
WEIGHTS = {
    a << PAIR | b: 10 + 7 * a + 90 * b
    for a in range(len(VOCABULARY))
    for b in range(len(VOCABULARY))
}


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("released", RUNGS, ids=["pairs", "triples"])
def test_users_add_their_weight_to_each_valid_gram_once(
    released: list[Sequence[int]], single: bool
) -> None:
    held = [pairs_held(texts, released, single) for texts in USERS.values()]
    assert any(held)
    for parts in ((USERS,), halves()):
        rows = placed(blocks_of(*parts), released, single)
        assert of_grams(rows, 50) == weighed(held)


def test_which_grams_an_over_full_user_keeps_hangs_on_nobody_else() -> None:
    mine: Users = {"me": [["to", "be", "or", "not"] * 3, ["be", "be", "to", "to", "not", "not"]]}
    others: Users = {"a": [["not"]], "b": [["or", "or"]], "c": [["unknown", "to"]]}
    alone = of_grams(placed(blocks_of(mine), [], False), CAP)
    assert len(alone) == CAP < len(pairs_held(mine["me"], [], False))
    beside = of_grams(placed(blocks_of(others), [], False), CAP)
    assert of_grams(placed(blocks_of(others | mine), [], False), CAP) - beside == alone


def named(rows: list[pa.RecordBatch]) -> pa.Table:
    """With a number for each block."""
    table = pa.Table.from_batches(rows)
    return table.append_column("block", pa.array(np.arange(table.num_rows) + 40))


def plain(rows: list[pa.RecordBatch], unit: int) -> list[tuple[int, int, int]]:
    spark = Spark()
    ladder.register_plain_contributions(spark)  # type: ignore[arg-type]
    batches = named(rows).combine_chunks().to_batches()
    made = spark.call("dphh_plain_contributions", batches, unit)
    return [(row["block"], row["key"], row["weight"]) for row in made.to_pylist()]


@pytest.mark.parametrize("unit", [900, 1])
def test_round_1_adds_plain_weights_and_the_sizes_of_lists(unit: int) -> None:
    """Of each block by itself, and also where the weight is 0: every gram that is held is named."""
    for parts in ((USERS,), halves()):
        found = plain(placed(blocks_of(*parts), [], False), unit)
        assert len({row[:2] for row in found}) == len(found)
        for number, users in enumerate(parts):
            wanted: Counter[int] = Counter()
            for texts in users.values():
                held = pairs_held(texts, [], False)
                if held:
                    wanted.update(dict.fromkeys(held, plain_weight(unit, len(held))))
                    if list_weight(unit):
                        wanted[-1 - int(list_bin(np.array([len(held)]))[0])] += list_weight(unit)
            assert {key: weight for b, key, weight in found if b == 40 + number} == wanted


def with_grams(rows: list[pa.RecordBatch], cut: int) -> list[pa.RecordBatch]:
    """Blocks after the grams that their users hold, in batches of so many rows."""
    blocks = named(rows)
    parts = []
    for row, (block,) in enumerate(zip(blocks.column("block").to_pylist(), strict=True)):
        held = sorted({key for b, key, _ in plain(rows, 900) if b == block and key >= 0})
        nothing = pa.nulls(len(held), pa.binary())
        columns = [pa.array([block] * len(held)), pa.array(held), [WEIGHTS[key] for key in held]]
        grams = [*columns, nothing, nothing, nothing]
        names = ["block", "gram", "g", "user_hashes", "lengths", "keys"]
        whole = blocks.slice(row, 1).select(["block", "user_hashes", "lengths", "keys"])
        parts += [pa.table(grams, names), whole]
    table = pa.concat_tables(parts, promote_options="default").combine_chunks()
    batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=cut)
    return batches


def shared(batches: Iterable[pa.RecordBatch], unit: int) -> Counter[int]:
    spark = Spark()
    ladder.register_shared_contributions(spark)  # type: ignore[arg-type]
    return sums(spark, "dphh_shared_contributions", batches, unit)


@pytest.mark.parametrize("cut", [1, 4, 1_000])
def test_round_2_shares_out_the_norm_by_weights(cut: int) -> None:
    wanted: Counter[int] = Counter()
    for texts in USERS.values():
        g = {key: WEIGHTS[key] for key in pairs_held(texts, [], False)}
        length = isqrt(max(sum(x * x for x in g.values()), 1) - 1) + 1
        wanted.update({key: 900 * x // length for key, x in g.items()})
    for parts in ((USERS,), halves()):
        assert shared(with_grams(placed(blocks_of(*parts), [], False), cut), 900) == wanted


def test_a_block_whose_grams_did_not_come_fails() -> None:
    """Another block's grams are not its own, also where they are the same."""
    batches = with_grams(placed(blocks_of(USERS, USERS), [], False), 1)
    second = next(i for i, rows in enumerate(batches) if rows.column("block")[0].as_py() == 41)
    assert second > 1
    with pytest.raises(RuntimeError, match="was not there in round 1"):
        shared([*batches[:second], batches[-1]], 900)


#: By these words' noised weights users share out their norm.
W_OF_WORDS = {"a": 900, "b": 30, "c": 5, "d": 400}


def with_weights(users: Users, number: int, lacking: str = "") -> list[pa.RecordBatch]:
    """A block, after the w of each of its words but one."""
    (block,) = blocks_of(users)
    words = [*enumerate(vocabulary(block, 0).to_pylist())]
    parts = [(place, W_OF_WORDS[word]) for place, word in words if word != lacking]
    rows = [{"block": number, "place": place, "w": w} for place, w in parts]
    own = {"block": number, "place": None, "w": None, **block.to_pylist()[0]}
    schema = pa.schema([(name, pa.int64()) for name in ("block", "place", "w")])
    schema = pa.schema([*schema, *block.schema])
    return [pa.RecordBatch.from_pylist([row], schema) for row in [*rows, own]]


def given_by_w(batches: Iterable[pa.RecordBatch]) -> Counter[Any]:
    spark = Spark()
    register_given_to_words(spark, 7)  # type: ignore[arg-type]
    return sums(spark, "dphh_given_to_words", batches, 2, BITS)


def test_a_block_is_weighed_by_the_w_of_its_own_words() -> None:
    one: Users = {"ann": [["a", "b"]], "bob": [["c"], ["c", "b", "d"]]}
    other: Users = {"cyd": [["d", "b", "a"]], "dan": [["b"]]}
    added: Counter[str] = Counter()
    for kept in (["a", "b"], ["b", "d"], ["d", "a"], ["b"]):
        norm = isqrt(sum(W_OF_WORDS[word] ** 2 for word in kept) - 1) + 1
        added.update({word: (W_OF_WORDS[word] << BITS) // norm for word in kept})
    first, second = with_weights(one, 2), with_weights(other, 4)
    assert given_by_w([*first, *second]) == added
    assert (
        given_by_w(pa.Table.from_batches([*first, *second]).combine_chunks().to_batches()) == added
    )
    with pytest.raises(RuntimeError, match="that the previous round did not have"):
        given_by_w([*first, *with_weights(other, 4, lacking="b")])
    second = with_weights(other, 2)
    with pytest.raises(RuntimeError, match="two blocks have one number"):
        given_by_w([*first[:-1], *second[:-1], first[-1], second[-1]])


def test_sums_that_leave_a_worker_early_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many keys a worker keeps few, and gives them on as they come."""
    users: Users = {f"u{i}": [[f"w{i}", f"v{i}", "all"]] for i in range(40)}
    parts = [{name: texts} for name, texts in users.items()]
    monkeypatch.setattr(kernel.Sums.__init__, "__defaults__", (10,))
    assert of_words(blocks_of(*parts)) == weighed(map(words_of, users.values()), CAP)


def test_each_worker_adds_up_what_it_was_given_alone() -> None:
    """Several run in one process, one after the other or at once."""
    spark = Spark()
    ladder.register_contributions_of_words(spark, 7)  # type: ignore[arg-type]
    name, (one, other) = "dphh_contributions_of_words", halves()
    assert sums(spark, name, blocks_of(one), CAP, BITS) == weighed(map(words_of, one.values()))
    assert sums(spark, name, blocks_of(other), CAP, BITS) == weighed(map(words_of, other.values()))
    make, numbers = spark.functions[name].func, (pa.array([CAP]), pa.array([BITS]))
    begun, unused = make(), make()
    assert not [table for batch in blocks_of(one) for table in begun.eval(batch, *numbers)]
    assert not list(unused.terminate())


def test_counts_are_of_whole_users_within_their_groups() -> None:
    """Of users' texts and the number of each text's group."""
    items, groups = [["to"], ["to", "be"], ["no"]], 2
    weighing = Weighing(len(items) * groups, 6, 10)
    spark = Spark()
    given = GivenGrams(items, groups)
    register_counted(spark, "x", "x", given, weighing.keys)  # type: ignore[arg-type]
    of_text = {
        name: [position % 2 for position in range(len(texts))] for name, texts in USERS.items()
    }
    wanted: Counter[int] = Counter()
    for name, texts in USERS.items():
        held = {
            position * groups + group
            for text, group in zip(texts, of_text[name], strict=True)
            for position, item in enumerate(items)
            if any(text[i : i + len(item)] == item for i in range(len(text)))
        }
        wanted.update(dict.fromkeys(held, weighing.unit))
    batches = []
    for part in halves():
        contents = pa.array(list(part.values()), pa.list_(pa.list_(pa.string())))
        numbers = pa.array([of_text[name] for name in part], pa.list_(pa.int64()))
        batches.append(pa.RecordBatch.from_arrays([contents, numbers], ["contents", "groups"]))
    assert sums(spark, "dphh_counted", batches, 6, 10) == wanted


# Noise, coins and reports


def test_what_draws_is_called_once_a_row_and_never_moved() -> None:
    spark = Spark()
    for register in (
        draws.register_noise, draws.register_votes, draws.register_word, draws.register_report,
    ):  # fmt: skip
        register(spark, NoNoise())  # type: ignore[arg-type]
    assert set(spark.functions) == {*("dphh_noise", "dphh_votes", "dphh_word", "dphh_report")}
    assert not any(function.deterministic for function in spark.functions.values())


def test_noise_is_that_of_its_key_sigma_and_purpose() -> None:
    spark, randomness = Spark(), SeededRandomness(3)
    draws.register_noise(spark, randomness)  # type: ignore[arg-type]
    keys = pa.array([f"k{i}" for i in range(500)])
    columns = keys, pa.array([1_000] * len(keys)), pa.array(["level 1"] * len(keys))
    drawn = spark.functions["dphh_noise"].func(*columns)
    wanted = draw_rounded_gaussian(randomness, 1_000, len(keys), "level 1", keys)
    assert drawn.to_pylist() == wanted.tolist()


def test_votes_are_those_of_their_rate_and_threshold() -> None:
    spark = Spark()
    draws.register_votes(spark, SeededRandomness(3))  # type: ignore[arg-type]
    users = np.array([400] * 500 + [9] * 500)
    columns = (
        pa.array([f"k{i}" for i in range(len(users))]),
        pa.array(users),
        pa.array([2**62] * len(users)),
        pa.array([10] * len(users)),
        pa.array(["trie/level 1"] * len(users)),
    )
    votes = np.array(spark.functions["dphh_votes"].func(*columns).to_pylist())
    assert (votes[500:] == 0).all()  # nine cannot come to ten
    assert abs(votes[:500].mean() - 100) < 6 * (75 / 500) ** 0.5


def test_a_levels_query_adds_one_draw_of_noise_to_each_sum() -> None:
    """It is plain SQL, which DuckDB reads as Spark does."""
    con = duckdb.connect()
    register_noise(con, SeededRandomness(3))
    rows = {"key": ["a", "b", "a", "c"], "weight": [5, 0, 7, 1]}
    con.register("contributions", pa.table(rows))
    of_noise = {"sigma": 1_000, "purpose": "level 1", "is_test": True}
    con.execute(query_for("spark", "noised"), of_noise)
    noised = dict(con.execute("FROM noised").fetchall())
    keys = pa.array(["a", "b", "c"])
    noise = draw_rounded_gaussian(SeededRandomness(3), 1_000, 3, "level 1", keys).tolist()
    assert noised == {"a": 12 + noise[0], "b": noise[1], "c": 1 + noise[2]}


DRAWS = (
    "dphh_noise", "dphh_votes", "dphh_word", "dphh_report", "dphh_absent_bins",
    "dphh_absent_negatives", "dphh_lifted_grams_of_class", "dphh_lifted",
)  # fmt: skip


def steps_asked_by(verbs: set[str]) -> set[str]:
    """The queries that Spark's sessions run by these verbs, as far as they are named outright."""
    found = set()
    for path in (HERE / "dphh" / "engines" / "spark").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                first = node.args[0] if node.args else None
                if node.func.attr in verbs and isinstance(first, ast.Constant):
                    found.add(str(first.value))
    return found


def test_no_query_that_draws_is_looked_at_or_fetched() -> None:
    """Whatever reads a view runs its query again, and would draw again."""
    written, looked_at = steps_asked_by({"execute"}), steps_asked_by({"look", "fetch"})

    def draws_something(step: str) -> bool:
        return any(f"{name}(" in query_for("spark", step) for name in DRAWS)

    assert {"noised", "counts_level", "trie_level"} <= set(filter(draws_something, written))
    assert looked_at and not set(filter(draws_something, looked_at))


def test_no_view_of_a_file_draws() -> None:
    """Files that are executed make views beside their tables."""
    made = [
        (kind, select)
        for path in (HERE / "sql" / "spark").glob("*.sql")
        for kind, _, select in _statements_of_file(path.stem)
    ]

    def draws_something(select: str) -> bool:
        return any(f"{name}(" in select for name in DRAWS)

    assert sum(draws_something(select) for kind, select in made if kind == "TABLE") > 8
    assert not any(draws_something(select) for kind, select in made if kind == "VIEW")


def test_a_step_is_written_whole_and_read_anew() -> None:
    """What is read has no memory of how it came about, so nothing is drawn again."""
    session: Any = Asked()
    session.spark, session._written, session._count = MagicMock(), {}, 0
    session._access, session._folder = MagicMock(), object.__new__(RunFolder)
    session._folder.path, session._folder._spark = "folder", session.spark
    session._folder._local = None
    drawn = session.spark.sql.return_value
    of_noise = {"sigma": 7, "purpose": "level 1", "is_test": False}
    SparkSessionOfRun.execute(session, "noised", **of_noise)
    (asked_for,) = session.spark.sql.call_args_list
    assert asked_for.kwargs == {"args": of_noise}
    writing = drawn.write.options.return_value.parquet
    reading = session.spark.read.schema.return_value.parquet
    (written,), (read,) = writing.call_args_list, reading.call_args_list
    assert written == read
    assert not drawn.createOrReplaceTempView.called
    reading.return_value.createOrReplaceTempView.assert_called_once_with("noised")


def test_a_workers_collector_is_told_once_to_spare_what_modules_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PySpark collects after each task, which took 50 ms of processor."""
    frozen: list[bool] = []
    monkeypatch.setattr(table_functions, "_spared", [])
    monkeypatch.setattr(table_functions.gc, "freeze", lambda: frozen.append(True))
    spark: Any = Spark()
    ladder.register_pairs_of_words(spark, pa.array(["be"]))
    for _ in range(2):
        spark.call("dphh_pairs_of_words", blocks_of(USERS), False)
    assert frozen == [True]


class Asked(SparkSessionOfRun):
    """A session that writes down which queries it would run, and with what."""

    def __init__(self) -> None:
        self.randomness = SeededRandomness(3)
        self.spark: Any = Spark()
        self.tokens = ("x", "x")
        self.within_reach = True
        self.run: list[tuple[str, dict[str, Any]]] = []
        self.rules: list[Any] = []

    def execute(self, name: str, **parameters: Any) -> None:
        self.run.append((name, parameters))

    look = execute

    def fetch(self, query_name: str, **parameters: Any) -> Any:
        self.run.append((query_name, parameters))
        return pa.table({"key": pa.array([4], pa.int64()), "weight": pa.array([2], pa.int64())})

    def count(self, table: str) -> int:
        return 11

    def drop(self, table: str) -> None:
        self.run.append((f"drop {table}", {}))

    def show(self, table: str, rows: Any) -> None:
        self.run.append((f"show {table}", {"rows": rows.num_rows}))


def asked(session: Asked, name: str) -> dict[str, Any]:
    (found,) = (parameters for query, parameters in session.run if query == name)
    return found


def test_a_level_of_words_is_asked_for_with_its_own_noise_and_threshold() -> None:
    session, level = Asked(), SetUnionLevel(1, CAP, BITS, 777, 3_000)
    session.draw(level, "items/round 1")
    assert [query for query, _ in session.run] == [
        "contributions_of_words", "noised", "released_words", "drop noised",
    ]  # fmt: skip
    assert asked(session, "contributions_of_words") == {"max_items": CAP, "grid_bits": BITS}
    of_noise = {"sigma": 777, "purpose": "items/round 1", "is_test": True}
    assert asked(session, "noised") == of_noise
    assert asked(session, "released_words") == {"threshold": 3_000}
    rows = blocks_of({"me": [[f"w{i}" for i in range(30)]]})
    salt = int(SeededRandomness(3).words(1, "items/round 1/salt")[0])
    found = sums(session.spark, "dphh_contributions_of_words", rows, CAP, BITS)
    assert found == of_words(rows, salt)


def test_a_level_of_grams_is_asked_for_with_its_own_noise_and_threshold() -> None:
    session = Asked()
    level = PrunedLevel(2, CAP, BITS, 555, 0.1, "both", 2_000, 16)
    session._write_noised_grams(level, "ngrams/level 2")
    session._released_grams(level, None, "ngrams/level 2")  # type: ignore[arg-type]
    of_noise = {"sigma": 555, "purpose": "ngrams/level 2"}
    assert asked(session, "contributions_of_grams") == {"max_items": CAP, "grid_bits": BITS}
    assert asked(session, "noised") == {**of_noise, "is_test": True}
    assert asked(session, "lifted") == {**of_noise, "threshold": 2_000}
    assert asked(session, "released_grams") == {"threshold": 2_000}


def test_each_round_of_a_forecast_adds_up_by_its_own_rule() -> None:
    """By the unit that was priced for it."""
    rows = placed(blocks_of(USERS), [], False)
    seen: list[Any] = []

    class Rounds(Asked):
        placed = 1

        def execute(self, name: str, **parameters: Any) -> None:
            super().execute(name, **parameters)
            if name == "forecast_round_1":
                batches = named(rows).to_batches()
                unit = parameters["norm"]
                made = self.spark.call("dphh_plain_contributions", batches, unit).to_pylist()
                seen.append([(row["block"], row["key"], row["weight"]) for row in made])
            if name == "forecast_round_2":
                batches, unit = with_grams(rows, 100), parameters["norm"]
                made = self.spark.call("dphh_shared_contributions", batches, unit).to_pylist()
                seen.append({row["key"]: row["weight"] for row in made})

        def fetch(self, query_name: str, **parameters: Any) -> Any:
            super().fetch(query_name, **parameters)
            names = ("class", "bin", "grams", "negatives", "noisy", "key", "first", "second")
            numbers = {name: pa.array([0], pa.int64()) for name in names}
            return pa.table({**numbers, "word": pa.array([None], pa.string())})

    class Step:
        def run(self, rounds: Any) -> ForecastRelease:
            count = len(VOCABULARY)
            valid = valid_classes(first_rung(count), np.ones(count), np.array([4.0]))
            shape = rounds.first_round(2, valid, bins(2**11), 900).counts.shape
            rounds.second_round(np.full(shape, 64), 500)
            rounds.passed(np.full(shape, 3))
            return ForecastRelease(np.empty(0, np.int64), np.empty(0), (0.1, 0.1), 0.0)

    session = Rounds()
    vocabulary = first_ladder(pa.array(VOCABULARY), "both")
    session.draw(ForecastOn(Step(), vocabulary), "level 2")  # type: ignore[arg-type]
    assert seen == [plain(rows, 900), dict(shared(with_grams(rows, 100), 500))]
    run = [query for query, _ in session.run if not query.startswith(("drop", "show"))]
    assert run == [
        "forecast_round_1", "forecast_rows", "list_sizes", "forecast_round_2", "forecast_signs",
        "forecast_lifted", "forecast_released",
    ]  # fmt: skip
    for step in ("forecast_round_1", "forecast_round_2"):
        given = asked(session, step)
        assert (given["sigma"], given["purpose"], given["is_test"]) == (2**11, "level 2", True)
    assert asked(session, "forecast_lifted") == {"sigma": 2**11, "purpose": "level 2"}


def test_counts_are_asked_for_with_their_own_noise() -> None:
    session, level = Asked(), CountsLevel(1, 4, 2, BITS, 333, 1.0, 0.95, False)
    session.draw(CountsOn(level, [["to"], ["be"]], ["DE"]), "counts")
    assert asked(session, "counts_level") == {"sigma": 333, "purpose": "counts"}
    assert asked(session, "show asked") == {"rows": 4 + level.weighing.octaves}
    assert asked(session, "counts_users") == {"others": 1}
    assert asked(session, "counts_contributions") == {"max_items": 2, "grid_bits": BITS}


def test_a_name_that_queries_call_is_of_one_function() -> None:
    """So a query's text alone says what it does."""
    names = [
        node.value
        for path in (*(HERE / "udfs" / "spark").glob("*.py"), FORECAST_FUNCTIONS)
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        for node in call.args
        if isinstance(node, ast.Constant) and str(node.value).startswith("dphh_")
    ]
    called = {
        name
        for path in (HERE / "sql" / "spark").glob("*.sql")
        for name in re.findall(r"\bdphh_\w+(?=\()", path.read_text())
    }
    assert Counter(names).most_common(1)[0][1] == 1
    assert called and called <= {*names}


def test_no_query_has_a_levels_salt() -> None:
    """Spark shows the plans of queries, and keeps them where events are logged."""
    for path in (HERE / "sql" / "spark").glob("*.sql"):
        assert "$salt" not in path.read_text(), path.name


def test_values_of_two_blocks_with_one_number_are_refused() -> None:
    def row(*places: int) -> pa.RecordBatch:
        joined = [[{"place": place, "number": 7} for place in places]]
        return pa.RecordBatch.from_pydict({"numbers": joined})

    nothing = np.full(3, -1, dtype=np.int32)
    assert brought(row(2), 0, "numbers", nothing.copy()).tolist() == [-1, -1, 7]
    with pytest.raises(RuntimeError, match="two blocks have one number"):
        brought(row(2, 0, 2), 0, "numbers", nothing)
