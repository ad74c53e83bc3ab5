"""Which items of the last release are in no earlier one, and whether noise alone explains that.

Evidence comes from each earlier week: its count of the item, if it counted the item, and else the
noise and the threshold of its release (`dphh.privacy.crossing`). An item is new if each earlier
week shows that fewer users held it. A week that shows nothing leaves the item perhaps new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import hypot, inf
from typing import Any, NamedTuple

import numpy as np

from dphh.privacy.crossing import Round, most_by_noise
from dphh.report.counted import counting_of
from dphh.report.people import Count, Tokens
from dphh.report.released import Released
from dphh.report.weights import PASSED
from dphh.report.why import missing_parts
from dphh.wording.lines import at_most, shorten


@dataclass(frozen=True)
class Counted:
    """A count, the standard deviation of its noise, and what bounding may have taken from it."""

    count: Count
    sigma: float
    lost: float
    #: The probability that bounding took more.
    wrong: float


@dataclass(frozen=True)
class PeriodReleases:
    """The releases of one period, under one name."""

    name: str
    releases: tuple[Released, ...]
    counts: Mapping[Tokens, Counted]

    @cached_property
    def found(self) -> dict[Tokens, dict[str, Any]]:
        """The rows of releases that find; a release of `counts` shows what it was given."""
        finding = [each for each in self.releases if each.manifest["verb"] != "counts"]
        rows = [row for each in finding for row in each.table.to_pylist()]
        # In a trie, complete sequences are what users wrote; prefixes only lead to them.
        return {tuple(row["tokens"]): row for row in rows if row.get("ended") is not False}


class Evidence(NamedTuple):
    """One release's evidence that an item is new. `chance`: an upper bound on the probability that
    noise alone shows this, if as many users held the item then as now."""

    chance: float | None
    said: str


@dataclass(frozen=True)
class Appeared:
    """An item of the last week's release that is in no earlier release."""

    tokens: Tokens
    item: str
    #: The largest chance of any earlier week; None if one of them has none.
    chance: float | None
    said: str
    confidence: float = field(repr=False)

    @property
    def is_new(self) -> bool:
        return self.chance is not None and self.chance <= 1 - self.confidence


def appeared(weeks: Sequence[PeriodReleases], confidence: float) -> list[Appeared]:
    """The items that the last week found and no earlier week did, surest first."""
    *earlier, last = weeks
    before = {tokens for week in earlier for tokens in week.found}
    rows = {tokens: row for tokens, row in last.found.items() if tokens not in before}
    if not earlier or not rows:
        return []
    told = [_evidence_of_week(week, last, rows) for week in earlier]
    found = []
    for tokens, row in rows.items():
        worst = max((each[tokens] for each in told), key=_largest_chance)
        sure = worst.chance is not None and worst.chance <= 1 - confidence
        said = (
            worst.said if sure else f"may have been there before, below the threshold: {worst.said}"
        )
        found.append(Appeared(tokens, row["item"], worst.chance, said, confidence))
    return sorted(found, key=lambda each: (_largest_chance(Evidence(each.chance, "")), each.item))


def _largest_chance(evidence: Evidence) -> float:
    return 2.0 if evidence.chance is None else evidence.chance


def _evidence_of_week(
    week: PeriodReleases, last: PeriodReleases, rows: Mapping[Tokens, Any]
) -> dict[Tokens, Evidence]:
    told: dict[Tokens, Evidence] = {}
    for tokens in rows:
        if tokens in week.counts:
            told[tokens] = _evidence_of_count(week, tokens, last.counts.get(tokens))
    finding = [each for each in week.releases if each.manifest["verb"] != "counts"]
    rest = [tokens for tokens in rows if tokens not in told]
    by_length: dict[int, list[Tokens]] = {}
    for tokens in rest:
        by_length.setdefault(rows[tokens]["level"], []).append(tokens)
    for length, those in by_length.items():
        later = next((r for each in last.releases if (r := rounds_of(each.manifest, length))), None)
        told |= _evidence_of_weights(week.name, finding, length, {t: rows[t] for t in those}, later)
    return told


