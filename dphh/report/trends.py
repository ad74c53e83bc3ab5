"""`dphh.trend`: one list of items over the releases of several weeks, and what is new in the last.

All of it is computed from releases, so it costs nothing. A week may have several releases, such as
what it found, and counts of a list that another week found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphh.errors import UsageError
from dphh.privacy.counts import checked_confidence
from dphh.report.chart import Chart
from dphh.report.counted import counting_of
from dphh.report.csv_file import write_rows
from dphh.report.drawing import Bar, Lines, Panel, Part
from dphh.report.news import Appeared, Counted, PeriodReleases, appeared, counted
from dphh.report.people import Tokens, people_of
from dphh.report.released import Released
from dphh.report.total_promise import total_promise
from dphh.together import of_periods_in
from dphh.wording.lines import at_most, plural
from dphh.wording.options import check_whole, named_in_words

if TYPE_CHECKING:
    import polars as pl

#: What a content says of rows and columns, not of tokens.
_OPTIONS_WITHOUT_EFFECT_ON_TOKENS = ("column", "unit", "where", "max_text_length")
#: Characters of a new item up to which it is shown, so that its chance is shown too.
_LONGEST_TEXT = 28
#: A run id that nobody chose.
_GENERATED_RUN_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Trend:
    """Counts over weeks, with intervals, and the items that are in the last week's release alone.

    Shows itself as a chart; `to_polars()` is the table.
    """

    weeks: tuple[PeriodReleases, ...]
    confidence: float

    @cached_property
    def appeared(self) -> list[Appeared]:
        """The items of the last week's release that are in no earlier release, surest first."""
        return appeared(self.weeks, self.confidence)

    def to_polars(self) -> pl.DataFrame:
        """A row for each item and week that counted it, and for each item that appeared.

        `change`, against the week before that counted the item: `rose` or `fell` if the two
        intervals do not meet. Of an item that no earlier release has: `new` if fewer users held
        it in each earlier week, else `perhaps new`. `chance`: the most with which noise alone shows
        a new item so; `why` says it in words.
        """
        import polars as pl

        from dphh.report.readable import readable

        schema: dict[str, Any] = {
            "week": pl.String, "item": pl.String, "tokens": pl.List(pl.String),
            "users": pl.Int64, "low": pl.Int64, "high": pl.Int64,
            "change": pl.String, "chance": pl.Float64, "why": pl.String,
        }  # fmt: skip
        return readable(pl.DataFrame(list(self._rows_of_table()), schema, orient="row"))

    def chart(self, top: int = 20) -> Chart:
        """The `top` items of most users as lines over the weeks, and what appeared, as bars."""
        check_whole("top", top)
        names = tuple(week.name for week in self.weeks)
        rows = tuple(
            (
                self._texts_of_items[tokens],
                tuple(_bar_of(week.name, week.counts.get(tokens)) for week in self.weeks),
            )
            for tokens in self._counted_items[:top]
        )
        panels: list[Part] = []
        if rows:
            panels.append(
                Lines("users of each item", names, rows, len(self._counted_items) - len(rows))
            )
        for new, said in ((True, "new in"), (False, "perhaps new in")):
            those = [each for each in self.appeared if each.is_new == new]
            if those:
                bars = tuple(self._bar_of_appeared(each) for each in those[:top])
                panels.append(Panel(f"{said} {names[-1]}", bars, len(those) - len(bars)))
        head = f"{plural(len(self._counted_items), 'item')} counted, {len(self.appeared):,} in no "
        head += f"earlier release: {names[0]} to {names[-1]}"
        return Chart(head, self._meaning_of_lines(), tuple(panels), of_people=True)

    def save(self, path: str | Path, top: int = 20) -> Path:
        """Write the chart as `.html` or `.svg`, or the table as `.csv`."""
        if Path(path).suffix != ".csv":
            return self.chart(top).save(path)
        frame = self.to_polars()
        return write_rows(frame.columns, frame.iter_rows(named=True), path)

    def __repr__(self) -> str:
        return repr(self.chart(10))

    def _repr_html_(self) -> str:
        return self.chart(10)._repr_html_()

    @cached_property
    def _all_releases(self) -> list[Released]:
        every = {each.run_id: each for week in self.weeks for each in week.releases}
        return list(every.values())

    @cached_property
    def _texts_of_items(self) -> dict[Tokens, str]:
        return {
            tuple(row["tokens"]): row["item"]
            for release in self._all_releases
            for row in release.table.select(["item", "tokens"]).to_pylist()
        }

    @cached_property
    def _counted_items(self) -> list[Tokens]:
        """The items that any week counted: those of most users in one week first."""
        most: dict[Tokens, float] = {}
        for week in self.weeks:
            for tokens, each in week.counts.items():
                most[tokens] = max(most.get(tokens, 0.0), each.count.users)
        return sorted(most, key=lambda tokens: (-most[tokens], self._texts_of_items[tokens]))

    def _rows_of_table(self) -> Iterable[tuple[Any, ...]]:
        new = {each.tokens: each for each in self.appeared}
        for tokens in self._counted_items:
            before: Counted | None = None
            for week in self.weeks:
                if (now := week.counts.get(tokens)) is None:
                    continue
                change = _change_in_words(before, now)
                if tokens not in new or week is not self.weeks[-1]:
                    yield (
                        week.name,
                        self._texts_of_items[tokens],
                        [*tokens],
                        *now.count,
                        change,
                        None,
                        None,
                    )
                before = now
        last = self.weeks[-1]
        for tokens, each in new.items():
            there = last.counts.get(tokens)
            said = (None, None, None) if there is None else there.count
            change = "new" if each.is_new else "perhaps new"
            yield last.name, each.item, [*tokens], *said, change, each.chance, each.said

    def _bar_of_appeared(self, each: Appeared) -> Bar:
        chance = "" if each.chance is None else f" (by noise alone: {at_most(each.chance)} or less)"
        item = each.item if len(each.item) <= _LONGEST_TEXT else f"{each.item[:_LONGEST_TEXT]}…"
        return _bar_of(f"{item}{chance}", self.weeks[-1].counts.get(each.tokens))

    def _meaning_of_lines(self) -> str:
        said = sorted({each.manifest["randomness"] for each in self._all_releases if each.is_test})
        if self._counted_items:
            said += [_intervals_sentence(self.weeks), "Each line has a scale of its own, from 0."]
        if self.appeared:
            said.append(
                "New: in no earlier release, and fewer held it in each earlier week; each claim "
                f"by itself is wrong with probability {1 - self.confidence:.2g} or less. Perhaps "
                "new: it may have been there before, below the threshold. By noise alone: how "
                "likely at most noise shows it so, had it been held then as it is now."
            )
            if any(each.chance is None for each in self.appeared):
                said.append("Where this is not said, counts of the item in both weeks say it.")
        elif len(self.weeks) > 1 and self.weeks[-1].found:
            said.append(f"Every item of {self.weeks[-1].name} is in an earlier release.")
        return " ".join([*said, *promises_together(self._all_releases)])


