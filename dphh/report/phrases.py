"""A release as a list to read, with one row for each thing that people say.

Everything here is post-processing of a release: it costs nothing and changes no guarantee.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any, Literal

import polars as pl

from dphh.errors import CONTROL_CHARACTERS, escaped
from dphh.report.counting import weighing_of
from dphh.report.sentences import Released, counting_of, groups_of, joiner_of
from dphh.report.wordings import Grams, Tokens, Wording, runs, wordings

#: The characters that control a terminal, each with what is shown in its place.
_ESCAPES = {
    character: escaped(character)
    for character in map(chr, range(0x2070))
    if CONTROL_CHARACTERS.match(character)
}

#: A phrase has so many words of its own, together: of each word, the share of those who say it who
#: say the phrase. What is made of words that are mostly said elsewhere is said about anything.
OWN_WORDS = 1.75


@dataclass(frozen=True)
class Found:
    """What a release has to read, the highest first. A row has the number of its `counted`."""

    #: Of texts, those that have words of their own; of a trie, whole sequences, and what was cut.
    phrases: Sequence[Wording]
    #: Single tokens that are in no phrase.
    words: Sequence[Wording] = ()
    #: Other phrases: short, of words that are mostly said elsewhere, or side by side by chance.
    others: Sequence[Wording] = ()
    #: The column of their numbers. Without users nothing is joined, and the longest are first.
    number: Literal["users", "score"] | None = None
    #: Of each item, those of its groups added up.
    numbers: Mapping[Tokens, float] = field(default_factory=dict)
    #: What was released besides, of which rows are made; nothing of a trie.
    grams: Grams = field(default_factory=lambda: Grams({}, 0))

    def counted(self, of: Wording, known: Container[Tokens]) -> Tokens:
        """The gram of a wording that is counted; or a known one that about as many hold."""
        if of.counted in known or self.number != "users":
            return of.counted
        return self.grams.counted(of.tokens, known, of.counted)

    def worded_as(self, others: Iterable[Wording]) -> Found:
        """The phrases in the words and the order of another release of the same rows, with the
        numbers of what is counted there; all others are no phrases here, either."""
        made, left = [], [*self.phrases]
        for of in others:
            inside = {*runs(of.tokens, range(1, len(of.tokens) + 1))}
            mine = [each for each in left if each.counted in inside
                    or of.counted in runs(each.tokens, [len(of.counted)])]  # fmt: skip
            left = [each for each in left if each not in mine]
            if of.counted in self.grams.users:
                pieces = (gram for each in mine for gram in (each.counted, *each.variations))
                mine = [Wording(of.tokens, of.counted, sorted({*pieces} - inside))]
            made += mine
        return replace(self, phrases=made, others=[*left, *self.others])


def found_in(release: Released, known: Collection[Tokens] = ()) -> Found:
    """The phrases that no longer released one contains, joined as `wordings` joins them.

    known: wordings of other releases, which may complete those of this one."""
    frame, is_trie = release.to_polars(), "ended" in release.table.column_names
    if is_trie:
        frame = frame.filter(is_maximal(frame))
    number = _number_of(frame)
    people = number == "users"
    # What is shown of all groups together is the sum of what was counted, also below 0.
    is_sum = people and groups_of(release.manifest) and "estimate" in frame.columns
    shown = "estimate" if is_sum else number
    table = frame.group_by("tokens", maintain_order=True).agg(
        shown=pl.col(shown or "level").sum() * (number is not None),
        begins=pl.col("low" if people else number or "level").sum() * (number is not None),
        number=pl.col(number or "level").sum() * (number is not None),
    )
    every = [tuple(tokens) for tokens in table["tokens"].to_list()]
    begins, numbers, sums = (
        dict(zip(every, table[name], strict=True)) for name in ("begins", "number", "shown")
    )

    def order(tokens: Tokens) -> Any:
        length = 0 if people else len(tokens)
        return -length, -begins[tokens], -numbers[tokens]

    def in_order(of: Iterable[Wording]) -> list[Wording]:
        if not people:
            return sorted(of, key=lambda each: order(each.counted))
        return sorted(of, key=lambda each: -sums[each.counted])

    if is_trie:
        return Found(in_order(map(_alone, every)), number=number, numbers=numbers)
    whole = [tokens for tokens, is_whole in zip(every, is_maximal(table), strict=True) if is_whole]
    long = [tokens for tokens in whole if len(tokens) > 1]
    words = in_order(_alone(tokens) for tokens in whole if len(tokens) == 1)
    if not people:
        return Found(in_order(map(_alone, long)), words, (), number, numbers, Grams(numbers, 0))
    counting = counting_of(release.manifest)
    weighing = weighing_of(counting)
    # Where factors differ, the mean noise of all counts.
    sigma = counting["sigma_grid"] / weighing.unit * float((1 / weighing.factor).mean())
    grams = Grams(numbers, sigma * sqrt(max(1, len(groups_of(release.manifest)))))
    joined, loose = wordings(long, grams, order, known)
    own = joined
    if release.manifest["parameters"].get("content", {}).get("reading") == "words":
        own = [of for of in joined if grams.own_words(of) >= OWN_WORDS] or joined
    others = [*(of for of in joined if of not in own), *map(_alone, loose)]
    return Found(in_order(own), words, in_order(others), number, numbers, grams)


def _number_of(frame: pl.DataFrame) -> Literal["users", "score"] | None:
    names: tuple[Literal["users"], Literal["score"]] = ("users", "score")
    return next((name for name in names if name in frame and frame[name].count() > 0), None)


def wordings_of(releases: Iterable[Released]) -> list[Tokens]:
    """The wordings of releases, which may complete those of another."""
    return [of.tokens for each in releases for of in found_in(each).phrases]


def _alone(tokens: Tokens) -> Wording:
    return Wording(tokens, tokens)


def phrases(release: Released) -> pl.DataFrame:
    """A row for each of what was found, or for each of its groups: the wording, and the released
    item in it whose numbers these are."""
    found, join = found_in(release), joiner_of(release.manifest).join
    rows = [
        (join(each.tokens), each.counted) for each in (*found.phrases, *found.words, *found.others)
    ]
    order = pl.DataFrame(rows, {"phrase": pl.String, "tokens": pl.List(pl.String)}, orient="row")
    frame = release.to_polars()
    if "ended" in frame:
        frame = frame.filter(is_maximal(frame))
    shown = order.join(frame, on="tokens", maintain_order="left_right")
    return with_visible_controls(shown.select("phrase", *frame.columns))


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
