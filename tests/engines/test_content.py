"""Every source, every user type and every reading, against plain Python. One body, every engine."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections import defaultdict
from datetime import date
from math import isqrt

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphh import TRIEHH_WORDS, Corpus, CorpusError, UsageError, items
from tests.engines.levels import bare_level, histogram, session_on

ROWS = [(1, "a b"), (1, "b c"), (2, "b"), (3, "a"), (3, "a")]
WHITE_SPACE = "\t\n\v\f\r\x85\xa0\u1680\u2000\u2007\u200a\u2028\u2029\u202f\u205f\u3000 "


def expected(rows, tokens=str.split):
    """H before noise: what `tokens` makes of each row, by plain Python."""
    held = defaultdict(set)
    for user, content in rows:
        held[user] |= {token for token in tokens(content) if token}
    weights = defaultdict(int)
    for words in held.values():
        for word in words:
            weights[word] += isqrt(4**10 // len(words))
    return dict(weights)


def frame(rows):
    return pl.DataFrame(
        {"who": [row[0] for row in rows], "what": [row[1] for row in rows]}, strict=False
    )


def not_utf8(rows=1):
    """A text column that is not UTF-8, as some writers make them."""
    blob = pa.array([b"SENTINEL\xff\xfe of text"] * rows, pa.binary())
    return pa.Array.from_buffers(pa.string(), rows, blob.buffers())


# Sources


def as_path(folder, con):
    frame(ROWS).write_parquet(folder / "one.parquet")
    return {"source": str(folder / "one.parquet")}


def as_path_object(folder, con):
    as_path(folder, con)
    return {"source": folder / "one.parquet"}


def as_list(folder, con):
    frame(ROWS[:2]).write_parquet(folder / "one.parquet")
    frame(ROWS[2:]).write_parquet(folder / "two.parquet")
    return {"source": [folder / "one.parquet", str(folder / "two.parquet")]}


def as_glob(folder, con):
    as_list(folder, con)
    return {"source": f"{folder}/*.parquet"}


def as_folder(folder, con):
    (folder / "deep" / "er").mkdir(parents=True)
    frame(ROWS[:2]).write_parquet(folder / "deep" / "one.parquet")
    frame(ROWS[2:]).write_parquet(folder / "deep" / "er" / "two.parquet")
    return {"source": folder}


def as_partitions_by_user(folder, con):
    for index, (user, text) in enumerate(ROWS):
        (folder / f"who={user}").mkdir(exist_ok=True)
        pl.DataFrame({"what": [text]}).write_parquet(folder / f"who={user}" / f"{index}.parquet")
    return {"source": folder}


def as_table(folder, con):
    con.execute("CREATE TABLE messages AS FROM rows")
    return {"source": "messages", "connection": con}


def as_quoted_table(folder, con):
    con.execute('CREATE SCHEMA s; CREATE TABLE s."odd; na\'me" AS FROM rows')
    return {"source": 's."odd; na\'me"', "connection": con}


def as_view(folder, con):
    con.execute("CREATE TABLE messages AS FROM rows; CREATE VIEW seen AS FROM messages")
    return {"source": "seen", "connection": con}


def as_temp_table(folder, con):
    con.execute("CREATE TEMP TABLE hidden AS FROM rows")
    return {"source": con.sql("FROM hidden")}


def as_relation(folder, con):
    return {"source": con.sql("SELECT what, who, 1 AS more FROM rows WHERE who > 0")}


def as_arrow(folder, con):
    return {"source": frame(ROWS).to_arrow()}


def as_reader(folder, con):
    table = frame(ROWS).to_arrow()
    return {"source": pa.RecordBatchReader.from_batches(table.schema, table.to_batches(2))}


def as_polars(folder, con):
    return {"source": frame(ROWS)}


def as_lazy(folder, con):
    return {"source": frame(ROWS).lazy().with_columns(more=pl.lit(1))}


SOURCES = [
    as_path, as_path_object, as_list, as_glob, as_folder, as_partitions_by_user, as_table,
    as_quoted_table, as_view, as_temp_table, as_relation, as_arrow, as_reader, as_polars, as_lazy,
]  # fmt: skip


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_every_source_gives_the_same_histogram(engine, tmp_path, no_noise, make):
    con = duckdb.connect()
    con.register("rows", frame(ROWS).to_arrow())
    corpus = Corpus(**make(tmp_path, con), user="who", text="what")
    assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


def test_columns_of_the_files_go_before_those_of_the_folders_names(engine, tmp_path, no_noise):
    """Else a folder on the way that happens to be called who=7 would make all users one."""
    folder = tmp_path / "who=7" / "what=x"
    folder.mkdir(parents=True)
    frame(ROWS).write_parquet(folder / "one.parquet")
    for source in (folder / "one.parquet", tmp_path):
        corpus = Corpus(source, user="who", text="what")
        assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


def test_users_of_folders_stay_apart_even_where_they_look_like_one_number(
    engine, tmp_path, no_noise
):
    for user in ("01", "1", "a b"):
        (tmp_path / f"who={user}").mkdir()
        pl.DataFrame({"what": ["x"]}).write_parquet(tmp_path / f"who={user}" / "one.parquet")
    corpus = Corpus(tmp_path, user="who", text="what")
    assert histogram(engine, corpus, no_noise, 10) == {"x": 3 * 1024}


def test_one_users_folder_does_not_decide_how_other_names_are_read(engine, tmp_path, no_noise):
    def users_of(*names):
        folder = tmp_path / str(len(names))
        for name in names:
            (folder / f"what={name}").mkdir(parents=True)
            pl.DataFrame({"who": ["u" + name]}).write_parquet(folder / f"what={name}" / "1.parquet")
        return histogram(engine, Corpus(folder, user="who", item="what"), no_noise, 10)

    alone = users_of("007", "8")
    assert alone == {"007": 1024, "8": 1024}
    assert users_of("007", "8", "x") == alone | {"x": 1024}


def test_a_partition_without_a_user_is_an_error(engine, tmp_path, no_noise):
    folder = tmp_path / "who=__HIVE_DEFAULT_PARTITION__"
    folder.mkdir()
    pl.DataFrame({"what": ["x"]}).write_parquet(folder / "one.parquet")
    with pytest.raises(CorpusError, match="user column is NULL"):
        histogram(engine, Corpus(tmp_path, user="who", text="what"), no_noise, 10)


NAMES = [
    "o'dd na\"me", "[x]", "st*r", "q?", "únï", "a{b,c}", "p%20q", "x; DROP TABLE y; --",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_of_files_and_folders_are_taken_as_they_are(engine, tmp_path, no_noise, name):
    (tmp_path / name).mkdir()
    path = tmp_path / name / f"{name}.parquet"
    frame(ROWS).write_parquet(path)
    (tmp_path / "x").mkdir()  # what [x] and q? would match as globs
    frame([(9, "other")]).write_parquet(tmp_path / "x" / "x.parquet")
    for source in (path, tmp_path / name):
        corpus = Corpus(source, user="who", text="what")
        assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


ODD = "we\"ird; 'drop' na.me $1 ñ\n--"


@pytest.mark.parametrize("make", [lambda f: f, lambda f: f.lazy(), lambda f: f.to_arrow(), None])
def test_odd_column_names_are_taken_as_they_are(engine, tmp_path, no_noise, make):
    odd = frame(ROWS).rename({"who": ODD, "what": ODD[::-1]})
    odd.write_parquet(tmp_path / "odd.parquet")
    source = tmp_path / "odd.parquet" if make is None else make(odd)
    corpus = Corpus(source, user=ODD, text=ODD[::-1])
    assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


def test_the_user_column_may_be_the_content_column_too(engine, no_noise):
    corpus = Corpus(pl.DataFrame({"who": ["a b", "c"]}), user="who", text="who")
    assert histogram(engine, corpus, no_noise, 10) == {"a": 724, "b": 724, "c": 1024}


# Users


USERS = {
    "integer": [1, 2, 3],
    "huge integer": [2**63 - 1, -(2**63), 0],
    "text": ["a", "A", "a "],
    "nul": ["a\0b", "a\0c", "a"],
    "binary": [b"\xff\xfe", b"\xff", b""],
    "date": [date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)],
    "bool": [True, False, True],
    "float": [0.1, 0.2, 1e300],
}


@pytest.mark.parametrize("users", USERS.values(), ids=USERS.keys())
def test_users_of_every_type_are_told_apart(engine, tmp_path, no_noise, users):
    rows = [(user, f"w{index} shared") for index, user in enumerate(users)] + [(users[0], "more")]
    pq.write_table(
        pa.table({"who": [u for u, _ in rows], "what": [t for _, t in rows]}),
        tmp_path / "users.parquet",
    )
    for source in (tmp_path / "users.parquet", frame(rows)):
        corpus = Corpus(source, user="who", text="what")
        assert histogram(engine, corpus, no_noise, 10) == expected(rows)


ODD_FLOATS = [float("nan"), 0.0, float("inf"), -0.0, -1.5, float("nan"), 0.0, -0.0]


def test_a_users_rows_are_one_users_however_they_are_sorted(engine, no_noise):
    """NaN is one user, and 0 and -0 are one."""
    table = pl.DataFrame({"who": ODD_FLOATS, "what": [f"w{i}" for i in range(len(ODD_FLOATS))]})
    found = histogram(engine, Corpus(table, user="who", text="what"), no_noise, 1)
    assert len(found) == 4
    assert set(found.values()) == {1024}


def test_users_of_one_hash_are_told_apart(no_noise):
    rows = [(f"user {i % 7}", f"w{i % 5} shared") for i in range(100)]
    corpus = Corpus(frame(rows), user="who", text="what")
    with session_on("duckdb", corpus, no_noise) as session:
        session.con.execute("CREATE OR REPLACE TEMP MACRO order_of_user(user_id) AS 0")
        session.hold_items()
        passed = session.items_level(bare_level(10), "test")
    found = dict(zip(*(passed.column(c).to_pylist() for c in ("key", "noisy")), strict=True))
    assert found == expected(rows)


def test_users_may_be_uuids(engine, no_noise):
    con = duckdb.connect()
    rows = [(str(uuid.UUID(int=user)), text) for user, text in ROWS]
    con.register("rows", frame(rows).to_arrow())
    relation = con.sql("SELECT CAST(who AS UUID) AS who, what FROM rows")
    found = histogram(engine, Corpus(relation, user="who", text="what"), no_noise, 10)
    assert found == expected(rows)


def test_rows_of_nobody_are_an_error_and_not_a_user(engine, written, no_noise):
    with pytest.raises(CorpusError, match=r"^user: found rows whose user column is NULL"):
        histogram(engine, written([(1, "a"), (None, "b")]), no_noise, 10)


def test_rows_without_content_are_ignored_whoever_they_are_of(engine, written, no_noise):
    rows = [(1, "a"), (2, None), (3, ""), (4, " \t\n"), (None, None), (None, " ")]
    assert histogram(engine, written(rows), no_noise, 10) == {"a": 1024}


def test_an_item_in_several_rows_of_a_user_counts_once(engine, written, no_noise):
    assert histogram(engine, written([(1, "a a"), (1, "a"), (1, "a")]), no_noise, 10) == {"a": 1024}


# Readings

TEXTS = st.text(
    st.one_of(
        st.sampled_from("aAbzéÉßñ日本_'’-.,;?!1٣\0" + WHITE_SPACE),
        st.characters(codec="utf-8"),
    ),
    max_size=30,
)
SOME = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def white_space_words(text):
    return re.split("[\t-\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000 ]", text)


def simple_lower(text):
    """Lower case, one character for one character, as engines do it."""
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def of_class(character, classes):
    return unicodedata.category(character)[0] in classes or character == "_"


def unicode_words(text):
    words, word = [], ""
    for index, character in enumerate(text):
        inner = character in "'’" and word and index + 1 < len(text)
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


READINGS = {
    "words": ({}, white_space_words),
    "whole": ({"as_": "whole"}, lambda text: [text]),
    "characters": ({"as_": "characters"}, list),
    "lower": ({"lower": True}, lambda text: white_space_words(simple_lower(text))),
    "pattern": ({"split": "[a-z]+"}, lambda text: re.findall("[a-z]+", text)),
    "strip": (
        {"strip": ".,-]^\\"},
        lambda text: [w.strip(".,-]^\\") for w in white_space_words(text)],
    ),
    "keep": (
        {"keep": "[a-z]{2,}"},
        lambda text: [w for w in white_space_words(text) if re.fullmatch("[a-z]{2,}", w)],
    ),
    "drop": (
        {"drop": "a.*", "as_": "words"},
        lambda text: [w for w in white_space_words(text) if not re.fullmatch("a.*", w)],
    ),
    "the start": ({"max_text_length": 3}, lambda text: white_space_words(text[:3])),
    "lower start": (
        {"max_text_length": 3, "lower": True, "as_": "characters"},
        lambda text: list(simple_lower(text[:3])),
    ),
    "whole start": ({"max_text_length": 3, "as_": "whole"}, lambda text: [text[:3]]),
    "truncate": ({"max_token_length": 3}, lambda text: [w[:3] for w in white_space_words(text)]),
    "drop long": (
        {"max_token_length": 3, "too_long": "drop"},
        lambda text: [w for w in white_space_words(text) if len(w) <= 3],
    ),
}


@pytest.mark.parametrize("options, tokens", READINGS.values(), ids=READINGS.keys())
@given(texts=st.lists(TEXTS, min_size=1, max_size=8))
@SOME
def test_every_reading_is_the_plain_python_one(engine, written, no_noise, options, tokens, texts):
    rows = [(user % 3, text) for user, text in enumerate(texts)]
    # Characters that this Python's Unicode and the engine's may class or fold differently.
    rows = [
        (user, "".join(c for c in text if unicodedata.category(c) != "Cn")) for user, text in rows
    ]
    if options.get("lower"):
        rows = [(user, re.sub(r"[^\x00-\u024f\u3000-\u9fff]", "", text)) for user, text in rows]
    found = histogram(engine, written(rows, **options), no_noise, 10_000)
    assert found == expected(rows, tokens)


def test_unicode_words_hold_letters_marks_digits_and_inner_apostrophes(engine, written, no_noise):
    text = "Don't l’été-là 'quoted' naïve\u0301 日本語、東京 x_1 ٣٤ a'  b''c 🙂 e\u0301a \u200d"
    found = histogram(engine, written([(1, text)], split="unicode"), no_noise, 100)
    assert found.keys() == {word for word in unicode_words(text) if word}
    assert {"Don't", "l’été", "là", "quoted", "日本語", "東京", "x_1", "b", "c"} <= found.keys()


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


@pytest.mark.published
def test_the_triehh_preset_reads_real_tweets_as_the_paper_does(engine, shared_data, no_noise):
    tweets = pl.read_parquet(shared_data / "tweets.parquet").head(4000)
    corpus = Corpus(tweets, user="user_id", text="text", **TRIEHH_WORDS)
    assert histogram(engine, corpus, no_noise, 10_000) == expected(tweets.rows(), triehh_words)


def test_characters_are_code_points(engine, written, no_noise):
    found = histogram(engine, written([(1, "e\u0301🙂a a")], as_="characters"), no_noise, 10)
    assert found.keys() == {"e", "\u0301", "🙂", "a", " "}


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
def test_a_list_column_is_taken_as_it_is(engine, tmp_path, no_noise, kind):
    table = pl.DataFrame({"who": [1, 2, 3, 4], "what": LISTS[kind]})
    table.write_parquet(tmp_path / "lists.parquet")
    for source in (table, tmp_path / "lists.parquet"):
        corpus = Corpus(source, user="who", text="what", as_="list")
        assert histogram(engine, corpus, no_noise, 10) == LISTED[kind]


def test_a_list_of_fixed_length_is_a_list(engine, no_noise):
    what = pl.Series([["a", "b"]], dtype=pl.Array(pl.String, 2))
    table, ask = pl.DataFrame({"who": [1], "what": what}), {"user": "who", "text": "what"}
    corpus = Corpus(table, as_="list", **ask)
    assert histogram(engine, corpus, no_noise, 10) == {"a": 724, "b": 724}
    corpus = Corpus(table, as_="list", max_text_length=1, **ask)
    assert histogram(engine, corpus, no_noise, 10) == {"a": 1024}


@pytest.mark.parametrize("kind", LISTS)
def test_of_a_list_so_many_tokens_count(engine, no_noise, kind):
    table = pl.DataFrame({"who": [1, 2, 3, 4], "what": LISTS[kind]})
    corpus = Corpus(table, user="who", text="what", as_="list", max_text_length=1)
    first = "1" if kind == "integers" else "a"
    assert histogram(engine, corpus, no_noise, 10) == {first: 2 * 1024}


def test_the_options_for_tokens_hold_for_lists_too(engine, no_noise):
    table = pl.DataFrame({"who": [1], "what": [["Ab!", "abcd", "x", "ab"]]})
    corpus = Corpus(
        table, user="who", text="what", as_="list", lower=True, strip="!", keep=".{2,}",
        max_token_length=3,
    )  # fmt: skip
    assert histogram(engine, corpus, no_noise, 10) == {"ab": 724, "abc": 724}


@pytest.mark.parametrize("kind", ["categorical", "enum", "dictionary"])
def test_encoded_text_is_text(engine, no_noise, kind):
    source = frame(ROWS)
    if kind == "categorical":
        source = source.with_columns(pl.col("what").cast(pl.Categorical))
    elif kind == "enum":
        source = source.with_columns(pl.col("what").cast(pl.Enum(["a b", "b c", "b", "a"])))
    else:
        table = source.to_arrow()
        source = table.set_column(1, "what", table.column(1).dictionary_encode())
    corpus = Corpus(source, user="who", text="what")
    assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


MONTH = pa.array([pa.MonthDayNano([1, 0, 0])] * 2)


@pytest.mark.parametrize(
    "user, whats, as_",
    [
        ("who", MONTH, "whole"),
        ("what", MONTH, "whole"),
        ("who", pa.array([[MONTH[0]]] * 2), "list"),
        ("who", pa.array([5, 6], pa.duration("us")), "whole"),
        ("who", pa.array([[5], [6]], pa.list_(pa.duration("us"))), "list"),
    ],
)
def test_spans_of_time_are_refused_by_polars_before_anything_is_spent(
    ledger, no_noise, user, whats, as_
):
    table = pa.table({"who": [1, 2], "what": whats})
    corpus = Corpus(table, user=user, text="what", as_=as_)
    with pytest.raises(CorpusError, match="cast the column to text, or use engine='duckdb'"):
        items(corpus, epsilon=1, delta=1e-7).run(engine="polars", ledger=ledger)
    assert ledger.runs() == []
    users = 2 if user == "who" else 1
    assert sum(histogram("duckdb", corpus, no_noise, 9).values()) == users * 1024


def test_a_file_with_an_interval_is_refused_by_polars(tmp_path, ledger):
    path = tmp_path / "spans.parquet"
    duckdb.sql("SELECT 1 AS who, INTERVAL 1 MONTH AS what").write_parquet(str(path))
    corpus = Corpus(path, user="who", item="what")
    with pytest.raises(
        CorpusError, match=r"spans\.parquet: it holds a type that Polars cannot read"
    ):
        items(corpus, epsilon=1, delta=1e-7).run(engine="polars", ledger=ledger)
    assert ledger.runs() == []


@pytest.mark.parametrize("values", [[7, 8], [date(2024, 2, 29), None], [True, False], [1.5, 2.5]])
def test_whole_items_may_be_of_any_simple_type(engine, no_noise, values):
    corpus = Corpus(frame(list(enumerate(values))), user="who", item="what")
    found = histogram(engine, corpus, no_noise, 10)
    assert {key.lower() for key in found} == {str(v).lower() for v in values if v is not None}


# What text can be


def test_nul_bytes_are_characters_like_any_other(engine, tmp_path, no_noise):
    rows = [(1, "a\0b a\0c"), (2, "a\0b \0")]
    frame(rows).write_parquet(tmp_path / "nul.parquet")
    for source in (frame(rows), tmp_path / "nul.parquet"):
        corpus = Corpus(source, user="who", text="what")
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
        CorpusError, match=r"^max_token_length: the corpus holds a longer token"
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
            "^text or item: as='words' wants text, but 'who' is (BIGINT|Int64|bigint)",
        ),
        ({"text": "listed"}, "say as_='list'"),
        ({"item": "listed"}, "say as_='list'"),
        ({"as_": "list"}, "'list' wants a list column, but 'what' is (VARCHAR|String|string)"),
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
    with pytest.raises(UsageError, match=f"^{option}: .* is not a regular expression"):
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
        with pytest.raises(CorpusError, match="there is no such file; give a Parquet file"):
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
