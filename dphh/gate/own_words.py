"""What people wrote that leaves with a release: texts, long numbers, ids of runs and names of
columns. dphh cannot tell whether it names somebody, so a person must read it."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from dphh.columns import checked_groups
from dphh.ledger import Entry
from dphh.ledger.entries import Manifest
from dphh.reader.content import SPLITS
from dphh.release import MANIFEST
from dphh.wording.lines import numbers_in, one_line, with_noun

#: What was checked, and what was found.
Line = tuple[str, str]
#: What is checked in lines that a person must answer before the release leaves.
OWN_WORDS = "own words"

#: Parameters whose texts nobody writes freely, as choices and hashes; and names of columns, which
#: have a line of their own.
_NOT_FREE = {
    *("method", "choice", "sampling", "reading", "too_long", "null_users", "prior"),
    *("user", "column", "by"),
}
_USUAL_CHARACTERS = "".join(sorted(string.printable))  # of ldp_trie
_USUAL_COLUMN = re.compile("[A-Za-z_][A-Za-z0-9_.-]{0,39}")
_WEEK, _MONTH = "(?:0[1-9]|[1-4][0-9]|5[0-3])", "(?:0[1-9]|1[0-2])"
_DAY_OF_MONTH = "(?:0[1-9]|[12][0-9]|3[01])"
#: What follows a year in a quarter, a week, a month or a day.
_OF_YEAR = f"Q[1-4]|W{_WEEK}|{_MONTH}(?:-{_DAY_OF_MONTH})?"
#: A run id that names a period, such as week-47, week-2026-W47 and 2026-11-28.
_PERIOD = re.compile(
    f"day-{_DAY_OF_MONTH}|week-{_WEEK}|month-{_MONTH}|quarter-[1-4]"
    f"|(?:(?:day|week|month|quarter|year)-)?([0-9]{{4}})(?:-(?:{_OF_YEAR}))?"
)
_MOST_TEXTS_SHOWN = 20
#: A number that somebody chose has no more, as 0.37 and 12,000 have.
_MOST_DIGITS = 5
#: More columns than any text takes: a text that leaves is shown whole.
_NOT_CUT = 10**7


def own_words(
    manifest: Manifest, groups: str | Sequence[str] | None, days: str | None, near: datetime
) -> Iterator[Line]:
    """Its numbers; and of these those long enough for a birthday or a telephone's, and each text
    of the manifest that a person has written. It leaves with the release, and dphh cannot tell
    whether it names somebody. `groups`, and `days`, a column by whose days `near` the run's rows
    may be chosen, were named by the caller, who has read them."""
    asked = manifest["parameters"]
    told = [*asked.items(), *asked["content"].items()]  # both have a `keep`
    if days is not None and asked["content"].get("where") is None:
        yield "days", "the run has no condition on its rows, so the column is not needed"
    by = asked.get("by")
    read = checked_groups(by, groups) if groups and by else ()
    if groups and not by:
        yield "groups", "the run has none, so those that were named are not needed"
    numbers = [(name, number) for name, value in told for number in numbers_in(value)]
    yield "numbers", ", ".join(f"{name} {value!r}" for name, value in numbers)
    for name, value in numbers:
        if len(Decimal(repr(value)).normalize().as_tuple().digits) > _MOST_DIGITS:
            yield OWN_WORDS, _leaves(name, f"{value!r}, which has more digits than it needs")
    for name, value in told:
        if name in _NOT_FREE:
            continue
        texts = [*_texts_in(value)]
        if name == "groups":
            known = [each for each in texts if each in read or _is_period(each, near)]
            if known:
                yield name, f"{_quoted(known)} leave too: they were named, or name periods"
            texts = [each for each in texts if each not in known]
        if (
            not texts
            or (name == "split" and value in SPLITS)
            or (name == "character_set" and value == _USUAL_CHARACTERS)
            or (name == "where" and _has_only_days(value, days, near))
        ):
            continue
        more = ""
        if name == "where" and days is not None:
            more = f", which compares more than {days!r}, or with no days near the run's"
        yield OWN_WORDS, _leaves(name, _quoted(texts)) + more


def lines_on_columns(asked: Mapping[str, Any]) -> Iterator[Line]:
    """The names of its columns: whoever made the data chose them, and they may be any text."""
    chosen = (asked["user"], asked["content"]["column"], asked.get("by"))
    names = [name for each in chosen for name in _texts_in(each)]
    if usual := [name for name in names if _USUAL_COLUMN.fullmatch(name)]:
        yield "columns", f"{', '.join(usual)} leave too"
    for name in names:
        if name not in usual:
            yield OWN_WORDS, _leaves("the name of a column", f"'{whole(name)}'")


def lines_on_run_ids(
    manifest: Manifest, runs: Mapping[str, Entry] | None, named: str | None
) -> Iterator[Line]:
    """What the ids of the run, and of the run that its prior is of, tell. Whether dphh drew an id
    is in the ledger alone: one that somebody wrote may look the same. `named`: by the caller."""
    ids = {
        "run_id": manifest["run_id"],
        "run_id of the prior": manifest.get("prior", {}).get("run_id"),
    }
    for name, run_id in ids.items():
        run = (runs or {}).get(run_id)
        near = datetime.now(UTC) if run is None else run.when
        if run_id is None:
            continue
        looks_drawn = re.fullmatch("[0-9a-f]{32}", run_id) is not None
        if looks_drawn and run is not None and not run.id_given:
            yield name, f"{run_id}, drawn by dphh"
        elif run_id == named:
            yield name, f"{run_id}, the one that was named"
        elif _is_period(run_id, near):
            yield name, f"{run_id}, which names a period"
        elif looks_drawn and runs is None:
            yield name, f"{run_id}; whether dphh drew it, only the ledger that paid for it tells"
        else:
            yield OWN_WORDS, _leaves(name, f"'{whole(run_id)}'")


def whole(text: str) -> str:
    """The text on one line, uncut. Of white space only a single space between words stays as it is:
    a person must see what else a file carries."""
    lines = text.replace("\n)", ")")  # dphh ends each of several joined conditions so
    return one_line(re.sub(" {2,}", lambda found: "␣" * len(found[0]), lines), _NOT_CUT)


def _texts_in(value: Any) -> Iterator[str]:
    """The texts in a parameter: a text, a list of texts, or a list of items, which are lists."""
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list):
        for each in value:
            is_item = isinstance(each, list) and all(isinstance(part, str) for part in each)
            yield from [" ".join(each)] if is_item else _texts_in(each)


def _has_only_days(where: str, column: str | None, near: datetime) -> bool:
    """Whether a condition only compares this column with days, weeks, months or years `near` the
    run's, as `since` and `until` do, and as where="week = '2026-W47'"."""
    named = column or ""
    quoted = re.escape('"' + named.replace('"', '""') + '"')
    name = f"(?:{quoted}|{re.escape(named)})" if named.isidentifier() else quoted
    period = f"(?:(?i:DATE) )?'([0-9]{{4}})(?:-(?:{_OF_YEAR}))?'"
    compared = (
        f"{name} ?(?:[<>]=?|=) ?{period}|{name} (?i:BETWEEN) {period} (?i:AND) {period}"
        f"|{name} (?i:IN) \\({period}(?:, ?{period})*\\)"
    )
    each = f"(?:{compared})(?: (?i:AND) (?:{compared}))*"
    found = re.fullmatch(f"{each}|\\({each}\n\\)(?: AND \\({each}\n\\))*", where)
    return found is not None and all(_is_near(year, near) for year in re.findall(period, where))


def _is_period(run_id: str, near: datetime) -> bool:
    """Whether a run id names a period, and not one of other years: that may be a birthday."""
    found = _PERIOD.fullmatch(run_id)
    return found is not None and (found[1] is None or _is_near(found[1], near))


def _is_near(year: str, near: datetime) -> bool:
    return abs(int(year) - near.year) <= 2


def _quoted(texts: Sequence[str]) -> str:
    shown = ", ".join(f"'{whole(each)}'" for each in texts[:_MOST_TEXTS_SHOWN])
    more = len(texts) - _MOST_TEXTS_SHOWN
    return shown + (f" and {with_noun(more, 'other')}, in {MANIFEST}" if more > 0 else "")


def _leaves(name: str, shown: str) -> str:
    return f"leaves as somebody wrote it, in {MANIFEST}: {name} {shown}"
