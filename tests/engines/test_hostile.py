"""Corpora that nobody means well with, on every engine: a right answer or an error that helps."""

from __future__ import annotations

import base64
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, CorpusError, DphhError, items
from dphh.testing import SeededRandomness

#: What everybody holds, and is found; beside it stands what is hostile.
SHARED = "shared"
ASK = {"epsilon": 4.0, "delta": 1e-6, "max_items": 5}


def found(path: Path, engine: str, **read: str) -> list[str]:
    corpus = Corpus(path, **({"user": "who", "text": "what"} | read))
    release = items(corpus, **ASK).run(engine=engine, randomness=SeededRandomness(1))
    return sorted(release.to_arrow()["item"].to_pylist())


def many(values: object, kind: pa.DataType | None = None) -> pa.Table:
    """Ninety users who hold the values, all alike."""
    column = pa.array([values] * 90, kind)
    return pa.table({"who": list(range(90)), "what": column})


def test_a_word_of_ten_million_letters_is_cut_and_others_stand(engine, tmp_path):
    table = pa.concat_tables(
        [many(SHARED), pa.table({"who": [0], "what": ["x" * 10_000_000 + " y"]})]
    )
    pq.write_table(table, tmp_path / "c.parquet")
    assert found(tmp_path / "c.parquet", engine) == [SHARED]


def test_a_user_of_very_many_texts_weighs_as_one(engine, tmp_path):
    rows = 20_000 if engine == "spark" else 200_000
    flood = pa.table({"who": [0] * rows, "what": [f"mine{i % 3} {i}" for i in range(rows)]})
    pq.write_table(pa.concat_tables([many(SHARED), flood]), tmp_path / "c.parquet")
    assert found(tmp_path / "c.parquet", engine) == [SHARED]


def test_many_columns_are_not_read(engine, tmp_path):
    beside = {f"c{i}": pa.array([i] * 90) for i in range(1000)}
    table = pa.table({**dict(zip(("who", "what"), many(SHARED).columns, strict=True)), **beside})
    pq.write_table(table, tmp_path / "c.parquet")
    assert found(tmp_path / "c.parquet", engine) == [SHARED]
    with pytest.raises(CorpusError, match=r"no column 'lost'; it has who, what, c0, .* 902 more$"):
        found(tmp_path / "c.parquet", engine, text="lost")


def test_csv_whose_other_columns_nearly_have_a_name_is_read_by_the_name(engine, tmp_path):
    """DuckDB takes names that differ in case alone for one."""
    rows = [f"x,{i},WRONG,{SHARED},y" for i in range(90)]
    (tmp_path / "c.csv").write_text("\n".join(["what 1,who,What,what,WHO", *rows]))
    assert found(tmp_path / "c.csv", engine) == [SHARED]


