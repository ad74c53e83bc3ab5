"""All that is said of releases, in one file to be read from top to bottom: tests/report/said.txt.

After a change of words: `python -m tests.report.test_said`, and read the difference.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dphh.report.page import page_of
from dphh.report.sentences import counting_of, meaning_of_ranges, promise_in_words
from tests.report import made
from tests.report.made import Release, Seen, counted, items, ladder, trie, within_country

SAID = Path(__file__).with_name("said.txt")


def of(release: Release, kind: str = "", asked: object = (), **more: object) -> Release:
    """The release with other lines of its manifest, and levels of this kind."""
    levels = [{"level": level["level"], "kind": kind} if kind else level
              for level in release.manifest["levels"]]  # fmt: skip
    asked = {**release.manifest["parameters"], **dict(asked)}  # type: ignore[call-overload]
    return Release(
        release.table, {**release.manifest, "levels": levels, "parameters": asked, **more}
    )


COUNTRIES = within_country(
    {"see you": {"DE": (300, 291, 309), "US": (50, 41, 59), "other": (7, 0, 16)}},
    noise={"max_items": 3, "lost_grid": [0], "simultaneous": True},
)
TOTALS = of(counted({"see": (200, 150, 260)}), counting={**made.TOGETHER, "min_users": 20})
LOCAL = of(trie(max_length=2), "local", {"character_set": "abcz", "known": ["cab"]})
WHY = [
    (ladder(), ["See you, LATER!", ["See", "you"], "some thing", "see you me", "...",
                "see you later see"]),
    (of(ladder(), "set_union"), ["some thing"]),
    (trie(), [["a", "b"], ["b"], ["a", "z"]]),
    (LOCAL, ["bd", "cab", "ac", "c"]),
    (of(items(), verb="counts"), ["z"]),
    (of(items(), finds={**items().manifest["finds"], "users_of_many": [50, 210, 1_400]}), ["z"]),
    (of(items(), counting={"min_users": 20}), ["z"]),
]  # fmt: skip


def pieces() -> Iterator[tuple[str, object]]:
    yield "a ladder", ladder()
    yield "a trie", trie()
    yield "of devices", of(items(), verb="ldp_trie")
    yield "nothing", items(())
    yield "by country, if users may hold more, by a test, of some rows, with a weak promise", of(
        COUNTRIES, asked={"content": {**made.CONTENT, "where": "a  =\n1"}}, is_test=True,
        randomness="a seed: NOT private", privacy={**made.PRIVACY, "epsilon": 11.0},
    )  # fmt: skip
    yield "a page by country", Seen(page_of(COUNTRIES)).lines("The manifest")
    yield "a page of a floor", Seen(page_of(TOTALS)).lines("What is promised, in full")
    chosen = counted({"see": (200, 150, 260)})
    for verb in ("ngrams", "counts"):
        each = {**counting_of(chosen.manifest), "simultaneous": False}
        yield f"ranges of {verb}", meaning_of_ranges(of(chosen, verb=verb, counting=each).manifest)
    found = (release.why(phrase) for release, phrases in WHY for phrase in phrases)
    yield "why", "\n".join(f"{why.reason}: {why}" for why in found)
    for more in ({"epsilon": 8.0}, {"epsilon": 25.0, "delta": 3e-8},
                 {"protects": "contribution", "central_epsilon": 0.3}):  # fmt: skip
        yield f"{more}", promise_in_words(of(items(), privacy={**made.PRIVACY, **more}).privacy)


def said() -> str:
    return "".join(f"== {name}\n{str(text).strip()}\n" for name, text in pieces())


def test_what_is_said_of_releases_is_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert said() == SAID.read_text(encoding="utf-8")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    SAID.write_text(said(), encoding="utf-8")
