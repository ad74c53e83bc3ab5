"""Sentences about a release: how many items it has, in which groups, and what its numbers and its
promise mean. Each sentence is exact."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import ceil, exp, log
from typing import TYPE_CHECKING, Any, Protocol

from dphh.columns import OTHER_GROUP
from dphh.price import Privacy
from dphh.reader.content import BORDER
from dphh.report.rows import rows_line
from dphh.wording.lines import one_line, with_noun

if TYPE_CHECKING:
    import polars as pl

#: A day, a week, a month, a quarter or a year, as files and columns name them.
_PERIOD = re.compile(r"\d{4}(-?(W\d\d(-\d)?|Q\d|\d\d(-\d\d)?))?")

Manifest = Mapping[str, Any]


class Released(Protocol):
    """The parts of a `Release` that this folder reads. (It does not import that class.)"""

    @property
    def table(self) -> Any: ...
    @property
    def manifest(self) -> dict[str, Any]: ...
    @property
    def name(self) -> str: ...
    @property
    def privacy(self) -> Privacy: ...
    def to_polars(self) -> pl.DataFrame: ...
    def dumps(self) -> str: ...


def promise(epsilon: float | None, delta: float) -> str:
    return f"({epsilon:.4g}, {delta:g})-differential privacy"


def promise_with_unit(privacy: Privacy) -> str:
    return f"{promise(privacy.published_epsilon, privacy.delta)} for {privacy.unit}"


def promise_in_words(privacy: Privacy) -> str:
    """The promise, and what its epsilon and delta mean, for those who read no theorem."""
    epsilon, delta = privacy.published_epsilon, privacy.delta
    what = {"user": "one person's rows", "contribution": "one contribution"}.get(
        privacy.protects, "one of what is protected"
    )
    protected = "" if privacy.protects == "user" else f" Protected is {privacy.unit}."
    return f"{promise(epsilon, delta)}. {odds_in_words(epsilon, delta, what)}{protected}"


def promise_in_short(privacy: Privacy) -> str:
    """Who is protected and how, without numbers, for readers of a page."""
    if privacy.protects != "user":
        return f"Protected is {privacy.unit}."
    return (
        "What is shown is blurred on purpose: there is a proved limit to what it can tell of any "
        "one person."
    )


def odds_in_words(epsilon: float, delta: float, what: str) -> str:
    return (
        f"Whatever came out, it was {times_as_likely(epsilon)} with {what} in the data as without"
        f"{plus_delta(delta)}, and the other way round."
    )


def belief_afterwards(epsilon: float) -> str:
    """How sure a reader can become, at most, that rows are in the data; by Bayes' rule, for three
    degrees of belief beforehand."""
    odds = (exp(min(epsilon, 99.0)) * before for before in (1, 1 / 9, 1 / 99))
    from_half, from_tenth, from_hundredth = (ceil(1000 * odd / (1 + odd)) / 10 for odd in odds)
    return (
        "Who thinks it even odds that these rows are in the data is afterwards at most "
        f"{from_half} in 100 sure of it; who thinks it 10 in 100, {from_tenth}; and 1 in 100, "
        f"{from_hundredth}"
    )


def times_as_likely(epsilon: float) -> str:
    return f"at most {_factor(epsilon)} times as likely"


def plus_delta(delta: float) -> str:
    if delta == 0:
        return ""
    return f", plus a probability of {delta:g} (1 in {float(f'{1 / delta:.2g}'):,.0f})"


def _factor(epsilon: float) -> str:
    """e^epsilon, never rounded down."""
    if epsilon > 20:
        return f"e^{epsilon:.4g}"
    digits = max(0, 3 - int(epsilon / log(10)))
    return f"{ceil(exp(epsilon) * 10**digits) / 10**digits:,.{digits}f}"


def groups_of(manifest: Manifest) -> tuple[str, ...]:
    """The groups of a release's counts, in the order declared, with all others last."""
    parameters = manifest.get("parameters", {})
    return (*parameters["groups"], OTHER_GROUP) if parameters.get("by") else ()


def are_periods(manifest: Manifest) -> bool:
    """Whether its groups are two or more days, weeks, months, quarters or years, written so that
    they sort by time."""
    declared = groups_of(manifest)[:-1]
    lengths = {len(name) for name in declared}
    return len(declared) > 1 and len(lengths) == 1 and all(map(_PERIOD.fullmatch, declared))


def joiner_of(manifest: Manifest) -> str:
    """The text between the tokens of an item, as people see it. Elements of a list may contain
    spaces, so their borders are shown, where the column `item` has a space."""
    content = manifest.get("parameters", {}).get("content", {})
    if content.get("reading") == "list":
        return BORDER
    return "" if content.get("unit") or content.get("reading") == "characters" else " "


def number_of_items(table: Any) -> int:
    """How many items a release has; an item counted within groups is one item."""
    if "group_name" not in table.column_names:
        return int(table.num_rows)
    import polars as pl

    # By tokens: two items whose tokens have spaces may have one text.
    return len(pl.DataFrame(table.select(["level", "tokens"])).unique())


def has_every_given_item(manifest: Manifest) -> bool:
    """Whether the items were given beforehand and the release has all of them, held or not."""
    whole = manifest.get("parameters", {}).get("min_users") is None
    return bool(manifest["verb"] == "counts" or (manifest.get("method") == "domain" and whole))


