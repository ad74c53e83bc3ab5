"""Who a user is, by any type of id: over-full users count for the same keys on every engine."""

from __future__ import annotations

import datetime
import decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import (
    Corpus,
    CorpusError,
    Ledger,
    UsageError,
    counts,
    items,
    ldp_trie,
    ngrams,
    trie,
)
from dphh.corpora.files import refuse_users_of_several_types
from dphh.corpora.formats import opened
from dphh.corpora.tables import schema_in_memory
from dphh.engines import ENGINES
from dphh.testing import SeededRandomness

USERS = 400


#: An id of each type for each user.
IDS: dict[str, tuple[Any, Any]] = {
    "int": (pa.int32(), lambda user: user),
    "long": (pa.int64(), lambda user: 2**62 + user),
    "negative": (pa.int64(), lambda user: -user),
    "unsigned": (pa.uint64(), lambda user: 2**64 - 1 - user),
    "text": (pa.string(), lambda user: f"user {user}"),
    "decimal": (pa.decimal128(20, 3), lambda user: decimal.Decimal(user) / 8),
    "date": (pa.date32(), lambda user: datetime.date(2001, 1, 1) + datetime.timedelta(user)),
}


@pytest.mark.parametrize("other", [name for name in ENGINES if name != "duckdb"])
@pytest.mark.parametrize("kind", IDS)
def test_over_full_users_count_for_the_same_keys(tmp_path: Path, other: str, kind: str) -> None:
    form, named = IDS[kind]
    users = pa.array([named(user) for user in range(USERS) for _ in range(2)], form)
    texts = [
        " ".join(f"w{(user + 7 * row + step * step) % 12}" for step in range(6))
        for user in range(USERS)
        for row in range(2)
    ]
    pq.write_table(pa.table({"who": users, "what": texts}), tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", text="what")
    plan = items(corpus, epsilon=8, delta=1e-4, max_items=2)
    found = [
        plan.run(engine=engine, randomness=SeededRandomness(3)).to_arrow().to_pylist()
        for engine in ("duckdb", other)
    ]
    assert len(found[0]) > 5
    assert found[0] == found[1]


NANS = np.array([0x7FF8 << 48, 0xFFF8 << 48], dtype=np.uint64).view(np.float64).tolist()
INTERVALS = [pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([0, 30, 0])]
#: Two ids of each type that is refused. The first kinds are equal, and written in two ways.
REFUSED: dict[str, Any] = {
    "zeros": pa.array([0.0, -0.0]),
    "NaNs": pa.array(NANS),
    "narrow zeros": pa.array([0.0, -0.0], pa.float32()),
    "lists": pa.array([[0.0], [-0.0]]),
    "structs": pa.array([{"x": nan} for nan in NANS]),
    "binary": pa.array([b"\xff", b"\xfe"]),
    "times": pa.array([1, 2], pa.time64("us")),
    "timestamps": pa.array([1, 2], pa.timestamp("us")),
    "instants": pa.array([1, 2], pa.timestamp("us", "UTC")),
    "integers with gaps, of pandas": pa.array([1.0, None]),
}
VERBS: dict[str, Any] = {
    "items": partial(items, epsilon=1, delta=1e-6),
    "ngrams": partial(ngrams, max_n=2, epsilon=1, delta=1e-6),
    "counts": partial(counts, of=[["a"]], epsilon=1, delta=1e-6),
    "trie": partial(trie, max_length=2, epsilon=1, delta=1e-6),
    "ldp_trie": partial(
        ldp_trie, local_epsilon=4, delta=1e-6, users_per_level=1, max_length=1, pad=True,
        character_set=["a", "b"], keep=1, contributions=1,
    ),
}  # fmt: skip


def refused(corpus: Corpus, ledger: Ledger, engine: str, verb: str = "items") -> str:
    with pytest.raises((CorpusError, UsageError), match=r"^user") as caught:
        VERBS[verb](corpus).run(ledger=ledger, engine=engine)
    assert ledger.runs() == []
    return str(caught.value)


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("kind", REFUSED)
def test_a_type_of_several_spellings_is_refused_before_anything_is_paid(
    engine: str, tmp_path: Path, ledger: Ledger, kind: str
) -> None:
    if (engine, kind) == ("spark", "times"):
        pytest.skip("Spark reads no file of them at all")
    rows = pa.table({"who": REFUSED[kind], "what": ["a", "b"]})
    pq.write_table(rows, tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", text="what")
    said = refused(corpus, ledger, engine)
    assert "user: column who is " in said
    assert said.endswith("cast it to text or to an integer in a view, so that equal users are "
                         "spelled equally")  # fmt: skip
    several = Corpus(tmp_path / "c.parquet", user=["what", "who"], text="what")
    assert "user, column 2: column who is" in refused(several, ledger, engine, "ngrams")


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("verb", VERBS)
def test_one_id_in_two_spellings_is_refused_by_every_verb(
    engine: str, tmp_path: Path, ledger: Ledger, verb: str
) -> None:
    pq.write_table(pa.table({"who": [0.0, -0.0], "what": ["a", "b"]}), tmp_path / "c.parquet")
    content = {"item": "what"} if "trie" in verb else {"text": "what"}
    refused(Corpus(tmp_path / "c.parquet", user="who", **content), ledger, engine, verb)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_intervals_and_wide_decimals_are_refused(
    tmp_path: Path, ledger: Ledger, engine: str
) -> None:
    wide = pa.array([decimal.Decimal(1), decimal.Decimal(2)], pa.decimal256(50, 2))
    for ids in (pa.array(INTERVALS), wide):
        table = pa.table({"who": ids, "what": ["a", "b"]})
        refused(Corpus(table, user="who", text="what"), ledger, engine)
    pq.write_table(pa.table({"who": wide, "what": ["a", "b"]}), tmp_path / "c.parquet")
    with pytest.raises(CorpusError):
        VERBS["items"](Corpus(tmp_path / "c.parquet", user="who", text="what")).run(
            ledger=ledger, engine=engine
        )
    assert ledger.runs() == []


@pytest.mark.on_spark(every=True)
def test_whole_numbers_in_one_file_and_floats_in_another_are_refused(
    engine: str, tmp_path: Path, ledger: Ledger
) -> None:
    """2^53 and 2^53 + 1 would be one user of twice the weight."""
    for name, ids in (("a", pa.array([2**53, 2**53 + 1])), ("b", pa.array([1.5, None]))):
        pq.write_table(pa.table({"who": ids, "what": ["a", "b"]}), tmp_path / f"{name}.parquet")
    corpus = Corpus(tmp_path, user="who", text="what")
    with pytest.raises(CorpusError):
        items(corpus, epsilon=1, delta=1e-6).run(ledger=ledger, engine=engine)
    assert ledger.runs() == []


#: The user's column in two or three files. United as text, or as a decimal, one user's id would be
#: spelled in two ways, or two users' ids in one.
APART: dict[str, tuple[Any, ...]] = {
    "zeros beside text": (pa.array([0.0, -0.0]), pa.array(["x"])),
    "decimals and integers beside text": (
        pa.array([decimal.Decimal("1.00")]), pa.array([1]), pa.array(["x"])
    ),
    "decimals of two scales": (
        pa.array([decimal.Decimal(10**37)], pa.decimal128(38, 0)),
        pa.array([decimal.Decimal("1.1"), decimal.Decimal("1.4")], pa.decimal128(38, 30)),
    ),
    "structs beside text": (pa.array([{"x": 0.0}, {"x": -0.0}]), pa.array(["x"])),
}  # fmt: skip


def files_of(folder: Path, columns: tuple[Any, ...]) -> Path:
    for number, ids in enumerate(columns):
        table = pa.table({"who": ids, "what": ["a"] * len(ids)})
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("files", APART)
def test_a_user_column_of_two_types_in_two_files_is_refused_before_anything_is_paid(
    engine: str, tmp_path: Path, ledger: Ledger, files: str
) -> None:
    corpus = Corpus(files_of(tmp_path, APART[files]), user="who", text="what")
    said = refused(corpus, ledger, engine)
    assert "in one file and" in said
    assert said.endswith("so that equal users are spelled equally")


def test_widths_of_integers_and_columns_without_values_are_no_other_type(tmp_path: Path) -> None:
    columns = (
        pa.array([None], pa.null()), pa.array([1], pa.int32()), pa.array([2**53 + 1]),
        pa.array([2**64 - 1], pa.uint64()),
    )  # fmt: skip
    refuse_users_of_several_types(
        Corpus(files_of(tmp_path, columns), user="who", text="what", null_users="drop")
    )


@pytest.mark.parametrize("ids", [["1.0", "1"], ["2e0", "2.0"], ['{"x": 1}', '{"x":1}'], ["[1]"]])
def test_users_that_json_spells_in_two_ways_are_refused(
    tmp_path: Path, ledger: Ledger, ids: list[str]
) -> None:
    lines = [f'{{"who": {each}, "what": "a"}}' for each in ("7", *ids)]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    corpus = Corpus(tmp_path / "c.jsonl", user="who", text="what")
    for engine in ("duckdb", "polars"):
        assert "so that equal users are spelled equally" in refused(corpus, ledger, engine)
    con = duckdb.connect()
    for each in ids:
        relation = con.sql(f"SELECT '{each}'::JSON AS who, 'a' AS what")
        assert "is JSON" in refused(Corpus(relation, user="who", text="what"), ledger, "duckdb")


def test_users_in_json_are_whole_numbers_truths_and_text(tmp_path: Path) -> None:
    ends = ["-9223372036854775808", "18446744073709551615"]
    there = [*ends, '""', '"\\u0061"', "true", "null", "-0"]
    lines = [f'{{"who": {each}, "what": "a"}}' for each in there]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    relation = opened(Corpus(tmp_path / "c.jsonl", user="who", text="what")).source
    assert [who for who, _ in relation.fetchall()] == [*ends, "", "a", "true", None, "0"]


def test_what_duckdb_says_of_folders_named_after_users_is_not_shown(
    tmp_path: Path, ledger: Ledger
) -> None:
    for name in ("SENTINEL", "x=y"):
        (tmp_path / f"who={name}").mkdir()
        pq.write_table(pa.table({"what": ["a"]}), tmp_path / f"who={name}" / "c.parquet")
    with pytest.raises(CorpusError, match="DuckDB cannot take its columns or its folders") as said:
        VERBS["items"](Corpus(tmp_path, user="who", text="what")).run(ledger=ledger)
    assert "SENTINEL" not in str(said.value)
    assert ledger.runs() == []


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([1], pa.time64("us")),
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 2], pa.int8())),
        pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"x": 1}', '{"x":1}'])),
    ],
)
def test_types_that_an_engine_would_take_as_their_storage_are_refused(ids: Any) -> None:
    """Spark takes times, and JSON, as texts; and 1 and 2, which are both true, as integers."""
    corpus = Corpus(pa.table({"who": ids, "what": ["a"] * len(ids)}), user="who", text="what")
    with pytest.raises(CorpusError, match="so that equal users are spelled equally"):
        schema_in_memory(corpus)


def test_uuids_of_arrow_are_taken() -> None:
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))
    table = pa.table({"who": uuids, "what": ["a"]})
    assert schema_in_memory(Corpus(table, user="who", text="what")).names == ["who", "what"]
