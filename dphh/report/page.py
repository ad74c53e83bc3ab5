"""One HTML page of releases for readers, and the card of a release in notebooks.

Both are made by one template, `page.html`, which has neither scripts nor addresses. The page's
policy loads nothing and runs nothing; every value is escaped, and characters that are invisible or
turn text around become visible symbols. So the text of an item is never more than text.

What was found comes first: above it are what it is of and the promise, in a line each; all else is
folded below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dphh.ledger import Ledger
from dphh.report import change, plan_lines, sentences
from dphh.report.bar_tables import Table, meaning_of_numbers, tables_of
from dphh.report.plan_lines import Lines, paying_accounts_lines
from dphh.report.rows import day_of, rows_of
from dphh.report.sentences import Released, groups_of, items_line
from dphh.wording.lines import visible_text
from dphh.wording.options import check_whole

if TYPE_CHECKING:
    import polars as pl
    from jinja2 import Template

#: The most rows of a table that a page has folded, beyond those it shows: browsers handle tens of
#: thousands, not millions.
MOST_FOLDED_ROWS = 5_000
#: The most rows of each table in a notebook's card.
MOST_CARD_ROWS = 5
#: The most groups that stand side by side. More are below one another.
MOST_COLUMNS = 7


@dataclass(frozen=True)
class Part:
    """What a page shows of one release."""

    release: Released
    heading: str
    tables: Sequence[Table]
    #: What the numbers are.
    meaning: str
    #: How a row changed, by its tokens and its group; empty if nothing was compared.
    changes: Mapping[tuple[tuple[str, ...], str | None], Mapping[str, Any]]
    #: What changed, in one line.
    summary: str
    #: Whether the groups are days, weeks or months, which are drawn as time.
    are_periods: bool
    #: What those changes are against, where it is another release.
    earlier: Released | None = None

    def change_of(self, row: int, table: Table, group: str | None) -> Mapping[str, Any] | None:
        return self.changes.get((tuple(table.tokens[row]), group))

    @property
    def what(self) -> str:
        """How much was found of which rows, and when: a line."""
        found = ", ".join(f"{table.count:,} {table.kind}" for table in self.tables)
        day = day_of(self.release.manifest)
        done = "counted" if sentences.has_every_given_item(self.release.manifest) else "found"
        return f"{found or 'nothing'} {done}{f', released on {day}' if day else ''}."

    @property
    def floor(self) -> int:
        """`min_users`, below which an interval may begin whose cell is empty."""
        return int(sentences.counting_of(self.release.manifest).get("min_users", 0))


def page_of(
    release: Released,
    *,
    title: str | None = None,
    ledger: Ledger | None = None,
    top: int = 25,
    others: Sequence[Released] = (),
    against: Released | None = None,
) -> str:
    check_whole("top", top)
    parts = [
        _part(release, top + MOST_FOLDED_ROWS, against),
        *(_part(each, top + MOST_FOLDED_ROWS) for each in others),
    ]
    accounts: dict[tuple[str, str], None] = {}
    if ledger is not None:
        for part in parts:
            accounts |= dict.fromkeys(paying_accounts_lines(ledger, part.release))
    heading = title or "What people share"
    return _rendered(parts, heading, [*accounts], top, is_page=True)


def release_card(release: Released) -> str:
    """The card of a release: bars of what was found, and the privacy statement, folded."""
    part = _part(release, MOST_CARD_ROWS)
    return _rendered([part], items_line(release), [], MOST_CARD_ROWS, is_page=False)


def _part(release: Released, most_rows: int, against: Released | None = None) -> Part:
    tables = tables_of(release, most_rows)
    frame = change.changes_shown(release, against)
    rows = [] if frame is None else frame.to_dicts()
    is_over_time = sentences.are_periods(release.manifest)
    latest = groups_of(release.manifest)[-2] if is_over_time and against is None else None
    changes = {(tuple(row["tokens"]), row.get("group_name", latest)): row for row in rows}
    summary = "" if frame is None else _summary(release, against, frame)
    return Part(
        release, heading_of(release), tables, meaning_of_numbers(release, tables), changes,
        summary, is_over_time, against,
    )  # fmt: skip


def heading_of(release: Released) -> str:
    """Of which rows the release is, and within which groups it counts."""
    by = release.manifest.get("parameters", {}).get("by")
    rows = rows_of(release.manifest) or "All rows"
    said = f"{rows}, by {by}" if by else rows
    return said[:1].upper() + said[1:]


def _summary(later: Released, earlier: Released | None, frame: pl.DataFrame) -> str:
    """What changed since when, in one line."""
    if earlier is None:
        new, old = groups_of(later.manifest)[-2:-4:-1]
        since = f"{new} against {old}"
    else:
        mine = rows_of(later.manifest).split(", ")
        differs = [rows for rows in rows_of(earlier.manifest).split(", ") if rows not in mine]
        since = f"Against {', '.join(differs) or heading_of(earlier)}"
    compared = frame.drop_nulls("difference")
    told = Counter(compared["change"])
    said = [f"{told[word]:,} {word}" for word in (change.ROSE, change.FELL) if told[word]]
    if told[change.UNTOLD]:
        said.append(f"of {told[change.UNTOLD]:,} it cannot be told")
    if alone := len(frame) - len(compared):
        said.append(f"{alone:,} {'is' if alone == 1 else 'are'} in one of both alone")
    return f"{since}: {', '.join(said) or 'nothing to compare'}."


def _rendered(
    parts: Sequence[Part], title: str, accounts: Lines, top: int, *, is_page: bool
) -> str:
    return _template().render(
        is_page=is_page, title=title, parts=parts, top=top, accounts=accounts,
        most_columns=MOST_COLUMNS,
    )  # fmt: skip


@lru_cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    def with_visible_characters(value: object) -> object:
        if not isinstance(value, str) or hasattr(value, "__html__") or not value:
            return value
        return "\n".join(visible_text(line, 10_000) for line in value.split("\n"))

    made = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=with_visible_characters,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["visible_text"] = visible_text
    made.globals |= {"say": sentences, "lines": plan_lines, "of_change": change}
    return made.from_string(files("dphh.report").joinpath("page.html").read_text(encoding="utf-8"))
