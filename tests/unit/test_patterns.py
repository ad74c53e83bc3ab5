"""A pattern that is taken matches on Polars what RE2 matches; DuckDB's RE2 is the oracle."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dphh import UsageError
from dphh.engines.polars.queries.text import full_match, pattern_words
from dphh.rows.patterns import check_patterns

#: What RE2 and another dialect may read differently.
ATOMS = [
    r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r"\b", r"\B", ".", "é", "a", "b", "-", "&", r"\<",
    r"\.",
    "[a-b]", "[^a]", r"[\w-]", r"[^\s]", "[[:alpha:]]", "[[]", "[a&&b]", "[a~~b]", "[+--]", "[-a]",
    "[]a]", "[^]a]", "[--a]", "[a[b]", r"[\d\]]", r"\pL", r"\p{Greek}", r"\x41",
    r"\x{e9}",
    r"\Qa.b\E", "{", "}", "a{,2}", "(?i:É)", "(?:ab|a)", "^", "$", "(?s:.)", "(?-s:.)", "(a)",
    r"[\<&]", "[^^]",
]  # fmt: skip
PATTERNS = st.lists(
    st.tuples(st.sampled_from(ATOMS), st.sampled_from(["", "", "?", "*", "+?", "{1,2}", "|"])),
    min_size=1,
    max_size=4,
).map(lambda parts: "".join(atom + times for atom, times in parts))
SUBJECTS = [
    "", "a", "b", "ab", "a.b", "é", "É", "aé", "1", "٣", " ", "\v", "\n", "-", "&", "~", "[", "]",
    "<", "a<", "{", "}", "a{,2}", "A", "_", "ſ", "K", "σ", "ς", "\x1f", "日", "a b-é", "^", "\\",
    "a-b", "--", "+", ",", "aab", "a\nb",
]  # fmt: skip


@pytest.fixture(scope="module")
def oracle():
    with duckdb.connect() as con:
        con.register("subjects", pl.DataFrame({"text": SUBJECTS}).to_arrow())
        yield con


def agree(oracle, pattern):
    """Whether the pattern is taken; then both match the same."""
    try:
        check_patterns(oracle, {"keep": pattern})
    except UsageError as refused:
        assert str(refused).startswith("keep: ")
        return False
    by_re2 = oracle.execute(
        "SELECT regexp_full_match(text, $1), regexp_extract_all(text, $1) FROM subjects",
        [pattern],
    ).fetchall()
    text = pl.col("text")
    by_rust = pl.DataFrame({"text": SUBJECTS}).select(
        full_match(text, pattern).alias("whole"), pattern_words(text, pattern).alias("words")
    )
    for subject, (whole, words), (also, found) in zip(
        SUBJECTS, by_re2, by_rust.rows(), strict=True
    ):
        assert (subject, whole) == (subject, also)
        # No level sees an empty word.
        assert (subject, [w for w in words if w]) == (subject, [w for w in found if w])
    return True


@pytest.mark.parametrize("atom", ATOMS)
def test_each_part_means_the_same(oracle, atom):
    agree(oracle, atom)
    agree(oracle, atom + "+")


@given(pattern=PATTERNS)
@example(pattern=r"[^]a]*\d|[^]a]*\d?")
@example(pattern=r"\D?\S|\D?\D")
@example(pattern="(?:a*b|a*c?)")
@example(pattern="[a]b*-|ab*b?")
@settings(max_examples=60, deadline=None)
def test_parts_together_mean_the_same(oracle, pattern):
    assume(agree(oracle, pattern))


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (r"\w+", r"write \[\\p\{L\}"),
        (r"a\d", r"character 2\) .* write \[0-9\]"),
        (r"a{,2}", r"write \\\{"),
        (r"[a&&b]", "in different ways"),
        (r"\Qa\E", "in different ways"),
        (r"\bword", "in different ways"),
        ("a)|(b", "not a valid regular expression in RE2"),
        ("(?=a)", "not a valid regular expression in RE2"),
        ("a{1001}", "not a valid regular expression in RE2"),
    ],
)
def test_what_is_not_read_alike_is_refused_with_a_reason(oracle, pattern, said):
    with pytest.raises(UsageError, match=f"^drop: .*{said}"):
        check_patterns(oracle, {"drop": pattern})


def test_usual_patterns_are_taken(oracle):
    for pattern in (
        r"[a-z_@#\-;()*:.'/]{3,}", r"(?:http|www).*|.*[?!.;,]", "[a-z]+", r"[\p{L}\p{N}_]+",
        r"(?i:re):\s?".replace(r"\s", " "), "[a-z]+|[0-9]+", r"\p{Greek}{2,}", "[[:alpha:]]+",
    ):  # fmt: skip
        assert agree(oracle, pattern), pattern
