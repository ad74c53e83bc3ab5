"""LDP TrieHH over devices: each sends one report, by subset selection, in one round of its life.

    python examples/federated/reports.py [--devices-per-round 1500]

Both sides run here, and exchange two things that may travel as files or messages: a broadcast,
which is public, and reports. The randomiser of each round is the plan's (`dphh.ldp_trie` with
contributions=1), and so is what reports and published words promise. docs/ldp_trie.md says what
each side must do for that.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dphh import Plan, ldp_trie
from dphh.mechanisms.ldp_trie.levels import LocalLevel
from dphh.udfs.noise.randomness import SystemRandomness, uniform_below
from dphh.udfs.rules.reports import SubsetSelection, draw_subsets, estimated_holders

WORDS = ("tea", "oat", "eat")


@dataclass(frozen=True)
class Broadcast:
    """What a round sends to its devices. Prefix number i with character number j is the value
    i (|characters| + 1) + j, and with j = |characters| the word that ends there."""

    round: str
    level: int
    characters: str
    prefixes: tuple[str, ...]
    #: A report is a set of `size` of `domain` values, and holds the own one with probability
    #: numerator / 2^64. The last value means "nothing".
    domain: int
    size: int
    numerator: int


@dataclass(frozen=True)
class Report:
    #: A random name for the round, by which a report that is delivered twice is known.
    sender: str
    round: str
    values: tuple[int, ...]


# --- a device -------------------------------------------------------------------------------------


@dataclass
class Device:
    """Its words never leave it; what leaves has one form, whatever they are."""

    words: Sequence[str]
    #: The largest epsilon of a report that this device allows, whatever a broadcast asks for.
    epsilon: float
    answered: bool = False

    def answer(self, said: Broadcast) -> Report:
        mechanism = SubsetSelection(said.domain, said.size, said.numerator)
        if mechanism.epsilon > self.epsilon:
            raise ValueError("the report would show more than this device allows")
        if len(said.prefixes) * (len(said.characters) + 1) >= said.domain:
            raise ValueError('one value would stand for a prefix and for "nothing"')
        if self.answered:
            raise ValueError("the device has answered: a second report costs as much again")
        self.answered = True
        source = SystemRandomness()
        held = sorted(self._next_prefixes(said))
        value = said.domain - 1
        if held:
            value = held[int(uniform_below(source, len(held), 1, "which prefix")[0])]
        (drawn,) = draw_subsets(source, np.array([value]), mechanism, said.round)
        return Report(os.urandom(16).hex(), said.round, tuple(drawn.tolist()))

    def _next_prefixes(self, said: Broadcast) -> set[int]:
        """The values of the device's words; words with a character outside the set are left out."""
        width = len(said.characters) + 1
        place = {prefix: number * width for number, prefix in enumerate(said.prefixes)}
        found = set()
        for word in self.words:
            below, after = word[: said.level], word[said.level : said.level + 1]
            if below in place and set(word) <= set(said.characters):
                last = width - 1 if not after else said.characters.index(after)
                found.add(place[below] + last)
        return found


# --- the collector --------------------------------------------------------------------------------


@dataclass
class Collector:
    """Sends broadcasts, counts reports, and publishes what most of them hold."""

    plan: Plan
    characters: str
    prefixes: tuple[str, ...]
    #: The public result: words, and how many of a round's reports are estimated to be for each.
    found: dict[str, float] = field(default_factory=dict)

    def broadcast(self, level: LocalLevel) -> Broadcast:
        return Broadcast(
            f"round {level.level}", level.level, self.characters, self.prefixes,
            level.domain, level.size, level.numerator,
        )  # fmt: skip

    def close(self, level: LocalLevel, said: Broadcast, reports: Iterable[Report]) -> None:
        """Close a round. Count it once: a second count with more reports is a second release."""
        accepted = self._accepted(said, reports)
        if len(accepted) < level.reports:
            raise ValueError("fewer reports than the price is for: they hide among one another")
        counted = Counter(value for report in accepted for value in report.values)
        width, going = len(self.characters) + 1, []
        candidates = range(len(self.prefixes) * width)
        kept = sorted(candidates, key=lambda value: (-counted[value], value))[: level.keep]
        for value in sorted(value for value in kept if counted[value]):
            below, last = self.prefixes[value // width], value % width
            if last == width - 1:
                score = estimated_holders(counted[value], len(accepted), level.mechanism)
                self.found[below] = float(score)
            else:
                going.append(below + self.characters[last])
        self.prefixes = tuple(going)

    @staticmethod
    def _accepted(said: Broadcast, reports: Iterable[Report]) -> list[Report]:
        """No field of a report is trusted: one of each sender, of this round, a set of its size."""
        senders: dict[str, Report] = {}
        for report in reports:
            whole = len(set(report.values)) == len(report.values) == said.size
            inside = all(0 <= value < said.domain for value in report.values)
            if whole and inside and report.round == said.round:
                senders.setdefault(report.sender, report)
        return list(senders.values())


# --- both -----------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices-per-round", type=int, default=1500)
    per_round, characters = parser.parse_args().devices_per_round, "aeot"
    plan = ldp_trie(
        local_epsilon=6.0, delta=1e-6, users_per_level=per_round, contributions=1, max_length=3,
        keep=5, character_set=characters,
    )  # fmt: skip
    collector = Collector(plan, characters, tuple(characters))
    for level in plan.levels:
        assert isinstance(level, LocalLevel)
        said = collector.broadcast(level)
        devices = [Device([WORDS[who % len(WORDS)]], epsilon=6.0) for who in range(per_round)]
        collector.close(level, said, [device.answer(said) for device in devices])
    privacy = plan.privacy
    print(f"a report: epsilon {privacy.epsilon:g}; published: {privacy.user_epsilon:.2g} a user")
    for word, score in sorted(collector.found.items()):
        print(f"{word}: {score:,.0f} of {per_round:,} reports")


if __name__ == "__main__":
    main()
