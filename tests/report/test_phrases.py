"""Lists and tables of releases."""

from __future__ import annotations

import csv
import json
import re

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from dphh import Release, UsageError
from dphh.columns import COLUMNS, DIGEST, digest_of
from dphh.errors import STEERS
from tests.report.made import PHRASES, items, ladder, trie


def test_what_is_inside_a_longer_phrase_is_left_out():
    assert ladder().phrases()["item"].to_list() == ["see you later", "see me", "you me", "see 7"]
    everything = ladder().phrases(maximal=False)
    assert sorted(everything["item"]) == sorted(PHRASES)
    assert everything["item"][0] == "see you later"


def test_of_a_trie_whole_sequences_and_what_was_cut_are_phrases():
    found = trie().phrases()
    assert [(row["item"], row["ended"]) for row in found.iter_rows(named=True)] == [
        ("bcd", False), ("ab", True), ("a", True),
    ]  # fmt: skip


def test_an_empty_release_has_empty_answers():
    nothing = items(())
    assert len(nothing.phrases()) == 0


def test_a_release_is_arrow_rows_and_a_frame():
    made = ladder()
    assert pl.DataFrame(made).equals(made.to_polars())
    assert list(made) == made.table.to_pylist()
    assert duckdb.sql("SELECT count(*) FROM made").fetchall() == [(len(made),)]
    pytest.importorskip("pandas")
    assert list(made.to_pandas()["item"]) == list(PHRASES)


def test_without_pandas_it_is_said(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(UsageError, match="pandas is not installed"):
        ladder().to_pandas()


def test_csv_holds_no_formula_and_comes_back(tmp_path):
    texts = ["=1+1", "+49", "-x", "@a", "\tb", "＝1", "a,b", 'say "c"', "line\nbreak", "plain", "'"]
    path = items(texts).to_csv(tmp_path / "out.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["item"] for row in rows] == [
        *("'" + text for text in texts[:6]), *texts[6:],
    ]  # fmt: skip
    assert [json.loads(row["tokens"]) for row in rows] == [[text] for text in texts]
    assert not any(value.startswith(("=", "+", "-", "@")) for row in rows for value in row.values())
    with pytest.raises(UsageError, match="could not be written"):
        items().to_csv(tmp_path / "no" / "out.csv")


SIGNS = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "﹢", "⁼", "−")
#: What a spreadsheet reads over, or does not see, before a sign.
OVER = ["\u00a0", "\u200b", "\t ", "\ufeff", "\u2028", "\u3000", "\x00", "\u034f", "\u2800",
        "\u00ad", "\u202e", " \u200d ", "\ufe0f", "\U000e0100", '"', "'", "\x1b"]  # fmt: skip


