"""Plans and releases as text for a terminal. `dphh.report.page` is the same for notebooks."""

from __future__ import annotations

import textwrap

from dphh.corpus import Corpus
from dphh.ledger import Ledger
from dphh.price import Price
from dphh.priors.fit import poor_fit
from dphh.report.counted import how_many, meaning_of_numbers, what_is_missing, which_rows
from dphh.report.people import Released
from dphh.report.plan_lines import asked, plan_sections
from dphh.report.promise import promised
from dphh.report.tables import Table, tables_of
from dphh.wording.lines import padded, shorten, terminal_columns, width_of, wrapped

#: Rows of all tables together.
SHOWN_ROWS = 10


def plan_text(price: Price, corpus: Corpus | None, ledger: Ledger | None = None) -> str:
    columns = terminal_columns() - 4
    lines = wrapped(f"plan: {price.verb}  {asked(price)}")
    for heading, said in plan_sections(price, corpus, ledger):
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
    if (badly := poor_fit(manifest)) is not None:
        lines += wrapped(f"note: {badly}")
    if manifest.get("is_test"):
        lines.append(manifest["randomness"])
    tables = tables_of(release, SHOWN_ROWS)
    several = sum(max(1, len(table.groups)) for table in tables)
    for table in tables_of(release, -(-SHOWN_ROWS // max(1, several))):
        lines += _lines_of_table(table)
    if not tables:
        lines += wrapped(what_is_missing(manifest), "  ", "  ")
    bars = [bar for table in tables for row in table.first for bar in row.bars]
    if any(bar.value is not None for bar in bars):
        people = any(bar.low is not None for bar in bars)
        lines += wrapped(meaning_of_numbers(manifest, people=people), "  ", "  ")
    return "\n".join(lines)


def _lines_of_table(table: Table) -> list[str]:
    """A row an item; of an item that was counted within groups, a row each group."""
    rows = [
        (row.item if place == 0 else "", bar.said, bar.interval, shorten(group, 30))
        for row in table.first
        for place, (bar, group) in enumerate(zip(row.bars, table.groups or ("",), strict=True))
    ]
    numbers = [
        f"{said:>{max(len(row[1]) for row in rows)}}  {interval:<{max(len(row[2]) for row in rows)}}"
        f"  {group}".rstrip()
        for _, said, interval, group in rows
    ]
    longest = terminal_columns() - 6 - max(map(len, numbers), default=0)
    items = [shorten(item, min(60, longest)) if item else "" for item, *_ in rows]
    width = max(map(width_of, items), default=0)
    lines = [f"  {table.title}"]
    for item, number in zip(items, numbers, strict=True):
        lines.append(f"    {padded(item, width)}  {number}".rstrip())
    if table.rest:
        lines.append(f"    ... and {len(table.rest):,} more")
    return lines
