"""Sentences about a release: how many items, within which groups, and what the intervals mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from dphh.columns import OTHER
from dphh.wording.lines import plural, shorten

Manifest = Mapping[str, Any]
Tokens = tuple[str, ...]
#: The columns of a release that counts users.
PEOPLE = ("users", "low", "high")


class Released(Protocol):
    """What this folder needs of a release: it does not import the class `Release`."""

    @property
    def table(self) -> Any: ...
    @property
    def manifest(self) -> dict[str, Any]: ...
    def dumps(self) -> str: ...


def by_of(manifest: Manifest) -> str:
    """The column whose values are the groups."""
    return str(manifest.get("parameters", {}).get("by") or "group")


def groups_of(table: Any, manifest: Manifest) -> tuple[str, ...] | None:
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


def is_of_list(manifest: Manifest) -> bool:
    """Whether the items were given beforehand and each is in the release, held or not."""
    whole = manifest.get("parameters", {}).get("min_users") is None
    return bool(manifest["verb"] == "counts" or (manifest.get("method") == "domain" and whole))


def how_many(table: Any, manifest: Manifest) -> str:
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
    counted = ", " if given else ", counted "
    return f"{said}{counted}within {by_of(manifest)}: {', '.join(map(shorten, groups))}"


def which_rows(manifest: Manifest) -> str | None:
    """Which rows counted; None where all did."""
    where = manifest.get("parameters", {}).get("content", {}).get("where")
    return None if where is None else f"only rows where {' '.join(where.split())}"


def counting_of(manifest: Manifest) -> Manifest:
    """How a release counts users: its noise and its intervals; empty if it counts none."""
    of_levels = [level for level in manifest.get("levels", ()) if "confidence" in level]
    found: Manifest = manifest.get("counting") or (of_levels[0] if of_levels else {})
    return found


def may_bind(manifest: Manifest) -> bool:
    """Whether a user can hold more than counts in full, and then adds less to each."""
    counting = counting_of(manifest)
    return bool(counting["max_items"] < counting["keys"])


def meaning_of_numbers(
    manifest: Manifest, *, people: bool, bars: bool = False, runs: int = 1
) -> str:
    """What the numbers beside the items are, or the bars that stand for them."""
    if people:
        first, then = ("Bars: how", ". Thin lines:") if bars else ("How", ", and")
        counting = counting_of(manifest)
        by = "at least, by an estimate" if may_bind(manifest) else "by an estimate"
        sure = f"{100 * counting['confidence']:g}%"
        return (
            f"{first} many people, {by}{then} where the true number lies, for all of "
            f"{'them' if runs == 1 else 'a run'} together, with {sure}."
        )
    what = "Noised weights"
    if manifest["verb"] == "ldp_trie":
        what = "Estimates of how many of a level's reports held it"
    return f"{what}: they order what stands in one table, and are no numbers of people."


def how_to_read_counts(manifest: Manifest) -> list[str]:
    counting = counting_of(manifest)
    said = [
        "The highest is first, by the lower end of its interval. Where that is 0, perhaps nobody "
        "holds it. A part of a longer phrase is last where the longer one has four fifths of its "
        "number."
    ]
    if not counting["simultaneous"]:
        said.append(
            f"The intervals hold together, over all {plural(counting['keys'], 'count')}: so they "
            "are wider than those in the release's table, each of which holds by itself."
        )
    if may_bind(manifest):
        said.append(
            "Their upper ends also allow for users of more than "
            f"{counting['max_items']:,} counts, who add less to each."
        )
    if manifest.get("parameters", {}).get("by"):
        said.append("Who is in several groups counts in each: groups do not add up to all people.")
    return said


def what_is_missing(manifest: Manifest) -> str:
    """What it means that an item is missing; for `counts`, what a number near 0 means."""
    given, finds = is_of_list(manifest), manifest.get("finds")
    said = (
        "Everything that was asked for is here, whether many hold it or nobody does."
        if given
        else "What is not here is not thereby absent from the data: what few people hold is kept "
        "back, whether nobody or a few dozen hold it."
    )
    if not finds:
        return said
    more = "." if given else ", who hold nothing else; of those who hold more, more are needed."
    return (
        f"{said} At this price {finds.get('what', 'an item is found')} with probability "
        f"{finds['probability']:g} when held by at least {plural(finds['users'], 'user')}{more}"
    )


def held_by_nobody(manifest: Manifest) -> int:
    """How many n-grams that nobody holds DPNE's thresholds let in, as expected at most: a share of
    the level below."""
    levels = manifest["levels"]
    below = {level["level"]: level.get("released", 0) for level in levels}
    expected: float = sum(
        level.get("spurious", 0.0) * below.get(level["level"] - 1, 0) for level in levels
    )
    return -int(-expected // 1)
