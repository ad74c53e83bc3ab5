"""Of which rows a release is, in plain words: "November 2026, stars 1 or 2"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from dphh.reader.conditions import rows_in_words

_NAME, _VALUE = r"""(?:"((?:[^"]|"")+)"|(\w+))""", r"""('(?:[^']|'')*'|-?[0-9][0-9.]*)"""
_COMPARED = re.compile(rf"{_NAME}\s*(<=|>=|<>|!=|<|>|=)\s*(?:(?i:DATE)\s+)?{_VALUE}", re.DOTALL)
_LISTED = re.compile(rf"{_NAME}\s+(?i:IN)\s*\(\s*({_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)")
_BETWEEN = re.compile(rf"{_NAME}\s+(?i:BETWEEN)\s+{_VALUE}\s+(?i:AND)\s+{_VALUE}")
_WORDS = {"=": "", "<=": "at most ", ">=": "at least ", "<": "below ", ">": "above ",
          "<>": "not ", "!=": "not "}  # fmt: skip
#: A quoted name or text, a bracket, the word that joins conditions, or anything else.
_PIECE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--|/\*|\w+|\s+|.""", re.DOTALL)
#: Where one of these is, an AND may join less than what it stands between.
_NO_PLAIN_AND = {"OR", "CASE", "--", "/*", "$"}
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
           "October", "November", "December")  # fmt: skip


def rows_of(manifest: Mapping[str, Any]) -> str:
    """The rows that were read, or "" if these are all rows."""
    where = manifest.get("parameters", {}).get("content", {}).get("where")
    return "" if where is None else ", ".join(_in_words(str(where)))


def _in_words(where: str) -> Iterator[str]:
    """Each condition in words, or as it was written. Those that are joined by more than AND, and
    comments, are shown as written."""
    conditions = [*_conditions(where)]
    spans: dict[str, dict[str, date]] = {}
    said: dict[str, str] = {}
    for condition in conditions:
        name, compares, bound = _bound_of_days(condition)
        if bound is None:
            said[condition] = _one_in_words(condition)
        else:
            spans.setdefault(name, {})[compares] = bound
            said.setdefault(f"days of {name}", "")
    for name, span in spans.items():
        words = _days_in_words(span.get(">="), span.get("<"))
        said[f"days of {name}"] = words if len(span) == 2 else f"{name} {words}"
    yield from said.values()


def _conditions(where: str) -> Iterator[str]:
    """The conditions that AND joins, without brackets around them."""
    where = where.strip()
    while _is_in_brackets(where):
        where = where[1:-1].strip()
    found: list[str] = []
    depth, begins, is_between = 0, 0, False
    for piece in _PIECE.finditer(where):
        text = piece[0].upper()
        depth += (text in "([{") - (text in ")]}")
        if depth or text not in {"BETWEEN", "AND", *_NO_PLAIN_AND}:
            continue
        if text in _NO_PLAIN_AND:
            found = []
            break
        if text == "AND" and not is_between:
            found.append(where[begins : piece.start()])
            begins = piece.end()
        is_between = text == "BETWEEN"
    if not found:
        yield where
        return
    for each in (*found, where[begins:]):
        yield from _conditions(each)


def _is_in_brackets(where: str) -> bool:
    """Whether one pair of brackets is around all of it."""
    depth = 0
    for piece in _PIECE.finditer(where):
        depth += (piece[0] == "(") - (piece[0] == ")")
        if depth == 0 or piece[0] in _NO_PLAIN_AND:
            return piece[0] == ")" and piece.end() == len(where)
    return False


def _bound_of_days(condition: str) -> tuple[str, str, date | None]:
    """The column, ">=" or "<", and the day, of a condition that is such a bound."""
    found = _COMPARED.fullmatch(condition)
    if found and found[3] in (">=", "<") and found[4].startswith("'"):
        try:
            return found[1] or found[2], found[3], date.fromisoformat(found[4][1:-1])
        except ValueError:
            pass
    return "", "", None


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


def day_of(manifest: Mapping[str, Any]) -> str:
    """The day on which the release was made, or "" in manifests that somebody wrote without it."""
    try:
        return _day(date.fromisoformat(manifest.get("day", "")))
    except (TypeError, ValueError):
        return ""


def _day(day: date) -> str:
    return f"{day.day} {_month(day)}"


def _month(day: date) -> str:
    return f"{_MONTHS[day.month - 1]} {day.year}"


def _one_in_words(condition: str) -> str:
    if found := _COMPARED.fullmatch(condition):
        return f"{_name(found[1], found[2])} {_WORDS[found[3]]}{_plain(found[4])}"
    if found := _BETWEEN.fullmatch(condition):
        return f"{_name(found[1], found[2])} {_plain(found[3])} to {_plain(found[4])}"
    if found := _LISTED.fullmatch(condition):
        return f"{_name(found[1], found[2])} {_either(re.findall(_VALUE, found[3]))}"
    return f"rows where {rows_in_words(condition)}"


def _name(quoted: str | None, bare: str | None) -> str:
    return quoted.replace('""', '"') if quoted else str(bare)


def _plain(value: str) -> str:
    return value[1:-1].replace("''", "'") if value.startswith("'") else value


def _either(values: Sequence[str]) -> str:
    *others, last = map(_plain, values)
    return f"{', '.join(others)} or {last}" if others else last
