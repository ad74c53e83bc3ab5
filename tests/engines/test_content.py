"""Every reading, against plain Python; and content that is no text.

DuckDB makes tokens for Polars too (test_engines_agree.py).
"""

import re
import sys
import unicodedata

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dphh import TRIEHH_WORDS, Corpus, CorpusError, exact_ngrams
from dphh.reader.corpus import as_sequences
from dphh.reader.views import tokens_by_duckdb, tokens_of_texts
from dphh.sql import macros_called_in
from tests.engines.levels import expected, few, histogram

WHITE_SPACE = "\t\n\v\f\r\x85\xa0\u1680\u2000\u2007\u200a\u2028\u2029\u202f\u205f\u3000 "
TEXTS = st.text(
    st.one_of(
        st.sampled_from("aAbzéÉßñ日本_'\"’-.,;?!1٣\0" + WHITE_SPACE), st.characters(codec="utf-8")
    ),
    max_size=30,
)


@pytest.fixture(params=["duckdb", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def composed(text):
    """Unicode's NFC; a text with a NUL character stays as it is."""
    return text if "\0" in text else unicodedata.normalize("NFC", text)


def white_space_words(text):
    return re.split("[\t-\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000 ]", text)


def simple_lower(text):
    """Lower case, one character for one character, as engines do it."""
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def of_class(character, classes):
    return unicodedata.category(character)[0] in classes or character == "_"


def unicode_words(text):
    words, word = [], ""
    text = text.replace("’", "'")
    for index, character in enumerate(text):
        inner = character == "'" and word and index + 1 < len(text)
        if of_class(character, "LMN") or (inner and of_class(text[index + 1], "LMN")):
            word += character
        else:
            words.append(word)
            word = ""
    return [*words, word]


def triehh_words(text):
    """facts.md, word for word."""
    for word in white_space_words(text.lower()):
        word = word.strip(",.;?!")  # noqa: PLW2901
        if len(word) < 3 or not re.fullmatch(r"[a-z_@#\-;()*:.'/]+", word):
            continue
        if word[-1] in "?!.;," or word.startswith(("http", "www")):
            continue
        yield word


SPACES = {"split": "white space", "lower": False}
READINGS = {
    "words": ({}, lambda text: unicode_words(composed(simple_lower(text)))),
    "as written": ({"lower": False}, unicode_words),
    "white space": (SPACES, white_space_words),
    "whole": ({"as_": "whole"}, lambda text: [text]),
    "characters": ({"as_": "characters"}, list),
    "lower": (
        {"split": "white space"},
        lambda text: white_space_words(composed(simple_lower(text))),
    ),
    "pattern": ({"split": "[a-z]+", "lower": False}, lambda text: re.findall("[a-z]+", text)),
    "quotes": ({"split": "['\"].", "lower": False}, lambda text: re.findall("['\"].", text)),
    "strip": (
        {**SPACES, "strip": ".,-]^\\"},
        lambda text: [w.strip(".,-]^\\") for w in white_space_words(text)],
    ),
    "keep": (
        {**SPACES, "keep": "[a-z]{2,}"},
        lambda text: [w for w in white_space_words(text) if re.fullmatch("[a-z]{2,}", w)],
    ),
    "drop": (
        {**SPACES, "drop": "a.*", "as_": "words"},
        lambda text: [w for w in white_space_words(text) if not re.fullmatch("a.*", w)],
    ),
    "the start": ({**SPACES, "max_text_length": 3}, lambda text: white_space_words(text[:3])),
    "units": (
        {"as_": "whole", "unit": 3},
        lambda text: [text[start : start + 3] for start in range(0, len(text), 3)],
    ),
    "whole start": ({"max_text_length": 3, "as_": "whole"}, lambda text: [text[:3]]),
    "truncate": (
        {**SPACES, "max_token_length": 3},
        lambda text: [w[:3] for w in white_space_words(text)],
    ),
    "drop long": (
        {**SPACES, "max_token_length": 3, "too_long": "drop"},
        lambda text: [w for w in white_space_words(text) if len(w) <= 3],
    ),
}


@pytest.mark.parametrize("options, tokens", READINGS.values(), ids=READINGS.keys())
@given(texts=st.lists(TEXTS, min_size=1, max_size=8))
@example(texts=["é’a ’b aab Aab", "abc1 abcd"])
@example(texts=["caf\u00e9", "cafe\u0301", "caf\u00e9\0 cafe\u0301"])
@few(10)
def test_every_reading_is_the_plain_python_one(engine, written, no_noise, options, tokens, texts):
    rows = [(user % 3, text) for user, text in enumerate(texts)]
    # Characters that this Python's Unicode and the engine's may class or fold differently.
    rows = [
        (user, "".join(c for c in text if unicodedata.category(c) != "Cn")) for user, text in rows
    ]
    if not {"lower", "as_"} & options.keys():
        rows = [(user, re.sub(r"[^\x00-\u024f\u3000-\u9fff]", "", text)) for user, text in rows]
    found = histogram(engine, written(rows, **options), no_noise, 10_000)
    start = options.get("max_text_length")
    assert found == expected([(user, composed(text[:start])) for user, text in rows], tokens)


def test_of_the_characters_that_are_not_looked_for_none_is_composed():
    with duckdb.connect() as con:
        for macro in macros_called_in("composed(text)"):
            con.execute(macro)
        every = [chr(i) for i in range(1, sys.maxunicode + 1) if not 0xD800 <= i < 0xE000]
        query = "SELECT c FROM unnest($1) t(c) WHERE NOT regexp_matches(c, may_be_composed())"
        rows = con.execute(query, [every]).fetchall()
        kept = "".join(character for (character,) in rows)
        assert con.execute("SELECT nfc_normalize($1)", [kept]).fetchone() == (kept,)
    assert len(kept) > 30_000
    assert unicodedata.is_normalized("NFC", kept)
    assert not any(map(unicodedata.combining, kept))
    of_pairs = [unicodedata.normalize("NFD", each)[1:] for each in every]
    assert not set(kept) & set("".join(of_pairs))


def test_a_letter_composes_with_its_mark_also_once_it_is_in_lower_case(engine, written, no_noise):
    found = histogram(engine, written([(1, "J\u030c"), (2, "\u01f0")]), no_noise, 10_000)
    assert list(found) == ["\u01f0"]


MARKED = st.text(st.sampled_from("aéßñ日_'’-. 1٣\0\t\u0301\ufe0f🙂क\u094d\u02bc"), max_size=12)


@given(st.lists(MARKED, min_size=10, max_size=40))
@settings(max_examples=10)
def test_the_shortcut_for_texts_without_marks_makes_the_same_words(texts):
    quick, shipped = (
        "not_empty(unicode_words(content))",
        "words_with_marks(one_apostrophe(content))",
    )
    both = [
        tokens_by_duckdb(pa.array(texts), f"SELECT {each} AS tokens FROM rows").to_pylist()
        for each in (quick, shipped)
    ]
    assert both[0] == both[1]


TWEETS = [
    "@Anna: I'm SO happy!!! http://t.co/xyz www.example.com (really) ...",
    "no it is ok; -- --- ,,, .a. .ab. .abc. naïve caf\u00e9 don't #tag r2d2 f\u3000ull\xa0width",
    "https://x.y/z wwwhat http ab;c; a.b.c. 'quoted' x/y/z _under_ *star* :-) (: ??a??",
]


def test_the_triehh_preset_is_the_papers_preprocessing(engine, written, no_noise):
    rows = list(enumerate(TWEETS))
    found = histogram(engine, written(rows, **TRIEHH_WORDS), no_noise, 100)
    assert found == expected(rows, triehh_words)
    assert {"@anna:", "i'm", "happy", "(really)", "#tag"} <= found.keys()
    assert not any(word.startswith(("http", "www")) for word in found)


LISTS = {
    "text": pl.Series([["a", "b c"], ["a", None, ""], [], None], dtype=pl.List(pl.String)),
    "integers": pl.Series([[1, 2], [1, None], [], None], dtype=pl.List(pl.Int32)),
    "binary": pl.Series([[b"a", b"\xff"], [b"a", None], [], None], dtype=pl.List(pl.Binary)),
}
LISTED = {
    "text": {"a": 724 + 1024, "b c": 724},
    "integers": {"1": 724 + 1024, "2": 724},
    "binary": {"a": 2048},
}


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_column_is_taken_as_it_is_and_of_each_list_so_many_tokens(
    engine, tmp_path, no_noise, kind
):
    table = pl.DataFrame({"who": [1, 2, 3, 4], "what": LISTS[kind]})
    table.write_parquet(tmp_path / "lists.parquet")
    first = "1" if kind == "integers" else "a"
    for source in (table, tmp_path / "lists.parquet"):
        read = {"user": "who", "text": "what", "as_": "list"}
        assert histogram(engine, Corpus(source, **read), no_noise, 10) == LISTED[kind]
        cut = Corpus(source, max_text_length=1, **read)
        assert histogram(engine, cut, no_noise, 10) == {first: 2 * 1024}


# Content that is no text, or too long


def test_binary_content_is_decoded_and_what_is_not_utf8_ignored(engine, tmp_path, no_noise):
    table = pa.table({"who": [1, 1, 2, 3], "what": [b"a b", b"\xff bad", "é a".encode(), None]})
    pq.write_table(table, tmp_path / "binary.parquet")
    for source in (table, tmp_path / "binary.parquet"):
        corpus = Corpus(source, user="who", text="what")
        assert histogram(engine, corpus, no_noise, 10) == {"a": 1448, "b": 724, "é": 724}


def not_utf8(text="SENTINEL"):
    """A text column that is not UTF-8, as some writers make them."""
    blob = pa.array([text.encode() + b"\xff\xfe of text"], pa.binary())
    return pa.Array.from_buffers(pa.string(), 1, blob.buffers())


def listed(column):
    return pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), column)


