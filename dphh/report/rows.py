"""Of which rows a release is, in plain words: "November 2026, stars 1 or 2"."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from dphh.reader.conditions import rows_in_words

_NAME, _VALUE = r"""(?:"(?:[^"]|"")+"|\w+)""", r"""(?:'(?:[^']|'')*'|-?[0-9][0-9.]*)"""
_ONE = (
    rf"(?P<name>{_NAME})\s*(?:(?P<sign><=|>=|<>|!=|<|>|=)\s*(?:(?i:DATE)\s+)?(?P<value>{_VALUE})"
    rf"|(?i:IN)\s*\(\s*(?P<listed>{_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)"
    rf"|(?i:BETWEEN)\s+(?P<first>{_VALUE})\s+(?i:AND)\s+(?P<last>{_VALUE}))"
)
#: Conditions that AND alone joins: whatever brackets are around them, they mean the same.
_EVERY = re.compile(
    r"[\s(]*ONE[\s)]*(?:(?i:AND)[\s(]+ONE[\s)]*)*".replace("ONE", re.sub(r"\?P<\w+>", "?:", _ONE))
)
_WORDS = {"=": "", "<=": "at most ", ">=": "at least ", "<": "below ", ">": "above ",
          "<>": "not ", "!=": "not "}  # fmt: skip
_COMPARE = {"=": operator.eq, "<=": operator.le, ">=": operator.ge, "<": operator.lt,
            ">": operator.gt, "<>": operator.ne, "!=": operator.ne}  # fmt: skip
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
           "October", "November", "December")  # fmt: skip


def rows_of(manifest: Mapping[str, Any]) -> str:
    """The rows that were read, or "" if these are all rows."""
    where = manifest.get("parameters", {}).get("content", {}).get("where")
    return "" if where is None else ", ".join(_in_words(str(where)))


def may_share_rows(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool | None:
    """Whether a row can meet the conditions of both releases; None if that cannot be told. Where
    both have one condition, or none, they are taken as of two files, or two states of a table: no
    manifest says of which file it is."""
    contents = [each.get("parameters", {}).get("content", {}) for each in (one, other)]
    wheres = [content.get("where") or "" for content in contents]
    if wheres[0] == wheres[1]:
        return False
    if not all(wheres):
        return True
    if not all(map(_is_plain, wheres)):
        return None
    bounds: dict[str, list[tuple[str, list[str]]]] = {}
    for found in re.finditer(_ONE, " AND ".join(wheres)):
        of_column = bounds.setdefault(_plain(found["name"]).lower(), [])
        if found["listed"]:
            of_column.append(("=", [*map(_plain, re.findall(_VALUE, found["listed"]))]))
        elif found["sign"]:
            of_column.append((found["sign"], [_plain(found["value"])]))
        else:
            of_column += [(">=", [_plain(found["first"])]), ("<=", [_plain(found["last"])])]
    return all(map(_can_be_met, bounds.values()))


def _can_be_met(bounds: Sequence[tuple[str, Sequence[str]]]) -> bool:
    """Whether one value can meet all of these comparisons, each with one of its values. Tried are
    all of these values, and one before, between and after them."""
    values = {value for _, values in bounds for value in values}
    are_numbers = all(re.fullmatch(r"-?[0-9]+(\.[0-9]*)?", value) for value in values)
    key: Callable[[str], Any] = float if are_numbers else str
    place = {value: 2 * at + 1 for at, value in enumerate(sorted({*map(key, values)}))}
    return any(
        all(any(_COMPARE[sign](tried, place[key(each)]) for each in some) for sign, some in bounds)
        for tried in range(2 * len(place) + 1)
    )


def _in_words(where: str) -> Iterator[str]:
    """Each condition in words; or all as they were written, if one is of another kind."""
    if not _is_plain(where):
        yield f"rows where {rows_in_words(where)}"
        return
    spans: dict[str, dict[str, date]] = {}
    said: dict[str, str] = {}
    for found in re.finditer(_ONE, where):
        name = _plain(found["name"])
        if found["sign"] in (">=", "<") and (day := _date_of(_plain(found["value"]))):
            spans.setdefault(name, {})[found["sign"]] = day
            said.setdefault(f"days of {name}", "")
        elif found["sign"]:
            said[found[0]] = f"{name} {_WORDS[found['sign']]}{_plain(found['value'])}"
        elif found["listed"]:
            *others, last = map(_plain, re.findall(_VALUE, found["listed"]))
            said[found[0]] = f"{name} {', '.join(others)}{' or ' if others else ''}{last}"
        else:
            said[found[0]] = f"{name} {_plain(found['first'])} to {_plain(found['last'])}"
    for name, span in spans.items():
        words = _days_in_words(span.get(">="), span.get("<"))
        said[f"days of {name}"] = words if len(span) == 2 else f"{name} {words}"
    yield from said.values()


def _is_plain(where: str) -> bool:
    return bool(_EVERY.fullmatch(where)) and where.count("(") == where.count(")")


def _date_of(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _days_in_words(first: date | None, end: date | None) -> str:
    if first is None or end is None or end <= first:
        bounds = [("from", first), ("before", end)]
        return ", ".join(f"{word} {_day(day)}" for word, day in bounds if day is not None)
    last = end - timedelta(days=1)
    if first.day == 1 and end.day == 1:
        if (first.month, end.month, end.year) == (1, 1, first.year + 1):
            return f"{first.year}"
        if (first.year, first.month) == (last.year, last.month):
            return _month(first)
        return f"{_month(first)} to {_month(last)}"
    if first == last:
        return _day(first)
    alike = (first.year, first.month) == (last.year, last.month)
    return f"{first.day if alike else _day(first)} to {_day(last)}"


def released_in_words(manifest: Mapping[str, Any]) -> str:
    """When the release was made, or "" in manifests that somebody wrote without it."""
    day = _date_of(str(manifest.get("day", "")))
    early = ", before this period ended" if early_day(manifest) else ""
    return "" if day is None else f"released on {_day(day)}{early}"


def early_day(manifest: Mapping[str, Any]) -> str:
    """The day it was made on, if that was before the last of the days that it reads was over."""
    day = _date_of(str(manifest.get("day", "")))
    where = str(manifest.get("parameters", {}).get("content", {}).get("where"))
    ends = [found["value"] for found in re.finditer(_ONE, where) if found["sign"] == "<"]
    dates = [end for each in ends if (end := _date_of(_plain(each))) is not None]
    return _day(day) if day and _is_plain(where) and any(day < end for end in dates) else ""


def _day(day: date) -> str:
    return f"{day.day} {_month(day)}"


def _month(day: date) -> str:
    return f"{_MONTHS[day.month - 1]} {day.year}"


def _plain(quoted: str) -> str:
    mark = quoted[0]
    return quoted[1:-1].replace(2 * mark, mark) if mark in "'\"" else quoted
