"""Checks that a saved release agrees with itself.

A release that was sent, copied or edited is compared with itself: its table with the manifest's
hash, its promise with its events and its parameters, its rows with its levels. That finds mistakes
and careless edits. It does not show who made a release: an edit can compute the hash anew. Only the
ledger that paid for it shows that (`dphh.verify`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain

import numpy as np
import polars as pl

from dphh.columns import COUNT_COLUMNS, DIGEST_FIELD, digest_of
from dphh.errors import DphhError, UsageError
from dphh.ledger.budget import checked_booking
from dphh.price import Privacy
from dphh.privacy.counts import chosen_bound, count_intervals
from dphh.privacy.events import events_from_json
from dphh.reader.content import Content
from dphh.report.counting import keys_of_rows, weighing_of
from dphh.report.sentences import (
    Manifest,
    Released,
    counting_of,
    groups_of,
    number_of_items,
    promise_with_unit,
)
from dphh.report.shape import COUNTING, MANIFEST, is_plain_json, misfit
from dphh.report.why import needed_slices
from dphh.udfs.rules.counts import HeldHistogram


def verified(release: Released) -> list[tuple[str, str]]:
    """For each check, what was checked and found. Refuses a release that contradicts itself."""
    return [*_checks(release)]


def _refusal(why: str) -> UsageError:
    return UsageError(
        f"release: {why}. It was edited or damaged: get it again from the ledger that paid for it, "
        "`dphh ledger release RUN_ID --out DIR`"
    )


def _checks(release: Released) -> Iterator[tuple[str, str]]:
    manifest = release.manifest
    rows = release.to_polars()
    for problem in chain(_problems_of_manifest(manifest), _problems_of_cells(rows, manifest)):
        raise _refusal(problem)
    if manifest.get(DIGEST_FIELD) != digest_of(release.table):
        raise _refusal(f"its table is not the one whose hash the manifest has ({DIGEST_FIELD})")
    yield "table", "the rows match the hash that release.json has of them"
    privacy, events = release.privacy, events_from_json(manifest["events"])
    try:
        checked_booking(events, privacy.booked_epsilon, privacy.delta)
    except DphhError:
        raise _refusal("its promise is less than what its own events cost") from None
    cost = f"({privacy.booked_epsilon:.4g}, {privacy.delta:g})"
    yield "price", f"its steps cost no more than {cost}, added up anew"
    asked, promised = manifest["parameters"], manifest["privacy"]
    epsilon = asked.get("local_epsilon", asked.get("epsilon", "missing"))
    if epsilon not in (None, promised["epsilon"]) or asked["delta"] != promised["delta"]:
        raise _refusal("its promise is not the epsilon and delta that its parameters ask for")
    yield "promise", f"{promise_with_unit(privacy)}, as was asked for"
    # `min_users` leaves items out, perhaps parts of items that are in the release.
    is_cut = asked.get("min_users") is not None
    is_given = "of" in asked or "domain" in asked
    for problem in (_problems_of_given if is_given else _problems_of_found)(release, rows, is_cut):
        raise _refusal(problem)
    said = "no more than" if is_cut else "each with its parts, as many as"
    yield "rows", f"{number_of_items(release.table):,} items, {said} its levels released"


def _problems_of_manifest(manifest: Manifest) -> Iterator[str]:
    """What keeps dphh from reading the manifest. The first is decisive: what comes after it may not
    be readable."""
    if not is_plain_json(manifest):
        yield "its manifest has a text or a number that JSON cannot have"
    if found := misfit(manifest, MANIFEST):
        yield found
    if manifest["is_test"] == (manifest["randomness"] == "operating system"):
        yield "its manifest says in two ways where its randomness came from"
    if not manifest["levels"]:
        yield "its manifest has no levels"
    if manifest["parameters"].get("by") is not None and "groups" not in manifest["parameters"]:
        yield "its manifest has no groups"
    yield from _problems_of_statement(manifest)
    if counting := counting_of(manifest):
        if found := misfit(counting, COUNTING):
            yield found
        keys, groups = counting["keys"], counting["groups_of_item"]
        if len(counting.get("rough_grid", range(keys))) != keys or keys % groups:
            yield "it has not one rough count for each count, or not all groups of each item"
        weighing = weighing_of(counting)
        if weighing.losses != len(counting["lost_grid"]):
            yield "its counts do not say what bounding removed"
        if held := counting.get("held_grid"):
            if len(held) != HeldHistogram(weighing).coordinates:
                yield "its histogram of how many counts users hold has other bins"
            bound = chosen_bound(np.array(held, np.int64), weighing, counting["relative_sigma"])
            if bound != counting["max_items"]:
                yield "its max_items does not follow from how many counts users hold"


def _problems_of_statement(manifest: Manifest) -> Iterator[str]:
    try:
        Content(**manifest["parameters"]["content"])
        privacy = Privacy.from_json(manifest["privacy"])
        if (privacy.shuffled_epsilon is None) != (privacy.shuffled_user_epsilon is None):
            yield "its privacy statement lacks one of two epsilons of shuffled messages"
    except TypeError:
        yield "its privacy statement or its content has other fields than this dphh knows"


def _problems_of_cells(rows: pl.DataFrame, manifest: Manifest) -> Iterator[str]:
    """What keeps dphh from showing the table."""
    if rows["level", "item", "tokens"].null_count().sum_horizontal().item() or (
        rows["tokens"].explode(empty_as_null=False).null_count()
    ):
        yield "a row of its table lacks its level, its item or a token"
    if any(not rows[name].is_finite().all() for name in {"score", "error"} & {*rows.columns}):
        yield "a score of its table is no number"
    if lacking := {*COUNT_COLUMNS} - {*rows.columns}:
        if len(lacking) < len(COUNT_COLUMNS):
            yield "its table lacks a column of its counts"
    else:
        users, low, high, estimate = map(pl.col, COUNT_COLUMNS)
        counted = rows.drop_nulls("users")
        in_order = (low >= 0) & (low <= users) & (users <= high) & (high <= 2**53)
        if not counted.select(in_order.fill_null(False).all()).item():
            yield "a number of users is not within its interval"
        is_cut = (users == pl.max_horizontal(estimate, 0)) & (estimate >= -(2**53))
        if not counted.select(is_cut.fill_null(False).all()).item():
            yield "a number of users is not its estimate, cut at 0"
        if len(counted) and not counting_of(manifest):
            yield "its manifest does not say how its users were counted"
        yield from _problems_of_intervals(counted, manifest)


def _problems_of_intervals(counted: pl.DataFrame, manifest: Manifest) -> Iterator[str]:
    """What keeps its intervals from being those of its noise. An estimate tells the noised
    weight up to rounding: estimate g - g // 2 is the least, and g - 1 more the most."""
    counting = counting_of(manifest)
    if "group_name" not in counted:
        counted = counted.with_columns(group_name=pl.lit(None, pl.String))
    lengths = pl.col("tokens").list.len().alias("length")
    for (length, group), rows in counted.group_by(lengths, "group_name"):
        share = None
        if least := counting.get("min_users"):
            shares = [
                (family["kept"], family["counted"])
                for family in counting.get("families", ())
                if family["length"] in (None, length) and family["group"] in (None, group)
            ]
            if not shares or any(not len(rows) <= kept <= of for kept, of in shares):
                yield "its manifest does not say of how many counts it shows how many"
            if rows["low"].min() < least:
                yield f"it shows an interval that begins below {least:,} users (min_users)"
            share = min(Fraction(*each) for each in shares)
        weighing, keys = weighing_of(counting), keys_of_rows(rows, manifest)
        user = weighing.unit * weighing.factor[keys]
        fewest = rows["estimate"].to_numpy() * user - user // 2
        (_, least_low, least_high), (_, most_low, most_high) = (
            count_intervals(
                noised,
                np.array(counting["lost_grid"], np.int64),
                weighing,
                counting["sigma_grid"],
                counting["confidence"],
                keys=keys,
                simultaneous=counting["simultaneous"],
                shown=share,
            )
            for noised in (fewest, fewest + user - 1)
        )
        low, high = rows["low"].to_numpy(), rows["high"].to_numpy()
        fits = (least_low <= low) & (low <= most_low) & (least_high <= high) & (high <= most_high)
        if not fits.all():
            yield "its intervals are not those of its noise"


