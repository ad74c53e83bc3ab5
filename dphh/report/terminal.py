"""Plans and releases as text for a terminal. `dphh.report.page` is the same for notebooks."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from dphh.corpus import Corpus
from dphh.ledger import Ledger
from dphh.price import Price
from dphh.report.bar_tables import Rows, Table, tables_of
from dphh.report.counted import (
    Released,
    how_many,
    meaning_of_numbers,
    what_is_missing,
    which_rows,
)
from dphh.report.plan_lines import DETAILS, asked, plan_sections
from dphh.report.promise import promised
from dphh.wording.lines import padded, shorten, terminal_columns, width_of, wrapped

#: Rows of all tables together.
SHOWN_ROWS = 10


def plan_text(
    price: Price, corpus: Corpus | None, ledger: Ledger | None = None, *, details: bool = True
) -> str:
    columns = terminal_columns() - 4
    lines = wrapped(f"plan: {price.verb}  {asked(price)}")
    for heading, said in plan_sections(price, corpus, ledger):
        if heading in DETAILS and not details:
            continue
        lines.append(f"\n{heading}")
        width = min(max((len(what) for what, _ in said), default=0), columns // 2)
        for what, text in said:
            head, below = f"  {what:<{width}}  ", " " * (width + 4)
            room = max(columns - len(below), columns // 3)
            pieces = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
            if len(head) > len(below):
                lines.append(head.rstrip())
                head = below
            lines += [
                f"{head if index == 0 else below}{line}".rstrip()
                for index, line in enumerate(pieces or [""])
            ]
    if not details:
        lines.append("\nplan.describe(), or --plan --details, has the noise and the theorem, too")
    return "\n".join(lines)


def release_text(release: Released) -> str:
    manifest = release.manifest
    privacy = manifest["privacy"]
    lines = wrapped(
        f"release {manifest['run_id']}: {how_many(release.table, manifest)}, "
        f"({promised(privacy):.4g}, {privacy['delta']:g})-DP for {privacy['unit']}"
    )
    if (where := which_rows(manifest)) is not None:
        lines += wrapped(where, "  ", "  ")
    for warning in privacy.get("warnings", ()):
        lines += wrapped(f"warning: {warning}")
    if manifest.get("is_test"):
        lines.append(manifest["randomness"])
    tables = tables_of(release, Rows(SHOWN_ROWS, SHOWN_ROWS))
    bars = [bar for table in tables for row in table.rows for bar in row.bars]
    if any(bar.value is not None for bar in bars):
        people = any(bar.low is not None for bar in bars)
        lines += wrapped(meaning_of_numbers(manifest, people=people), "  ", "  ")
    several = sum(max(1, len(table.columns)) for table in tables)
    lines += _lines_of_tables(tables, -(-SHOWN_ROWS // max(1, several)))
    if not tables:
        lines += wrapped(what_is_missing(manifest), "  ", "  ")
    return "\n".join(lines)


def _lines_of_tables(tables: Sequence[Table], most: int) -> list[str]:
    """A row an item; of an item that was counted within groups, a row each group."""
    opened = [table.rows[: min(most, table.opened)] for table in tables]
    rows = [
        [
            (row.item if place == 0 else "", bar.said, bar.interval, shorten(group, 30))
            for row in first
            for place, (bar, group) in enumerate(zip(row.bars, table.columns or ("",), strict=True))
        ]
        for table, first in zip(tables, opened, strict=True)
    ]
    widest = [max((width_of(row[k]) for each in rows for row in each), default=0) for k in range(4)]
    room = min(60, terminal_columns() - 12 - sum(widest[1:]))
    width = min(room, widest[0])
    lines = []
    for table, first, each in zip(tables, opened, rows, strict=True):
        lines.append(f"  {table.title}")
        for item, said, interval, group in each:
            number = f"{said:>{widest[1]}}  {interval:<{widest[2]}}  {group}"
            name = shorten(item, room) if item else ""
            lines.append(f"    {padded(name, width)}  {number}".rstrip())
        if table.count > len(first):
            lines.append(f"    ... and {table.count - len(first):,} more")
    return lines
