"""Releases as text for a terminal. `dphh.report.page` is the same for notebooks."""

from __future__ import annotations

from collections.abc import Sequence

from dphh.errors import printable
from dphh.report.bar_tables import Table
from dphh.report.moves import Comparison, change_in_words
from dphh.report.parts import Part, parts_of
from dphh.report.sentences import (
    Released,
    items_line,
    meaning_of_missing,
    number_of_items,
    promise_with_unit,
)
from dphh.wording.lines import one_line, padded, terminal_columns, width_of, with_noun, wrapped

#: About how many lines a terminal shows of a release's items. All of its tables show the same
#: number of items, each with one line, or a line for each group.
SHOWN_ROWS = 10
#: How many columns of the terminal a number, an interval and a group's name take each.
NUMBER_WIDTH = 12


def report_text(shown: Sequence[Released], against: Sequence[Released], top: int) -> str:
    """Releases, and what rose and fell: since earlier releases, or in the last of their periods."""
    parts = parts_of(shown, against, SHOWN_ROWS)
    with_rests = [part for pair in parts for part in (pair, pair.rest) if part]
    lines = [line for part in with_rests for line in _lines(part)]
    for changes in (part.changes for part in parts if part.changes):
        lines += ["", *_lines_of_changes(changes, top)]
    # Somebody else may have written the manifest: its texts must not control the terminal.
    return printable("\n".join(lines))


def release_text(release: Released) -> str:
    (part,) = parts_of([release], (), SHOWN_ROWS)
    return printable("\n".join(_lines(part)))


def _lines(part: Part) -> list[str]:
    release, tables = part.release, part.tables
    manifest, privacy = release.manifest, release.privacy
    lines = wrapped(f"release {manifest['run_id']}: {items_line(release)}")
    lines += wrapped(promise_with_unit(privacy), "  ", "  ")
    for warning in privacy.warnings:
        lines += wrapped(f"warning: {warning}")
    if manifest.get("is_test"):
        lines.append(manifest["randomness"])
    lines += wrapped(part.meaning if tables else meaning_of_missing(manifest), "  ", "  ")
    several = sum(max(1, len(table.groups)) for table in tables)
    # The most columns that an item's name may take, and those that each name takes.
    most = min(60, terminal_columns() - 10 - 3 * NUMBER_WIDTH)
    widths = [width_of(one_line(row.wording, most)) for table in tables for row in table.rows]
    for table in tables:
        lines += _lines_of_table(table, -(-SHOWN_ROWS // several), max(widths))
    inside = number_of_items(release.table) - sum(table.count for table in tables)
    is_alone = not (part.whole or part.is_rest) and "ended" not in release.table.column_names
    if inside and is_alone:
        lines.append(f"  the table has {with_noun(inside, 'shorter piece')} of these, too")
    return lines


def _lines_of_changes(changes: Comparison, top: int) -> list[str]:
    """A line for each phrase that rose or fell, and what only one of both has."""
    lines = wrapped(changes.headline) + wrapped(changes.meaning, "  ", "  ")
    for text, group, difference in changes.moves[:top]:
        numbers = f"{difference['before']:,} -> {difference['users']:,}"
        where = "" if group in (None, changes.now) else f"{one_line(group, NUMBER_WIDTH)}: "
        change = f"{where}{change_in_words(difference)}"
        lines.append(f"  {padded(one_line(text, 40), 40)}  {numbers:>17}  {change}")
    if len(changes.moves) > top:
        lines.append(f"  ... and {len(changes.moves) - top:,} more")
    for side, alone in ((changes.now, changes.new), (changes.before, changes.gone)):
        more = f" and {len(alone) - top:,} more" if len(alone) > top else ""
        line = f"found in {side} alone: {', '.join(alone[:top])}{more}"
        lines += wrapped(line, "  ", "  ") if alone else []
    return lines


def _lines_of_table(table: Table, most_rows: int, name_width: int) -> list[str]:
    """A line for each item or, if items were counted within groups, for each group of each item."""
    first = table.rows[:most_rows]
    lines = [f"  {table.title}"]
    for row in first:
        name = one_line(row.wording, name_width)
        for bar, group in zip(row.bars, table.names, strict=True):
            numbers = f"{bar.number_text:>{NUMBER_WIDTH}}  {bar.interval_text:<{NUMBER_WIDTH}}"
            cells = f"{numbers}  {one_line(group, NUMBER_WIDTH) if len(row.bars) > 1 else ''}"
            lines.append(f"    {padded(name, name_width)}  {cells}".rstrip())
            name = ""
    if table.count > len(first):
        lines.append(f"    ... and {table.count - len(first):,} more")
    return lines
