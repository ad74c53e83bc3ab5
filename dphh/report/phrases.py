"""A release as lists to read, with one row for each thing that people say.

Everything here is post-processing of a release: it costs nothing and changes no guarantee.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import sqrt
from typing import Any, Literal

import polars as pl

from dphh.errors import CONTROL_CHARACTERS, escaped
from dphh.report.counting import weighing_of
from dphh.report.sentences import Manifest, Released, counting_of, groups_of, joiner_of
from dphh.report.wordings import OWN_WORDS, Grams, Tokens, Wording, runs, wordings

#: The characters that control a terminal, each with the text that is shown in its place.
_ESCAPES = {
    character: escaped(character)
    for character in map(chr, range(0x2070))
    if CONTROL_CHARACTERS.match(character)
}


@dataclass(frozen=True)
class Findings:
    """The rows that releases have to read, the highest first, with the number of `row.counted`."""

    #: Texts: those with words of their own. Tries: whole sequences, and the prefixes that were cut.
    phrases: Sequence[Wording]
    #: Single tokens that are in no phrase.
    words: Sequence[Wording] = ()
    #: Other phrases: short, of words that are mostly said elsewhere, or side by side by chance.
    others: Sequence[Wording] = ()
    #: Phrases that the page's further tables lack, if these have any.
    further: Sequence[Wording] = ()
    #: The column of their numbers. Without users nothing is joined, and the longest are first.
    number: Literal["users", "score"] | None = None
    #: The number of each item; by groups, the sum of its groups.
    numbers: Mapping[Tokens, float] = field(default_factory=dict)

    def split(self, counts: Sequence[Iterable[Sequence[str]]]) -> tuple[Findings, Findings]:
        """The findings that these lists of items have, each item in a row, and all others; phrases
        of the latter are `further`."""
        counted = {tuple(item) for items in counts for item in items}
        kinds = (*self.phrases, *self.further), self.words, self.others
        (phrases, words, others), (further, *rest) = (
            [[row for row in rows if (row.counted in counted) == inside] for rows in kinds]
            for inside in (True, False)
        )
        shown = {
            run
            for row in (*phrases, *words, *others)
            for tokens in (row.tokens, *row.variations)
            for run in runs(tokens, range(1, len(tokens) + 1))
        }
        for tokens in sorted(counted - shown):
            (phrases if len(tokens) > 1 else words).append(_unjoined(tokens))
        for rows in (phrases, words, further):
            rows.sort(key=lambda row: -self.numbers[row.counted])
        in_counts = Findings(phrases, words, others, (), self.number, self.numbers)
        return in_counts, Findings((), rest[0], rest[1], further, self.number, self.numbers)


def findings_of(
    release: Released,
    earlier: Released | None = None,
    others: Iterable[Released | None] = (),
    counts: Sequence[Released] = (),
) -> Findings:
    """The released items that no longer one contains, phrases joined as `wordings` joins them.

    earlier: an earlier release of the same kind; its items are findings, too. others: further
    releases whose tables show these rows. counts: releases that counted these items; their numbers
    replace those of `release`."""
    frame = _shown_rows(release)
    number = _number_of(frame)
    people = number == "users"
    counted = [*map(_numbers_of, counts)]
    tables = [_numbers_of(table) for table in (release, earlier, *others) if table is not None]
    compared = tables[: 2 if people and earlier is not None else 1]
    items = compared[-1] | compared[0]

    def rank(tokens: Tokens) -> Any:
        _, low, value = items[tokens]
        return 0 if people else -len(tokens), -low, -value

    def in_order(rows: Iterable[Wording]) -> list[Wording]:
        if not people:
            return sorted(rows, key=lambda row: rank(row.counted))
        return sorted(rows, key=lambda row: -items[row.counted][0])

    if "ended" in frame:
        return Findings(in_order(map(_unjoined, items)), number=number, numbers=_values(items))
    table = pl.DataFrame({"tokens": [*items]}, {"tokens": pl.List(pl.String)})
    whole = [tokens for tokens, is_whole in zip(items, is_maximal(table), strict=True) if is_whole]
    long = [tokens for tokens in whole if len(tokens) > 1]
    words = in_order(_unjoined(tokens) for tokens in whole if len(tokens) == 1)
    if not people:
        phrases = in_order(map(_unjoined, long))
        return Findings(phrases, words, number=number, numbers=_values(items))
    sigma = _mean_sigma(release.manifest)
    grams = Grams([*map(_values, compared)], sigma, Counter(chain(*tables)), counted)
    joined, loose = wordings(long, grams, rank)
    own = joined
    if release.manifest["parameters"].get("content", {}).get("reading") == "words":
        own_words = [grams.own_words(row.tokens, grams.users[row.counted]) for row in joined]
        pairs = zip(joined, own_words, strict=True)
        own = [row for row, own_count in pairs if own_count >= OWN_WORDS] or joined
    aside = [*(row for row in joined if row not in own), *map(_unjoined, loose)]
    for row in joined:
        row.variations = [tokens for tokens in row.variations if tokens in compared[0]]
        if any(row.tokens in count for count in counted):
            row.counted = row.tokens
    for count in reversed(counted):
        items |= count
    elsewhere = {*chain.from_iterable(tables[len(compared) :])}
    chosen = [row for row in own if row.counted in elsewhere] or own
    further = [row for row in own if row not in chosen]
    lists = in_order(chosen), words, in_order(aside), in_order(further)
    return Findings(*lists, number, _values(items))


def _values(items: Mapping[Tokens, tuple[float, float, float]]) -> dict[Tokens, float]:
    return {tokens: value for tokens, (*_, value) in items.items()}


def _mean_sigma(manifest: Manifest) -> float:
    """The standard deviation of an item's number, in users; where factors differ, the mean."""
    counting = counting_of(manifest)
    weighing = weighing_of(counting)
    sigma: float = counting["sigma_grid"] / weighing.unit * float((1 / weighing.factor).mean())
    return sigma * sqrt(max(1, len(groups_of(manifest))))


