"""Texts on pages and in pictures: whatever people wrote, it stays in its place."""

from __future__ import annotations

import unicodedata

import polars as pl

from dphh.wording.lines import shorten
from dphh.wording.shown import shown
from dphh.wording.unseen import written_out

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
        assert shown(text) == text
    assert shorten("❤️ می‌خواهم 👨‍👩‍👧‍👦") == "❤️ می‌خواهم 👨‍👩‍👧‍👦"
    for text, seen in MADE_VISIBLE.items():
        assert shown(text) == seen
        assert shorten(text) != text and "\\" in shorten(text)
    assert (shown("  "), shown("")) == ("␣␣", "∅")


def test_what_unicode_calls_ignorable_or_a_control_or_a_space_is_in_the_table():
    """Rust's own tables of Unicode are the oracle."""
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    text = pl.Series(every)
    signs = r"[\u{600}-\u{605}\u{6dd}\u{70f}\u{890}\u{891}\u{8e2}\u{110bd}\u{110cd}]"  # are seen
    unseen = text.str.contains(r"\p{Default_Ignorable_Code_Point}|\p{Cc}|\p{Cf}|\p{Z}")
    wanted = set(text.filter(unseen & ~text.str.contains(signs))) - {" "}
    written = {character for character in every if written_out(character, lambda _: "") == ""}
    assert wanted <= written
    beside = {
        character for character in written - wanted if unicodedata.category(character) != "Cn"
    }
    assert beside <= {"\u2800", "\U0001d159", "\U00016fe4"}


def test_long_texts_are_cut_by_how_wide_they_are():
    assert shown("x" * 50, 20) == "x" * 19 + "…"
    assert shown("語" * 50, 20) == "語" * 9 + "…"
    assert shown("x" * 20, 20) == "x" * 20
