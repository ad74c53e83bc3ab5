"""Checks a saved release: that it agrees with itself, and with what the ledger has stored.

A release that was sent, copied or edited is compared with itself: its table with the manifest's
hash, its promise with its events and its parameters, its rows with its levels.
That finds mistakes and careless edits. It does not show who made a release: an edit can compute the
hash anew. Only the ledger that paid for it shows that (docs/threats.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dphh.columns import DIGEST_FIELD, digest_of
from dphh.errors import DphhError, UsageError
from dphh.ledger.budget import checked_booking
from dphh.privacy.events import events_from_json
from dphh.report.sentences import Released, Tokens
from dphh.report.why import parts_of


def verified(release: Released) -> list[tuple[str, str]]:
    """What each check looked at and found. Refuses a release that contradicts itself."""
    try:
        return [
            _checked_table(release),
            _checked_events(release),
            _checked_parameters(release.manifest),
            _checked_rows(release),
        ]
    except KeyError as problem:
        raise _refusal(f"its manifest lacks the field {problem}") from None
    except (AttributeError, IndexError, TypeError) as problem:
        raise _refusal(
            "a field of its manifest is missing or of the wrong type "
            f"({type(problem).__name__}: {problem})"
        ) from None


def same_as_in_ledger(release: Released, stored: Released) -> tuple[str, str]:
    """Refuse a release that differs from what the ledger that paid for it has stored."""
    if not release.table.equals(stored.table) or release.manifest != stored.manifest:
        raise _refusal("it is not what the ledger has stored for this run")
    return "ledger", "it paid for this run, and has the same rows and the same manifest"


def _refusal(why: str) -> UsageError:
    return UsageError(
        f"release: {why}. It was edited or damaged: get it again from the ledger that paid for it, "
        "`dphh ledger release RUN_ID --out DIR`"
    )


def _checked_table(release: Released) -> tuple[str, str]:
    if release.manifest.get(DIGEST_FIELD) != digest_of(release.table):
        raise _refusal(f"its table is not the one whose hash the manifest has ({DIGEST_FIELD})")
    return "table", "the rows are those whose hash the manifest has"


def _checked_events(release: Released) -> tuple[str, str]:
    """Check that the promise covers the events that the manifest lists."""
    privacy, events = release.privacy, events_from_json(release.manifest["events"])
    try:
        checked_booking(events, privacy.booked_epsilon, privacy.delta)
    except DphhError:
        raise _refusal("its promise is less than what its own events cost") from None
    return "price", f"({privacy.booked_epsilon:.4g}, {privacy.delta:g}) covers its events"


def _checked_parameters(manifest: dict[str, Any]) -> tuple[str, str]:
    """Check that the promise is what the parameters ask for."""
    asked, privacy = manifest["parameters"], manifest["privacy"]
    epsilon = asked["local_epsilon"] if "local_epsilon" in asked else asked["epsilon"]
    if epsilon not in (None, privacy["epsilon"]) or asked["delta"] != privacy["delta"]:
        raise _refusal("its promise is not the epsilon and delta that its parameters ask for")
    return "promise", "the epsilon and delta that its parameters ask for"


def _checked_rows(release: Released) -> tuple[str, str]:
    """Check that the rows can be what the levels released."""
    manifest, tokens = release.manifest, release.table.column("tokens").to_pylist()
    distinct = {*map(tuple, tokens)}
    # `top` and `min_users` leave items out, perhaps parts of items that are in the release.
    cut = "top" in manifest or manifest["parameters"].get("min_users") is not None
    of = _problems_of_list if manifest["verb"] == "counts" else _problems_of_levels
    for wrong in of(release, distinct, cut):
        raise _refusal(wrong)
    said = "no more than" if cut else "each with its parts, as many as"
    return "rows", f"{len(distinct):,} items, {said} its levels released"


def _problems_of_list(release: Released, distinct: set[Tokens], cut: bool) -> Iterator[str]:
    asked, level = release.manifest["parameters"], release.manifest["levels"][0]
    if not cut and distinct != {*map(tuple, asked["of"])}:
        yield "its items are not those of its list"
    if not cut and release.table.num_rows != level["released"]:
        yield "it has other rows than were counted"


def _problems_of_levels(release: Released, distinct: set[Tokens], cut: bool) -> Iterator[str]:
    asked, levels = release.manifest["parameters"], release.manifest["levels"]
    if asked.get("domain") is not None and not distinct <= {*map(tuple, asked["domain"])}:
        yield "it has items that its domain lacks"
    grown = {"ended"} & {*release.table.column_names}
    rows = release.table.group_by(["level", "item", *grown]).aggregate([])
    there = Counter(rows.column("level").to_pylist())
    released: Counter[int] = Counter()
    for level in levels:
        released[level["level"]] += level["released"]
    for number in there | released:
        few, most = there[number], released[number]
        if few > most or (few < most and not cut):
            yield f"level {number} has {few:,} items, but {most:,} were released"
    if not cut and any(not distinct.issuperset(parts_of(each, levels)) for each in distinct):
        yield "it has a phrase whose parts were not found"