@named_in_words
def trend(
    releases: Sequence[Released] | Mapping[str, Released | Sequence[Released]],
    *,
    confidence: float = 0.95,
) -> Trend:
    """Counts of one list over the releases of several weeks, and what is new in the last. Free.

        dphh.trend([week_45, week_46, week_47])

    Releases of one period (`periods="2026-W47"`) are one week, and weeks are in their order. Other
    releases are weeks in the order of the list; a dictionary names them. `confidence`: with which
    an item that is called new was held by fewer users in each earlier week, each item by itself.
    """
    checked_confidence(confidence)
    if isinstance(releases, Mapping):
        pairs = [
            (str(name), release)
            for name, each in releases.items()
            for release in (each if isinstance(each, Sequence) else (each,))
        ]
        return trend_of(pairs, confidence)
    return trend_of(
        [(_name_of_week(place, each), each) for place, each in enumerate(releases, 1)],
        confidence,
        by_period=True,
    )


def trend_of(
    pairs: Sequence[tuple[str, Released]], confidence: float, *, by_period: bool = False
) -> Trend:
    """The trend of releases with their weeks' names. `by_period`: order them by period if each is
    of one period of its own."""
    checked_confidence(confidence)
    if not pairs:
        raise UsageError("releases: found none; give the release of each week, oldest first")
    readings = {_reading_of(release.manifest) for _, release in pairs}
    if len(readings) > 1:
        raise UsageError(
            "releases: they were read in different ways (lower=, split=, strip=, ...), so their "
            "items differ; give releases that read their texts alike"
        )
    if by_period and None not in (
        numbered := [_period_of_release(release) for _, release in pairs]
    ):
        in_order = sorted((each for each in numbered if each), key=lambda each: each[0])
        pairs = [(name, release) for _, name, release in in_order]
    named: dict[str, list[Released]] = {}
    for name, release in pairs:
        named.setdefault(name, []).append(release)
    return Trend(tuple(_joined_releases(name, each) for name, each in named.items()), confidence)


