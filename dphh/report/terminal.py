"""Plans and releases as text for a terminal. `dphh.report.cards` is the same for notebooks."""

from __future__ import annotations

import textwrap
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dphh.corpus import Corpus
from dphh.ledger import Ledger
from dphh.price import Price
from dphh.prior import poor_fit
from dphh.report.counted import about_counts, groups_of, how_many, which_rows
from dphh.report.plan_lines import Section, asked, plan_sections
from dphh.report.promise import promised
from dphh.wording.lines import padded, plural, shorten, terminal_columns, width_of, wrapped

SHOWN_ROWS = 10


def plan_text(price: Price, corpus: Corpus | None, ledger: Ledger | None = None) -> str:
    return _text_of_sections(
        f"plan: {price.verb}  {asked(price)}", plan_sections(price, corpus, ledger)
    )


def release_text(table: Any, manifest: dict[str, Any]) -> str:
    privacy = manifest["privacy"]
    lines = wrapped(
        f"release {manifest['run_id']}: {how_many(table, manifest)}, "
        f"({promised(privacy):.4g}, {privacy['delta']:g})-DP for {privacy['unit']}"
    )
    if (where := which_rows(manifest)) is not None:
        lines += wrapped(where, "  ", "  ")
    for warning in privacy.get("warnings", ()):
        lines += wrapped(f"warning: {warning}")
    if (badly := poor_fit(manifest)) is not None:
        lines += wrapped(f"note: {badly}")
    if is_test(manifest):
        lines.append(manifest["randomness"])
    rows = first_rows(table, manifest)
    if rows and (meaning := value_meaning(table, manifest)):
        lines += wrapped(meaning, "  ", "  ")
    longest = terminal_columns() - 5 - max((len(value_text(row)) for row in rows), default=0)
    items = [shorten(row["item"], min(60, longest)) for row in rows]
    width = max(map(width_of, items), default=0)
    for row, item in zip(rows, items, strict=True):
        lines.append(f"  {row['level']}  {padded(item, width)} {value_text(row)}".rstrip())
    if not rows and (sight := found_from(manifest)):
        lines += wrapped(sight, "  ")
    if table.num_rows > len(rows):
        among = ", beginnings among them" if "ended" in table.column_names else ""
        lines.append(f"  ... and {table.num_rows - len(rows):,} more{among}")
    return "\n".join(lines)


def found_from(manifest: dict[str, Any]) -> str:
    """From how many users an item is found at this price."""
    if not (finds := manifest.get("finds")):
        return ""
    return (
        f"at this price {finds.get('what', 'an item is found')} with probability "
        f"{finds['probability']:g} when held by at least {plural(finds['users'], 'user')}"
    )


def is_test(manifest: dict[str, Any]) -> bool:
    """Whether there is no privacy guarantee: the seed was a test's.

    Manifests of older versions have no `is_test`; there the randomness tells it.
    """
    return bool(manifest.get("is_test", manifest["randomness"] != "operating system"))


def first_rows(table: Any, manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The first few rows of each level, so that short and long items both show; from a trie only
    the complete sequences, if there are any."""
    if "ended" in table.column_names:
        ends = table.filter(pc.fill_null(table.column("ended"), False))
        table = ends if len(ends) else table
    groups = {group: place for place, group in enumerate(groups_of(table, manifest) or ())}
    levels = table.column("level").to_pylist()
    each = -(-SHOWN_ROWS // max(1, len(set(levels)) * max(1, len(groups))))
    items = table.column("item").to_pylist() if groups else range(table.num_rows)
    #: By level: the first items, each with the rows of all its groups.
    chosen: dict[int, dict[Any, list[int]]] = {}
    for place, (level, item) in enumerate(zip(levels, items, strict=True)):
        of_level = chosen.setdefault(level, {})
        if item in of_level or len(of_level) < each:
            of_level.setdefault(item, []).append(place)
    places = [place for of_level in chosen.values() for rows in of_level.values() for place in rows]
    shown: list[dict[str, Any]] = table.take(pa.array(places, pa.int64())).to_pylist()
    if groups:
        order = {
            key: place for place, key in enumerate(dict.fromkeys(map(_sort_key_of_item, shown)))
        }
        shown.sort(key=lambda row: (order[_sort_key_of_item(row)], groups.get(row["group"], 0)))
    return shown


def _sort_key_of_item(row: dict[str, Any]) -> tuple[int, str]:
    return row["level"], row["item"]


def value_meaning(table: Any, manifest: dict[str, Any]) -> str:
    """What the numbers beside the items mean."""
    if "users" in table.column_names:
        return f"beside each: users  (low to high). {about_counts(table, manifest)}"
    if "error" in table.column_names:
        return "beside each: score ± its error  (estimated reports; no number of people)"
    if table.column("score").null_count < table.num_rows:
        return "beside each: score  (orders items within a level; no number of people)"
    return ""


def value_text(row: dict[str, Any]) -> str:
    """The number of users, if known; else the score, if there is one."""
    if row.get("users") is not None:
        within = "" if row.get("group") is None else f"  in {shorten(row['group'])}"
        return f"{row['users']:12,}  ({row['low']:,} to {row['high']:,}){within}"
    if row.get("score") is not None:
        error = "" if row.get("error") is None else f"  ± {row['error']:,.1f}"
        return f"{row['score']:12,.1f}{error}"
    ended = row.get("ended")
    return "" if ended is None else " ends here" if ended else " goes on"


def _text_of_sections(title: str, sections: list[Section]) -> str:
    columns = terminal_columns() - 4
    lines = wrapped(title)
    for heading, said in sections:
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