def items_line(release: Released) -> str:
    """One line: how many items were found or counted, within which groups, and of which rows."""
    manifest = release.manifest
    items = number_of_items(release.table)
    is_counted = has_every_given_item(manifest)
    line = f"{with_noun(items, 'item')} counted" if is_counted else f"{items:,} found"
    line += "" if is_counted else f" by {manifest['verb']}"
    if groups := groups_of(manifest):
        by = manifest["parameters"]["by"]
        line += f"; counts within {by}: {', '.join(map(one_line, groups))}"
    rows = rows_line(manifest)
    return f"{line}; of {rows}" if rows else line


def counting_of(manifest: Manifest) -> Manifest:
    """The part of a manifest that describes counts of users, their noise and intervals; empty if
    nothing was counted, or if nothing was found."""
    parts = [manifest.get("counting", {}), *manifest["levels"]]
    return next((part for part in parts if "keys" in part and "confidence" in part), {})


def is_weak(low: float | None, high: float | None) -> bool:
    """Whether a range begins so low that perhaps few people hold the item, or nobody."""
    return low is not None and high is not None and 10 * low < high


def range_in_words(low: float, high: float) -> str:
    return f"at most {high:,.0f}" if is_weak(low, high) else f"{low:,.0f} to {high:,.0f}"


def group_in_words(users: float, low: float, high: float) -> str:
    interval = range_in_words(low, high)
    return interval if is_weak(low, high) else f"{users:,.0f} ({interval})"


def about_in_words(users: float, low: float, high: float) -> str:
    return range_in_words(low, high) if is_weak(low, high) else f"about {users:,.0f}"


def people_in_words(users: float, low: float, high: float) -> str:
    interval = range_in_words(low, high)
    return f"{interval} people" if is_weak(low, high) else f"about {users:,.0f} people ({interval})"


def users_may_be_bounded(manifest: Manifest) -> bool:
    """Whether a user who holds many items counts as less than one for each of them."""
    return bool(counting_of(manifest)["lost_grid"])


def meaning_of_counts(manifest: Manifest) -> str:
    """A sentence for readers of a page: what a number of people and its range mean."""
    confidence = counting_of(manifest)["confidence"]
    likely = "very likely" if confidence >= 0.9 else f"with probability {confidence:g}"
    return f"Numbers of people; the true one is {likely} in the range."


def meaning_of_ranges(manifest: Manifest) -> str:
    """A sentence: how many of 100 such ranges, or of more, hold the true numbers."""
    counting = counting_of(manifest)
    confidence = Fraction(str(counting["confidence"]))
    total = max(100, confidence.denominator)
    hold = f"{float(total * confidence):,.6g}"
    if counting.get("min_users"):
        missing = f"{float(total - total * confidence):,.6g}"
        return f"Of {total:,} such ranges, at most {missing} are expected to miss the true number."
    if counting["simultaneous"]:
        return f"In {hold} of {total:,} such releases, all ranges hold the true numbers."
    sentence = f"Of {total:,} such ranges, {hold} hold the true number"
    if has_every_given_item(manifest):
        return f"{sentence}."
    return f"{sentence}; of those that stand first, fewer do: noise, too, has put them there."


def meaning_of_scores(manifest: Manifest) -> str:
    what = "Noised weights"
    if manifest["verb"] == "ldp_trie":
        what = "Estimates of how many of a level's reports held it"
    return f"{what}: they order the items of one table, and are not numbers of people."


def meaning_of_missing(manifest: Manifest) -> str:
    """Sentences: what it means that an item is missing, and how many users an item needs."""
    given, finds = has_every_given_item(manifest), manifest["finds"]
    meaning = (
        "Everything that was asked for is here, whether many hold it or nobody does."
        if given
        else "What is not here may still be in the data: what few people share is left out, and so "
        "is what nobody does."
    )
    others = "" if given else " if they share nothing else; more if they share other items, too"
    by_length = [
        f"{with_noun(users, 'person')} ({with_noun(length, 'word')})"
        for length, users in finds.get("users_by_length", ())
    ]
    *fewer, most = by_length or [with_noun(finds["users"], "person")]
    sizes = f"{', '.join(fewer)} or {most}" if fewer else most
    return (
        f"{meaning} For a probability of {finds['probability']:g} that {finds['what']}, it takes "
        f"{sizes}{others}."
    ).replace("persons", "people")


def holders_line(manifest: Manifest) -> str:
    """A sentence: with `min_users`, the fewest people who hold an item; else, how many items are
    expected to be held by few or nobody; "" if none are."""
    if floor := counting_of(manifest).get("min_users"):
        few = (1 - counting_of(manifest)["confidence"]) / 2
        return (
            f"Each is held by {floor:,} people or more, as far as its interval shows: at most "
            f"{100 * few:.3g}% are expected to be held by fewer."
        )
    # DPNE's thresholds bound the expected number of spurious n-grams of each length, by a share of
    # the n-grams that the level below released.
    below = {level["level"]: level.get("released", 0) for level in manifest["levels"]}
    expected = sum(
        level.get("spurious", 0.0) * below.get(level["level"] - 1, 0)
        for level in manifest["levels"]
    )
    if not expected:
        return ""
    return (
        f"Of all that was found, at most {ceil(expected):,} are expected to be held by few people "
        "or by nobody."
    )
