"""What the driver asks of any engine. It never learns which engine answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dphh.ladder import ValidGrams
from dphh.levels import (
    BatchLevel,
    Choice,
    LocalLevel,
    PrunedLevel,
    Pruning,
    SetUnionLevel,
    VoteLevel,
)


@dataclass(frozen=True)
class Limits:
    """What an engine may use: memory as DuckDB writes it ("4GB"), and threads."""

    memory: str | None = None
    threads: int | None = None


class Session(Protocol):
    """One run on one corpus. Everything private stays inside; only released rows come out.

    A verb that is told its `purpose` draws: what it returns may be released as it is, and no other
    verb may hang on anything else that it drew. For a run that goes on, levels that were drawn
    before are not asked for again (`dphh.journal`): the verbs between them come all the same.
    """

    name: str
    version: str

    def hold_items(self) -> None:
        """Read the corpus once: which user holds which distinct items."""
        ...

    def set_union_level(self, level: SetUnionLevel, purpose: str) -> Any:
        """Bound, weigh, sum, noise once, threshold: an Arrow table (key, noisy) of what passed."""
        ...

    def forget_released(self, released: Any) -> None:
        """Take what a level released from every user (DP-SIPS); an Arrow table (key, noisy)."""
        ...

    def hold_words(self) -> None:
        """Read and tokenise the corpus once: which user holds which distinct words."""
        ...

    def place_words(self, released: Any) -> None:
        """Keep where the released words stand; `released` is an Arrow table (key, gram)."""
        ...

    def hold_grams(self, level: int, pruning: Pruning) -> None:
        """Which user holds which pairs of released grams of the level below."""
        ...

    def pruned_level(self, level: PrunedLevel, valid: ValidGrams, purpose: str) -> Any:
        """As `set_union_level`, with the spurious grams of `valid`: an Arrow table (key, noisy)."""
        ...

    def place_grams(self, released: Any) -> None:
        """Keep where the level's released grams stand; `released` is an Arrow table (key, gram)."""
        ...

    def hold_sequences(self, choice: Choice) -> None:
        """Read the corpus once: one sequence a user, for the whole run."""
        ...

    def vote_level(self, level: VoteLevel, purpose: str) -> Any:
        """Sample, vote, threshold: an Arrow table (node, token, ended) of what grows."""
        ...

    def batch_level(self, level: BatchLevel, trie_below: Any, purpose: str) -> Any:
        """The same with a batch of a fixed size; `trie_below` is an Arrow table (node, tokens)."""
        ...

    def walk_on(self, level: int, grown: Any) -> None:
        """Keep who holds what has grown; `grown` is an Arrow table (node, token, next_node)."""
        ...

    def hold_contributions(self, characters: Sequence[str], seats: int, pad: bool) -> None:
        """Read the corpus once: which words each user holds, and who sits in which of the seats.

        Words are spelled as in `devices.reports.round`. With `pad`, wanting users are made up for.
        """
        ...

    def local_level(self, level: LocalLevel, prefixes: Any, known: Any, purpose: str) -> Any:
        """Ask the level's users and count their reports: an Arrow table (value, reports).

        Of the values of the `prefixes`, an Arrow table (prefix, value), it holds the `keep` that
        are reported most; `known` is one of (word).
        """
        ...

    def hold_whole_grams(self, lengths: Sequence[int]) -> None:
        """Which user holds which n-grams of these lengths, all of them: keys are `spell_gram`s."""
        ...

    def exact_counts(self, at_least: int) -> Any:
        """How many users hold each key, (key, users). NOT private: for the owner alone."""
        ...

    def close(self) -> None: ...
