"""What the driver asks of any engine. It never learns which engine answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from dphh.engines.rounds import RoundsOf
    from dphh.engines.walking import Trie
    from dphh.ladder.rounds import TwoRoundsOf
    from dphh.ladder.rungs import Ladder, ValidGrams
    from dphh.levels import (
        BatchLevel,
        Choice,
        CountsLevel,
        LocalLevel,
        PrunedLevel,
        SetUnionLevel,
        VoteLevel,
    )
    from dphh.udfs.kernel.reading import Reading


@dataclass(frozen=True)
class Limits:
    """What an engine may use: memory as DuckDB writes it ("4GB"), and threads."""

    memory: str | None = None
    threads: int | None = None


Verb = TypeVar("Verb", bound=Callable[..., Any])
#: The verbs that draw, by name.
DRAWING: set[str] = set()


def draws(verb: Verb) -> Verb:
    """Marks a verb that draws. Its last argument, given by its place, is its purpose, by which what
    it drew is known: that may be released as it is, and no other verb may hang on anything else
    that it drew."""
    DRAWING.add(verb.__name__)
    return verb


class Session(Protocol):
    """One run on one corpus. Everything private stays inside; only released rows come out.

    For a run that goes on, levels that were drawn before are not asked for again (`dphh.journal`).
    So a level is told all releases that it stands on, and where these stand in the corpus is the
    session's own business.
    """

    name: str
    version: str

    def hold(self, reading: Reading) -> None:
        """Read the corpus once: whole users, and which words each holds, or where they stand in
        their texts, or which n-grams of some lengths."""
        ...

    @draws
    def union_level(self, level: SetUnionLevel, purpose: str) -> Any:
        """Bound, weigh, sum, noise once, threshold: an Arrow table (key, noisy) of what passed."""
        ...

    @draws
    def union_rounds(self, rounds: RoundsOf, purpose: str) -> Any:
        """Rounds of `union_level` whose weights follow earlier ones, all of them one draw: what
        `rounds` makes of what passed in each. Noised weights of all else go with it."""
        ...

    def forget(self, released: Any, keep_texts: bool = False) -> None:
        """Take what a level released from every user (DP-SIPS); an Arrow table (key, noisy).

        With `keep_texts`, longer n-grams are found in the texts as they were.
        """
        ...

    @draws
    def grams_level(
        self, level: PrunedLevel, ladder: Ladder, valid: ValidGrams, purpose: str
    ) -> Any:
        """The level above a ladder of releases, with the spurious grams of `valid`: an Arrow table
        (key, noisy)."""
        ...

    @draws
    def forecast_level(self, level: TwoRoundsOf, ladder: Ladder, purpose: str) -> Any:
        """A level of the forecast ladder, both rounds: a `ForecastRelease` as a table."""
        ...

    def exact_counts(self, at_least: int) -> Any:
        """How many users hold each key, (key, users). NOT private: for the owner alone."""
        ...

    @draws
    def counts_level(
        self,
        level: CountsLevel,
        items: Sequence[Sequence[str]],
        groups: Sequence[str],
        purpose: str,
    ) -> Any:
        """Read the corpus: which of the items, given as tokens, stand in whose texts. Bound, weigh,
        sum, noise once: an Arrow table (key, noisy) of each item, within each of the groups and
        within what is none of them, and then of what bounding took, octave by octave."""
        ...

    def hold_sequences(self, choice: Choice) -> None:
        """Read the corpus once: one sequence a user, for the whole run."""
        ...

    @draws
    def trie_level(self, level: VoteLevel | BatchLevel, trie: Trie, purpose: str) -> Any:
        """The level above what has grown so far. Sample, vote, threshold: an Arrow table (node,
        token, ended) of what grows. Users toss coins, or a batch of a fixed size is drawn."""
        ...

    def hold_contributions(self, characters: Sequence[str], seats: int, pad: bool) -> None:
        """Read the corpus once: which words each user holds, and who sits in which of the seats.

        Words are spelled as in `devices.reports.round`. With `pad`, wanting users are made up for.
        """
        ...

    @draws
    def local_level(self, level: LocalLevel, prefixes: Any, known: Any, purpose: str) -> Any:
        """Ask the level's users and count their reports: an Arrow table (value, reports).

        Of the values of the `prefixes`, an Arrow table (prefix, value), it holds the `keep` that
        are reported most; `known` is one of (word).
        """
        ...

    def close(self) -> None: ...
