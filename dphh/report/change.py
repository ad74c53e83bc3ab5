"""How numbers of users differ between a release and an earlier one, or between two groups of one:
the difference, its interval, and whether it rose. This is post-processing: it costs nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from dphh.columns import OTHER_GROUP
from dphh.errors import Notice, UsageError, warn
from dphh.privacy.changes import changes
from dphh.privacy.counts import checked_confidence
from dphh.report.counting import noised_counts
from dphh.report.phrases import with_visible_controls
from dphh.report.rows import may_share_rows, rows_line
from dphh.report.sentences import Manifest, Released, counting_of, groups_of, has_every_given_item
from dphh.wording.lines import one_line

#: A difference rose if its interval lies above 0, fell if below; else there is no clear change.
ROSE, FELL, UNTOLD = "rose", "fell", "no clear change"

#: The ends of the intervals of both numbers.
ENDS = ("low_now", "high_now", "low_before", "high_before")

#: The probability with which the intervals hold that pages and terminals show.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Side:
    """One side of a comparison: the rows of a release or, with `group`, of one of its groups."""

    release: Released
    group: str | None = None

    @property
    def counting(self) -> Manifest:
        return counting_of(self.release.manifest)

    def candidates(self, *, are_listed: bool) -> int:
        """How many counts the rows were chosen from, by `min_users` or (are_listed) by whoever
        listed what another release found; 0 if nobody chose."""
        if not (are_listed or self.counting.get("min_users")):
            return 0
        groups = len(groups_of(self.release.manifest)) if self.group is not None else 1
        return int(self.counting["keys"]) // groups

    def rows(self) -> pl.DataFrame:
        frame = self.release.to_polars()
        if "users" not in frame:
            return frame.clear().with_columns(users=0, estimate=0, low=0, high=0)
        if self.group is not None:
            frame = frame.filter(group_name=self.group).drop("group_name")
        return frame.drop_nulls("users")


def change(
    later: Released,
    earlier: Released | None,
    group: str | None,
    before: str | None,
    confidence: float,
) -> pl.DataFrame:
    """A row for each item and group of either; what rose or fell comes first."""
    checked_confidence(confidence)
    sides = sides_of(later, earlier, group, before)
    if untold := rows_in_both_untold(*sides):
        warn(f"change: {untold}", Notice)
    return with_visible_controls(compared_rows(*sides, confidence).drop(ENDS))


def compared_rows(later: Side, earlier: Side, confidence: float) -> pl.DataFrame:
    """The rows of `change`, with the ends of the intervals of both numbers."""
    rows = later.rows()
    keys = [name for name in ("item", "tokens", "ended", "group_name") if name in rows]
    # Joined by tokens, as two items whose tokens have spaces may have one text; and by group.
    both = rows.select(*keys, "users", "estimate", low_now="low", high_now="high").join(
        earlier.rows().select(
            *keys, before="users", estimate_before="estimate", low_before="low", high_before="high"
        ),
        on=keys, how="full", coalesce=True, nulls_equal=True,
    )  # fmt: skip
    in_both = both["estimate"].is_not_null() & both["estimate_before"].is_not_null()
    if (
        "group_name" in keys
        and later.release.manifest["parameters"]["groups"]
        != (earlier.release.manifest["parameters"]["groups"])
    ):  # "other" holds other groups on each side
        in_both &= both["group_name"] != OTHER_GROUP
    pairs = both.filter(in_both)
    columns: Mapping[str, Any] = {}
    sides = later, earlier
    are_listed = len({has_every_given_item(side.release.manifest) for side in sides}) > 1
    if len(pairs):
        columns = vars(changes(
            noised_counts(later.release.manifest, pairs, "estimate", later.group),
            noised_counts(earlier.release.manifest, pairs, "estimate_before", earlier.group),
            max(len(pairs), *(side.candidates(are_listed=are_listed) for side in sides)),
            confidence,
        ))  # fmt: skip
    numbers = pl.DataFrame(
        {name: columns.get(name, []) for name in ("difference", "low", "high", "sign")},
        dict.fromkeys(("difference", "low", "high", "sign"), pl.Int64),
    )
    compared = pl.concat([pairs, numbers], how="horizontal")
    compared = pl.concat([compared, both.filter(~in_both)], how="diagonal")
    sign = pl.col("sign").fill_null(0)
    return compared.select(
        *keys, "users", "before", "difference", "low", "high", *ENDS,
        change=pl.when(sign > 0).then(pl.lit(ROSE)).when(sign < 0).then(pl.lit(FELL))
        .otherwise(pl.lit(UNTOLD)),
    ).sort(
        pl.col("change").replace_strict({ROSE: 0, FELL: 1, UNTOLD: 2}, return_dtype=pl.Int8),
        pl.when(pl.col("change") == FELL).then(pl.col("high")).otherwise(-pl.col("low")),
        pl.max_horizontal("users", "before"), "item",
        descending=[False, False, True, False], nulls_last=True, maintain_order=True,
    )  # fmt: skip


def sides_of(
    later: Released, earlier: Released | None, group: str | None, before: str | None
) -> tuple[Side, Side]:
    """The later and the earlier side; refused if their numbers cannot be compared."""
    if earlier is not None:
        for option, value in (("group", group), ("before", before)):
            if value is not None:
                raise UsageError(
                    f"{option}: two releases are compared group by group; leave out {option}=, or "
                    "compare two groups of one release"
                )
        sides = Side(later), Side(earlier)
        _refuse_other_reading(later.manifest, earlier.manifest)
        _refuse_rows_of_both(later.manifest, earlier.manifest)
    else:
        declared = groups_of(later.manifest)
        if len(declared) < 3 and (group is None or before is None):
            raise UsageError(
                "change: found one release, without two groups to compare; give the earlier "
                "release, or one that was counted by= the weeks"
            )
        names = [
            last if given is None else given
            for given, last in zip((group, before), (declared[-2:-4:-1]), strict=True)
        ]
        for option, name in zip(("group", "before"), names, strict=True):
            if name not in declared:
                known = ", ".join(map(one_line, declared))
                raise UsageError(f"{option}: found {name!r}; the groups of this release: {known}")
        if names[0] == names[1]:
            raise UsageError(f"before: found {names[1]!r}, the same group; give another")
        sides = Side(later, names[0]), Side(later, names[1])
    for side in sides:
        if not side.counting:
            raise UsageError(
                f"change: release {side.release.manifest['run_id']} has no numbers of users; count "
                "what both found (`dphh counts ... --of FOLDER`), and compare these counts"
            )
    return sides


def _refuse_other_reading(later: Manifest, earlier: Manifest) -> None:
    if later["run_id"] == earlier["run_id"]:
        raise UsageError("change: found one run twice; give two releases, of other rows")
    for verb, setting in (
        ("protects", lambda manifest: manifest["privacy"]["unit"]),
        ("groups by", lambda manifest: manifest["parameters"].get("by")),
        ("reads texts by", _reading),
    ):
        now, before = setting(later), setting(earlier)
        if now != before:
            raise UsageError(
                f"change: the later release {verb} {_shown(now)}, the earlier {_shown(before)}; "
                "their numbers do not compare"
            )
    if not groups_of(later):
        return
    if not {*later["parameters"]["groups"]} & {*earlier["parameters"]["groups"]}:
        raise UsageError("groups: the two releases have none in common; nothing compares")


def _refuse_rows_of_both(later: Manifest, earlier: Manifest) -> None:
    if may_share_rows(later, earlier):
        now, before = (_shown(rows_line(side) or "all rows") for side in (later, earlier))
        raise UsageError(
            f"change: the later release is of {now}, the earlier of {before}: rows may be in both, "
            "so their numbers do not compare; give releases of other rows, such as of two months "
            "(since, until)"
        )


def rows_in_both_untold(later: Side, earlier: Side) -> str:
    """A sentence if the conditions of two releases leave open whether rows are in both; else ""."""
    if may_share_rows(later.release.manifest, earlier.release.manifest) is not None:
        return ""
    return "Whether some rows are in both cannot be told from the conditions that chose them."


def _reading(manifest: Manifest) -> dict[str, Any]:
    """The options that say how texts are read, without the condition on rows."""
    content: dict[str, Any] = dict(manifest["parameters"].get("content", {}))
    content.pop("where", None)
    return content


def _shown(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value), 300)


def meaning_of_changes(later: Side, earlier: Side) -> str:
    """Sentences that say what the intervals of differences mean, and what "rose" means."""
    wrong = f"{100 * (1 - CONFIDENCE):.3g}%"
    intervals = (
        f"Of the intervals of differences, at most {wrong} are expected to miss the true difference"
        if any(side.counting.get("min_users") for side in (later, earlier))
        else f"The interval of each difference holds the true one with probability {CONFIDENCE:g}"
    )
    return (
        f"{intervals}. Of all that is said to have risen or fallen, at most {wrong} is expected "
        f"not to have. {rows_in_both_untold(later, earlier)}".rstrip()
    )
