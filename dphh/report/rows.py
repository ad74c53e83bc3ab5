"""The rows that a release read, in plain words: "November 2026, stars 1 or 2"."""

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
#: Conditions that only AND joins, so that brackets around them do not matter.
_EVERY = re.compile(
    r"[\s(]*ONE[\s)]*(?:(?i:AND)[\s(]+ONE[\s)]*)*".replace("ONE", re.sub(r"\?P<\w+>", "?:", _ONE))
)
_WORDS = {"=": "", "<=": "at most ", ">=": "at least ", "<": "below ", ">": "above ",
          "<>": "not ", "!=": "not "}  # fmt: skip
_COMPARE = {"=": operator.eq, "<=": operator.le, ">=": operator.ge, "<": operator.lt,
            ">": operator.gt, "<>": operator.ne, "!=": operator.ne}  # fmt: skip
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
           "October", "November", "December")  # fmt: skip


def rows_line(manifest: Mapping[str, Any]) -> str:
    """The condition on the rows that were read, in words; "" if all rows were."""
    where = manifest.get("parameters", {}).get("content", {}).get("where")
    return "" if where is None else ", ".join(_conditions_in_words(str(where)))


def may_share_rows(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool | None:
    """Whether a row can meet the conditions of both releases; None if that cannot be told. Equal
    conditions, or none, are taken as of two files or two states of a table, as manifests do not
    name files."""
    contents = [manifest.get("parameters", {}).get("content", {}) for manifest in (one, other)]
    wheres = [content.get("where") or "" for content in contents]
    if wheres[0] == wheres[1]:
        return False
    if not all(wheres):
        return True
    if not all(map(_is_plain, wheres)):
        return None
    bounds: dict[str, list[tuple[str, list[str]]]] = {}
    for match in re.finditer(_ONE, " AND ".join(wheres)):
        bounds_of_column = bounds.setdefault(_unquoted(match["name"]).lower(), [])
        if match["listed"]:
            listed = re.findall(_VALUE, match["listed"])
            bounds_of_column.append(("=", [*map(_unquoted, listed)]))
        elif match["sign"]:
            bounds_of_column.append((match["sign"], [_unquoted(match["value"])]))
        else:
            ends = _unquoted(match["first"]), _unquoted(match["last"])
            bounds_of_column += [(">=", [ends[0]]), ("<=", [ends[1]])]
    return all(map(_can_be_met, bounds.values()))


def _can_be_met(bounds: Sequence[tuple[str, Sequence[str]]]) -> bool:
    """Whether some value meets all of these comparisons, each with one of its values. It is enough
    to try these values, and one before, between and after them."""
    values = {value for _, values in bounds for value in values}
    are_numbers = all(re.fullmatch(r"-?[0-9]+(\.[0-9]*)?", value) for value in values)
    key: Callable[[str], Any] = float if are_numbers else str
    place = {value: 2 * rank + 1 for rank, value in enumerate(sorted({*map(key, values)}))}
    return any(
        all(any(_COMPARE[sign](tried, place[key(end)]) for end in ends) for sign, ends in bounds)
        for tried in range(2 * len(place) + 1)
    )


def _conditions_in_words(where: str) -> Iterator[str]:
    """Each condition in words; the text as it was written, if it has other kinds of conditions."""
    if not _is_plain(where):
        yield f"rows where {rows_in_words(where)}"
        return
    spans: dict[str, dict[str, date]] = {}
    words: dict[str, str] = {}
    for match in re.finditer(_ONE, where):
        name, sign = _unquoted(match["name"]), match["sign"]
        if sign in (">=", "<") and (day := _date_of(_unquoted(match["value"]))):
            spans.setdefault(name, {})[sign] = day
            words.setdefault(f"days of {name}", "")
        elif sign:
            words[match[0]] = f"{name} {_WORDS[sign]}{_unquoted(match['value'])}"
        elif match["listed"]:
            *others, last = map(_unquoted, re.findall(_VALUE, match["listed"]))
            words[match[0]] = f"{name} {', '.join(others)}{' or ' if others else ''}{last}"
        else:
            words[match[0]] = f"{name} {_unquoted(match['first'])} to {_unquoted(match['last'])}"
    for name, span in spans.items():
        days = _days_in_words(span.get(">="), span.get("<"))
        words[f"days of {name}"] = days if len(span) == 2 else f"{name} {days}"
    yield from words.values()


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
    """The day on which the release was made; "" if the manifest does not say it."""
    day = _date_of(str(manifest.get("day", "")))
    early = ", before this period ended" if early_day(manifest) else ""
    return "" if day is None else f"released on {_day(day)}{early}"


def early_day(manifest: Mapping[str, Any]) -> str:
    """The day on which the release was made, if the period that it reads had not ended; else ""."""
    day = _date_of(str(manifest.get("day", "")))
    where = str(manifest.get("parameters", {}).get("content", {}).get("where"))
    ends = [match["value"] for match in re.finditer(_ONE, where) if match["sign"] == "<"]
    dates = [end for text in ends if (end := _date_of(_unquoted(text))) is not None]
    return _day(day) if day and _is_plain(where) and any(day < end for end in dates) else ""


def _day(day: date) -> str:
    return f"{day.day} {_month(day)}"


def _month(day: date) -> str:
    return f"{_MONTHS[day.month - 1]} {day.year}"


def _unquoted(quoted: str) -> str:
    mark = quoted[0]
    return quoted[1:-1].replace(2 * mark, mark) if mark in "'\"" else quoted
