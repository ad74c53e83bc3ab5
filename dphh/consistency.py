"""Checks that a saved release agrees with itself.

A release that was sent, copied or edited is compared with itself: its table with the manifest's
hash and with its levels, and its manifest, each word and number of it, with what dphh writes of
the same parameters. It does not show who made a release: an edit can compute all anew. Only the
ledger that paid for it shows that (`dphh.verify`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from itertools import chain
from math import isclose
from typing import Any

import numpy as np
import polars as pl

from dphh.columns import COUNT_COLUMNS, DIGEST_FIELD, digest_of
from dphh.counting import Family, FoundCounts
from dphh.engines import ENGINES
from dphh.errors import DphhError, UsageError
from dphh.ledger.budget import checked_booking
from dphh.manifest_shape import MANIFEST, is_plain_json, misfit
from dphh.price import Price, manifest_before_run
from dphh.prior import Prior
from dphh.privacy.counts import chosen_bound, count_intervals
from dphh.privacy.events import events_from_json
from dphh.reader.corpus import corpus_from_json
from dphh.registry import VERBS, price_again
from dphh.report.counting import keys_of_rows, weighing_of
from dphh.report.sentences import (
    Manifest,
    Released,
    counting_of,
    groups_of,
    number_of_items,
    promise_with_unit,
)
from dphh.report.why import needed_slices
from dphh.udfs.rules.counts import HeldHistogram
from dphh.wording.lines import with_noun


def check_consistency(release: Released) -> list[tuple[str, str]]:
    """For each check, what was checked and found. Refuses a release that contradicts itself."""
    return [*_checks(release)]


def _refusal(why: str) -> UsageError:
    return UsageError(
        f"release: {why}. It was edited or damaged: get it again from the ledger that paid for it, "
        "`dphh ledger release RUN_ID --out DIR`"
    )


def _checks(release: Released) -> Iterator[tuple[str, str]]:
    manifest = release.manifest
    if not is_plain_json(manifest):
        raise _refusal("its manifest has a text or a number that JSON cannot have")
    if found := misfit(manifest, MANIFEST):
        raise _refusal(found)
    named = (("verb", manifest["verb"], VERBS), ("engine", manifest["engine"]["name"], ENGINES))
    for what, name, known in named:
        if name not in known:
            raise UsageError(
                f"release: its {what} is none of {', '.join(known)}: read it with the dphh that "
                "made it; if that is this one, the release was edited"
            )
    rows = release.to_polars()
    is_of_this = (made_with := manifest["versions"]["dphh"]) == version("dphh")
    if is_of_this:
        of_manifest = _problems_of_manifest(manifest, rows.columns)
        for problem in chain(of_manifest, _problems_of_cells(rows, manifest)):
            raise _refusal(problem)
    if manifest.get(DIGEST_FIELD) != digest_of(release.table):
        raise _refusal(f"its table is not the one whose hash the manifest has ({DIGEST_FIELD})")
    yield "table", "the rows match the hash that release.json has of them"
    privacy, events = release.privacy, events_from_json(manifest["events"])
    try:
        checked_booking(events, privacy.booked_epsilon, privacy.delta)
    except DphhError:
        raise _refusal("its promise is less than what its own events cost") from None
    items = with_noun(number_of_items(release.table), "item")
    if not is_of_this:
        yield "made with", f"dphh {made_with}: what it says was not compared with what that writes"
        yield "promise", f"{promise_with_unit(privacy)}, as its release.json says"
        yield "rows", items
        return
    what = (
        "dphh computed this promise again from what was asked, and found the same; the run's steps "
        "cost no more than it"
    )
    yield "promise", f"{promise_with_unit(privacy)}. {what}"
    asked = manifest["parameters"]
    # `min_users` leaves items out, perhaps parts of items that are in the release.
    is_cut = asked.get("min_users") is not None
    is_given = "of" in asked or "domain" in asked
    for problem in (_problems_of_given if is_given else _problems_of_found)(release, rows, is_cut):
        raise _refusal(problem)
    said, parts = "no more than" if is_cut else "as many as", ""
    if not (is_cut or is_given) and rows["level"].n_unique() > 1:
        parts = "; the shorter parts of each are there"
    yield "rows", f"{items}, {said} the run says it released{parts}"


def _problems_of_manifest(manifest: Manifest, columns: Sequence[str]) -> Iterator[str]:
    """What a run of these parameters would not have written. The first is decisive: what comes
    after it may not be readable."""
    if not manifest["levels"]:
        yield "its manifest has no levels"
    if other := _other_than_planned(manifest, columns):
        yield f"{other} is not what dphh writes of what was asked"
    if counting := counting_of(manifest):
        keys = counting["keys"]
        if len(counting.get("rough_grid", range(keys))) != keys:
            yield "it has not one rough count for each count"
        weighing = weighing_of(counting)
        if weighing.losses != len(counting["lost_grid"]):
            yield "its counts do not say what bounding removed"
        if held := counting.get("held_grid"):
            if len(held) != HeldHistogram(weighing).coordinates:
                yield "its histogram of how many counts users hold has other bins"
            bound = chosen_bound(np.array(held, np.int64), weighing, counting["relative_sigma"])
            if bound != counting["max_items"]:
                yield "its max_items does not follow from how many counts users hold"


def _other_than_planned(manifest: Manifest, columns: Sequence[str]) -> str | None:
    """The name of what is not as in the manifest that this dphh writes of the same parameters, with
    what a run decides taken from this one; None if all is."""
    asked, prior = dict(manifest["parameters"]), manifest.get("prior")
    user, content = asked.pop("user"), asked.pop("content")
    kind = "path" if manifest["privacy"].get("provided") is None else "table"
    try:
        corpus = corpus_from_json({"kind": kind, "where": [], "user": user, "content": content})
        described = None if prior is None else Prior.described(prior)
        price = price_again(manifest["verb"], asked, described)
        anew = manifest_before_run(price, corpus, columns, is_test=manifest["is_test"])
        anew |= {name: manifest[name] for name in _OF_THE_RUN if name in manifest}
        anew["levels"] = [_level_again(level, price) for level in manifest["levels"]]
        if price.counting is not None:
            anew["counting"] = _counting_again(manifest.get("counting", {}), price.counting)
        return _other(manifest, json.loads(json.dumps(anew)), "its manifest")
    except (DphhError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return "its manifest"


#: What the ledger has of a run, and no plan tells.
_OF_THE_RUN = ("run_id", "day", "engine", "versions", DIGEST_FIELD)


def _level_again(found: dict[str, Any], price: Price) -> dict[str, Any]:
    """A level as a run of this price writes it: what the run decided is as was found."""
    which = ("kind", "level", "pass_number")
    alike = [
        (each, planned)
        for each in price.levels
        for planned in [each.to_json()]
        if all(planned.get(name) == found.get(name) for name in which)
    ]
    alike.sort(key=lambda each: each[1].get("round") != found.get("round"))
    for level, planned in alike[:1]:
        free: tuple[str, ...] = ()
        if planned.get("held_sigma"):
            free = ("max_items",)
        if planned.get("round") != found.get("round"):  # it took what was left for the others
            free = ("round", "grid_bits", "sigma_grid", "threshold_grid")
        return {**_decided(level, found, free).to_json(), "released": found["released"]}
    return {}


def _counting_again(found: dict[str, Any], counting: FoundCounts) -> dict[str, Any]:
    """How a run counts what it found, and what that says, as `count_found_items` writes it."""
    counted = found.get("counted", 0)
    below = {"passes_below": counting.chance_below_min_users} if counting.min_users else {}
    if not counted:
        return {**counting.to_json(), "counted": 0, **below}
    if counting.within_purses:
        chosen = ("relative_sigma", "max_items", "within_purses")
        counting = replace(counting, **{name: found[name] for name in chosen if name in found})
    level = _decided(counting.level(counted), found)
    return {**counting.to_json(), "counted": counted, **level.to_json(), **below}


def _decided(level: Any, found: dict[str, Any], also: Sequence[str] = ()) -> Any:
    """The level of a plan with the fields that a run has decided: those that a plan leaves open."""
    names = [name for name, value in vars(level).items() if value is None or name in also]
    decided = {name: found[name] for name in names if name in found}
    decided |= {name: tuple(value) for name, value in decided.items() if isinstance(value, list)}
    if families := decided.get("families"):
        decided["families"] = tuple(Family(**each) for each in families)
    return replace(level, **decided)


def _other(found: Any, right: Any, name: str) -> str | None:
    """The name of the first part of a manifest that is not as it should be. Numbers may differ by
    a little, as what is searched for does between machines."""
    if isinstance(found, dict) and isinstance(right, dict):
        if odd := sorted(found.keys() ^ right.keys()):
            return f"its field {odd[0]!r}"
        parts = [(found[each], right[each], f"its field {each!r}") for each in right]
    elif isinstance(found, list) and isinstance(right, list) and len(found) == len(right):
        parts = [(*pair, name) for pair in zip(found, right, strict=True)]
    elif type(found) is type(right) is float:
        return None if isclose(found, right, rel_tol=1e-4) else name
    else:
        return None if type(found) is type(right) and found == right else name
    return next(filter(None, (_other(*part) for part in parts)), None)


def _problems_of_cells(rows: pl.DataFrame, manifest: Manifest) -> Iterator[str]:
    """What keeps dphh from showing the table."""
    if rows["level", "item", "tokens"].null_count().sum_horizontal().item() or (
        rows["tokens"].explode(empty_as_null=False).null_count()
    ):
        yield "a row of its table lacks its level, its item or a token"
    if any(not rows[name].is_finite().all() for name in {"score", "error"} & {*rows.columns}):
        yield "a score of its table is no number"
    if {*COUNT_COLUMNS} <= {*rows.columns}:
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
