"""The interface between the driver and an engine. The driver does not know which engine runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from dphh.levels.counts import CountsLevel
    from dphh.levels.ldp_trie import LocalLevel
    from dphh.levels.ngrams import PrunedLevel
    from dphh.levels.set_union import SetUnionLevel
    from dphh.levels.trie import BatchLevel, Choice, VoteLevel
    from dphh.privacy.following import Following
    from dphh.session.ladder.rounds import TwoRoundsOf
    from dphh.session.ladder.rungs import Ladder, ValidGrams
    from dphh.session.ladder.word_list import WordList
    from dphh.session.trie import Trie
    from dphh.udfs.kernel.reading import Reading


@dataclass(frozen=True)
class Limits:
    """Limits of an engine: memory in DuckDB's notation ("4GB"), and threads."""

    memory: str | None = None
    threads: int | None = None


Verb = TypeVar("Verb", bound=Callable[..., Any])
#: The names of the verbs that draw.
DRAWING: set[str] = set()


def draws(verb: Verb) -> Verb:
    """Mark a verb that draws. Its last positional argument is its purpose, which identifies the
    draw. Its result may be released as it is, and no other verb may depend on anything else that
    it drew."""
    DRAWING.add(verb.__name__)
    return verb


#: A round as it was run, and an Arrow table (key, noisy) of what it released.
Ran = tuple["SetUnionLevel", Any]


class RoundsOf(Protocol):
    """Several rounds of a set union, which depend on one another."""

    #: Whether longer n-grams are still to be found in the original texts.
    @property
    def keeps_texts(self) -> bool: ...

    def next(self, ran: Sequence[Ran]) -> SetUnionLevel | None:
        """The round that follows those that ran; None after the last."""
        ...

    def following(self, ran: Sequence[Ran], level: SetUnionLevel) -> Following | None:
        """The public numbers of the next round's weights; None if its weights are equal."""
        ...

    def table(self, ran: Sequence[Ran]) -> Any:
        """All that the rounds released, as one table."""
        ...


class Session(Protocol):
    """One run on one corpus. Everything private stays inside; only released rows come out.

    A continued run does not ask for levels that it drew before (`dphh.journal`). So each level gets
    all releases that it depends on, and the session itself finds their positions in the corpus.
    """

    name: str
    version: str

    def hold(self, reading: Reading) -> None:
        """Read the corpus once into tables of whole users: the words that each user holds, their
        positions in the user's texts, or the n-grams of some lengths."""
        ...

    @draws
    def union_level(self, level: SetUnionLevel, purpose: str) -> Any:
        """Bound, weigh, sum, noise once, threshold: an Arrow table (key, noisy) of what passed."""
        ...

    @draws
    def union_rounds(self, rounds: RoundsOf, purpose: str) -> Any:
        """Rounds of `union_level` whose weights depend on earlier ones, all as one draw. Returns
        `rounds.table` of the passed items. All other noised weights are dropped."""
        ...

    def forget(self, released: Any, keep_texts: bool = False) -> None:
        """Remove the released words from every user (DP-SIPS); `released` has (key, noisy).

        With `keep_texts`, longer n-grams are still found in the original texts.
        """
        ...

    @draws
    def grams_level(
        self, level: PrunedLevel, ladder: Ladder, valid: ValidGrams, purpose: str
    ) -> Any:
        """The level above a ladder of releases, including the spurious grams of `valid`: an Arrow
        table (key, noisy)."""
        ...

    @draws
    def forecast_level(self, level: TwoRoundsOf, ladder: Ladder | WordList, purpose: str) -> Any:
        """A level of the forecast ladder, both rounds: a `ForecastRelease` as a table. It stands on
        releases, or on a list of words: then a `WordsRelease`."""
        ...

    def exact_counts(self, at_least: int) -> Any:
        """How many users hold each key, (key, users). NOT private: for the owner only."""
        ...

    @draws
    def counts_level(
        self,
        level: CountsLevel,
        items: Sequence[Sequence[str]],
        groups: Sequence[str],
        purpose: str,
    ) -> Any:
        """Read the corpus and find the items, given as tokens, in users' texts. Bound, weigh, sum,
        noise once: an Arrow table (key, noisy) of each item in each of the groups and outside all
        groups, followed by the sums of what bounding took, by octave."""
        ...

    def hold_sequences(self, choice: Choice) -> None:
        """Read the corpus once: one sequence per user, for the whole run."""
        ...

    @draws
    def trie_level(self, level: VoteLevel | BatchLevel, trie: Trie, purpose: str) -> Any:
        """The next level of the trie. Sample, vote, threshold: an Arrow table (node,
        token, ended) of what grows. Users toss coins, or a batch of a fixed size is drawn."""
        ...

    def hold_contributions(self, characters: Sequence[str], seats: int, pad: bool) -> None:
        """Read the corpus once: each user's words, and a random order of users in the seats.

        Words are spelled as in `devices.reports.round`. `pad` adds made-up users if there are too
        few.
        """
        ...

    @draws
    def local_level(self, level: LocalLevel, prefixes: Any, known: Any, purpose: str) -> Any:
        """Ask the level's users and count their reports: an Arrow table (value, reports).

        It contains the `keep` most reported values of the `prefixes`, an Arrow table (prefix,
        value); `known` is an Arrow table (word).
        """
        ...

    def close(self) -> None: ...