def test_one_endless_text_counts_by_its_start(engine, tmp_path):
    words = " ".join(f"w{i}" for i in range(100_000))
    table = pa.concat_tables([many(SHARED), pa.table({"who": [0], "what": [words]})])
    pq.write_table(table, tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", text="what", max_text_length=1000)
    release = items(corpus, **ASK).run(engine=engine, randomness=SeededRandomness(1))
    assert release.to_arrow()["item"].to_pylist() == [SHARED]
    assert release.manifest["parameters"]["content"]["max_text_length"] == 1000


NAMES = ['"; DROP TABLE held; --', "a b", "select", "$max_items", "`x`", "名", "'"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_sql_are_names(engine, tmp_path, name):
    table = many(SHARED).rename_columns(["who", name])
    pq.write_table(table, tmp_path / "c.parquet")
    assert found(tmp_path / "c.parquet", engine, text=name) == [SHARED]


@pytest.mark.parametrize(
    "kind",
    [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_texts_of_any_layout_are_texts(engine, tmp_path, kind):
    table = many(SHARED)
    table = table.set_column(1, "what", table.column("what").cast(kind))
    pq.write_table(table, tmp_path / "c.parquet")
    assert found(tmp_path / "c.parquet", engine) == [SHARED]


@pytest.mark.parametrize("table", [many(SHARED)[:0], many(None, pa.string())], ids=["none", "NULL"])
def test_no_rows_and_nothing_but_null_release_nothing(engine, tmp_path, table):
    pq.write_table(table, tmp_path / "c.parquet")
    assert found(tmp_path / "c.parquet", engine) == []


def test_lists_in_lists_are_refused_or_read_but_never_crash(engine, tmp_path):
    deep: object = SHARED
    kind = pa.string()
    for _ in range(20):
        deep, kind = [deep], pa.list_(kind)
    pq.write_table(many(deep, kind), tmp_path / "c.parquet")
    try:
        found(tmp_path / "c.parquet", engine)
    except DphhError as problem:
        assert SHARED not in str(problem)


def test_decimals_of_different_scales_over_files_are_read_or_refused(engine, tmp_path):
    for scale in (1, 3):
        value = Decimal("2.5").quantize(Decimal(1).scaleb(-scale))
        table = many(value, pa.decimal128(9, scale))
        pq.write_table(table, tmp_path / f"{scale}.parquet")
    try:
        read = found(tmp_path, engine, text=None, item="what")
    except DphhError:
        return
    assert {Decimal(item) for item in read} == {Decimal("2.5")}


def test_a_truncated_file_and_one_of_nothing_are_refused_and_cost_nothing(engine, tmp_path, ledger):
    pq.write_table(many(SHARED), tmp_path / "whole.parquet")
    data = (tmp_path / "whole.parquet").read_bytes()
    for cut in (0, 4, len(data) // 2, len(data) - 1):
        path = tmp_path / f"{cut}.parquet"
        path.write_bytes(data[:cut])
        with pytest.raises(CorpusError, match="corpus"):
            found(path, engine)
    assert ledger.runs() == []


def test_items_of_control_and_bidirectional_characters_are_exact(engine, tmp_path):
    odd = ["\x1b[31mred", "a\u202eb", "=1+1", "\r\nx", "\u2066y", "\x07", "</script>"]
    tables = [many(item) for item in odd]
    pq.write_table(pa.concat_tables(tables), tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", item="what")
    plan = items(corpus, epsilon=20.0, delta=1e-6, max_items=10)
    release = plan.run(engine=engine, randomness=SeededRandomness(1))
    assert sorted(release.to_arrow()["item"].to_pylist()) == sorted(odd)
    shown = repr(release)
    assert not any(character in shown for character in "\x1b\x07\u202e\u2066")


@pytest.mark.parametrize(
    "options",
    [{"version": "1.0"}, {"compression": "gzip"}, {"use_dictionary": False},
     {"data_page_version": "2.0", "compression": "zstd"}, {"row_group_size": 7}],
    ids=str,
)  # fmt: skip
def test_parquet_of_other_writers_is_parquet(engine, tmp_path, options):
    pq.write_table(many(SHARED), tmp_path / "c.parquet", **options)
    assert found(tmp_path / "c.parquet", engine) == [SHARED]
    pl.from_arrow(many(SHARED)).write_parquet(tmp_path / "p.parquet", compression="lz4")
    assert found(tmp_path / "p.parquet", engine) == [SHARED]


def encrypted(path: Path, footer: bool) -> None:
    """Parquet whose texts, and with `footer` even its columns' names, need a key to read."""
    encryption = pytest.importorskip("pyarrow.parquet.encryption", reason="needs Arrow's")

    class Keys(encryption.KmsClient):  # type: ignore[name-defined]
        def wrap_key(self, key, _):
            return base64.b64encode(key)

        def unwrap_key(self, key, _):
            return base64.b64decode(key)

    how = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["what"]}, plaintext_footer=not footer
    )
    factory = encryption.CryptoFactory(lambda _: Keys())
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    with pq.ParquetWriter(path, many(SHARED).schema, encryption_properties=properties) as writer:
        writer.write_table(many(SHARED))


def test_an_encrypted_file_is_refused_and_costs_nothing(engine, tmp_path, ledger):
    encrypted(tmp_path / "c.parquet", footer=True)
    with pytest.raises(CorpusError, match="cannot be read as Parquet"):
        found(tmp_path / "c.parquet", engine)
    assert ledger.runs() == []


def test_an_encrypted_column_is_an_error_that_quotes_nothing(engine, tmp_path):
    encrypted(tmp_path / "c.parquet", footer=False)
    with pytest.raises(DphhError) as told:
        found(tmp_path / "c.parquet", engine)
    assert SHARED not in str(told.value)


@pytest.mark.parametrize("kind", ["text", "category"])
def test_parquet_of_fastparquet_is_parquet(engine, tmp_path, kind):
    fastparquet = pytest.importorskip("fastparquet")
    frame = many(SHARED).to_pandas()
    frame = frame if kind == "text" else frame.astype({"what": "category"})
    fastparquet.write(str(tmp_path / "c.parquet"), frame, compression="GZIP")
    assert found(tmp_path / "c.parquet", engine) == [SHARED]