def _period_of_release(release: Released) -> tuple[int, str, Released] | None:
    """The release's only period and its name."""
    found = of_periods_in(release.privacy)
    if found is None or found.only is None:
        return None
    return found.only, found.period.name(found.only), release


def _reading_of(manifest: Mapping[str, Any]) -> tuple[Any, ...]:
    content = manifest.get("parameters", {}).get("content") or {}
    return tuple(
        sorted(
            (n, str(value))
            for n, value in content.items()
            if n not in _OPTIONS_WITHOUT_EFFECT_ON_TOKENS
        )
    )


def _name_of_week(place: int, release: Released) -> str:
    """A run id that somebody chose, else the place in the list."""
    return f"{place}" if _GENERATED_RUN_ID.fullmatch(release.run_id) else release.run_id


def _joined_releases(name: str, releases: Sequence[Released]) -> PeriodReleases:
    counts: dict[Tokens, Counted] = {}
    for release in releases:
        people = people_of(release)
        if people.groups is not None:
            raise UsageError(
                f"releases: run {release.run_id} counts within groups (by={people.by!r}); give "
                "releases that count all users"
            )
        counts = counted(release, people.counts) | counts
    return PeriodReleases(name, tuple(releases), counts)


def _change_in_words(before: Counted | None, now: Counted) -> str | None:
    if before is None:
        return None
    if now.count.low > before.count.high:
        return "rose"
    return "fell" if now.count.high < before.count.low else None


def _bar_of(text: str, there: Counted | None) -> Bar:
    return Bar(text, None) if there is None else Bar(text, *there.count)


def _intervals_sentence(weeks: Sequence[PeriodReleases]) -> str:
    """Pointwise or simultaneous, as the releases say."""
    counting = [each for week in weeks for each in week.releases if people_of(each)]
    said = [counting_of(each.manifest) for each in counting]
    held = {(each.get("confidence"), bool(each.get("simultaneous"))) for each in said}
    if len(held) > 1:
        return "The releases' intervals have different confidences: see each release."
    ((confidence, simultaneous),) = held
    if confidence is None:
        return "The intervals allow for the noise alone."
    if not simultaneous:
        return (
            f"Intervals are pointwise: each holds the true number with probability {confidence:g}, "
            f"so of 100 about {100 * (1 - confidence):.2g} miss it."
        )
    return (
        f"Intervals are simultaneous within a release: all of one hold with probability "
        f"{confidence:g}, and all of the {len(counting)} with {confidence ** len(counting):.2g}."
    )


def promises_together(releases: Sequence[Released]) -> list[str]:
    """The total guarantee of these releases for a user whose data are in all of them."""
    together = total_promise(releases)
    if together is None:
        return []
    epsilon, delta = together
    return [
        f"All releases together: ({epsilon:.4g}, {delta:.3g})-differential privacy for a user who "
        "is in all of these weeks, if no price followed from a release."
    ]
