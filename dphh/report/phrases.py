"""A release as a list to read, with one row for each thing that people say.

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
from dphh.report.sentences import Released, counting_of, groups_of, joiner_of
from dphh.report.wordings import OWN_WORDS, Grams, Tokens, Wording, runs, wordings

#: The characters that control a terminal, each with what is shown in its place.
_ESCAPES = {
    character: escaped(character)
    for character in map(chr, range(0x2070))
    if CONTROL_CHARACTERS.match(character)
}


@dataclass(frozen=True)
class Found:
    """What releases have to read, the highest first. A row has the number of its `counted`."""

    #: Of texts, those that have words of their own; of a trie, whole sequences, and what was cut.
    phrases: Sequence[Wording]
    #: Single tokens that are in no phrase.
    words: Sequence[Wording] = ()
    #: Other phrases: short, of words that are mostly said elsewhere, or side by side by chance.
    others: Sequence[Wording] = ()
    #: Phrases that the page's further tables do not have, if these have some.
    further: Sequence[Wording] = ()
    #: The column of their numbers. Without users nothing is joined, and the longest are first.
    number: Literal["users", "score"] | None = None
    #: Of each item, those of its groups added up.
    numbers: Mapping[Tokens, float] = field(default_factory=dict)

    def apart(self, counts: Sequence[Iterable[Sequence[str]]]) -> tuple[Found, Found]:
        """What one of these lists of items has, each in a row; and the rest: no phrase is first."""
        counted = {tuple(item) for items in counts for item in items}
        every = (*self.phrases, *self.further), self.words, self.others
        (phrases, words, others), (further, *rest) = (
            [[of for of in those if (of.counted in counted) == inside] for those in every]
            for inside in (True, False)
        )
        shown = {
            run
            for of in (*phrases, *words, *others)
            for tokens in (of.tokens, *of.variations)
            for run in runs(tokens, range(1, len(tokens) + 1))
        }
        for tokens in sorted(counted - shown):
            (phrases if len(tokens) > 1 else words).append(_alone(tokens))
        for those in (phrases, words, further):
            those.sort(key=lambda of: -self.numbers[of.counted])
        of_count = Found(phrases, words, others, (), self.number, self.numbers)
        return of_count, Found((), rest[0], rest[1], further, self.number, self.numbers)


def found_in(
    release: Released,
    earlier: Released | None = None,
    others: Iterable[Released | None] = (),
    counts: Sequence[Released] = (),
) -> Found:
    """The phrases that no longer released one contains, joined as `wordings` joins them.

    earlier: an earlier release of the same kind: what was found in either is here. others: all
    further tables of the page that show these phrases. counts: of the items that these counted
    they have the numbers."""
    frame = _shown_rows(release)
    number = _number_of(frame)
    people = number == "users"
    counted = [*map(_numbers_of, counts)]
    tables = [_numbers_of(each) for each in (release, earlier, *others) if each is not None]
    both = tables[: 2 if people and earlier is not None else 1]
    every = both[-1] | both[0]

    def held() -> dict[Tokens, float]:
        return {tokens: numbers for tokens, (*_, numbers) in every.items()}

    def order(tokens: Tokens) -> Any:
        _, begins, most = every[tokens]
        return 0 if people else -len(tokens), -begins, -most

    def in_order(of: Iterable[Wording]) -> list[Wording]:
        if not people:
            return sorted(of, key=lambda each: order(each.counted))
        return sorted(of, key=lambda each: -every[each.counted][0])

    if "ended" in frame:
        return Found(in_order(map(_alone, every)), number=number, numbers=held())
    table = pl.DataFrame({"tokens": [*every]}, {"tokens": pl.List(pl.String)})
    whole = [tokens for tokens, is_whole in zip(every, is_maximal(table), strict=True) if is_whole]
    long = [tokens for tokens in whole if len(tokens) > 1]
    words = in_order(_alone(tokens) for tokens in whole if len(tokens) == 1)
    if not people:
        return Found(in_order(map(_alone, long)), words, number=number, numbers=held())
    counting = counting_of(release.manifest)
    weighing = weighing_of(counting)
    # Where factors differ, the mean noise of all counts.
    sigma = counting["sigma_grid"] / weighing.unit * float((1 / weighing.factor).mean())
    grams = Grams(
        [{tokens: numbers for tokens, (*_, numbers) in of.items()} for of in both],
        sigma * sqrt(max(1, len(groups_of(release.manifest)))),
        Counter(chain(*tables)),
        counted,
    )
    joined, loose = wordings(long, grams, order)
    own = joined
    if release.manifest["parameters"].get("content", {}).get("reading") == "words":
        of_own = [grams.own_words(of.tokens, grams.users[of.counted]) for of in joined]
        own = [of for of, words in zip(joined, of_own, strict=True) if words >= OWN_WORDS] or joined
    aside = [*(of for of in joined if of not in own), *map(_alone, loose)]
    for each in joined:
        each.variations = [tokens for tokens in each.variations if tokens in both[0]]
        if any(each.tokens in of for of in counted):
            each.counted = each.tokens
    for of in reversed(counted):
        every |= of
    elsewhere = {*chain.from_iterable(tables[len(both) :])}
    chosen = [of for of in own if of.counted in elsewhere] or own
    further = [of for of in own if of not in chosen]
    return Found(in_order(chosen), words, in_order(aside), in_order(further), number, held())


def _shown_rows(release: Released) -> pl.DataFrame:
    frame = release.to_polars()
    return frame.filter(is_maximal(frame)) if "ended" in frame else frame


def _numbers_of(release: Released) -> dict[Tokens, tuple[float, float, float]]:
    """Of each item, of its groups added up: what orders rows, where its interval begins, and its
    number; 0 without."""
    frame = _shown_rows(release)
    number = _number_of(frame)
    people = number == "users"
    # What is shown of all groups together is the sum of what was counted, also below 0.
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


def _alone(tokens: Tokens) -> Wording:
    return Wording(tokens, tokens)


def phrases(release: Released) -> pl.DataFrame:
    """A row for each of what was found, or for each of its groups: the wording, and the released
    item in it whose numbers these are."""
    return with_visible_controls(exact_phrases(release))


def exact_phrases(release: Released) -> pl.DataFrame:
    """The same with texts as they are, which controls may be in."""
    found, join = found_in(release), joiner_of(release.manifest).join
    every = *found.phrases, *found.words, *found.others
    rows = [(join(each.tokens), each.counted) for each in every]
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
    complete sequence, or a prefix that no row of the frame extends or ends."""
    is_trie = "ended" in frame.columns
    phrases, length = frame.select("tokens"), pl.col("tokens").list.len()
    inside = parts = phrases.clear()
    for tokens in range(phrases.select(length.max()).item() or 0, 1, -1):
        # The parts of one length have all parts of the next, so each part is cut only once.
        longer = pl.concat([phrases.filter(length == tokens), parts]).unique()
        parts = pl.concat(
            longer.select(pl.col("tokens").list.slice(start, tokens - 1))
            for start in ([0] if is_trie else [0, 1])
        )
        inside = pl.concat([inside, parts])
    ended = frame["ended"].fill_null(False) if is_trie else pl.repeat(False, len(frame), eager=True)
    inside = pl.concat([inside, phrases.filter(ended)]).unique().with_columns(inside=True)
    found = phrases.join(inside, on="tokens", how="left", maintain_order="left")
    return ended | found["inside"].is_null()
