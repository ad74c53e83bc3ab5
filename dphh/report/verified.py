"""What a release's own folder shows to be right, and what the ledger adds.

A release that was sent, copied or edited is compared with itself: its table with the manifest's
hash, its promise with its events and its parameters, its rows with its levels.
That finds mistakes and careless edits. It does not show who made a release: an edit can compute the
hash anew. Only the ledger that paid for it shows that (docs/threats.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dphh.columns import DIGEST, digest_of
from dphh.errors import DphhError, UsageError
from dphh.ledger.budget import checked_booking
from dphh.privacy.events import events_from_json
from dphh.report.sentences import Released, Tokens

#: What was looked at, and what was found.
Lines = list[tuple[str, str]]


def verified(release: Released) -> Lines:
    """What can be verified from the release alone. Refuses one that contradicts itself."""
    try:
        return [_table(release), _events(release), _parameters(release.manifest),
                _rows(release)]  # fmt: skip
    except (AttributeError, IndexError, KeyError, TypeError) as problem:
        raise _refusal(f"its manifest lacks or misspells {problem}") from None


def same_as_in_ledger(release: Released, stored: Released) -> tuple[str, str]:
    """Refuse a release that differs from what the ledger that paid for it has stored."""
    if not release.table.equals(stored.table) or release.manifest != stored.manifest:
        raise _refusal("it is not what the ledger has stored for this run")
    return "ledger", "paid for there, and the same in every row and every line of the manifest"


def _refusal(why: str) -> UsageError:
    return UsageError(
        f"release: {why}. It was edited or damaged: get it again from the ledger that paid for it, "
        "`dphh ledger release RUN_ID --out DIR`"
    )


def _table(release: Released) -> tuple[str, str]:
    if release.manifest.get(DIGEST) != digest_of(release.table):
        raise _refusal(f"its table is not the one whose hash the manifest has ({DIGEST})")
    return "table", "the rows are those whose hash the manifest has"


def _events(release: Released) -> tuple[str, str]:
    """Whether the noise that was drawn, as the manifest lists it, gives the epsilon it promises."""
    privacy, events = release.privacy, events_from_json(release.manifest["events"])
    try:
        checked_booking(events, privacy.booked_epsilon, privacy.delta)
    except DphhError:
        raise _refusal("it promises less than its own events cost") from None
    return (
        "price",
        f"epsilon {privacy.booked_epsilon:.4g}, delta {privacy.delta:g} cover its events",
    )


def _parameters(manifest: dict[str, Any]) -> tuple[str, str]:
    """Whether it promises what was asked for."""
    asked, privacy = manifest["parameters"], manifest["privacy"]
    epsilon = asked["local_epsilon"] if "local_epsilon" in asked else asked["epsilon"]
    if epsilon not in (None, privacy["epsilon"]) or asked["delta"] != privacy["delta"]:
        raise _refusal("its promise is not the epsilon and delta that its parameters ask for")
    return "promise", "the epsilon and delta that its parameters ask for"


def _rows(release: Released) -> tuple[str, str]:
    """Whether its rows can be what its levels released."""
    manifest, table = release.manifest, release.table
    tokens = [tuple(each) for each in table.column("tokens").to_pylist()]
    for found, wrong in _what_is_wrong_with_rows(manifest, table, tokens):
        if wrong:
            raise _refusal(found)
    said = "no more than" if _is_cut(manifest) else "each with its parts, as many as"
    return "rows", f"{len(set(tokens)):,} items, {said} its levels released"


def _is_cut(manifest: dict[str, Any]) -> bool:
    """Whether items were left out, which may be parts of what is there."""
    return "top" in manifest or manifest["parameters"].get("min_users") is not None


def _what_is_wrong_with_rows(
    manifest: dict[str, Any], table: Any, tokens: list[Tokens]
) -> Iterator[tuple[str, bool]]:
    distinct, asked = set(tokens), manifest["parameters"]
    levels, cut = manifest["levels"], _is_cut(manifest)
    if manifest["verb"] == "counts":
        yield (
            "its items are not those of its list",
            not cut and distinct != {*map(tuple, asked["of"])},
        )
        yield (
            "it has other rows than were counted",
            not cut and table.num_rows != levels[0]["released"],
        )
        return
    if "domain" in asked and asked["domain"] is not None:
        yield "it has items that its domain lacks", not distinct <= {*map(tuple, asked["domain"])}
    rows = table.group_by(["level", "item", *({"ended"} & {*table.column_names})]).aggregate([])
    there = Counter(rows.column("level").to_pylist())
    released: Counter[int] = Counter()
    for level in levels:
        released[level["level"]] += level["released"]
    for level in there | released:
        few, most = there[level], released[level]
        yield (
            f"level {level} has {few:,} items and released {most:,}",
            (few > most if cut else few != most),
        )
    if cut:
        return
    missing = any(not distinct.issuperset(_parts(each, levels)) for each in distinct)
    yield "it has a phrase whose parts were not found", missing


def _parts(tokens: Tokens, levels: list[dict[str, Any]]) -> list[Tokens]:
    """What must have been found before these tokens could be."""
    kinds = {level["kind"] for level in levels}
    if kinds & {"vote", "batch", "local"}:
        # Devices are asked from pairs on, each character being a beginning.
        return [tokens[:-1]] if len(tokens) > (2 if "local" in kinds else 1) else []
    pruning = {level["level"]: level.get("pruning") for level in levels}.get(len(tokens))
    if pruning is None or len(tokens) == 1:
        return []
    return [tokens[:-1], tokens[1:] if pruning == "both" else tokens[-1:]]