def _problems_of_given(release: Released, rows: pl.DataFrame, is_cut: bool) -> Iterator[str]:
    """What contradicts that all given items were counted, in each group."""
    asked = release.manifest["parameters"]
    given = {*map(tuple, asked.get("of", asked.get("domain")))}
    found = Counter(map(tuple, rows["tokens"].to_list()))
    most = max(1, len(groups_of(release.manifest)))
    if not found.keys() <= given or max(found.values(), default=0) > most:
        yield "it has other items than it was asked to count"
    if not is_cut and len(rows) != len(given) * most:
        yield "it lacks an item that it was asked to count"


def _problems_of_found(release: Released, rows: pl.DataFrame, is_cut: bool) -> Iterator[str]:
    """What contradicts that each level released as many items as it says, of parts found below."""
    levels = release.manifest["levels"]
    # By tokens, because two items whose tokens have spaces may have one text. In a release with
    # groups an item has a row for each.
    items = rows.unique(["level", "tokens", *({"ended"} & {*rows.columns})])
    there = Counter(items["level"])
    released: Counter[int] = Counter()
    for level in levels:
        released[level["level"]] += level["released"]
    for number in there | released:
        few, most = there[number], released[number]
        if few > most or (few < most and not is_cut):
            yield f"level {number} has {few:,} items, but {most:,} were released"
    for (length,), those in [] if is_cut else items.group_by(pl.col("tokens").list.len()):
        for part in needed_slices(int(length), levels):
            parts = those.select(pl.col("tokens").list.slice(part.start, part.stop - part.start))
            if len(parts.join(items, on="tokens", how="anti")):
                yield "it has a phrase whose parts were not found"