@pytest.mark.parametrize("over", OVER)
def test_csv_holds_no_formula_behind_what_is_not_seen(tmp_path, over):
    texts = [f"{over}{sign}1+1" for sign in SIGNS] + [f"a;{over}{sign}1" for sign in SIGNS]
    path = items(texts).to_csv(tmp_path / "out.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    first, later = rows[: len(SIGNS)], rows[len(SIGNS) :]
    assert all(row["item"].startswith("'") for row in first)
    assert all(row["item"].split(";")[1][len(over)] == "'" for row in later)
    assert [json.loads(row["tokens"]) for row in rows] == [[text] for text in texts]
    assert not any(re.search(rf";{over}[=+\-@]", row["tokens"]) for row in rows)


def test_csv_leaves_alone_what_is_no_formula(tmp_path):
    texts = ["a = b", "3 - 2", "e-mail", "a@b", "'tis", "«a»", "\u00a0a", "c; d - e"]
    path = items(texts).to_csv(tmp_path / "out.csv")
    with path.open(newline="", encoding="utf-8") as file:
        assert [row["item"] for row in csv.DictReader(file)] == texts


#: Sets a title, colours, turns writing around, erases.
STEERING = ["\x1b]0;title\x07a", "\x9b31mb", "\u202ec", "\u2066d", "e\x7f\x08f"]


def test_no_frame_to_be_read_steers_a_terminal():
    made = items([*STEERING, "plain"])
    frames = [made.phrases(), made.phrases().filter(pl.col("level") == 1)]
    for frame in frames:
        said = [text for column in frame.select(pl.col(pl.String)) for text in column]
        said += (
            [token for tokens in frame["tokens"] for token in tokens] if "tokens" in frame else []
        )
        assert not STEERS.search(f"{frame}") and not any(map(STEERS.search, said))
    assert "\\x1b]0;title\\x07a" in made.phrases()["item"]
    assert set(made.to_polars()["item"]) == {*STEERING, "plain"}


def test_no_manifest_steers_a_terminal_and_it_says_the_same():
    made = items(["a"], parameters={"groups": STEERING})
    assert not STEERS.search(made.dumps())
    assert json.loads(made.dumps()) == json.loads(json.dumps(made.manifest))


def test_csv_holds_no_formula_where_a_semicolon_begins_a_cell(tmp_path):
    texts = ["a;=1+1", 'b"; "+2', "c\t@d", "e\n-f", "g|＝1", "h; i"]
    path = items(texts).to_csv(tmp_path / "out.csv")
    cells = re.split(r"[;|\t\r\n]", path.read_text(encoding="utf-8"))
    assert not any(cell.strip(' "').startswith(SIGNS) for cell in cells)
    with path.open(newline="", encoding="utf-8") as file:
        assert [json.loads(row["tokens"]) for row in csv.DictReader(file)] == [[t] for t in texts]


# The first k

MANIFEST = {"run_id": "one", "verb": "ngrams", "privacy": {"epsilon": 1.0, "delta": 1e-6}}


def listed(rows, *more):
    names = ["level", "item", "tokens", *more]
    columns = [[row[0], row[1], row[1].split(), *row[2:]] for row in rows]
    schema = pa.schema([(name, COLUMNS[name]) for name in names])
    made = [dict(zip(names, row, strict=True)) for row in columns]
    return Release(pa.Table.from_pylist(made, schema=schema), MANIFEST)


def names_of(found):
    return [row["item"] for row in found]


WORDS = listed(
    [(1, "b", 9.0), (1, "a", 8.0), (1, "c", 7.0), (2, "b a", 99.0), (2, "a b", 98.0)], "score"
)


@pytest.mark.parametrize(
    "k, expected",
    [
        (1, ["b"]),
        (3, ["b", "a", "b a"]),
        (4, ["b", "a", "b a", "a b"]),
        (99, ["b", "a", "c", "b a", "a b"]),
    ],
)
def test_lengths_take_turns_as_their_scores_do_not_compare(k, expected):
    found = WORDS.top(k)
    assert names_of(found) == expected
    assert found.manifest == {**MANIFEST, "top": k, DIGEST: digest_of(found.table)}
    assert len(WORDS) == 5 and "top" not in WORDS.manifest


def test_people_go_before_scores_where_they_were_counted():
    rows = [(1, "b", 9.0, 3), (1, "a", 8.0, 5), (1, "c", 7.0, None), (1, "d", 6.0, 5)]
    assert names_of(listed(rows, "score", "users").top(3)) == ["a", "d", "b"]
    uncounted = [(*row[:3], None) for row in rows]
    assert names_of(listed(uncounted, "score", "users").top(2)) == ["b", "a"]


def test_a_release_that_weighs_nothing_has_no_top():
    with pytest.raises(UsageError, match="neither scores nor counts"):
        listed([(1, "a", None)], "score").top(1)
    assert names_of(listed([], "score").top(1)) == []


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "3"])
def test_how_many_is_a_whole_number(k):
    with pytest.raises(UsageError, match="k: found"):
        WORDS.top(k)


def test_the_first_of_a_release_are_not_said_to_be_all_that_was_found():
    first = ladder().top(2)
    assert "the first 2 of the 11 found by ngrams" in repr(first)
    assert "11 found by ngrams" in repr(ladder())
