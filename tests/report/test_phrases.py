"""Lists, tables and the first k of releases."""

import csv
import json
import re
import unicodedata

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dphh
from dphh import UsageError
from dphh.columns import digest_of
from dphh.errors import CONTROL_CHARACTERS
from dphh.report.phrases import is_maximal
from dphh.wording.lines import one_line, replace_invisible, visible_text
from tests.report.every import release_of
from tests.report.made import CONTENT, PHRASES, counted, items, ladder, trie, within_country


def test_what_is_inside_a_longer_phrase_is_left_out():
    assert ladder().phrases()["item"].to_list() == ["see you later", "see me", "you me", "see 7"]
    assert len(items(()).phrases()) == 0


def test_of_one_length_those_with_most_people_are_first():
    found = counted({"a b": (3, 1, 5), "c d": (7, 2, 9), "e": (90, 80, 95), "c b": (0, 0, 4)})
    scores = pl.Series("score", [9.0, 1.0, 2.0, 5.0])
    scored = found.to_polars().with_columns(scores).to_arrow()
    for release in (found, dphh.Release(scored, found.manifest)):
        assert release.phrases()["item"].to_list() == ["c d", "a b", "e", "c b"]


def test_the_groups_of_a_phrase_stay_together():
    held = {"a b": {"DE": (9, 8, 10), "US": (1, 0, 2)}, "c d": {"DE": (5, 4, 6), "US": (6, 5, 7)}}
    found = within_country(held).phrases()
    assert found.select("item", "group_name").rows() == [
        ("c d", "DE"), ("c d", "US"), ("a b", "DE"), ("a b", "US")
    ]  # fmt: skip


@given(st.lists(st.tuples(st.lists(st.sampled_from("ab"), min_size=1, max_size=5), st.booleans())))
def test_what_is_inside_a_longer_phrase_is_what_a_search_of_all_pairs_finds(rows):
    phrases = [tuple(tokens) for tokens, _ in rows]
    frame = pl.DataFrame({"tokens": phrases}, {"tokens": pl.List(pl.String)})

    def inside(short, long):
        return any(long[at : at + len(short)] == short for at in range(len(long) - len(short) + 1))

    assert is_maximal(frame).to_list() == [
        not any(len(each) < len(other) and inside(each, other) for other in phrases)
        for each in phrases
    ]
    ended = pl.Series("ended", [end for _, end in rows], pl.Boolean)
    assert is_maximal(frame.with_columns(ended)).to_list() == [
        end or not any(
            (other == each and whole) or (len(other) > len(each) and other[: len(each)] == each)
            for other, whole in zip(phrases, ended, strict=True)
        )
        for each, end in zip(phrases, ended, strict=True)
    ]  # fmt: skip


def test_a_phrase_of_a_hundred_tokens_is_explained_at_once():
    """Its parts are 5,000, and the ways that lead to them 2^100."""
    words = [str(place) for place in range(100)]
    long = ladder(scores={"see": 1.0})
    long.manifest["levels"] = [
        {"level": n, "kind": "pruned", "pruning": "both", "released": 0} for n in range(1, 101)
    ]
    why = long.why(words)
    assert why.reason == "a part was not released" and why.said.count("and “") == 99
    assert long.why(["see", "see"]).reason == "below"


def test_a_digest_depends_on_rows_and_not_on_their_layout():
    whole = ladder().table
    rows = whole.to_pylist()
    in_pieces = pa.concat_tables([whole.slice(0, 3), whole.slice(3, 0), whole.slice(3)])
    assert in_pieces["item"].num_chunks > 1
    padded = pa.concat_tables([whole.slice(5), whole]).combine_chunks().slice(len(whole) - 5)
    assert digest_of(whole) == digest_of(in_pieces) == digest_of(padded)
    digests = {digest_of(whole)}
    for name, values in {
        "level": [9], "item": ["x", "", None], "score": [0.5, None],
        "tokens": [[], [""], ["se", "e"], ["s", "ee"], ["see", ""], ["", "see"]],
    }.items():  # fmt: skip
        for value in values:
            edited = [{**rows[0], name: value}, *rows[1:]]
            digests.add(digest_of(pa.Table.from_pylist(edited, schema=whole.schema)))
    digests.add(digest_of(whole.slice(1)))
    assert len(digests) == 14


