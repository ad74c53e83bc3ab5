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
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import Any

Tokens = tuple[str, ...]

#: "Most" of those who hold something.
MOST = 3 / 4
#: Of an overlap, that it is none is told apart by so many sigmas: it is made of three numbers.
SURE = 2 * sqrt(3)
#: A token is loose at an end of a gram if fewer than this share of those who hold it hold the gram.
FEW = 1 / 4
#: So few tokens are enough to know a wording by.
ENOUGH = 3


def runs(tokens: Tokens, lengths: Iterable[int]) -> Iterator[Tokens]:
    """All runs of tokens of these lengths: all of one length before those of the next."""
    return (
        tokens[at : at + length] for length in lengths for at in range(len(tokens) - length + 1)
    )


def around(tokens: Tokens, inner: Tokens) -> tuple[Tokens, Tokens]:
    """What is before a run of the tokens, and what is after it."""
    at = [*runs(tokens, [len(inner)])].index(inner)
    return tokens[:at], tokens[at + len(inner) :]


@dataclass
class Wording:
    """What people say: the tokens of all joined grams, the gram whose number is shown, and other
    grams that are folded into it."""

    tokens: Tokens
    counted: Tokens
    variations: list[Tokens] = field(default_factory=list)

    def split(self) -> tuple[Tokens, Tokens, Tokens]:
        """What is before the counted gram, the gram, and what is after it."""
        before, after = around(self.tokens, self.counted)
        return before, self.counted, after


@dataclass(frozen=True)
class Grams:
    """About how many people hold each released gram."""

    users: Mapping[Tokens, float]
    #: The standard deviation of the noise of these numbers.
    sigma: float

    def held_with(self, one: Tokens, other: Tokens, shared: Tokens) -> float:
        """The fewest people who hold both of two grams that share a run; 0 if that is unknown."""
        if shared not in self.users:
            return 0
        a, b = self.users[one], self.users[other]
        return a + b - max(a, b, self.users[shared])

    def are_one(self, one: Tokens, other: Tokens, shared: Tokens) -> bool:
        most = MOST * max(self.users[one], self.users[other]) - self.sigma
        return self.held_with(one, other, shared) > max(most, SURE * self.sigma)

    def is_variation(self, gram: Tokens, counted: Tokens, shared: Tokens) -> bool:
        return self.held_with(gram, counted, shared) > self.users[gram] / 2

    def core(self, gram: Tokens) -> Tokens:
        """The gram without loose ends: tokens that fewer than FEW of those who hold them say here,
        if fewer than MOST of those who hold the rest say it so, or FEW say it with another."""
        while len(gram) > 1:
            held = self.users[gram]
            rests = [
                (self.users[rest], rest)
                for end, rest in ((gram[:1], gram[1:]), (gram[-1:], gram[:-1]))
                if rest in self.users
                and held < FEW * self.users.get(end, 0)
                and (held < MOST * self.users[rest] or self._varies(gram, rest))
            ]
            if not rests:
                break
            gram = max(rests)[1]
        return gram

    def own_words(self, of: Wording) -> float:
        """How many words are this wording's own: of each, the share of its people who say this.

        What is not released is held by fewer, as far as is known by these alone."""
        held = self.users[of.counted]
        shares = (
            held / max(self.users.get((token,), held), 1) for token in dict.fromkeys(of.tokens)
        )
        return sum(min(share, 1) for share in shares)

    def completed(self, tokens: Tokens, core: Tokens, known: Collection[Tokens]) -> Tokens:
        """The longest known wording with these tokens in it, if each of its tokens has people
        enough for most of those who hold the core."""
        enough = MOST * self.users[core] - self.sigma
        can = [
            other
            for other in known
            if tokens in runs(other, [len(tokens)])
            and all(self.users.get((token,), 0) >= enough for token in other)
        ]
        return max(can, key=len, default=tokens)

    def trimmed(self, tokens: Tokens, core: Tokens) -> Tokens:
        """The tokens around the core without those at an end that are loose in the longest gram."""
        before, after = around(tokens, core)
        while before and self._is_loose(before + core + after, -1):
            before = before[1:]
        while after and self._is_loose(before + core + after, 1):
            after = after[:-1]
        return before + core + after

    def _is_loose(self, tokens: Tokens, end: int) -> bool:
        """Whether the first token (-1), or the last (1), is loose."""
        for size in range(len(tokens), 1, -1):
            gram = tokens[:size] if end < 0 else tokens[-size:]
            if gram in self.users:
                core = self.core(gram)
                return core != (gram[: len(core)] if end < 0 else gram[-len(core) :])
        return False

    def _varies(self, gram: Tokens, rest: Tokens) -> bool:
        """Whether FEW of those who hold the rest say it with another token in place of this."""
        others = self._longer[rest, gram[1:] == rest]
        return any(self.users[each] > FEW * self.users[rest] for each in others if each != gram)

    @cached_property
    def _longer(self) -> Mapping[tuple[Tokens, bool], list[Tokens]]:
        """The grams of a token more: those that begin, or else end, with it."""
        longer: dict[tuple[Tokens, bool], list[Tokens]] = defaultdict(list)
        for gram in self.users:
            longer[gram[1:], True].append(gram)
            longer[gram[:-1], False].append(gram)
        return longer

    def counted(self, tokens: Tokens, known: Container[Tokens], like: Tokens) -> Tokens:
        """Of the known grams of a wording that about as many hold as `like`, the longest and those
        of a token less: the one with the middle number. The highest is high by its noise. Without
        such grams, `like`."""
        every = [
            run
            for run in runs(tokens, range(len(tokens), 0, -1))
            if run in self.users and run in known and self._is_about(run, like)
        ]
        if not every:
            return like
        fewest = max(len(every[0]) - 1, min(len(every[0]), ENOUGH))
        long = sorted((self.users[run], run) for run in every if len(run) >= fewest)
        return long[len(long) // 2][1]

    def _is_about(self, gram: Tokens, like: Tokens) -> bool:
        fewer, more = sorted((self.users[gram], self.users[like]))
        return gram == like or fewer >= MOST * more - self.sigma > 0


def wordings(
    whole: Sequence[Tokens],
    grams: Grams,
    order: Callable[[Tokens], Any],
    known: Collection[Tokens] = (),
) -> tuple[list[Wording], list[Tokens]]:
    """One wording for all grams that are pieces of one; and the loose grams, whose tokens stand
    together as chance has it, and of which no two are left without loose ends.

    whole: the grams of two tokens or more that no longer one contains. order: which are first.
    known: wordings of other releases, of which a wording here may be a part."""
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
        tokens = grams.completed(grams.trimmed(joining.joined(core), core), core, known)
        tokens = grams.trimmed(tokens, core)
        found.append(made := Wording(tokens, grams.counted(tokens, grams.users, core)))
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
