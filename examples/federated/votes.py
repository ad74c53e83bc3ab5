"""TrieHH over devices: in each round a device tosses its own coin, and votes or stays silent.

    python examples/federated/votes.py [--devices 4000]

Both sides run here, and exchange two things that may travel as files or messages: a ballot, which
is public, and votes. The rates and the threshold are the plan's (`dphh.trie`), and so is what the
published trie promises. docs/trie.md says what each side must do for that.
"""

from __future__ import annotations

import argparse
import math
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from dphh import Plan, trie
from dphh.mechanisms.trie.price import VoteLevel
from dphh.udfs.noise.randomness import SystemRandomness

Tokens = tuple[str, ...]
WORDS = ("to", "at", "an", "a")


@dataclass(frozen=True)
class Ballot:
    """What a round sends to every device: the prefixes that grew in the last one, and the rate."""

    level: int
    #: A device votes with probability numerator / 2^64.
    numerator: int
    prefixes: tuple[Tokens, ...]


@dataclass(frozen=True)
class Vote:
    level: int
    #: The number of the prefix on the ballot, and the token after it; None where the sequence ends.
    prefix: int
    token: str | None
    #: 128 random bits: a vote that is delivered twice has the same ticket.
    ticket: str


# --- a device -------------------------------------------------------------------------------------


@dataclass
class Device:
    """Has one sequence for the whole collection, and answers each round once."""

    tokens: Tokens
    #: The largest epsilon of a coin that this device takes part in.
    epsilon: float = 10.0
    answers: dict[int, Vote | None] = field(default_factory=dict)

    def answer(self, ballot: Ballot) -> Vote | None:
        if ballot.level not in self.answers:  # asked again, it does not toss again
            self.answers[ballot.level] = self._vote(ballot)
        return self.answers[ballot.level]

    def _vote(self, ballot: Ballot) -> Vote | None:
        tails = 2**64 - ballot.numerator
        if tails <= 0 or math.log(2**64 / tails) > self.epsilon:
            raise ValueError("the coin falls on heads so often that a vote would show too much")
        (word,) = SystemRandomness().random_words(1, "a device's coin")
        below = ballot.level - 1
        if int(word) >= ballot.numerator or not self.tokens:
            return None
        if len(self.tokens) < below or self.tokens[:below] not in ballot.prefixes:
            return None
        token = self.tokens[below] if len(self.tokens) > below else None
        place = ballot.prefixes.index(self.tokens[:below])
        return Vote(ballot.level, place, token, os.urandom(16).hex())


# --- the collector --------------------------------------------------------------------------------


@dataclass
class Collector:
    """Sends ballots, counts votes, and publishes what has at least theta of them."""

    plan: Plan
    prefixes: tuple[Tokens, ...] = ((),)
    #: The public result: prefixes and, with `True`, sequences that end.
    grown: list[tuple[Tokens, bool]] = field(default_factory=list)

    def ballot(self, level: VoteLevel) -> Ballot:
        return Ballot(level.level, level.numerator, self.prefixes)

    def close(self, level: VoteLevel, votes: Iterable[Vote]) -> None:
        """Close a round. Count it once: a second count with more votes is a second release."""
        counted = Counter((vote.prefix, vote.token) for vote in self._accepted(level, votes))
        passed = [vote for vote, count in counted.items() if count >= level.theta]
        going = []
        for prefix, token in sorted(passed, key=lambda vote: (vote[0], vote[1] or "")):
            below = self.prefixes[prefix]
            self.grown.append((below if token is None else (*below, token), token is None))
            if token is not None:
                going.append((*below, token))
        self.prefixes = tuple(going)

    def _accepted(self, level: VoteLevel, votes: Iterable[Vote]) -> list[Vote]:
        """No field of a vote is trusted: one vote a ticket, of this round, for what was asked."""
        of_tickets: dict[str, set[Vote]] = {}
        for vote in votes:
            asked = vote.level == level.level and 0 <= vote.prefix < len(self.prefixes)
            if asked and vote.token != "" and not (vote.token is None and level.level == 1):
                of_tickets.setdefault(vote.ticket, set()).add(vote)
        return [vote for cast in of_tickets.values() if len(cast) == 1 for vote in cast]


# --- both -----------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=4000)
    asked = parser.parse_args()
    plan = trie(epsilon=4, delta=1e-6, max_length=3)
    devices = [Device(tuple(WORDS[who % len(WORDS)])) for who in range(asked.devices)]
    collector = Collector(plan)
    for level in plan.levels:
        assert isinstance(level, VoteLevel)
        ballot = collector.ballot(level)
        answers = [device.answer(ballot) for device in devices]
        collector.close(level, [vote for vote in answers if vote is not None])
    print(f"epsilon {plan.privacy.epsilon:g}, delta {plan.privacy.delta:g}, a device")
    for tokens, ended in collector.grown:
        print("".join(tokens) + ("." if ended else "..."))


if __name__ == "__main__":
    main()