NOT_UTF8 = {
    "content": ({"who": [1], "what": not_utf8()}, {}),
    "user": ({"who": not_utf8(), "what": ["a"]}, {}),
    "in a list": ({"who": [1], "what": listed(not_utf8())}, {"as_": "list"}),
}


@pytest.mark.parametrize("where", ["memory", "parquet"])
@pytest.mark.parametrize("columns, options", NOT_UTF8.values(), ids=NOT_UTF8.keys())
def test_text_that_is_not_utf8_is_a_clear_error(
    engine, tmp_path, no_noise, columns, options, where
):
    """Never a crash (engines trust Arrow's strings), and never a look at what was there."""
    source = pa.table(columns)
    if where == "parquet":
        pq.write_table(source, tmp_path / "bad.parquet")
        source = tmp_path / "bad.parquet"
    corpus = Corpus(source, user="who", text="what", **options)
    with pytest.raises(CorpusError, match="not UTF-8: write it as a binary column") as caught:
        histogram(engine, corpus, no_noise, 10)
    assert "SENTINEL" not in str(caught.value)


def test_a_word_of_ten_million_letters_is_cut(engine, written, no_noise):
    corpus = written([(0, "x" * 10_000_000 + " y")])
    assert histogram(engine, corpus, no_noise, 10) == {"x" * 1000: 1024}


