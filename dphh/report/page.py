"""One HTML page of releases for readers, and the card of a release in notebooks.

Both are made by one template, `page.html`, which has neither scripts nor addresses. The page's
policy loads nothing and runs nothing; every value is escaped, and characters that are invisible or
turn text around become visible symbols. So the text of an item is never more than text.

What changed comes first, then what was found; how to read it is folded, and the promise is below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.report import moves, plan_lines, sentences
from dphh.report.bar_tables import Row, Table, meaning_of_numbers, tables_of
from dphh.report.change import UNTOLD
from dphh.report.moves import Comparison, comparison, name_of
from dphh.report.phrases import found_in, wordings_of
from dphh.report.plan_lines import Lines, paying_accounts_lines
from dphh.report.rows import day_of
from dphh.report.sentences import Manifest, Released, counting_of, groups_of, items_line
from dphh.report.wordings import Tokens, Wording
from dphh.wording.lines import visible_text
from dphh.wording.options import check_whole

if TYPE_CHECKING:
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
    tables: Sequence[Table]
    #: What the numbers are.
    meaning: str
    #: How it differs from an earlier release, or its last period from the one before.
    changes: Comparison | None
    #: Whether the groups are days, weeks or months, which are drawn as time.
    are_periods: bool
    #: Its phrases in the order of rows, with what is counted.
    phrases: Sequence[Wording]
    #: The part before it of the same rows, all together, whose words, order and totals it follows.
    whole: Part | None = None
    #: In which groups people say each wording, by a part after it of the same rows by groups.
    where: Mapping[str, str] | None = None

    def aside_of(self, row: Row) -> str:
        """What stands beneath a wording: in which groups people say it, or what it did in total."""
        if self.where is not None:
            return self.where.get(row.wording, "")
        moves = self.whole.changes.moves if self.whole and self.whole.changes else ()
        told = next((its["change"] for text, _, its in moves if text == row.wording), UNTOLD)
        if told == UNTOLD or row.only is not None:
            return row.where if row.only is not None else ""
        names = self.tables[0].names
        its = {name: self.change_of(row, name) or {} for name in names}
        alike = [name for name in names if its[name].get("change") == told]
        said = f"{told} in total" + (f" and in {', '.join(alike)}" if alike else "")
        if len(alike) == len(names):
            return said
        return f"{said}; too uncertain to tell where{' else' if alike else ''}"

    def change_of(self, row: Row, group: str | None) -> Mapping[str, Any] | None:
        return self.changes.differences.get((row.tokens, group)) if self.changes else None

    @property
    def heading(self) -> str:
        """Of which rows the release is, and within which groups it counts."""
        by = self.release.manifest.get("parameters", {}).get("by")
        said = (name_of(self.release) or "All rows") + (f", by {by}" if by else "")
        return said[:1].upper() + said[1:]

    @property
    def what(self) -> str:
        """How much was found, and when."""
        day = day_of(self.release.manifest)
        if not self.tables:
            return f"Nothing.{f' Released on {day}.' if day else ''}"
        shown = [table for table in self.tables if not table.is_aside]
        found = ", ".join(f"{table.count:,} {table.kind}" for table in shown)
        done = "counted" if sentences.has_every_given_item(self.release.manifest) else "found"
        return f"{found} {done}{f', released on {day}' if day else ''}."

    @property
    def fewest(self) -> int:
        """The smallest number of people of a phrase, of all that are shown; 0 if none is known.

        By groups without a sum there is no one number of a phrase."""
        if sentences.has_every_given_item(self.release.manifest):
            return 0
        of = (
            table
            for table in self.tables
            if table.kind.startswith("phrase")
            and table.groups[0] is None
            and table.count == len(table.rows)
        )
        numbers = [row.bars[0].value for table in of for row in table.rows]
        return int(min((number for number in numbers if number is not None), default=0))

    @property
    def floor(self) -> int:
        """`min_users`, below which an interval may begin whose cell is empty."""
        return int(counting_of(self.release.manifest).get("min_users", 0))


def page_of(
    release: Released,
    *,
    title: str | None = None,
    ledger: Ledger | None = None,
    top: int = 25,
    others: Sequence[Released] = (),
    against: Sequence[Released] = (),
) -> str:
    """against: earlier releases, of the first of the releases, of the second, and so on."""
    check_whole("top", top)
    shown = [release, *others]
    if len(against) > len(shown):
        raise UsageError(
            f"against: found {len(against)} releases for {len(shown)}; give one for each release"
        )
    # One thing has one wording on all of a page, and its place is the same in each part.
    known = wordings_of([*against, *others])
    parts: list[Part] = []
    for each, earlier in zip_longest(shown, against):
        order = parts[0].phrases if parts else []
        words = [*(of.tokens for of in order), *known]
        whole = next((of for of in parts if _is_whole_of(of.release.manifest, each.manifest)), None)
        parts.append(_part(each, top + MOST_FOLDED_ROWS, earlier, words, order, whole))
        if whole and whole.where is None:
            where = {row.wording: row.where for table in parts[-1].tables[:1] for row in table.rows}
            parts[parts.index(whole)] = replace(whole, where=where)
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


def _part(
    release: Released,
    most_rows: int,
    against: Released | None = None,
    known: Sequence[Tokens] = (),
    order: Sequence[Wording] = (),
    whole: Part | None = None,
) -> Part:
    found, place = found_in(release, known), {of.tokens: at for at, of in enumerate(order)}
    if whole:
        found = found.worded_as(whole.phrases)
    phrases = sorted(found.phrases, key=lambda of: place.get(of.tokens, len(place)))
    found = replace(found, phrases=phrases)
    changes = comparison(release, against, found)
    items = changes.items if changes else found.numbers
    tables = tables_of(release, most_rows, found, items, with_sums=not whole)
    are_periods = sentences.are_periods(release.manifest)
    counted = [replace(of, counted=found.counted(of, items)) for of in phrases]
    meaning = meaning_of_numbers(release, tables)
    return Part(release, tables, meaning, changes, are_periods, counted, whole)


def _is_whole_of(whole: Manifest, groups: Manifest) -> bool:
    """Whether one counts all together what the other counts by groups that are no periods."""
    one, other = ((each["privacy"]["unit"], each["parameters"].get("content"))
                  for each in (whole, groups))  # fmt: skip
    by = groups_of(groups) and not groups_of(whole) and not sentences.are_periods(groups)
    return bool(by and one == other and counting_of(whole))


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
    # What is joined to an item: the space before or after it is no text that somebody wrote.
    made.filters["visible_part"] = lambda text: visible_text(text, 100) if text else text
    made.filters["promise_in_short"] = sentences.promise_in_short
    made.globals |= {"say": sentences, "lines": plan_lines, "moves": moves}
    return made.from_string(files("dphh.report").joinpath("page.html").read_text(encoding="utf-8"))