def test_of_a_trie_whole_sequences_and_what_was_cut_are_phrases():
    found = trie().phrases()
    assert [(row["item"], row["ended"]) for row in found.iter_rows(named=True)] == [
        ("bcd", False), ("ab", True), ("a", True),
    ]  # fmt: skip


def test_a_release_is_rows_and_a_pandas_frame(monkeypatch):
    made = ladder()
    assert list(made) == made.table.to_pylist()
    pytest.importorskip("pandas")
    assert list(made.to_pandas()["item"]) == list(PHRASES)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(UsageError, match="pandas is not installed"):
        made.to_pandas()


SIGNS = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "﹢", "⁼", "−")
#: What a spreadsheet reads over, or does not see, before a sign.
OVER = ["", "\u00a0", "\u200b", "\t ", "\ufeff", "\u2028", "\u3000", "\x00", "\u034f", "\u2800",
        "\u00ad", "\u202e", " \u200d ", "\ufe0f", "\U000e0100", '"', "'", "\x1b"]  # fmt: skip
NO_FORMULAS = ["a = b", "3 - 2", "e-mail", "a@b", "'tis", "«a»", "\u00a0a", "c; d - e", "a,b",
               'say "c"', "line\nbreak", "'"]  # fmt: skip


def test_csv_holds_no_formula_and_comes_back(tmp_path):
    first = [f"{over}{sign}1" for over in OVER for sign in SIGNS]
    later = [f"a;{text}" for text in first] + ["c\t@d", "e\n-f", "g|＝1"]
    texts = [*first, *later, *NO_FORMULAS]
    path = items(texts).to_csv(tmp_path / "out.csv")
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    cells = [row["item"] for row in rows]
    assert all(cell.startswith("'") for cell in cells[: len(first)])
    assert all(re.search(rf"'[{re.escape(''.join(SIGNS))}]", cell)
               for cell in cells[len(first) : len(first) + len(later)])  # fmt: skip
    assert cells[len(first) + len(later) :] == NO_FORMULAS
    assert [json.loads(row["tokens"]) for row in rows] == [[text] for text in texts]
    assert not any(re.search(r";[^\w\\]*[=+\-@]", row["tokens"]) for row in rows[: len(first) * 2])
    with pytest.raises(UsageError, match="could not be written"):
        items().to_csv(tmp_path / "no" / "out.csv")


@pytest.mark.parametrize("name", ["counted ngrams", "grouped items", "ldp_trie 2", "items auto"])
def test_a_spreadsheet_of_any_country_reads_the_csv(name, tmp_path):
    """Excel takes a file for UTF-8 by its mark. Whole numbers have no decimal sign. The interval is
    the release's, which is shown everywhere."""
    release = release_of(900, name)
    table = release.to_polars()
    for separator in (",", ";", ","):  # each replaces the one before
        data = release.to_csv(tmp_path / "out.csv", separator=separator).read_bytes()
        assert data.startswith(b'\xef\xbb\xbf"level"' + separator.encode())
        found = pl.read_csv(tmp_path / "out.csv", separator=separator)
        assert (found.columns, len(found)) == ([*table.columns, "phrase"], len(table))
        rows = found.drop_nulls("phrase")
        number = "users" if "users" in table else "level"
        assert sorted(rows[number]) == sorted(release.phrases()[number]), "those of the page"
        for column in ("users", "low", "high", "estimate"):
            if column in table:
                assert found[column].to_list() == table[column].cast(pl.Int64).to_list()
        for column in {"score", "error"} & {*table.columns}:
            assert not re.search(r"\d[.,]\d*[1-9]", "".join(map(str, found[column])))
            whole = found[column].cast(pl.Int64)
            assert whole.is_null().to_list() == table[column].is_null().to_list()
            assert ((whole - table[column]).abs().max() or 0) <= 0.5
    with pytest.raises(UsageError, match="separator: found"):
        release.to_csv(tmp_path / "out.csv", separator="\t")
    with pytest.raises(UsageError, match=r"name it \.csv"):
        release.to_csv(tmp_path / "out.xlsx")


