"""Numbers and names as people read them, in a line of a terminal or on a page.

An item is whatever users wrote, and must not affect its surroundings: characters that are invisible
or control how text is displayed are written out. Pages, charts, terminals and CSV cells each escape
them in their own way; this file lists them, by Unicode 16, and the contexts in which some of them
are legitimate. Errors and JSON escape only those that control a terminal
(`dphh.errors.CONTROL_CHARACTERS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import floor, log10
from shutil import get_terminal_size
from textwrap import wrap

from dphh.errors import CONTROL_CHARACTERS, escaped

#: All characters that are invisible or control a display, as in [] of a regular expression.
UNSEEN = (
    "\x00-\x1f\x7f-\x9f"
    # All that Unicode calls Default_Ignorable: displays omit them without a trace.
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    # Characters with an empty glyph: Braille without dots, a note without a head, fillers.
    "\u2800\U00016fe4\U0001d159"
    # Spaces that look like an ordinary space or like nothing; line and paragraph separators.
    "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    # Annotation marks, joiners of hieroglyphs, and noncharacters (which XML may not contain).
    "\ufff9-\ufffb\U00013430-\U0001343f\ufdd0-\ufdef"
) + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))

_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf"
    "\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINING_SCRIPTS = (
    "\u0600-\u08ff\u0900-\u109f\u1700-\u18af\u1900-\u1c4f\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010a00-\U00011fff"
)
#: Matches an invisible character where it changes how its neighbours look, as in emoji and in
#: Persian and Indic scripts. There it is kept; anywhere else it is replaced.
_VISIBLE_IN_SEQUENCE = "|".join(
    [
        # The flags of England, Scotland and Wales; no other text uses these sequences.
        "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067"
        "|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f",
        f"(?<=[{_EMOJI}])[\ufe0e\ufe0f]",
        "(?<=[0-9#*])\ufe0f(?=\u20e3)",
        f"(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])",
        f"(?<=[{_JOINING_SCRIPTS}])[\u200c\u200d]",
        "(?<=[\u1800-\u18af])[\u180b-\u180d\u180f]",
    ]
)
_INVISIBLE = re.compile(f"({_VISIBLE_IN_SEQUENCE})|[{UNSEEN}]")


def replace_invisible(text: str, replacement: Callable[[str], str]) -> str:
    """The text with each invisible character replaced by what `replacement` returns for it."""
    return _INVISIBLE.sub(lambda match: match[1] or replacement(match[0]), text)


def printable_json(text: str) -> str:
    """The JSON text, with characters that control a terminal escaped."""
    return CONTROL_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def number(value: float) -> str:
    """At least four significant digits, in plain notation: 0.3887, 33.87, 12,940."""
    digits = max(0, 3 - floor(log10(abs(value)))) if value else 0
    return f"{value:,.{digits}f}"


def numbers_in(value: object) -> Iterator[int | float]:
    """The numbers in a value of JSON: the value itself, or the elements of a list."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield value
    elif isinstance(value, list):
        for element in value:
            yield from numbers_in(element)


def with_noun(count: int, noun: str) -> str:
    """The count and its noun: 1 user, 1,200 users."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def terminal_columns() -> int:
    """How many columns a line may take: the terminal's, between 60 and 100; 100 without one."""
    return max(60, min(100, get_terminal_size((100, 24)).columns))


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes: a character of Chinese or Japanese takes two,
    as do most emoji."""
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width_of(text))


def one_line(text: str, columns: int = 60) -> str:
    """The text on one line, with invisible characters escaped: `\\x1b`. Cut to so many columns."""
    plain = replace_invisible(text, escaped)
    # Zero-width joiners are not printable; `replace_invisible` leaves those that a script needs.
    plain = "".join(c if c.isprintable() or c in "\u200c\u200d" else escaped(c) for c in plain)
    return _cut(plain, columns)


def visible_text(text: str, columns: int = 300) -> str:
    """The text with a symbol in place of each invisible character: `␛`, `⟨U+202E⟩`. Cut to so many
    columns. It is not escaped for HTML."""
    if not text.strip():
        text = text.replace(" ", "␣") or "∅"
    return _cut(replace_invisible(text, _symbol_of), columns)


def _symbol_of(character: str) -> str:
    if character == "\x7f":
        return "␡"
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else f"⟨U+{code:04X}⟩"


def _cut(text: str, columns: int) -> str:
    # No character takes more than two columns. `width_of` imports `rich`, so it is called last.
    if 2 * len(text) <= columns or width_of(text) <= columns:
        return text
    text = text[:columns]
    while width_of(text) > columns - 1:
        text = text[:-1]
    return text + "…"


def wrapped(text: str, indent: str = "", indent_below: str = "   ") -> list[str]:
    """The text as lines that fit the terminal: the first line with one indent, all others with
    another."""
    return wrap(
        text, terminal_columns() - 2, initial_indent=indent, subsequent_indent=indent_below,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def in_two_columns(labelled_texts: Sequence[tuple[str, str]]) -> list[str]:
    """Lines that fit the terminal, with the labels in one column and their texts in another."""
    width = max((len(label) for label, _ in labelled_texts), default=0)
    return [
        line
        for label, text in labelled_texts
        for line in wrapped(text, f"  {label:<{width}}  ", " " * (width + 4)) or [f"  {label}"]
    ]
