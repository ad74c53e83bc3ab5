"""Sentences about a release: how many items, within which groups, and what the intervals mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from dphh.columns import OTHER
from dphh.wording.lines import plural, shorten


def groups_of(table: Any, manifest: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The groups of a release's counts, in the order declared, with OTHER last."""
    if "group" not in table.column_names:
        return None
    there = [group for group in table.column("group").unique().to_pylist() if group is not None]
    declared = [*(manifest.get("parameters", {}).get("groups") or ()), *sorted(there)]
    named = dict.fromkeys(group for group in declared if group in there and group != OTHER)
    return (*named, *([OTHER] if OTHER in there else ()))


def items_in(table: Any) -> int:
    """How many items a release has; an item counted within groups is one item."""
    if "group" not in table.column_names:
        return int(table.num_rows)
    return int(table.group_by(["level", "item"]).aggregate([]).num_rows)


def is_of_list(manifest: Mapping[str, Any]) -> bool:
    """Whether the items were given beforehand and each is in the release, held or not."""
    whole = manifest.get("parameters", {}).get("min_users") is None
    return bool(manifest["verb"] == "counts" or (manifest.get("method") == "domain" and whole))


def how_many(table: Any, manifest: Mapping[str, Any]) -> str:
    """One line: how many items were found or counted, and within which groups."""
    verb, items = str(manifest["verb"]), items_in(table)
    given = is_of_list(manifest)
    said = plural(items, "item") + " counted" if given else f"{items:,} found by {verb}"
    if "top" in manifest and (
        of_all := sum(level.get("released", 0) for level in manifest["levels"])
    ):
        said = f"the first {items:,} of the {of_all:,} {'counted' if given else f'found by {verb}'}"
    groups = groups_of(table, manifest)
    if not groups:  # None if there are no groups, empty if nothing was found
        return said
    by = manifest.get("parameters", {}).get("by") or "group"
    counted = ", " if given else ", counted "
    return f"{said}{counted}within {by}: {', '.join(shorten(group) for group in groups)}"


def which_rows(manifest: Mapping[str, Any]) -> str | None:
    """Which rows counted; None where all did."""
    where = manifest.get("parameters", {}).get("content", {}).get("where")
    return None if where is None else f"Of the rows alone for which {' '.join(where.split())}"


def counting_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a release counts users: its noise and its intervals; empty if that is not stated."""
    of_levels = [level for level in manifest.get("levels", ()) if "confidence" in level]
    found: Mapping[str, Any] = manifest.get("counting") or (of_levels[0] if of_levels else {})
    return found


def intervals_hold(manifest: Mapping[str, Any]) -> str:
    """How often an interval contains the truth, and which errors it accounts for."""
    counting = counting_of(manifest)
    confidence = counting.get("confidence")
    if confidence is None:
        return "An interval allows for the noise that was added, and is no certainty"
    often = f"with probability {confidence:g}"
    who = (
        f"All intervals hold the true numbers together {often}"
        if counting.get("simultaneous")
        else f"An interval holds the true number {often}, by itself"
    )
    return f"{who}: it allows for the noise that was added, and is no certainty"


def chosen_intervals_hold(manifest: Mapping[str, Any], *, widened: bool) -> str:
    """How often intervals hold in a list of what was chosen by its counts. `widened`: its intervals
    are not the release's own, but hold together over all counts."""
    counting = counting_of(manifest)
    if widened:
        return (
            f"All intervals shown here hold together with probability {counting['confidence']:g}, "
            f"whichever of the {plural(counting['keys'], 'count')} were chosen: so they are wider "
            "than those in the release's table. They allow for the noise that was added, and are "
            "no certainty"
        )
    if counting.get("simultaneous"):
        return intervals_hold(manifest)
    return f"{intervals_hold(manifest)}; of what was chosen for a large count, more miss it"


def about_counts(table: Any, manifest: Mapping[str, Any], holds: str | None = None) -> str:
    """What intervals hold, why they may be lopsided, and groups that may be misspelled. `holds`:
    what is said of intervals that are not the release's own."""
    said = [intervals_hold(manifest) if holds is None else holds]
    counting = counting_of(manifest)
    most = counting.get("max_items")
    if most is not None and most < counting.get("keys", most):
        said.append(
            f"An upper end may be farther away: it also allows for users of more than {most:,} "
            "counts, who add less to each"
        )
    if silent := _silent_groups(table, manifest):
        by = manifest.get("parameters", {}).get("by") or "group"
        said.append(
            f"Next to nothing stands out of the noise within {', '.join(map(shorten, silent))}: "
            f"check that the column {shorten(by)} spells it so"
        )
    return ". ".join(said)


def _silent_groups(table: Any, manifest: Mapping[str, Any]) -> list[str]:
    """The declared groups in which at most 1 interval in 8 begins above 0, if in `other` at least
    half do. Where nobody is, 1 in 40 does at confidence 0.95."""
    groups = groups_of(table, manifest)
    if not groups or "low" not in table.column_names:
        return []
    rows = table.select(["group", "low"]).to_pylist()
    all_of = Counter(row["group"] for row in rows)
    above = Counter(row["group"] for row in rows if row["low"])
    if 2 * above[OTHER] < max(all_of[OTHER], 1):
        return []
    return [group for group in groups if group != OTHER and 8 * above[group] <= all_of[group]]
