"""What a character is: code points, grapheme clusters, bytes. One body, every engine."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphh import Corpus, CorpusError, UsageError, items, ngrams, trie
from tests.engines.levels import histogram
from tests.engines.tries import brute_force, grown, prefixes

FEW = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
#: Each is one grapheme cluster, whatever stands beside it.
CLUSTERS = ["a", "é", "e\u0301", "\U0001f1e9\U0001f1ea", "👩‍💻", "\u0915\u094d\u0937", "\r\n", "日"]
ITEMS = st.lists(st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=4), min_size=1)


def runs(characters, unit, joiner=""):
    return [
        joiner.join(characters[place : place + unit]) for place in range(0, len(characters), unit)
    ]


def in_digits(content):
    return [f"{byte:02x}" for byte in content]


def found(done):
    return [prefixes(level) for level in done]


@given(words=ITEMS)
@pytest.mark.parametrize("unit", [1, 2])
@FEW
def test_items_are_cut_by_grapheme_clusters(engine, written, words, unit):
    rows = list(enumerate("".join(word) for word in words))
    corpus = written(rows, text=None, item="what", characters="graphemes")
    expected = brute_force([runs(word, unit) for word in words], 5, 1)
    assert found(grown(engine, corpus, 5, 1, unit=unit)) == expected
    if unit == 1:
        read = written(rows, as_="characters", characters="graphemes")
        assert found(grown(engine, read, 5, 1)) == expected


@given(words=ITEMS)
@pytest.mark.parametrize("unit", [1, 3])
@FEW
def test_items_are_cut_by_bytes(engine, written, words, unit):
    rows = list(enumerate("".join(word) for word in words))
    corpus = written(rows, text=None, item="what", characters="bytes")
    digits = [in_digits(text.encode()) for _, text in rows]
    expected = brute_force([runs(word, unit) for word in digits], 6, 1)
    assert found(grown(engine, corpus, 6, 1, unit=unit)) == expected
    if unit == 1:
        read = written(rows, as_="characters", characters="bytes")
        assert found(grown(engine, read, 6, 1)) == expected


def binary(tmp_path, contents, **options):
    path = tmp_path / "binary.parquet"
    whats = pa.array(contents, pa.binary())
    pq.write_table(pa.table({"who": range(len(contents)), "what": whats}), path)
    return Corpus(path, user="who", **({"item": "what", "characters": "bytes"} | options))


@pytest.mark.parametrize("options", [{}, {"item": None, "text": "what", "as_": "characters"}])
def test_bytes_of_a_binary_column_need_be_no_text(engine, tmp_path, options):
    contents = [b"\xff\x00a", b"\xff\x00", b"", None, b"\xc3\xa9"]
    expected = brute_force([in_digits(content) for content in contents if content], 4, 1)
    assert found(grown(engine, binary(tmp_path, contents, **options), 4, 1)) == expected


@pytest.mark.parametrize(
    "too_long, kept",
    [("truncate", [b"\xff\xfe\xfd", b"ab"]), ("drop", [b"ab"])],
)
def test_binary_items_are_limited_in_bytes(engine, tmp_path, too_long, kept):
    contents = [b"\xff\xfe\xfd\xfc", b"ab"]
    corpus = binary(tmp_path, contents, max_token_length=3, too_long=too_long)
    expected = brute_force([in_digits(content) for content in kept], 5, 1)
    assert found(grown(engine, corpus, 5, 1)) == expected
    with pytest.raises(CorpusError, match="max_token_length"):
        grown(engine, binary(tmp_path, contents, max_token_length=3, too_long="error"), 5, 1)


@pytest.mark.parametrize("options", [{}, {"item": None, "text": "what", "as_": "characters"}])
def test_of_a_binary_column_so_many_bytes_count(engine, tmp_path, options):
    contents = [b"\xff\xfe\xfd\xfc", b"ab"]
    expected = brute_force([in_digits(content[:3]) for content in contents], 5, 1)
    corpus = binary(tmp_path, contents, max_text_length=3, **options)
    assert found(grown(engine, corpus, 5, 1)) == expected


def test_a_binary_text_is_decoded_before_it_is_cut(engine, tmp_path):
    corpus = binary(
        tmp_path, ["éàb".encode(), b"ab\xff"], characters="code points", max_text_length=2
    )
    assert found(grown(engine, corpus, 5, 1)) == brute_force([["é", "à"]], 5, 1)


def test_whole_items_are_cleaned_before_they_are_cut_into_bytes(engine, written):
    rows = [(1, "ÉAB."), (2, "x"), (3, "éabcd")]
    corpus = written(
        rows, text=None, item="what", characters="bytes", lower=True, strip=".", drop="x",
        max_token_length=3,
    )  # fmt: skip
    expected = brute_force([in_digits("éab".encode())] * 2, 6, 2)
    assert found(grown(engine, corpus, 6, 2)) == expected


def test_a_release_of_bytes_says_the_text_that_they_are(engine, tmp_path):
    path = tmp_path / "words.parquet"
    pq.write_table(pa.table({"who": range(4000), "what": ["€", "\xff"] * 2000}), path)
    corpus = Corpus(path, user="who", item="what", characters="bytes")
    release = trie(corpus, epsilon=4, delta=1e-6, max_length=4).run(engine=engine)
    rows = {tuple(r["tokens"]): r["item"] for r in release.to_arrow().to_pylist()}
    assert rows == {
        ("e2",): "\\xe2",
        ("e2", "82"): "\\xe282",
        ("e2", "82", "ac"): "€",
        ("c3",): "\\xc3",
        ("c3", "bf"): "ÿ",
    }
    assert release.manifest["parameters"]["content"]["characters"] == "bytes"


@pytest.mark.parametrize(
    "characters, expected", [("graphemes", ["a", "e\u0301"]), ("bytes", ["\\xcc", "a", "e"])]
)
def test_items_and_ngrams_take_the_same_characters(engine, tmp_path, characters, expected):
    path = tmp_path / "text.parquet"
    pq.write_table(pa.table({"who": range(3000), "what": ["ae\u0301"] * 3000}), path)
    corpus = Corpus(path, user="who", text="what", as_="characters", characters=characters)
    for plan in (
        items(corpus, epsilon=8, delta=1e-6, max_items=5),
        ngrams(corpus, max_n=2, epsilon=8, delta=1e-6, max_items=5),
    ):
        table = plan.run(engine=engine).to_polars()
        assert set(expected) <= set(table["item"])
    pair = "ae\u0301" if characters == "graphemes" else "ae"
    assert pair in set(table["item"])


def test_clusters_longer_than_the_limit_are_cut(engine, written, no_noise):
    corpus = written(
        [(1, "e\u0301\u0308a")], as_="characters", characters="graphemes", max_token_length=2
    )
    assert set(histogram(engine, corpus, no_noise, 5)) == {"e\u0301", "a"}


@pytest.mark.parametrize(
    "cleaning", [{"lower": True}, {"strip": "."}, {"keep": "a"}, {"drop": "a"}]
)
def test_bytes_of_a_binary_column_are_not_cleaned(engine, tmp_path, cleaning):
    corpus = binary(tmp_path, [b"a"], **cleaning)
    with pytest.raises(CorpusError, match="characters: the bytes of a binary column"):
        grown(engine, corpus, 2, 1)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"characters": "letters"}, "characters: found 'letters'; give one of code points, "),
        ({"characters": "bytes"}, "characters: applies only to as='characters' and to whole items"),
        ({"characters": "graphemes", "as_": "list"}, "found as='list'"),
        (
            {"characters": "bytes", "as_": "characters", "keep": "a"},
            "strip, keep and drop cannot clean",
        ),
    ],
)
def test_characters_that_make_no_sense_are_refused(options, said):
    with pytest.raises(UsageError, match=said):
        Corpus("x.parquet", user="who", text="what", **options)
