"""Which released grams are pieces of one sentence: one wording for these, and what folds into it.

All of this is post-processing. It rests on numbers of people as they were released, and on one
fact: who holds a gram holds its parts, so that of grams a and b that share a run r, at least

    n(a) + n(b) - n(r)

people hold both. Grams that overlap by all but a token of one are joined if that is most of those
who hold either, and stands out of the noise; a gram is folded into a wording if it is half of those
who hold the gram. A joined wording has no number: one released gram in it has, and is said to.
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
#: Of an overlap, that it is none is told apart by so many sigmas: it is made of three numbers.
SURE = 2 * sqrt(3)
#: A phrase has so many words of its own, together: of each word, the share of those who say it who
#: say the phrase. What is made of words that are mostly said elsewhere is said about anything.
OWN_WORDS = 1.75


def runs(tokens: Tokens, lengths: Iterable[int]) -> Iterator[Tokens]:
    """All runs of tokens of these lengths: all of one length before those of the next."""
    return (
        tokens[at : at + length] for length in lengths for at in range(len(tokens) - length + 1)
    )


@dataclass
class Wording:
    """What people say: the tokens of all joined grams, the gram whose number is shown, and other
    grams that are folded into it."""

    tokens: Tokens
    counted: Tokens
    variations: list[Tokens] = field(default_factory=list)

    def name(self, joiner: str) -> str:
        """All of its words; in brackets those that are not of the gram whose number is shown."""
        size = len(self.counted)
        every = range(len(self.tokens) + 1)
        at = next(at for at in every if self.tokens[at : at + size] == self.counted)
        before, after = self.tokens[:at], self.tokens[at + size :]
        parts = [f"[{joiner.join(each)}]" if each else "" for each in (before, after)]
        return joiner.join(filter(None, [parts[0], *self.counted, parts[1]]))


@dataclass(frozen=True)
class Grams:
    """About how many people hold each released gram, in each release that is compared."""

    releases: Sequence[Mapping[Tokens, float]]
    #: The standard deviation of the noise of these numbers.
    sigma: float
    #: In how many tables of a page each gram is.
    tables: Mapping[Tokens, int] = field(default_factory=dict)
    #: What was counted by itself.
    counts: Sequence[Container[Tokens]] = ()

    @cached_property
    def users(self) -> Mapping[Tokens, float]:
        """How many hold each, in the release where most do."""
        most: dict[Tokens, float] = {}
        for numbers in self.releases:
            most |= {gram: max(held, most.get(gram, held)) for gram, held in numbers.items()}
        return most

    def held_with(self, one: Tokens, other: Tokens, shared: Tokens) -> float:
        """The fewest people who hold both of two grams that share a run, in the release where these
        are most; 0 if that is unknown."""
        return max(
            (
                of[one] + of[other] - max(of[one], of[other], of[shared])
                for of in self.releases
                if one in of and other in of and shared in of
            ),
            default=0,
        )

    def are_one(self, one: Tokens, other: Tokens, shared: Tokens) -> bool:
        most = MOST * max(self.users[one], self.users[other]) - self.sigma
        return self.held_with(one, other, shared) > max(most, SURE * self.sigma)

    def is_variation(self, gram: Tokens, counted: Tokens, shared: Tokens) -> bool:
        return self.held_with(gram, counted, shared) > self.users[gram] / 2

    def core(self, gram: Tokens) -> Tokens:
        """The part of a gram, or all of it, that has most words of its own, of those that no FEW of
        their people go on in another way: a single token, if these stand together as chance has
        it."""
        parts = (
            run
            for run in runs(gram, range(len(gram), 0, -1))
            if run in self.users and not (1 < len(run) < len(gram) and self._goes_on(run, gram))
        )
        return max(parts, key=lambda run: self.own_words(run, self.users[run]))

    def _goes_on(self, run: Tokens, gram: Tokens) -> bool:
        """Whether FEW of those who hold a run say it with a token more that is not in this gram,
        and FEW of those who hold that token say it so."""
        inside = {*runs(gram, [len(run) + 1])}
        return any(
            self.users[each] > FEW * max(self.users[run], self.users.get(token, 0))
            for each, token in self._longer[run]
            if each not in inside
        )

    @cached_property
    def _longer(self) -> Mapping[Tokens, list[tuple[Tokens, Tokens]]]:
        """The grams of a token more, each with that token."""
        longer: dict[Tokens, list[tuple[Tokens, Tokens]]] = defaultdict(list)
        for gram in self.users:
            longer[gram[1:]].append((gram, gram[:1]))
            longer[gram[:-1]].append((gram, gram[-1:]))
        return longer

    def own_words(self, tokens: Tokens, held: float) -> float:
        """How many words are a wording's own: of each, the share of its people who say this.

        What is not released is held by fewer, as far as is known by these alone."""
        shares = (held / max(self.users.get((token,), held), 1) for token in dict.fromkeys(tokens))
        return sum(min(share, 1) for share in shares)

    def counted(self, tokens: Tokens, like: Tokens) -> Tokens:
        """Of the grams of a wording that about as many hold as `like`, and that most tables of the
        page have, the longest, and of these the first: one that was picked for its number would
        be too high, or too low."""
        every = [
            run
            for run in runs(tokens, range(len(tokens), min(len(like), 2) - 1, -1))
            if run in self.users and self._is_about(run, like)
        ]
        return max(every, key=self._places)

    def _places(self, gram: Tokens) -> tuple[int, ...]:
        """Whether it was counted by itself, whether each release has it, the first before all; and
        how many tables."""
        every = (*self.counts, *self.releases)
        return (*(gram in of for of in every), self.tables.get(gram, 0))

    def _is_about(self, gram: Tokens, like: Tokens) -> bool:
        fewer, more = sorted((self.users[gram], self.users[like]))
        return gram == like or fewer >= MOST * more - self.sigma > 0


def wordings(
    whole: Sequence[Tokens], grams: Grams, order: Callable[[Tokens], Any]
) -> tuple[list[Wording], list[Tokens]]:
    """One wording for all grams that are pieces of one; and the loose grams, whose tokens stand
    together as chance has it.

    whole: the grams of two tokens or more that no longer one contains. order: which are first."""
    core_of = {gram: grams.core(gram) for gram in whole}
    cores = {core for core in core_of.values() if len(core) > 1}
    cores -= {run for core in cores for run in runs(core, range(2, len(core)))}
    in_order = sorted(cores, key=lambda core: (order(core), core))
    joining = _Joining(grams, in_order)
    found: list[Wording] = []
    of_run: dict[Tokens, Wording] = {}

    def wording_of(gram: Tokens) -> Wording | None:
        for run in runs(gram, range(len(gram), 0, -1)):
            made = of_run.get(run)
            if made and (run == gram or grams.is_variation(gram, made.counted, run)):
                return made
        return None

    for core in in_order:
        if core in joining.done or wording_of(core):
            continue
        tokens = joining.joined(core)
        found.append(made := Wording(tokens, grams.counted(tokens, core)))
        for run in runs(tokens, range(1, len(tokens) + 1)):
            if run in grams.users:
                of_run.setdefault(run, made)
    loose = []
    for gram in whole:
        core = core_of[gram]
        of_gram = (of_run.get(core) if len(core) > 1 else None) or wording_of(gram)
        if of_gram is None:
            loose.append(gram)
        elif of_run.get(gram) is not of_gram:
            of_gram.variations.append(gram)
    return found, loose


class _Joining:
    """Joins each gram with those that go on where it ends, and begin where it begins, once."""

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
        """The gram that goes on, and how many tokens it shares: as many as can be."""
        for run, of_end in reversed(shared):
            can = [
                (self.grams.held_with(gram, other, run), other)
                for other in of_end.get(run, ())
                if other not in self.done
                and len(run) >= min(len(gram), len(other)) - 1
                and self.grams.are_one(gram, other, run)
            ]
            if can:
                self.done.add(other := max(can)[1])
                return other, len(run)
        return None
