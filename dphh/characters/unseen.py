"""Characters that look like nothing, or steer what shows them: one table for all that is shown.

Pages, charts, terminals, errors and cells of spreadsheets each write them out in their own way;
which they are, and where some of them belong, is said here. Code points by Unicode 16.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: Moves a terminal's cursor or turns its writing around; a tab and a line's end do neither.
STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\u206a-\u206f]"
)

_CONTROLS = "\x00-\x1f\x7f-\x9f"
#: All that Unicode calls Default_Ignorable: what cannot be shown is left out without a trace.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: Drawn, and drawn as nothing: no dots of Braille, a note without a head, fillers.
_BLANK = "\u2800\U00016fe4\U0001d159"
#: Spaces that look like the one of the space bar, or like none; ends of lines and paragraphs.
_SPACES = "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
#: Marks of annotations, joiners of hieroglyphs, and what is no character (nor may be in XML).
_NEVER = "\ufff9-\ufffb\U00013430-\U0001343f\ufdd0-\ufdef" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)

#: For the inside of a class of a regular expression, Python's or Rust's.
UNSEEN = _CONTROLS + _IGNORABLE + _BLANK + _SPACES + _NEVER

_PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf"
    "\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINING = (
    "\u0600-\u08ff\u0900-\u109f\u1700-\u18af\u1900-\u1c4f\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010a00-\U00011fff"
)
#: Not seen, and seen by what they do to their neighbours: emoji, Persian and Indic scripts are
#: written with them. Anywhere else they are as unseen as the rest.
_BELONGS = "|".join(
    [
        # The flags of England, Scotland and Wales; no other text is spelled so.
        "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067"
        "|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f",
        f"(?<=[{_PICTURES}])[\ufe0e\ufe0f]",
        "(?<=[0-9#*])\ufe0f(?=\u20e3)",
        f"(?<=[{_PICTURES}\ufe0f])\u200d(?=[{_PICTURES}])",
        f"(?<=[{_JOINING}])[\u200c\u200d]",
        "(?<=[\u1800-\u18af])[\u180b-\u180d\u180f]",
    ]
)
_FOUND = re.compile(f"({_BELONGS})|[{UNSEEN}]")


def written_out(text: str, how: Callable[[str], str]) -> str:
    """The text with each character that would not be seen written as `how` says."""
    return _FOUND.sub(lambda found: found[1] or how(found[0]), text)


def escaped(character: str) -> str:
    """As Python and JSON write it: `\\x1b`, `\\u202e`."""
    return character.encode("unicode_escape").decode()


def steerless_json(said: str) -> str:
    """The same JSON, but for what would steer a terminal that it is printed to."""
    return STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", said)


def steerless(text: str) -> str:
    """The text, but for what would steer a terminal."""
    return STEERS.sub(lambda found: escaped(found[0]), text)
