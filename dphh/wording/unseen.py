"""The characters that are invisible or control how text is displayed.

Pages, charts, terminals and CSV cells each escape them in their own way. This module says which
characters they are, and in which contexts some of them are legitimate. Code points follow
Unicode 16. Errors and JSON escape what steers a terminal alone (`dphh.errors.CONTROL_CHARACTERS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dphh.errors import CONTROL_CHARACTERS

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
    """The text, with what `replacement` returns in place of each invisible character."""
    return _INVISIBLE.sub(lambda found: found[1] or replacement(found[0]), text)


def printable_json(said: str) -> str:
    """The JSON text, with characters that control a terminal escaped."""
    return CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", said)
