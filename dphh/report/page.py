"""One HTML page of releases for readers, and the card of a release in notebooks.

Both are made by one template, `page.html`, which has neither scripts nor addresses. The page's
policy loads nothing and runs nothing; every value is escaped, and characters that are invisible or
turn text around become visible symbols. So the text of an item is never more than text.

What most say and what changed come first, then what was found; how to read it is folded, and the
promise is below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.report import plan_lines, sentences
from dphh.report.bar_tables import Row, Table, meaning_of_numbers, named, tables_of
from dphh.report.moves import Comparison, comparison, moved_in_words, name_of
from dphh.report.phrases import Found, found_in
from dphh.report.plan_lines import Lines, paying_accounts_lines
from dphh.report.rows import early_day, released_in_words
from dphh.report.sentences import (
    Manifest,
    Released,
    counting_of,
    group_in_words,
    groups_of,
    items_line,
)
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
#: How many phrases come first: of the highest numbers, that rose, that fell.
MOST_FINDINGS = 3


@dataclass(frozen=True)
class Part:
    """What a page shows of one release."""

    release: Released
    found: Found
    tables: Sequence[Table]
    #: What the numbers are.
    meaning: str
    #: How it differs from an earlier release, or its last period from the one before.
    changes: Comparison | None
    #: The manifest of that earlier release; empty without one.
    earlier: Manifest
    #: The part before it of the same rows, all together, whose words, order and totals it follows.
    whole: Part | None = None
    #: The parts after it that this is so of.
    by_groups: list[Part] = field(default_factory=list)

    @property
    def are_periods(self) -> bool:
        """Whether the groups are days, weeks or months, which are drawn as time."""
        return sentences.are_periods(self.release.manifest)

    @property
    def highest(self) -> Sequence[tuple[str, Mapping[str, str]]]:
        """For all people (""), each group, or the last period: the phrases of the highest numbers,
        with these, if there are more phrases."""
        if not self.tables or self.tables[0].count <= MOST_FINDINGS:
            return []
        table = self.tables[0]
        names = table.names if len(table.groups) > 1 else ("",)
        lists = [(name, table.highest(place)) for place, name in enumerate(names)]
        return lists[-1 if self.are_periods else 0 :]

    @property
    def highest_by_group(self) -> Mapping[str, str]:
        """Of each phrase the groups in which its number alone is the highest, with this."""
        said: dict[str, list[str]] = {}
        for name, phrases in chain.from_iterable(part.highest for part in self.by_groups):
            for text, number in phrases.items() if len(phrases) == 1 else ():
                said.setdefault(text, []).append(f"{name}: {number}")
        return {text: ", ".join(groups) for text, groups in said.items()}

    def moved(self, word: str) -> Mapping[str, str]:
        """The phrases that rose, or fell, that first of which most is sure: their numbers, and in
        which groups."""
        moves = self.changes.moves if self.changes else ()
        moved = {(text, group): of for text, group, of in moves if of["change"] == word}
        by = self.tables[0].by if self.tables else ""
        groups = groups_of(self.release.manifest) if by else ()
        said = {text: named(by, [of for of in groups if (text, of) in moved])
                or f"{moved_in_words(of)} people" for (text, _), of in moved.items()}  # fmt: skip
        for part in self.by_groups:
            said |= {text: f"{said[text]}; {in_groups}"
                     for text, in_groups in part.moved(word).items() if text in said}  # fmt: skip
        return said

    @property
    def mostly(self) -> Mapping[str, Sequence[str]]:
        """Of each phrase the groups that more than half of its people are in, and how many."""
        said: dict[str, list[str]] = {}
        for part in self.by_groups or ([] if self.whole else [self]):
            for row in part.tables[0].rows if part.tables else ():
                place = row.place
                if place and part.whole:  # its column is in another table
                    of = row.bars[part.tables[0].names.index(place)]
                    number = group_in_words(of.value or 0, of.low or 0, of.high or 0)
                    place += f": {number}, blurred by itself"
                if place:
                    said.setdefault(row.wording, []).append(place)
        return said

    def has_groups_before(self, row: Row) -> bool:
        """Whether further parts have a number of it from an earlier release."""
        compared = [part.changes.differences for part in self.by_groups if part.changes]
        return any(tokens == row.tokens for of in compared for tokens, _ in of)

    def change_of(self, row: Row, group: str | None) -> Mapping[str, Any] | None:
        return self.changes.differences.get((row.tokens, group)) if self.changes else None

    @property
    def heading(self) -> str:
        """Of which rows the release is, and within which groups it counts."""
        by = self.release.manifest.get("parameters", {}).get("by")
        said = (name_of(self.release) or "All rows") + (f", by {by}" if by else "")
        return said[:1].upper() + said[1:]

    @property
    def released(self) -> str:
        return released_in_words(self.release.manifest)

    @property
    def fewest(self) -> int:
        """The smallest number of people of a phrase, of all that are shown; 0 if none is known."""
        if sentences.has_every_given_item(self.release.manifest) or self.found.number != "users":
            return 0
        of = (table for table in self.tables if table.kind.startswith(("phrase", "further phrase")))
        return int(min((table.sizes[0] for table in of if table.sizes), default=0))

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
    pairs = [*zip_longest(shown, against)]
    wholes = [
        next((at for at in range(place) if _is_whole_of(shown[at].manifest, each.manifest)), None)
        for place, each in enumerate(shown)
    ]
    parts: list[Part] = []
    for place, (each, earlier) in enumerate(pairs):
        whole = None if (at := wholes[place]) is None else parts[at]
        # One thing has one wording in all tables of the same rows, and one place.
        tables = [of for at, pair in zip(wholes, pairs, strict=True) if at == place for of in pair]
        found = whole.found if whole else found_in(each, earlier, tables)
        parts.append(part := _part(each, top + MOST_FOLDED_ROWS, found, earlier, whole))
        if whole:
            whole.by_groups.append(part)
    accounts: dict[tuple[str, str], None] = {}
    if ledger is not None:
        for part in parts:
            accounts |= dict.fromkeys(paying_accounts_lines(ledger, part.release))
    heading = title or "What people share"
    return _rendered(parts, heading, [*accounts], top, is_page=True)


def release_card(release: Released) -> str:
    """The card of a release: bars of what was found, and the privacy statement, folded."""
    part = _part(release, MOST_CARD_ROWS, found_in(release))
    return _rendered([part], items_line(release), [], MOST_CARD_ROWS, is_page=False)


def _part(
    release: Released,
    most_rows: int,
    found: Found,
    earlier: Released | None = None,
    whole: Part | None = None,
) -> Part:
    changes = comparison(release, earlier, found)
    tables = tables_of(release, most_rows, found, of_whole=whole is not None)
    meaning = meaning_of_numbers(release, tables)
    before = earlier.manifest if earlier else {}
    return Part(release, found, tables, meaning, changes, before, whole)


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
        most_columns=MOST_COLUMNS, most_findings=MOST_FINDINGS,
    )  # fmt: skip


@lru_cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    def unbroken(said: str) -> Markup:
        """With each range of numbers on one line."""
        span = r'<span class="range">\g<0></span>'
        return Markup(re.sub(r"\(?[\d,]+ to [\d,]+\)?", span, str(escape(said))))

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
    made.filters["unbroken"] = unbroken
    made.filters["promise_in_short"] = sentences.promise_in_short
    made.globals |= {"say": sentences, "lines": plan_lines, "early_day": early_day}
    return made.from_string(files("dphh.report").joinpath("page.html").read_text(encoding="utf-8"))
