"""What Spark's workers are given to call, called as they call it, and without Java.

The functions are those of all engines. What is Spark's own is the border: blocks of whole users,
their lists as bytes, their words, and what is brought to them. That Spark runs them so is tested on
Spark (`make test-spark`).
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable
from math import isqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dphh.errors import EngineOutOfResources
from dphh.sql import query
from dphh.testing import SeededRandomness
from dphh.udfs.arrays import hash_texts
from dphh.udfs.functions import functions
from dphh.udfs.kernel.gathering import ReadWords
from dphh.udfs.kernel.positions import indices_by_word
from tests.conftest import HERE

pytest.importorskip("pyspark", reason="needs dphh[spark]")
from dphh.engines.spark import blocks as gathering
from dphh.engines.spark import dialect as border
from dphh.engines.spark.blocks import keys_of_blocks, part_of_key, values_of_keys
from dphh.engines.spark.dialect import spark_sql, statements

BITS, CAP, SALT, PARTS = 10, 4, 7, 4
#: A user's texts, as tokens.
Users = dict[Any, list[list[str]]]
USERS: Users = {
    "ann": [["to", "be", "or"], ["not", "to", "be"]],
    "bob": [["to", "be"], []],
    "cyd": [["be", "be", "", "be"]],
    "dan": [["to", "be", "or", "not", "to", "be"], ["or"], ["to", "be"]],
}
HELD = [{word for text in texts for word in text if word} for texts in USERS.values()]


class Spark:
    """Takes what is registered."""

    def __init__(self) -> None:
        self.functions: dict[str, Any] = {}
        self.udf = SimpleNamespace(register=self.functions.__setitem__)

    def call(self, name: str, *columns: Any, objects: Iterable[Any] = ()) -> pa.Array:
        spark: Any = self
        border.register(spark, name, functions(SeededRandomness(3))[name], [*objects])
        return self.functions[f"dphh_{name}"].func(*columns)


@pytest.fixture(autouse=True)
def declared_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark asks Java what type a function of columns gives, and nothing else of it. What DuckDB
    makes tokens of are tokens here."""

    def declare(function: Any, gives: str) -> Any:
        declared = SimpleNamespace(func=function, gives=gives, deterministic=True)
        declared.asNondeterministic = lambda: SimpleNamespace(
            **{**vars(declared), "deterministic": False}
        )
        return declared

    monkeypatch.setattr(border, "_arrow_udf", declare)
    monkeypatch.setattr(border, "from_arrow_type", lambda _: SimpleNamespace(simpleString=str))
    monkeypatch.setattr(gathering, "tokens_by_duckdb", lambda content, query_of_rows: content)


def rows_of(users: Users) -> pa.Table:
    rows = [(name, text, None) for name, texts in users.items() for text in texts]
    names, texts, groups = zip(*rows, strict=True)
    columns = [
        pa.array(names, pa.string()),
        pa.array(texts, pa.list_(pa.string())),
        pa.array(groups, pa.string()),
    ]
    return pa.table(columns, ["user_id", "content", "group_name"])


def blocks_of(*parts: Users, cut: int = 100) -> pa.Table:
    """What tasks make of each part."""
    made = [
        block
        for part in parts
        for block in gathering.blocks_of(ReadWords(marks_ends=True), "x")(
            iter(rows_of(part).to_batches(max_chunksize=cut))
        )
    ]
    return pa.Table.from_batches(made).combine_chunks()


def column(blocks: pa.Table, name: str) -> Any:
    (chunk,) = blocks.column(name).chunks
    return chunk


def of_all(blocks: pa.Table, *values: Any) -> list[Any]:
    """Arguments of a query, which are the same in all rows."""
    return [pa.array([value] * len(blocks)) for value in values]


def of_words(blocks: pa.Table, released: Any = None) -> Counter[str]:
    users = [column(blocks, name) for name in ("user_hashes", "lengths", "ids", "words")]
    arguments = [*users, *of_all(blocks, 2, CAP, BITS, 0, 1)]
    objects = [SALT, None, released]
    return sums(Spark().call("contributions_of_words", *arguments, objects=objects))


def sums(added: pa.Array) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in added.flatten().to_pylist():
        found[row["key"]] += row["weight"]
    return +found


