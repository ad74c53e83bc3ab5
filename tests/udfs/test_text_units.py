"""Grapheme clusters against the regular expression that UAX #29 gives for them (its table 1c)."""

from __future__ import annotations

import re
import threading
from unicodedata import combining

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh.udfs.text.text_units import graphemes, read_bytes

CONTROL = "\0\u200b\u2028\xad"
PREPEND = "\u0600\u06dd\U000110bd"
REGIONAL = "\U0001f1e9\U0001f1ea"
PICTURE = "\U0001f468\u2764\xa9"
LINKER, CONSONANT = "\u094d\u09cd", "\u0915\u0937\u0995"
#: Emoji modifiers extend too; the joiner U+200D has a rule of its own.
EXTEND = "\u0301\u0308\ufe0f\U0001f3fd" + LINKER
SPACING = "\u0903\u093f\u0e33"
HANGUL_L, HANGUL_V, HANGUL_T, LV, LVT = "\u1100", "\u1160", "\u11a8", "\uac00", "\uac01"

POSTCORE = f"[{EXTEND}\u200d{SPACING}]"
HANGUL = (
    f"[{HANGUL_L}]*(?:[{HANGUL_V}]+|{LV}[{HANGUL_V}]*|{LVT})[{HANGUL_T}]*|{HANGUL_L}+|{HANGUL_T}+"
)
PICTURES = f"[{PICTURE}](?:[{EXTEND}]*\u200d[{PICTURE}])*"
#: Up to Unicode 15.1, as in DuckDB, only what combines stands within a conjunct.
LINKED = f"[{''.join(filter(combining, EXTEND))}\u200d]*"
CONJUNCT = f"[{CONSONANT}](?:{LINKED}[{LINKER}]{LINKED}[{CONSONANT}])+"
CORE = f"{HANGUL}|[{REGIONAL}]{{2}}|{PICTURES}|{CONJUNCT}|[^{CONTROL}\r\n]"
CLUSTER = re.compile(f"\r\n|[{CONTROL}\r\n]|[{PREPEND}]*(?:{CORE}){POSTCORE}*")

EVERY = (
    "ab日é \r\n" + CONTROL + PREPEND + REGIONAL + PICTURE + CONSONANT + EXTEND + SPACING + "\u200d"
    + HANGUL_L + HANGUL_V + HANGUL_T + LV + LVT
)  # fmt: skip
TEXTS = st.text(st.sampled_from(EVERY), max_size=12).map(lambda text: text.replace("\r", "\r\n"))


def clusters(texts: list[str | None]) -> list[list[str] | None]:
    return [
        None if found is None else [cluster for cluster in found if cluster]
        for found in graphemes(pa.array(texts, pa.string())).to_pylist()
    ]


@given(texts=st.lists(TEXTS, min_size=1, max_size=30))
@settings(max_examples=200, deadline=None)
def test_clusters_are_those_of_the_standard(texts):
    assert clusters(texts) == [CLUSTER.findall(text) for text in texts]


def test_clusters_of_long_texts_are_those_of_the_standard():
    """Longer than the stretches that a text is counted through by."""
    for part in ("e\u0301x", "\U0001f1e9\U0001f1ea" * 3 + "\U0001f1e9-", "\u0915\u094d\u0937é\r\n"):
        text = part * 5000
        assert clusters([text]) == [CLUSTER.findall(text)]


def test_nothing_and_the_empty_text_have_no_clusters():
    assert clusters([None, "", "a"]) == [None, [], ["a"]]
    assert graphemes(pa.array([], pa.string())).to_pylist() == []


def test_clusters_come_in_the_order_of_the_texts_on_every_thread():
    texts = [f"{number}e\u0301" for number in range(20_000)]
    found: list[bool] = []

    def split() -> None:
        found.append(["".join(own) for own in clusters(texts)] == texts)

    threads = [threading.Thread(target=split) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 3


@pytest.mark.parametrize(
    "digits, text",
    [("", ""), ("6162", "ab"), ("e282ac", "€"), ("e282", "\\xe282"), ("00", "\0"), ("ff", "\\xff")],
)
def test_bytes_are_read_as_the_text_that_they_are(digits, text):
    assert read_bytes(digits) == text
