"""Small releases, made by hand, whose answers a reader can check."""

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa

from dphh.columns import COUNTS_SCHEMA, GROUP_COUNTS_SCHEMA, SCORED_SCHEMA, TRIE_SCHEMA
from dphh.release import Release

HOSTILE = [
    "<script>alert(1)</script>", "</style>&amp;\"'", "\x1b[31mred\x07", "\u202eevil", "a\0b",
    "line\nbreak\r", "日本🙂", "شكرا", "x" * 500, "\uffff", "]]>", "{{ 7 * 7 }}",
]  # fmt: skip
CONTENT = {
    "column": "body", "reading": "words", "lower": True, "split": "unicode", "strip": ".,!?",
    "keep": None, "drop": None, "max_token_length": 1000, "too_long": "truncate", "unit": None,
    "max_text_length": 100_000, "null_users": "refuse",
}  # fmt: skip
PRIVACY = {
    "epsilon": 1.0, "delta": 1e-8, "unit": "a user: all rows of one value of the user column",
    "adjacency": "add or remove one user", "theorem": "a theorem; both directions",
    "delta_shares": {"the curve": 5e-9}, "caveats": [], "protects": "user",
}  # fmt: skip
#: Of intervals that hold together as they are.
TOGETHER = {
    "confidence": 0.95, "simultaneous": True, "keys": 9, "max_items": 9, "grid_bits": 4,
    "sigma_grid": 160, "groups_of_item": 1, "lost_grid": [],
}  # fmt: skip
PHRASES = {
    "see": 90.0, "you": 80.0, "me": 40.0, "later": 35.0, "7": 30.0,
    "see you": 60.0, "you later": 25.0, "see me": 20.0, "you me": 18.0, "see 7": 17.0,
    "see you later": 15.0,
}  # fmt: skip


def manifest(verb: str, levels: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "verb": verb,
        "run_id": f"run-of-{verb}",
        "parameters": {"content": CONTENT, **more.pop("parameters", {})},
        "randomness": "operating system",
        "is_test": False,
        "privacy": PRIVACY,
        "levels": list(levels),
        "finds": {"probability": 0.9, "users": 41, "users_by_held": [],
                  "users_by_length": [[1, 41], [2, 62], [3, 77]], "note": "",
                  "what": "an item is found"},
        **more,
    }  # fmt: skip


def ladder(scores: Mapping[str, float] = PHRASES) -> Release:
    """As `ngrams` with DPNE releases it, to three words."""
    rows = [(len(text.split()), text, text.split(), score) for text, score in scores.items()]
    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCORED_SCHEMA)
    levels: list[dict[str, Any]] = [
        {"level": 1, "kind": "set_union", "max_items": 10, "released": 5}
    ]
    levels += [
        {"level": n, "kind": "pruned", "spurious": 0.01, "released": m} for n, m in ((2, 5), (3, 1))
    ]
    return Release(table, manifest("ngrams", levels))


def items(texts: Sequence[str] = ("b", "a"), **more: Any) -> Release:
    columns = [
        [1] * len(texts), list(texts), [[text] for text in texts],
        [10.0 - place / 100 for place in range(len(texts))],
    ]  # fmt: skip
    levels = [{"level": 1, "kind": "set_union", "released": len(texts)}]
    return Release(pa.table(columns, schema=SCORED_SCHEMA), manifest("items", levels, **more))


def trie(max_length: int = 4) -> Release:
    """ "a" and "ab" are whole sequences; "b" goes on to "bc" and "bcd", which is cut there."""
    ways = [("a", False), ("b", False), ("a", True), ("ab", False), ("bc", False), ("ab", True),
            ("bcd", False)]  # fmt: skip
    rows = [(len(way) + ended, way, list(way), None, ended) for way, ended in ways]
    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=TRIE_SCHEMA)
    levels = [{"level": n, "kind": "vote"} for n in range(1, max_length + 1)]
    content = {**CONTENT, "reading": "whole", "unit": 1, "lower": False}
    return Release(table, manifest("trie", levels, parameters={"content": content}))


def counted(people: Mapping[str, tuple[int, int, int]]) -> Release:
    """A release that counts: users, and the ends of an interval."""
    rows = [(len(t.split()), t, t.split(), *users, users[0]) for t, users in people.items()]
    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=COUNTS_SCHEMA)
    return Release(table, manifest("counts", [{"level": 1, "kind": "counts", **TOGETHER}]))


def within_country(
    people: Mapping[str, Mapping[str, tuple[int, int, int]]],
    groups: Sequence[str] = ("DE", "US"),
    noise: Mapping[str, Any] | None = None,
) -> Release:
    """A release that counts within groups: a row for each item in each. `noise`: what its manifest
    says of its noise, if anything."""
    rows = [
        (len(text.split()), text, text.split(), group, *users, users[0])
        for text, of_groups in people.items()
        for group, users in of_groups.items()
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = pa.table(columns or [[] for _ in GROUP_COUNTS_SCHEMA], schema=GROUP_COUNTS_SCHEMA)
    level = {"level": 1, "kind": "counts", **TOGETHER, **(noise or {})}
    made = manifest("counts", [level], parameters={"by": "country", "groups": list(groups)})
    finds = {"probability": 0.9, "users": 251, "what": "an item's interval lies above 0"}
    return Release(table, {**made, "finds": finds})


class Seen(HTMLParser):
    """What a browser would make of a page: its tags, their attributes and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def lines(self, until: str) -> str:
        """The text as people read it, a line each, until one that begins so."""
        lines = [" ".join(line.split()) for line in self.text.split("\0")]
        return "\n".join(filter(None, lines)).partition(f"\n{until}")[0]

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("p", "h1", "h2", "h3", "dt", "tr", "summary", "pre"):
            self.text += "\0"
        if tag == "dd":
            self.text += ": "
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data
