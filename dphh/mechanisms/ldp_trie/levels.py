"""`ldp_trie`: LDP TrieHH, Algorithm 2: the server's side; an engine simulates the devices.

Words are coded with one code point for each character: character number i of the character set is
chr(i + 1), whatever its own spelling. So a character may be any token, such as the name of a page,
and a prefix of a word is a prefix of its string.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import LDP_TRIE_SCHEMA
from dphh.engines.host import DrawOnce, Host
from dphh.errors import CorpusError
from dphh.levels.ldp_trie import LocalLevel
from dphh.mechanisms.released_rows import LevelDone
from dphh.price import Price
from dphh.privacy.subset_selection import estimated_holders
from dphh.udfs.draws.randomness import SEATS


@dataclass(frozen=True)
class GrownPrefix:
    """The characters of a prefix that was kept or, if `ended`, of a word that was found."""

    tokens: tuple[str, ...]
    ended: bool
    reports: int


@dataclass(frozen=True)
class TrieGrowth:
    """The prefixes and words from which a level starts. They are public: they follow from
    randomised reports."""

    characters: tuple[str, ...]
    #: Coded. A value is an integer: i (|characters| + 1) + j for prefix number i followed by
    #: character number j, where j = |characters| stands for the end of the word.
    prefixes: tuple[str, ...]
    #: Coded words that users are no longer asked about.
    known: tuple[str, ...]
    #: The words that this pass has found; the next pass treats them as known.
    found: tuple[str, ...] = ()

    def start_of_next_pass(self) -> TrieGrowth:
        """Each character is a prefix again (P_0 = X), and words found so far are known."""
        first = tuple(chr(number + 1) for number in range(len(self.characters)))
        known = tuple(sorted({*self.known, *self.found}))
        return TrieGrowth(self.characters, first, known)

    def after_level(self, kept_values: Any) -> tuple[TrieGrowth, list[GrownPrefix]]:
        """The growth after a level, from which the next one starts, and the prefixes and words that
        the level added.

        `kept_values` is an Arrow table (value, reports): the values in the most reports.
        """
        width = len(self.characters) + 1
        prefixes: list[str] = []
        found: list[str] = []
        added: list[GrownPrefix] = []
        rows = (kept_values.column(name).to_pylist() for name in ("value", "reports"))
        for value, reports in sorted(zip(*rows, strict=True)):
            below, character = self.prefixes[value // width], value % width
            ended = character == width - 1
            word = below if ended else below + chr(character + 1)
            (found if ended else prefixes).append(word)
            tokens = tuple(self.characters[ord(code) - 1] for code in word)
            added.append(GrownPrefix(tokens, ended, reports))
        now = replace(self, prefixes=tuple(prefixes), found=(*self.found, *found))
        return now, added


def ldp_trie_levels(price: Price, host: Host, once: DrawOnce, joiner: str) -> Iterator[LevelDone]:
    levels = [level for level in price.levels if isinstance(level, LocalLevel)]
    seats = max(level.first_seat + level.users for level in levels)
    characters = tuple(price["character_set"])
    seat_users(host, characters, seats, pad=price["pad"])
    code = {character: chr(place + 1) for place, character in enumerate(characters)}
    # Users are never asked about words with characters outside the set.
    known = [word for word in price["known"] if word and code.keys() >= set(word)]
    coded = tuple("".join(code[character] for character in word) for word in known)
    growth = TrieGrowth(characters, (), coded)
    #: The sequences that earlier passes released; later passes do not release them again.
    released: set[tuple[tuple[str, ...], bool]] = set()
    for level in levels:
        if level.level == 1:
            growth = growth.start_of_next_pass()
        purpose = f"ldp_trie/pass {level.pass_number}/level {level.level}"
        kept_values = once(purpose, partial(most_reported_values, host, level, growth, purpose))
        # kept_values (value, reports)
        growth, added = growth.after_level(kept_values)
        new = [step for step in added if (step.tokens, step.ended) not in released]
        released.update((step.tokens, step.ended) for step in new)
        yield LevelDone(level, _released_rows(level, new, joiner))


def seat_users(host: Host, characters: Sequence[str], seats: int, *, pad: bool) -> None:
    """Give users seats in a random order, and keep their words by seat. `pad` adds made-up users
    where a corpus has too few; otherwise such a corpus is refused."""
    host.open()
    codes = [chr(number + 1) for number in range(len(characters))]
    host.run("ldp_local_words", characters=list(characters), codes=codes)
    # local_words (user_id, word, row_count), by how many of the user's rows hold the word
    if not pad and host.take("fewer_users", seats=seats).num_rows:
        raise CorpusError(
            f"users_per_level, passes, max_length: need {seats:,} users, since no user is asked "
            "twice, and the corpus has fewer; ask fewer users per level, or pass pad=True to add "
            "made-up users without data"
        )
    host.run("ldp_seats", seats=seats, purpose=SEATS)
    # draws (user_id, name, draw); words_in_seats (seat, word, row_count)
    host.drop("local_words", "draws")


def most_reported_values(host: Host, level: LocalLevel, growth: TrieGrowth, purpose: str) -> Any:
    """Ask the level's users, and return the values in the most reports: an Arrow table (value,
    reports)."""
    seats = {"seats_before": level.first_seat, "last_seat": level.first_seat + level.users}
    values_per_prefix = level.characters + 1
    first_values = np.arange(len(growth.prefixes), dtype=np.int64) * values_per_prefix
    prefixes = pa.array(growth.prefixes, pa.string())
    host.put("prefixes", pa.table({"prefix": prefixes, "value": first_values}))
    # prefixes (prefix, value): the value of the prefix followed by the set's first character
    host.put("known", pa.table({"word": pa.array(growth.known, pa.string())}))
    # known (word)
    host.run(
        "ldp_choice",
        **seats,
        level=level.level,
        character_count=level.characters,
        contributions=level.contributions,
        sampling=level.sampling,
        purpose=purpose,
    )
    # choice_draws (seat, value, rank, draw); chosen (seat, report, value)
    host.run(
        "ldp_reports",
        **seats,
        contributions=level.contributions,
        domain=level.domain,
        subset_size=level.size,
        numerator=level.numerator,
        purpose=purpose,
    )
    # messages (subset); reports (value, reports)
    prefix_values = len(growth.prefixes) * values_per_prefix
    kept_values = host.take("ldp_kept", prefix_values=prefix_values, keep=level.keep)
    host.drop("prefixes", "known", "choice_draws", "chosen", "messages", "reports")
    return kept_values


def _released_rows(level: LocalLevel, added: Sequence[GrownPrefix], joiner: str) -> Any:
    """The released rows: the score estimates how many of the level's reports were for the prefix;
    the standard error is computed at that estimate."""
    tokens = pa.array([list(step.tokens) for step in added], pa.list_(pa.string()))
    reports = [step.reports for step in added]
    scores = estimated_holders(reports, level.reports, level.mechanism)
    held = np.clip(scores, 0, level.reports)
    errors = np.sqrt(level.mechanism.variance(level.reports, held))
    return pa.table(
        [
            pa.array(np.full(len(added), level.level, np.int32)),
            pc.binary_join(tokens, joiner),
            tokens,
            pa.array(scores, pa.float64()),
            pa.array(errors, pa.float64()),
            pa.array([step.ended for step in added], pa.bool_()),
        ],
        schema=LDP_TRIE_SCHEMA,
    )
