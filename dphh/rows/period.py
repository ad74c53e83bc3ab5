"""Periods: the column that determines a row's period, the names of periods, and those a run reads.

A period is a whole number: the value of a column of whole numbers, or the number of the day, week,
month, quarter or year that a date is in. Engines know the number alone; people read its name.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo, available_timezones

from dphh.errors import UsageError

By = Literal["day", "week", "month", "quarter", "year", "number"]
#: Stretches of periods, from the first to the last of each: in order, and none meets another.
Spans = tuple[tuple[int, int], ...]
#: All periods that there may ever be.
ALWAYS: Spans = ((-(2**63), 2**63 - 1),)

_SPELLED_PERIOD = re.compile(
    r"(?P<column>.+?)(?: by (?P<by>\w+)(?: in (?P<zone>[\w/+-]+))?)?", re.DOTALL
)
_NAME_PATTERNS = {
    "day": re.compile(r"\d{4}-\d\d-\d\d"),
    "week": re.compile(r"(\d{4})-W(\d\d)"),
    "month": re.compile(r"(\d{4})-(\d\d)"),
    "quarter": re.compile(r"(\d{4})-Q([1-4])"),
    "year": re.compile(r"\d{4}"),
    "number": re.compile(r"-?\d{1,18}"),
}
#: Periods whose names are no column's.
_CALENDAR_PERIODS: tuple[By, ...] = ("day", "week", "month", "quarter")
_EXAMPLE_NAMES = {
    "day": "2026-11-23",
    "week": "2026-W47",
    "month": "2026-11",
    "quarter": "2026-Q4",
    "year": "2026",
    "number": "47",
}
_EPOCH = dt.date(1970, 1, 1).toordinal()
#: From the Thursday that days are counted from back to its week's Monday.
_TO_MONDAY = 3


@dataclass(frozen=True)
class PeriodColumn:
    """A date or time column and the length of a period; with "number" the column's values are the
    periods."""

    column: str
    by: By = "number"
    #: In which an instant has its date: of timestamps with a time zone alone.
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column or self.by not in get_args(By):
            raise UsageError(f"period: found {self.column!r} by {self.by!r}; {_SPELLING_ADVICE}")
        if self.zone not in _known_zones():
            raise UsageError(
                f"period: found the time zone {self.zone!r}; name one of the IANA's, such as UTC "
                "or Europe/Berlin"
            )

    def __str__(self) -> str:
        if self.by == "number":
            return self.column
        return f"{self.column} by {self.by}" + ("" if self.zone == "UTC" else f" in {self.zone}")

    @property
    def noun(self) -> str:
        """What one period is, after "one"."""
        if self.by == "number":
            return f"period (value of {self.column})"
        return {"week": "ISO week"}.get(self.by, self.by)

    @property
    def of_column(self) -> str:
        """The column's name, with the time zone if there is one."""
        if self.by == "number":
            return ""
        return f" of {self.column} ({self.zone} where it has a time zone)"

    def number(self, name: str) -> int:
        """The number of the period with this name."""
        found = _NAME_PATTERNS[self.by].fullmatch(name)
        try:
            if found is None:
                raise ValueError
            return _number_of_name(self.by, name, *map(int, found.groups()))
        except ValueError:
            raise UsageError(
                f"periods: found {name!r}; a {self.noun} is written {_EXAMPLE_NAMES[self.by]}, and "
                f"several with '..' or commas between them"
            ) from None

    def at(self, moment: object) -> int | None:
        """The number of the period of a date, an instant or a whole number; None for other
        values."""
        if self.by == "number":
            return moment if isinstance(moment, int) else None
        if isinstance(moment, dt.datetime):
            zoned = moment.tzinfo is not None
            moment = (moment.astimezone(ZoneInfo(self.zone)) if zoned else moment).date()
        if not isinstance(moment, dt.date):
            return None
        day = moment.toordinal() - _EPOCH
        return {
            "day": day,
            "week": (day + _TO_MONDAY) // 7,
            "month": moment.year * 12 + moment.month - 1,
            "quarter": moment.year * 4 + (moment.month - 1) // 3,
            "year": moment.year,
        }[self.by]

    def name(self, number: int) -> str:
        match self.by:
            case "day":
                return self._first_day(number).isoformat()
            case "week":
                year, week, _ = self._first_day(number).isocalendar()
                return f"{year:04}-W{week:02}"
            case "month":
                return f"{number // 12:04}-{number % 12 + 1:02}"
            case "quarter":
                return f"{number // 4:04}-Q{number % 4 + 1}"
            case "year":
                return f"{number:04}"
        return str(number)

    def days(self, spans: Spans) -> tuple[tuple[dt.date, dt.date], ...] | None:
        """The first day of each stretch and the day after its last; None if there are no such days.

        Comparisons of the column itself with days let a reader skip files by their statistics,
        which it cannot do by the number of a period.
        """
        try:
            return tuple(
                (self._first_day(first), self._first_day(last + 1)) for first, last in spans
            )
        except (ValueError, OverflowError):
            return None

    def _first_day(self, number: int) -> dt.date:
        match self.by:
            case "day":
                return dt.date.fromordinal(number + _EPOCH)
            case "week":
                return dt.date.fromordinal(7 * number - _TO_MONDAY + _EPOCH)
            case "month":
                return dt.date(number // 12, number % 12 + 1, 1)
            case "quarter":
                return dt.date(number // 4, number % 4 * 3 + 1, 1)
            case "year":
                return dt.date(number, 1, 1)
        raise ValueError

    def moments(self, spans: Spans) -> tuple[tuple[dt.date, dt.date], ...] | None:
        """The same for instants in UTC. Days begin at the zone's midnight, so each end has one more
        day."""
        days, more = self.days(spans), dt.timedelta(days=0 if self.zone == "UTC" else 1)
        try:
            return days and tuple((first - more, end + more) for first, end in days)
        except OverflowError:
            return None

    def names(self, spans: Spans) -> list[str]:
        """The names of these ranges of periods, such as 2026-W40..2026-W47."""
        return [
            self.name(first) if first == last else f"{self.name(first)}..{self.name(last)}"
            for first, last in spans
        ]

    def spans(self, asked: str | Sequence[str]) -> Spans:
        """Parse the names of periods: one, a range `A..B`, or several of either."""
        parts = asked.split(",") if isinstance(asked, str) else asked
        if not isinstance(parts, (list, tuple)) or not parts:
            raise UsageError(f"periods: found {asked!r}; {self._naming_advice}")
        stretches = []
        for part in parts:
            if not isinstance(part, str):
                raise UsageError(f"periods: found {part!r}; {self._naming_advice}")
            first, dots, last = part.strip().partition("..")
            begin = self.number(first)
            end = self.number(last) if dots else begin
            if end < begin:
                raise UsageError(f"periods: found {part!r}, whose last is before its first")
            stretches.append((begin, end))
        return merged(stretches)

    @property
    def _naming_advice(self) -> str:
        example = _EXAMPLE_NAMES[self.by]
        return f"name periods as {example!r}, or a stretch of them as '{example}..{example}'"

    def to_json(self) -> dict[str, str]:
        return {"column": self.column, "by": self.by, "zone": self.zone}


_SPELLING_ADVICE = (
    "write 'date by week' (day, week, month, quarter, year), 'date by week in Europe/Berlin', or "
    "the name of a column of whole numbers"
)


def parsed_period(given: PeriodColumn | str | dict[str, Any] | None) -> PeriodColumn | None:
    """The period column that `period=` asks for: 'date by week', or its JSON. None stays None."""
    if given is None or isinstance(given, PeriodColumn):
        return given
    if isinstance(given, dict):
        return PeriodColumn(**given)
    spelled = _SPELLED_PERIOD.fullmatch(given) if isinstance(given, str) else None
    if spelled is not None and any(
        _NAME_PATTERNS[by].match(spelled[0]) for by in _CALENDAR_PERIODS
    ):
        raise UsageError(
            f"period: found {given!r}, which is a period; periods= (--periods) reads it, and "
            "period= says which column has the date, such as 'date by week'"
        )
    if spelled is None:
        raise UsageError(f"period: found {given!r}; {_SPELLING_ADVICE}")
    by: Any = spelled["by"] or "number"
    return PeriodColumn(spelled["column"], by, spelled["zone"] or "UTC")


def checked_spans(found: Any) -> Spans | None:
    """The ranges of periods from JSON."""
    return None if found is None else merged([(int(first), int(last)) for first, last in found])


def period_json(period: PeriodColumn | None, periods: Spans | None) -> dict[str, Any]:
    """The period and the ranges as JSON; empty without a period, as in versions that had no
    periods."""
    return {
        **({} if period is None else {"period": period.to_json()}),
        **({} if periods is None else {"periods": [list(span) for span in periods]}),
    }


def merged(stretches: Sequence[tuple[int, int]]) -> Spans:
    """The same periods as the fewest ranges, in order."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(stretches):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def how_many(spans: Spans) -> int:
    return sum(last - first + 1 for first, last in spans)


def _number_of_name(by: By, name: str, year: int = 0, part: int = 0) -> int:
    match by:
        case "day":
            return dt.date.fromisoformat(name).toordinal() - _EPOCH
        case "week":
            monday = dt.date.fromisocalendar(year, part, 1)
            return (monday.toordinal() - _EPOCH + _TO_MONDAY) // 7
        case "month":
            return dt.date(year, part, 1).year * 12 + part - 1
        case "quarter":
            return year * 4 + part - 1
    return int(name)


@cache
def _known_zones() -> frozenset[str]:
    return frozenset({"UTC", *available_timezones()})
