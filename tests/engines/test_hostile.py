"""Strange corpora: a right answer, or an error that helps and quotes nothing.

Odd texts, columns that do not fit, and what is named like a file and is none. DuckDB reads for
Polars too, so that files are opened here on DuckDB, and on Spark where it is asked for.
"""

from __future__ import annotations

import base64
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, CorpusError, DphhError, items
from dphh.testing import SeededRandomness
from tests.engines.contents import ROWS, frame, not_utf8
from tests.engines.levels import histogram

#: What everybody holds, and is found; beside it stands what is hostile.
SHARED = "shared"
ASK = {"epsilon": 4.0, "delta": 1e-6, "max_items": 5}


@pytest.fixture(params=["duckdb", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def found(path: Path, engine: str, **read: str) -> list[str]:
    corpus = Corpus(path, **({"user": "who", "text": "what"} | read))
    release = items(corpus, **ASK).run(engine=engine, randomness=SeededRandomness(1))
    return sorted(release.to_arrow()["item"].to_pylist())


def many(values: object, kind: pa.DataType | None = None) -> pa.Table:
    """Ninety users who hold the values, all alike."""
    column = pa.array([values] * 90, kind)
    return pa.table({"who": list(range(90)), "what": column})


def test_a_word_of_ten_million_letters_is_cut_and_others_stand(engine, tmp_path):
    long = pa.table({"who": [0], "what": ["x" * 10_000_000 + " y"]})
    pq.write_table(pa.concat_tables([many(SHARED), long]), tmp_path / "c.parquet")
    assert found(tmp_path / "c.parquet", engine) == [SHARED]


def encrypted(path: Path) -> None:
    """Parquet whose texts need a key to read."""
    encryption = pytest.importorskip("pyarrow.parquet.encryption", reason="needs Arrow's")

    class Keys(encryption.KmsClient):  # type: ignore[name-defined]
        def wrap_key(self, key, _):
            return base64.b64encode(key)

        def unwrap_key(self, key, _):
            return base64.b64decode(key)

    how = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["what"]}, plaintext_footer=True
    )
    factory = encryption.CryptoFactory(lambda _: Keys())
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    with pq.ParquetWriter(path, many(SHARED).schema, encryption_properties=properties) as writer:
        writer.write_table(many(SHARED))


def test_an_encrypted_column_is_an_error_that_quotes_nothing(engine, tmp_path):
    encrypted(tmp_path / "c.parquet")
    with pytest.raises(DphhError) as told:
        found(tmp_path / "c.parquet", engine)
    assert SHARED not in str(told.value)


# Texts


def test_binary_content_is_decoded_and_what_is_not_utf8_ignored(engine, tmp_path, no_noise):
    table = pa.table({"who": [1, 1, 2, 3], "what": [b"a b", b"\xff bad", "é a".encode(), None]})
    pq.write_table(table, tmp_path / "binary.parquet")
    for source in (table, tmp_path / "binary.parquet"):
        corpus = Corpus(source, user="who", text="what")
        assert histogram(engine, corpus, no_noise, 10) == {"a": 1448, "b": 724, "é": 724}


def listed(column):
    return pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), column)


NOT_UTF8 = {
    "content": (lambda: {"who": [1], "what": not_utf8()}, {}),
    "user": (lambda: {"who": not_utf8(), "what": ["a"]}, {}),
    "in a list": (lambda: {"who": [1], "what": listed(not_utf8())}, {"as_": "list"}),
}


@pytest.mark.parametrize("where", ["memory", "parquet"])
@pytest.mark.parametrize("columns, options", NOT_UTF8.values(), ids=NOT_UTF8.keys())
def test_text_that_is_not_utf8_is_a_clear_error(
    engine, tmp_path, no_noise, columns, options, where
):
    """Never a crash (engines trust Arrow's strings), and never a look at what was there."""
    source = pa.table(columns())
    if where == "parquet":
        pq.write_table(source, tmp_path / "bad.parquet")
        source = tmp_path / "bad.parquet"
    corpus = Corpus(source, user="who", text="what", **options)
    with pytest.raises(CorpusError, match="not UTF-8: write it as a binary column") as caught:
        histogram(engine, corpus, no_noise, 10)
    assert "SENTINEL" not in str(caught.value)


def test_long_tokens_are_an_error_where_asked_for(engine, written, no_noise):
    fine = written([(1, "abc abc abc")], max_token_length=3, too_long="error")
    assert histogram(engine, fine, no_noise, 10) == {"abc": 1024}
    with pytest.raises(
        CorpusError, match=r"^max_token_length: the corpus has a longer token"
    ) as caught:
        histogram(
            engine, written([(1, "SENTINEL")], max_token_length=3, too_long="error"), no_noise, 10
        )
    assert "SENT" not in str(caught.value)


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"text": "nothing"},
            "^text or item: the corpus has no column 'nothing'; it has who, what",
        ),
        ({"user": "nobody"}, "^user: the corpus has no column 'nobody'"),
        ({"user": "WHO"}, "^user: the corpus has no column 'WHO'"),
        ({"user": 'who" FROM x; --'}, "^user: the corpus has no column"),
        (
            {"text": "who"},
            "^text or item: as_='words' needs text, but 'who' is (BIGINT|Int64|bigint)",
        ),
        ({"text": "listed"}, "say as_='list'"),
        ({"item": "listed"}, "say as_='list'"),
        ({"as_": "list"}, "'list' needs a list column, but 'what' is (VARCHAR|String|string)"),
    ],
)
def test_columns_that_do_not_fit_are_named(engine, tmp_path, no_noise, options, message):
    table = frame(ROWS).with_columns(listed=pl.lit([1]))
    table.write_parquet(tmp_path / "c.parquet")
    asked = {"user": "who", **({} if "item" in options else {"text": "what"}), **options}
    for source in (table, tmp_path / "c.parquet"):
        with pytest.raises(CorpusError, match=message):
            histogram(engine, Corpus(source, **asked), no_noise, 10)


def test_patterns_with_quotes_are_patterns(engine, written, no_noise):
    corpus = written([(1, "it's \"so\" x'; DROP TABLE held; --")], split="['\"].")
    assert histogram(engine, corpus, no_noise, 10).keys() == {"'s", '"s', '" ', "';"}
