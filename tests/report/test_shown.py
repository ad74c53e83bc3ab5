"""Texts on pages and in pictures: whatever people wrote, it stays in its place."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphh.wording.shown import html, shown, svg


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain", "plain"),
        ("\x1b[31m", "␛[31m"),
        ("a\0b\n", "a␀b␊"),
        ("\x7f\x85", "␡⟨U+0085⟩"),
        ("\u202eevil", "⟨U+202E⟩evil"),
        ("\u200b", "⟨U+200B⟩"),
        ("\ufeffx\uffff", "⟨U+FEFF⟩x⟨U+FFFF⟩"),
        ("  ", "␣␣"),
        ("", "∅"),
        ("a b", "a b"),
        ("👨‍👩‍👧‍👦", "👨‍👩‍👧‍👦"),
        ("می‌خواهم", "می‌خواهم"),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"),
        ("x\U000e0041", "x⟨U+E0041⟩"),
    ],
)
def test_what_is_not_seen_is_made_visible(text, seen):
    assert shown(text) == seen


def test_long_texts_are_cut_by_how_wide_they_are():
    assert shown("x" * 50, 20) == "x" * 19 + "…"
    assert shown("語" * 50, 20) == "語" * 9 + "…"
    assert shown("x" * 20, 20) == "x" * 20


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_harmless_in_html_and_well_formed_in_svg(text):
    assert html(text).startswith("<bdi>")
    inside = html(text)[5:-6]
    assert not set(inside) & set("<>\"'")
    assert not set(inside) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\x1b\x07")
    read = ElementTree.fromstring(f"<text>{svg(text)}</text>").text
    assert read == shown(text)