def _shown_rows(release: Released) -> pl.DataFrame:
    frame = release.to_polars()
    return frame.filter(is_maximal(frame)) if "ended" in frame else frame


def _numbers_of(release: Released) -> dict[Tokens, tuple[float, float, float]]:
    """For each item three numbers, each the sum over its groups: the one that orders rows, the low
    end of its interval, and the one that is shown; zeros if it has none."""
    frame = _shown_rows(release)
    number = _number_of(frame)
    people = number == "users"
    # The total over groups that is shown is a sum of estimates, which may be below 0.
    is_sum = people and groups_of(release.manifest) and "estimate" in frame.columns
    names = ("estimate" if is_sum else number, "low" if people else number, number)
    table = frame.group_by("tokens", maintain_order=True).agg(
        pl.col(name or "level").sum().alias(f"{place}") * (number is not None)
        for place, name in enumerate(names)
    )
    return {tuple(tokens): tuple(numbers) for tokens, *numbers in table.iter_rows()}


def _number_of(frame: pl.DataFrame) -> Literal["users", "score"] | None:
    names: tuple[Literal["users"], Literal["score"]] = ("users", "score")
    return next((name for name in names if name in frame and frame[name].count() > 0), None)


def _unjoined(tokens: Tokens) -> Wording:
    return Wording(tokens, tokens)


def phrases(release: Released) -> pl.DataFrame:
    """A row for each finding, or for each of its groups: the wording, and the released item in it
    whose numbers the row has. Control characters are escaped."""
    return with_visible_controls(unescaped_phrases(release))


def unescaped_phrases(release: Released) -> pl.DataFrame:
    """The rows of `phrases` with texts as they were released."""
    findings, join = findings_of(release), joiner_of(release.manifest).join
    every = *findings.phrases, *findings.words, *findings.others
    rows = [(join(wording.tokens), wording.counted) for wording in every]
    order = pl.DataFrame(rows, {"phrase": pl.String, "tokens": pl.List(pl.String)}, orient="row")
    frame = _shown_rows(release)
    shown = order.join(frame, on="tokens", maintain_order="left_right")
    return shown.select("phrase", *frame.columns)


def with_visible_controls(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with characters that control a terminal escaped: Polars prints texts as they
    are."""
    return frame.with_columns(
        pl.col(pl.String).str.replace_many(_ESCAPES),
        pl.col("tokens").list.eval(pl.element().str.replace_many(_ESCAPES)),
    )


def is_maximal(frame: pl.DataFrame) -> pl.Series:
    """For each row, whether no longer phrase of the frame contains it. For a trie: whether it is a
    complete sequence, or a prefix that no other row extends or completes."""
    is_trie = "ended" in frame.columns
    phrases, length = frame.select("tokens"), pl.col("tokens").list.len()
    inside = parts = phrases.clear()
    for tokens in range(phrases.select(length.max()).item() or 0, 1, -1):
        # Parts of the next length are parts of these, so each is made only once.
        longer = pl.concat([phrases.filter(length == tokens), parts]).unique()
        parts = pl.concat(
            longer.select(pl.col("tokens").list.slice(start, tokens - 1))
            for start in ([0] if is_trie else [0, 1])
        )
        inside = pl.concat([inside, parts])
    ended = frame["ended"].fill_null(False) if is_trie else pl.repeat(False, len(frame), eager=True)
    inside = pl.concat([inside, phrases.filter(ended)]).unique().with_columns(inside=True)
    marked = phrases.join(inside, on="tokens", how="left", maintain_order="left")
    return ended | marked["inside"].is_null()
