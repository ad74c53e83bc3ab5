"""What text can be, and what of it is refused. One body, every engine."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, CorpusError, UsageError, items
from tests.engines.contents import ROWS, expected, frame, not_utf8
from tests.engines.levels import histogram


def test_nul_bytes_are_characters_like_any_other(engine, tmp_path, no_noise):
    rows = [(1, "a\0b a\0c"), (2, "a\0b \0")]
    frame(rows).write_parquet(tmp_path / "nul.parquet")
    for source in (frame(rows), tmp_path / "nul.parquet"):
        corpus = Corpus(source, user="who", text="what", split="white space")
        assert histogram(engine, corpus, no_noise, 10) == expected(rows, lambda t: t.split(" "))


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


def test_views_of_strings_are_checked_like_strings(engine, no_noise):
    blob = pa.array([b"SENTINEL\xff\xfe of text, a long one"], pa.binary_view())
    text = pa.Array.from_buffers(pa.string_view(), 1, blob.buffers())
    corpus = Corpus(pa.table({"who": [1], "what": text}), user="who", text="what")
    with pytest.raises(CorpusError, match="not UTF-8"):
        histogram(engine, corpus, no_noise, 10)


def test_long_tokens_are_cut_by_default(engine, written, no_noise):
    rows = [(1, "é" * 1001), (2, "é" * 1000), (3, "é" * 999)]
    assert histogram(engine, written(rows), no_noise, 10) == {"é" * 1000: 2048, "é" * 999: 1024}


def test_a_token_that_is_cut_to_one_held_already_counts_once(engine, written, no_noise):
    found = histogram(engine, written([(1, "abc abcd")], max_token_length=3), no_noise, 10)
    assert found == {"abc": 1024}


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


@pytest.mark.parametrize("reading", ["words", "whole", "characters"])
def test_a_token_of_ten_megabytes_is_no_trouble(engine, written, no_noise, reading):
    corpus = written([(1, "x" * 10_000_000), (2, "y")], as_=reading)
    found = histogram(engine, corpus, no_noise, 10)
    assert {(key[:1], len(key)) for key in found} == {
        ("x", 1 if reading == "characters" else 1000),
        ("y", 1),
    }


# What is refused


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
            "^text or item: as='words' needs text, but 'who' is (BIGINT|Int64|bigint)",
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


@pytest.mark.parametrize("option", ["split", "keep", "drop"])
@pytest.mark.parametrize("pattern", ["(", "a'); DROP TABLE held; --", "(?=look)"])
def test_patterns_that_are_none_are_named(engine, written, no_noise, option, pattern):
    with pytest.raises(UsageError, match=f"^{option}: .* is not a valid regular expression"):
        histogram(engine, written(ROWS, **{option: pattern}), no_noise, 10)


def test_patterns_with_quotes_are_patterns(engine, written, no_noise):
    corpus = written([(1, "it's \"so\" x'; DROP TABLE held; --")], split="['\"].")
    assert histogram(engine, corpus, no_noise, 10).keys() == {"'s", '"s', '" ', "';"}


def test_two_columns_of_one_name_are_an_error(engine, no_noise):
    table = pa.table([[1], [2], ["y"]], names=["who", "who", "what"])
    with pytest.raises(CorpusError, match=r"^user: the corpus has 2 columns 'who'"):
        histogram(engine, Corpus(table, user="who", text="what"), no_noise, 10)


def test_files_that_are_not_there_or_not_parquet_are_told_apart(engine, tmp_path, no_noise):
    (tmp_path / "folder").mkdir()
    for name in ("none.parquet", "*.parquet", "folder"):
        with pytest.raises(
            CorpusError,
            match=r"(there is no such file|is no file)( \*\.parquet)?; give a Parquet file",
        ):
            histogram(engine, Corpus(tmp_path / name, user="u", text="t"), no_noise, 10)
    (tmp_path / "text").write_text("u,t\nSENTINEL,SENTINEL\n")
    (tmp_path / "empty.parquet").write_bytes(b"")
    whole = tmp_path / "whole.parquet"
    frame(ROWS).write_parquet(whole)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-20])
    for name in ("text", "empty.parquet", "cut.parquet"):
        with pytest.raises(CorpusError, match="cannot be read as Parquet") as caught:
            histogram(engine, Corpus(tmp_path / name, user="u", text="t"), no_noise, 10)
        assert "SENTINEL" not in str(caught.value)


@pytest.mark.parametrize("rows", [[], [(1, None)], [(1, "")]])
def test_an_empty_corpus_gives_an_empty_release(engine, tmp_path, rows):
    schema = {"who": pl.Int64, "what": pl.String}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    table.write_parquet(tmp_path / "empty.parquet")
    for source in (table, tmp_path / "empty.parquet"):
        for method in ("gaussian", "sips"):
            corpus = Corpus(source, user="who", text="what")
            release = items(corpus, epsilon=1, delta=1e-7, method=method).run(engine=engine)
            assert len(release) == 0
            assert release.to_polars().columns == ["level", "item", "tokens", "score"]