def test_long_tokens_are_an_error_where_asked_for(engine, written, no_noise):
    asked = {"max_token_length": 3, "too_long": "error"}
    assert histogram(engine, written([(1, "abc abc abc")], **asked), no_noise, 10) == {"abc": 1024}
    said = r"^max_token_length: the corpus has a longer token"
    with pytest.raises(CorpusError, match=said) as caught:
        histogram(engine, written([(1, "SENTINEL")], **asked), no_noise, 10)
    assert "SENT" not in str(caught.value)


def test_a_text_that_keeps_no_token_has_none_also_where_items_are_cut():
    content = as_sequences(Corpus("a.parquet", user="u", item="i", keep="[a-z]+"), 1).content
    assert tokens_of_texts(["ab", "é"], content) == [("a", "b"), ()]


def test_the_end_of_a_row_is_a_border_and_a_dropped_word_is_none():
    """What docs/corpus.md says of a Latin word between Chinese ones."""
    texts = pl.DataFrame({"user": [1], "body": ["订单iPhone谢谢"]})
    rows = texts.with_columns(pl.col("body").str.extract_all(r"\p{Han}+")).explode("body")
    read = {"user": "user", "text": "body", "as_": "characters"}
    pairs = [
        set(exact_ngrams(corpus, max_n=2).filter(level=2)["item"])
        for corpus in (Corpus(texts, keep=r"\p{Han}+", **read), Corpus(rows, **read))
    ]
    assert pairs == [{"订单", "单谢", "谢谢"}, {"订单", "谢谢"}]