def _evidence_of_count(week: PeriodReleases, tokens: Tokens, now: Counted | None) -> Evidence:
    then = week.counts[tokens]
    said = f"{week.name} counted {then.count.low:,.0f} to {then.count.high:,.0f} users"
    if now is None:
        return Evidence(None, f"{said}, and it is not counted now")
    chance = _chance_of_no_growth(now, then)
    return Evidence(
        chance, f"{said}; as many as now show that with probability {at_most(chance)} or less"
    )


def _chance_of_no_growth(now: Counted, then: Counted) -> float:
    """An upper bound on the probability that two counts differ this much if no fewer users held the
    item then.

    Bounding only lowers a count, so it matters of the earlier count alone. Rounding both to whole
    users and to the grid adds less than 2.
    """
    from scipy.special import ndtr  # slow to import

    apart = now.count.users - then.count.users - then.lost - 2
    return min(1.0, float(ndtr(-apart / hypot(now.sigma, then.sigma))) + then.wrong)


def _evidence_of_weights(
    name: str,
    finding: Iterable[Released],
    length: int,
    rows: Mapping[Tokens, Any],
    later: Sequence[Round] | None,
) -> dict[Tokens, Evidence]:
    """The evidence from the week's first release whose threshold for this length is known."""
    known = next(
        ((each, r) for each in finding if (r := rounds_of(each.manifest, length, whole=True))), None
    )
    scores = np.array([row.get("score") for row in rows.values()], float)
    if known is None or later is None or np.isnan(scores).any():
        said = f"of this length, {name} gives no probability; count it in {name}"
        return dict.fromkeys(rows, Evidence(None, said))
    release, earlier = known
    chances = most_by_noise(scores, later, earlier[-1]).tolist()
    by_level = {level["level"]: level for level in release.manifest["levels"]}
    released = {tuple(each) for each in release.table.column("tokens").to_pylist()}
    return {
        tokens: _evidence_of_weight(name, tokens, chance, released, by_level)
        for tokens, chance in zip(rows, chances, strict=True)
    }


def _evidence_of_weight(
    name: str,
    tokens: Tokens,
    chance: float,
    released: set[Tokens],
    by_level: dict[int, dict[str, Any]],
) -> Evidence:
    if missing := missing_parts(tokens, released, by_level):
        part = shorten(" ".join(missing[0]))
        return Evidence(None, f"{name} did not look at it, because “{part}” was not released")
    said = (
        f"with as much weight in {name} as now, noise shows this with probability {at_most(chance)}"
    )
    return Evidence(chance, f"{said} or less")


def rounds_of(
    manifest: Mapping[str, Any], length: int, *, whole: bool = False
) -> tuple[Round, ...] | None:
    """The rounds that release items of this length by a noised weight; None if others do too.

    `whole`: None also if items that passed may be left out of the release.
    """
    levels = [level for level in manifest["levels"] if level["level"] == length]
    left_out = manifest.get("counting", {}).get("min_users") or "top" in manifest
    if not levels or (whole and left_out) or any(each.get("kind") not in PASSED for each in levels):
        return None
    levels.sort(key=lambda level: level.get("round", 1))
    return tuple(
        Round(each["threshold_grid"], each["sigma_grid"], 2 ** each["grid_bits"]) for each in levels
    )


def counted(
    release: Released, counts: Mapping[Tokens, tuple[Count | None, ...]]
) -> dict[Tokens, Counted]:
    """The counts of a release, in total, with the noise that its manifest states."""
    said = counting_of(release.manifest)
    sigma, half = said.get("sigma", inf), said.get("half_width", inf)
    # Of an interval's error, its high end and the octaves have half (`dphh.privacy.counts`).
    wrong = (1 - said.get("confidence", 0.0)) / 2 if said.get("lost_grid") else 0.0
    return {
        tokens: Counted(
            each, sigma, max(0.0, each.high - each.users - half + 1) if wrong else 0.0, wrong
        )
        for tokens, (each, *_) in counts.items()
        if each is not None
    }
