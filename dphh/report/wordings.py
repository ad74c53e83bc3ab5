"""Joins released grams that are pieces of one sentence into one wording, and folds others into it.

This is post-processing of released numbers of people. It rests on one fact: whoever holds a gram
holds its parts. So if grams a and b share a run r, at least

    n(a) + n(b) - n(r)

people hold both. Grams that share all but one token of the shorter are joined if this number is
most of those who hold either gram, and exceeds the noise. A gram is folded into a wording if this
number is half of those who hold the gram. A joined wording has no number of its own: the number
shown is that of one released gram in it, which is marked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import Any

Tokens = tuple[str, ...]

#: "Most" of those who hold something, and "few" of them.
MOST, FEW = 3 / 4, 1 / 4
#: An overlap exceeds so many sigmas of one number, as it is a sum of three noised numbers.
SURE = 2 * sqrt(3)
#: The fewest words of its own that a phrase has. A word counts as the share of its people who say
#: the phrase; a phrase of words that are mostly said elsewhere may be about anything.
OWN_WORDS = 1.75


def runs(tokens: Tokens, lengths: Iterable[int]) -> Iterator[Tokens]:
    """All runs of tokens of these lengths: all of one length before those of the next."""
    return (tokens[i : i + length] for length in lengths for i in range(len(tokens) - length + 1))


@dataclass
class Wording:
    """What people say: the tokens of all joined grams, the gram whose number is shown, and other
    grams that are folded into it."""

    tokens: Tokens
    counted: Tokens
    variations: list[Tokens] = field(default_factory=list)

    def name(self, joiner: str) -> str:
        """The wording as text, with brackets around words outside the gram that was counted."""
        size = len(self.counted)
        starts = range(len(self.tokens) + 1)
        start = next(i for i in starts if self.tokens[i : i + size] == self.counted)
        outside = self.tokens[:start], self.tokens[start + size :]
        before, after = (f"[{joiner.join(words)}]" if words else "" for words in outside)
        return joiner.join(filter(None, [before, *self.counted, after]))


@dataclass(frozen=True)
class Grams:
    """How many people hold each released gram, about, in each release that is compared."""

    releases: Sequence[Mapping[Tokens, float]]
    #: The standard deviation of the noise of these numbers.
    sigma: float
    #: How many tables of a page have each gram.
    tables: Mapping[Tokens, int] = field(default_factory=dict)
    #: For each count of these grams by a run of its own: the grams that it has.
    counts: Sequence[Container[Tokens]] = ()

    @cached_property
    def users(self) -> Mapping[Tokens, float]:
        """How many people hold each gram, in the release where that is most."""
        most: dict[Tokens, float] = {}
        for numbers in self.releases:
            most |= {gram: max(held, most.get(gram, held)) for gram, held in numbers.items()}
        return most

    def held_with(self, gram: Tokens, other: Tokens, shared: Tokens) -> float:
        """The fewest people who can hold both of two grams that share a run, by the release where
        that is most; 0 if no release has all three."""
        return max(
            (
                users[gram] + users[other] - max(users[gram], users[other], users[shared])
                for users in self.releases
                if gram in users and other in users and shared in users
            ),
            default=0,
        )

    def are_pieces_of_one(self, gram: Tokens, other: Tokens, shared: Tokens) -> bool:
        most = MOST * max(self.users[gram], self.users[other]) - self.sigma
        return self.held_with(gram, other, shared) > max(most, SURE * self.sigma)

    def is_variation(self, gram: Tokens, counted: Tokens, shared: Tokens) -> bool:
        return self.held_with(gram, counted, shared) > self.users[gram] / 2

    def core(self, gram: Tokens) -> Tokens:
        """The part of a gram, or all of it, with the most words of its own, without parts that FEW
        of their people continue otherwise. If its tokens stand together by chance, this is a single
        token."""
        parts = (
            run
            for run in runs(gram, range(len(gram), 0, -1))
            if run in self.users and not (1 < len(run) < len(gram) and self._differs(run, gram))
        )
        return max(parts, key=lambda run: self.own_words(run, self.users[run]))

    def _differs(self, run: Tokens, gram: Tokens) -> bool:
        """Whether some released gram is this run and a token more, is no part of `gram`, and is
        held by FEW of those who hold the run and FEW of those who hold the token."""
        inside = {*runs(gram, [len(run) + 1])}
        return any(
            self.users[longer] > FEW * max(self.users[run], self.users.get(token, 0))
            for longer, token in self._longer[run]
            if longer not in inside
        )

    @cached_property
    def _longer(self) -> Mapping[Tokens, list[tuple[Tokens, Tokens]]]:
        """For each run, the released grams that have a token more, each with that token."""
        longer: dict[Tokens, list[tuple[Tokens, Tokens]]] = defaultdict(list)
        for gram in self.users:
            longer[gram[1:]].append((gram, gram[:1]))
            longer[gram[:-1]].append((gram, gram[-1:]))
        return longer

    def own_words(self, tokens: Tokens, held: float) -> float:
        """How many words are a wording's own: the sum of each word's share of people who hold the
        wording. `held` people do. A word that was not released counts as one."""
        shares = (held / max(self.users.get((token,), held), 1) for token in dict.fromkeys(tokens))
        return sum(min(share, 1) for share in shares)

    def counted_gram(self, tokens: Tokens, like: Tokens) -> Tokens:
        """The gram whose number a wording shows. Of those that about as many hold as `like`: the
        one that most tables have, then the longest, then the first. It is not chosen by its number,
        as noise would then bias the number."""
        candidates = [
            run
            for run in runs(tokens, range(len(tokens), min(len(like), 2) - 1, -1))
            if run in self.users and self._is_about(run, like)
        ]
        return max(candidates, key=self._presence)

    def _presence(self, gram: Tokens) -> tuple[int, ...]:
        """Whether each count has the gram, and then each release; and how many tables have it."""
        lists = (*self.counts, *self.releases)
        return (*(gram in grams for grams in lists), self.tables.get(gram, 0))

    def _is_about(self, gram: Tokens, like: Tokens) -> bool:
        fewer, more = sorted((self.users[gram], self.users[like]))
        return gram == like or fewer >= MOST * more - self.sigma > 0


def wordings(
    whole: Sequence[Tokens], grams: Grams, order: Callable[[Tokens], Any]
) -> tuple[list[Wording], list[Tokens]]:
    """The wordings of these grams, which are pieces or variations of them; and the loose grams,
    whose tokens stand together by chance.

    whole: grams of two or more tokens that no longer gram contains. order: their sort key."""
    core_of = {gram: grams.core(gram) for gram in whole}
    cores = {core for core in core_of.values() if len(core) > 1}
    cores -= {run for core in cores for run in runs(core, range(2, len(core)))}
    in_order = sorted(cores, key=lambda core: (order(core), core))
    joining = _Joining(grams, in_order)
    made: list[Wording] = []
    wording_of_run: dict[Tokens, Wording] = {}

    def wording_of(gram: Tokens) -> Wording | None:
        for run in runs(gram, range(len(gram), 0, -1)):
            wording = wording_of_run.get(run)
            if wording and (run == gram or grams.is_variation(gram, wording.counted, run)):
                return wording
        return None

    for core in in_order:
        if core in joining.done or wording_of(core):
            continue
        tokens = joining.joined(core)
        made.append(wording := Wording(tokens, grams.counted_gram(tokens, core)))
        for run in runs(tokens, range(1, len(tokens) + 1)):
            if run in grams.users:
                wording_of_run.setdefault(run, wording)
    loose = []
    for gram in whole:
        core = core_of[gram]
        nearest = (wording_of_run.get(core) if len(core) > 1 else None) or wording_of(gram)
        if nearest is None:
            loose.append(gram)
        elif wording_of_run.get(gram) is not nearest:
            nearest.variations.append(gram)
    return made, loose


class _Joining:
    """Joins a gram with grams that overlap its end or its beginning; each gram is joined once."""

    def __init__(self, grams: Grams, cores: Iterable[Tokens]) -> None:
        self.grams = grams
        self.beginning: dict[Tokens, list[Tokens]] = defaultdict(list)
        self.ending: dict[Tokens, list[Tokens]] = defaultdict(list)
        self.done: set[Tokens] = set()
        for core in cores:
            for size in range(1, len(core)):
                self.beginning[core[:size]].append(core)
                self.ending[core[-size:]].append(core)

    def joined(self, gram: Tokens) -> Tokens:
        self.done.add(gram)
        tokens, last = gram, gram
        while after := self._next(last, [(last[-n:], self.beginning) for n in range(1, len(last))]):
            last, size = after
            tokens += last[size:]
        last = gram
        while after := self._next(last, [(last[:n], self.ending) for n in range(1, len(last))]):
            last, size = after
            tokens = last[:-size] + tokens
        return tokens

    def _next(
        self, gram: Tokens, shared: Sequence[tuple[Tokens, Mapping[Tokens, list[Tokens]]]]
    ) -> tuple[Tokens, int] | None:
        """The gram to join with this one, and how many tokens they share: the most possible."""
        for run, grams_at_run in reversed(shared):
            candidates = [
                (self.grams.held_with(gram, other, run), other)
                for other in grams_at_run.get(run, ())
                if other not in self.done
                and len(run) >= min(len(gram), len(other)) - 1
                and self.grams.are_pieces_of_one(gram, other, run)
            ]
            if candidates:
                self.done.add(other := max(candidates)[1])
                return other, len(run)
        return None