def test_nothing_to_be_read_steers_a_terminal():
    """Titles are set, colours, writing turned around and erased."""
    steering = ["\x1b]0;title\x07a", "\x9b31mb", "\u202ec", "\u2066d", "e\x7f\x08f"]
    made = items([*steering, "plain"], parameters={"groups": steering})
    for frame in (made.phrases(), made.phrases().filter(pl.col("level") == 1)):
        assert not CONTROL_CHARACTERS.search(
            f"{frame}{frame['item'].to_list()}{frame['tokens'].to_list()}"
        )
    assert "\\x1b]0;title\\x07a" in made.phrases()["item"]
    assert set(made.to_polars()["item"]) == {*steering, "plain"}
    assert not CONTROL_CHARACTERS.search(made.dumps())
    assert json.loads(made.dumps()) == json.loads(json.dumps(made.manifest))


def test_a_phrase_is_text_or_a_list_of_tokens():
    with pytest.raises(UsageError, match="list of tokens"):
        ladder().why([1, 2])
    listed = items()
    listed.manifest["parameters"]["content"] = {**CONTENT, "reading": "list"}
    said = [listed.why(each).reason for each in ("a b → c", ["a b", "c"])]
    assert said[0] == said[1]


# What is not seen


AS_IT_IS = ["plain", "a b", "👨‍👩‍👧‍👦", "می‌خواهم", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "❤️ 1️⃣ 👨‍❤️‍👨", "क्‍ष"]
MADE_VISIBLE = {
    "\x1b[31m": "␛[31m", "a\0b\n": "a␀b␊", "\x7f\x85": "␡⟨U+0085⟩", "\u202eevil": "⟨U+202E⟩evil",
    "\u200b": "⟨U+200B⟩", "\ufeffx\uffff": "⟨U+FEFF⟩x⟨U+FFFF⟩", "x\U000e0041": "x⟨U+E0041⟩",
    "a\u034fb": "a⟨U+034F⟩b", "a\u2800b": "a⟨U+2800⟩b", "x\ufe0f": "x⟨U+FE0F⟩",
    "葛\U000e0100": "葛⟨U+E0100⟩", "\U0001bca0\U0001d173": "⟨U+1BCA0⟩⟨U+1D173⟩",
    "10\u00a0km": "10⟨U+00A0⟩km", "a\u200db": "a⟨U+200D⟩b", "می‌\u200c": "می‌⟨U+200C⟩",
    "🏴\U000e0068\U000e0069\U000e007f": "🏴⟨U+E0068⟩⟨U+E0069⟩⟨U+E007F⟩",
}  # fmt: skip


def test_what_is_not_seen_is_made_visible_on_pages_and_in_terminals():
    for text in AS_IT_IS:
        assert visible_text(text) == text
    assert one_line("❤️ می‌خواهم 👨‍👩‍👧‍👦") == "❤️ می‌خواهم 👨‍👩‍👧‍👦"
    for text, seen in MADE_VISIBLE.items():
        assert visible_text(text) == seen
        assert one_line(text) != text and "\\" in one_line(text)
    assert (visible_text("  "), visible_text("")) == ("␣␣", "∅")


def test_what_unicode_calls_ignorable_or_a_control_or_a_space_is_in_the_table():
    """Rust's own tables of Unicode are the oracle."""
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    text = pl.Series(every)
    signs = r"[\u{600}-\u{605}\u{6dd}\u{70f}\u{890}\u{891}\u{8e2}\u{110bd}\u{110cd}]"  # are seen
    unseen = text.str.contains(r"\p{Default_Ignorable_Code_Point}|\p{Cc}|\p{Cf}|\p{Z}")
    wanted = set(text.filter(unseen & ~text.str.contains(signs))) - {" "}
    written = {character for character in every if replace_invisible(character, lambda _: "") == ""}
    assert wanted <= written
    beside = {
        character for character in written - wanted if unicodedata.category(character) != "Cn"
    }
    assert beside <= {"\u2800", "\U0001d159", "\U00016fe4"}