def weighed(held: Iterable[set[Any]]) -> Counter[Any]:
    added: Counter[Any] = Counter()
    for keys in held:
        added.update(dict.fromkeys(keys, isqrt(4**BITS // max(len(keys), 1))))
    return added


def halves() -> tuple[Users, Users]:
    names = list(USERS)
    return {n: USERS[n] for n in names[:2]}, {n: USERS[n] for n in names[2:]}


@pytest.mark.parametrize("parts", [(USERS,), halves()], ids=["one block", "two blocks"])
def test_users_add_their_weight_to_each_of_their_words_once(parts: tuple[Users, ...]) -> None:
    blocks = blocks_of(*parts)
    assert len(blocks) == len(parts)
    assert of_words(blocks) == weighed(HELD)


@pytest.mark.parametrize("positions", [1 << 22, 12, 1])
@pytest.mark.parametrize("cut", [1, 2, 3, 100])
def test_a_user_is_in_one_block_however_the_texts_come(
    monkeypatch: pytest.MonkeyPatch, positions: int, cut: int
) -> None:
    """Also where a user has more positions than a block."""
    monkeypatch.setattr(gathering, "LEAST_BLOCK_POSITIONS", positions)
    monkeypatch.setattr("dphh.udfs.kernel.gathering.TEXTS_AT_ONCE", 1)
    blocks = blocks_of(USERS, cut=cut)
    assert (len(blocks) == 1) == (positions > 100)
    hashes = [
        number
        for block in column(blocks, "user_hashes").to_pylist()
        for number in np.frombuffer(block, "<u8").tolist()
    ]
    assert sorted(hashes) == sorted(hash_texts(pa.array(USERS)).tolist())
    assert of_words(blocks) == weighed(HELD)


def test_a_block_has_its_own_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "LEAST_BLOCK_POSITIONS", 1)
    monkeypatch.setattr("dphh.udfs.kernel.gathering.TEXTS_AT_ONCE", 1)
    blocks = blocks_of({"ann": [["a", "b"]], "bob": [["b", "c"]], "cyd": [["d"]]})
    found = [set(words) for words in column(blocks, "words").to_pylist()]
    assert sorted(found, key=min) == [{"a", "b"}, {"b", "c"}, {"d"}]


def test_released_words_are_found_by_their_spelling_in_every_block() -> None:
    blocks = blocks_of(*halves())
    released = indices_by_word(pa.array(["be", "in no text", "not"]))
    assert of_words(blocks, released) == weighed(held - {"be", "not"} for held in HELD)


def test_the_end_of_a_text_says_its_group_whatever_words_a_block_has() -> None:
    texts = [["b"], ["c", "b"], ["a"]]
    table = pa.table([["ann"] * 3, texts, ["y", None, "x"]], ["user_id", "content", "group_name"])
    reading = ReadWords(marks_ends=True, groups=("x", "y", "z"))
    (block,) = gathering.blocks_of(reading, "x")(iter(table.to_batches()))
    words = block["words"][0].as_py()
    ids = np.frombuffer(block["ids"][0].as_py(), "<i4").tolist()
    assert [number if number < 0 else words[number] for number in ids] == [
        *("b", -2),
        *("c", "b", -4),
        *("a", -1),
    ]


def test_texts_of_no_user_are_refused_where_they_hold_something() -> None:
    assert of_words(blocks_of({None: [[], ["", ""]], "ann": [["a"]]})) == {"a": 1024}
    with pytest.raises(RuntimeError, match="dphh: NULL user"):
        blocks_of({None: [["a"]], "ann": [["a"]]})


# What is brought to blocks


def rows_of_parts(blocks: pa.Table, values: dict[Any, int]) -> list[tuple[pa.Table, pa.Table]]:
    """Of each part the rows of blocks and those of values, as a task gets them."""
    held = column(blocks, "words" if "words" in blocks.column_names else "keys")
    names = pa.array([f"file {row}" for row in range(len(blocks))])
    asked = keys_of_blocks(iter([pa.record_batch([names, held], ["block", "held"])]), PARTS)
    keys = pa.array(list(values))
    given = pa.table(
        [part_of_key(PARTS)(keys), keys, list(values.values())], ["part", "key", "value"]
    )
    both = (pa.Table.from_batches([*asked]), given)
    return [
        (of_blocks, of_values)
        for part in range(PARTS)
        for of_blocks, of_values in [[rows.filter(pc.field("part") == part) for rows in both]]
    ]


def brought(blocks: pa.Table, parts: list[tuple[pa.Table, pa.Table]]) -> pa.Array:
    """The values of each block, in whatever order tasks ended."""
    found: list[list[Any]] = [[] for _ in range(len(blocks))]
    for rows in reversed(parts):
        for row in values_of_keys(*rows).to_pylist():
            found[int(row.pop("block").split()[1])].append(row)
    fields = [("places", pa.list_(pa.int64())), ("values", pa.list_(pa.int64()))]
    return pa.array(found, pa.list_(pa.struct(fields)))


W = {"to": 9, "be": 5, "or": 3, "not": 1, "in no text": 8}


def given(blocks: pa.Table, values: dict[Any, int]) -> Counter[str]:
    users = [column(blocks, name) for name in ("user_hashes", "lengths", "ids", "words")]
    w = brought(blocks, rows_of_parts(blocks, values))
    arguments = [*users, *of_all(blocks, 1, CAP, BITS, 0), w]
    return sums(Spark().call("contributions_of_words", *arguments, objects=[SALT, None]))


def test_blocks_get_the_values_of_their_own_words() -> None:
    """Also where another block has another word at the same place."""
    blocks = blocks_of(*halves())
    found = given(blocks, W)
    wanted: Counter[str] = Counter()
    for held in HELD:
        norm = isqrt(sum(W[word] ** 2 for word in held) - 1) + 1
        wanted.update({word: 2**BITS * W[word] // norm for word in held})
    assert found == wanted
    apart = blocks_of({"ann": [["x", "y"]]}, {"bob": [["z"]]})
    assert given(apart, {"x": 1, "y": 1, "z": 1}) == {"x": 512, "y": 512, "z": 1024}


def test_keys_of_positions_are_named_once_and_get_their_values() -> None:
    keys = pa.array(
        [np.array(some, "<i8").tobytes() for some in ([50, -1, 90, *range(20), 50], [])],
        pa.binary(),
    )
    blocks = pa.table({"keys": keys})
    rows = rows_of_parts(blocks, {50: 70, 70: 1, 90: 3})
    lists = [keys for of_blocks, _ in rows for keys in of_blocks.column("keys").to_pylist()]
    named = [key for keys in lists for key in keys]
    assert sorted(named) == [*range(20), 50, 90]
    read = [
        {key: value for part in parts for key, value in zip(*part.values(), strict=True)}
        for parts in brought(blocks, rows).to_pylist()
    ]
    assert read == [{50: 70, 90: 3}, {}]


# What draws


def test_what_is_called_is_called_once_a_row_and_never_moved() -> None:
    spark: Any = Spark()
    for name, function in functions(SeededRandomness(3)).items():
        border.register(spark, name, function, [])
    assert len(spark.functions) > 15
    assert not any(function.deterministic for function in spark.functions.values())


def test_too_large_objects_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(border, "MOST_BYTES_SENT", 200_000)
    border.refuse_large_object("released", 200_000)
    told = "released takes more than 200,000 bytes, and Spark's executors are sent no more"
    with pytest.raises(EngineOutOfResources, match=told):
        border.refuse_large_object("released", 200_001)


#: By name, whether a function draws; `weight` and the bounds of users do not.
DRAWS = re.compile(r"dphh_(noise|votes|word|report|absent_\w+|spurious\w*)\(")


def steps_by(*verbs: str) -> set[str]:
    """The steps that mechanisms ask a host for by these verbs."""
    found = set()
    for path in (HERE / "dphh" / "mechanisms").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                place = 1 if node.func.attr == "bring" else 0
                named = node.args[place] if len(node.args) > place else None
                if node.func.attr in verbs and isinstance(named, ast.Constant):
                    found.add(str(named.value))
    return found


def test_no_query_that_draws_is_looked_at_or_taken() -> None:
    """Whatever reads a view runs its query again, and would draw again."""
    written, read = steps_by("run"), steps_by("take", "bring")
    assert {"words_of_round", "counts_level", "forecast_round_1"} <= {
        step for step in written if DRAWS.search(spark_sql(step))
    }
    assert len(read) > 8
    assert not [step for step in read if DRAWS.search(spark_sql(step))]


def test_no_view_of_a_step_draws() -> None:
    made = [statement for step in steps_by("run") for statement in statements(step)]
    drawn = [kind for kind, _, select in made if DRAWS.search(select)]
    assert len(drawn) > 8 and set(drawn) == {"TABLE"}


def test_no_query_has_a_levels_salt() -> None:
    """Spark shows the plans of queries, and keeps them where events are logged: a salt is an object
    of the driver's, and a query has its place."""
    for step in steps_by("run", "take", "bring"):
        if "salt" in query(step, "spark"):
            assert re.search(r"dphh_\w+\([^()]*\$salt", query(step, "spark")), step
    mechanisms = (HERE / "dphh" / "mechanisms").rglob("*.py")
    assert "return Lookup(int(" in "".join(path.read_text() for path in mechanisms)
