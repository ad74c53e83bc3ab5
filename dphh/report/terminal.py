"""Plans and releases as text for a terminal. `dphh.report.page` is the same for notebooks."""

from __future__ import annotations

from dphh.corpus import Corpus
from dphh.ledger import Ledger
from dphh.price import Price
from dphh.report.bar_tables import Table, meaning, tables_of
from dphh.report.plan_lines import DETAILS, plan_sections
from dphh.report.sentences import Released, items_line, missing_meaning, promise_to
from dphh.wording.lines import in_two_columns, padded, shorten, terminal_columns, width_of, wrapped

#: Rows of all tables together.
SHOWN_ROWS = 10
#: Columns of a number, of an interval and of a group's name.
NUMBER = 12


def plan_text(
    price: Price, corpus: Corpus | None, ledger: Ledger | None = None, *, details: bool = True
) -> str:
    given = [(option, value) for option, value in price.parameters if value is not None]
    asked = ", ".join(f"{option}={shorten(str(value), 120)}" for option, value in given)
    lines = wrapped(f"plan: {price.verb}  {asked}")
    for heading, said in plan_sections(price, corpus, ledger):
        if details or heading not in DETAILS:
            lines += [f"\n{heading}", *in_two_columns(said)]
    if not details:
        lines.append("\nplan.describe(), or --plan --details, has the noise and the theorem, too")
    return "\n".join(lines)


def release_text(release: Released) -> str:
    manifest, privacy = release.manifest, release.privacy
    lines = wrapped(f"release {manifest['run_id']}: {items_line(release)}")
    lines += wrapped(promise_to(privacy), "  ", "  ")
    for warning in privacy.warnings:
        lines += wrapped(f"warning: {warning}")
    if manifest.get("is_test"):
        lines.append(manifest["randomness"])
    tables = tables_of(release, SHOWN_ROWS)
    lines += wrapped(meaning(release, tables) if tables else missing_meaning(manifest), "  ", "  ")
    several = sum(max(1, len(table.groups)) for table in tables)
    names = [shorten(row.item, _room()) for table in tables for row in table.rows]
    for table in tables:
        lines += _lines_of_table(table, -(-SHOWN_ROWS // several), max(map(width_of, names)))
    return "\n".join(lines)


def _lines_of_table(table: Table, most: int, width: int) -> list[str]:
    """A row an item; of an item that was counted within groups, a row each group."""
    first = table.rows[:most]
    lines = [f"  {table.title}"]
    for row in first:
        name = shorten(row.item, _room())
        for bar, group in zip(row.bars, table.groups or ("",), strict=True):
            said = f"{bar.text:>{NUMBER}}  {bar.interval:<{NUMBER}}  {shorten(group, NUMBER)}"
            lines.append(f"    {padded(name, width)}  {said}".rstrip())
            name = ""
    if table.count > len(first):
        lines.append(f"    ... and {table.count - len(first):,} more")
    return lines


def _room() -> int:
    """Columns for an item, beside its number, its interval and its group."""
    return min(60, terminal_columns() - 10 - 3 * NUMBER)
