"""Checks a saved release: that it agrees with itself, and with what the ledger has stored.

A release that was sent, copied or edited is compared with itself: its table with the manifest's
hash, its promise with its events and its parameters, its rows with its levels. That finds mistakes
and careless edits. It does not show who made a release: an edit can compute the hash anew. Only the
ledger that paid for it shows that (docs/threats.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dphh.columns import DIGEST_FIELD, digest_of
from dphh.errors import DphhError, UsageError
from dphh.ledger.budget import checked_booking
from dphh.privacy.events import events_from_json
from dphh.report.sentences import Released, Tokens
from dphh.report.why import needed_parts


def verified(release: Released) -> list[tuple[str, str]]:
    """For each check, what was checked and found. Refuses a release that contradicts itself."""
    try:
        return [*_checks(release)]
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


def _checks(release: Released) -> Iterator[tuple[str, str]]:
    manifest = release.manifest
    if manifest.get(DIGEST_FIELD) != digest_of(release.table):
        raise _refusal(f"its table is not the one whose hash the manifest has ({DIGEST_FIELD})")
    yield "table", "the rows are those whose hash the manifest has"
    privacy, events = release.privacy, events_from_json(manifest["events"])
    try:
        checked_booking(events, privacy.booked_epsilon, privacy.delta)
    except DphhError:
        raise _refusal("its promise is less than what its own events cost") from None
    yield "price", f"({privacy.booked_epsilon:.4g}, {privacy.delta:g}) covers what its events cost"
    asked, promised = manifest["parameters"], manifest["privacy"]
    epsilon = asked["local_epsilon"] if "local_epsilon" in asked else asked["epsilon"]
    if epsilon not in (None, promised["epsilon"]) or asked["delta"] != promised["delta"]:
        raise _refusal("its promise is not the epsilon and delta that its parameters ask for")
    yield "promise", "the epsilon and delta that its parameters ask for"
    distinct = {*map(tuple, release.table.column("tokens").to_pylist())}
    # `top` and `min_users` leave items out, perhaps parts of items that are in the release.
    is_cut = "top" in manifest or asked.get("min_users") is not None
    problems = _problems_of_counts if manifest["verb"] == "counts" else _problems_of_levels
    for problem in problems(release, distinct, is_cut):
        raise _refusal(problem)
    said = "no more than" if is_cut else "each with its parts, as many as"
    yield "rows", f"{len(distinct):,} items, {said} its levels released"


def _problems_of_counts(release: Released, distinct: set[Tokens], is_cut: bool) -> Iterator[str]:
    asked, level = release.manifest["parameters"], release.manifest["levels"][0]
    if not is_cut and distinct != {*map(tuple, asked["of"])}:
        yield "its items are not those that it was asked to count"
    if not is_cut and release.table.num_rows != level["released"]:
        yield "it has other rows than were counted"


def _problems_of_levels(release: Released, distinct: set[Tokens], is_cut: bool) -> Iterator[str]:
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
        if few > most or (few < most and not is_cut):
            yield f"level {number} has {few:,} items, but {most:,} were released"
    if not is_cut and any(not distinct.issuperset(needed_parts(each, levels)) for each in distinct):
        yield "it has a phrase whose parts were not found"
