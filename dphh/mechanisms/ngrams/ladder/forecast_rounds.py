"""What an engine computes in the two rounds of a level of the forecast ladder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from dphh.mechanisms.ngrams.ladder.classes import ValidClasses
from dphh.mechanisms.ngrams.ladder.rungs import Integers
from dphh.privacy.forecast_rounds import Bins


@dataclass(frozen=True)
class FirstRound:
    """How many valid grams of each class fall into each bin of round 1, and noised list sizes."""

    counts: Integers
    lists: Integers


@dataclass(frozen=True)
class Passed:
    """The grams that a level releases, including spurious ones, ascending by key."""

    keys: Integers
    bins: Integers
    first: Integers
    second: Integers


@dataclass(frozen=True)
class OtherPassed:
    """The released words that the list lacks, in ascending order of their spelling."""

    words: Any
    #: Whether round 1 released it.
    early: Integers
    first: Integers
    second: Integers


@dataclass(frozen=True)
class PassedWords(Passed):
    """What level 1 releases: listed words, and words that the list lacks."""

    others: OtherPassed


class Rounds(Protocol):
    """What an engine computes for a level. Only the returned values leave the engine."""

    def first_round(self, level: int, valid: ValidClasses, law: Bins, unit: int) -> FirstRound: ...

    def second_round(self, weights: Integers, unit: int) -> Integers:
        """Takes weights by (class, bin). Returns how many valid grams of each are at 0 or below."""
        ...

    def passed(self, thresholds: Integers) -> Passed: ...
