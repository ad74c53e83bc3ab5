"""`ldp_trie`: LDP TrieHH, Algorithm 2: the server's side; an engine simulates the devices.

Words are coded with one code point for each character: character number i of the character set is
chr(i + 1), whatever its own spelling. So a character may be any token, such as the name of a page,
and a prefix of a word is a prefix of its string.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import LDP_TRIE_SCHEMA
from dphh.engines.host import DrawOnce, Host
from dphh.errors import CorpusError
from dphh.mechanisms.ldp_trie.levels import LocalLevel
from dphh.mechanisms.running import BEFORE_LEVELS, Draws, LevelDone, parameters_of
from dphh.price import Price
from dphh.udfs.noise.randomness import SEATS
from dphh.udfs.rules.reports import estimated_holders


class GrownPrefix(NamedTuple):
    """A coded prefix that a level kept or, if `ended`, a coded word that it found."""

    word: str
    ended: bool
    reports: int


def ldp_trie_levels(price: Price, host: Host, once: DrawOnce) -> Iterator[LevelDone]:
    levels = [level for level in price.levels if isinstance(level, LocalLevel)]
    characters = tuple(price["character_set"])
    seat_users(host, characters, seats_of(price), pad=price["pad"])
    code = {character: chr(place + 1) for place, character in enumerate(characters)}
    # Users are never asked about words with characters outside the set.
    asked_already = [word for word in price["known"] if word and code.keys() >= set(word)]
    known = ["".join(code[character] for character in word) for word in asked_already]
    # All of these are public: they follow from randomised reports. Coded are the prefixes that the
    # next level extends, the words that users are not asked about, and all words found so far.
    prefixes: list[str] = []
    found: list[str] = []
    #: What earlier passes released; later passes do not release it again.
    released: set[tuple[str, bool]] = set()
    for level in levels:
        if level.level == 1:  # of each pass: all characters are prefixes again (P_0 = X)
            prefixes, known = [*code.values()], sorted({*known, *found})
        purpose = purpose_of(level)
        kept_values = once(
            purpose, partial(most_reported_values, host, level, prefixes, known, purpose)
        )
        # kept_values (value, reports)
        grown = grown_prefixes(kept_values, prefixes, len(characters))
        prefixes = [each.word for each in grown if not each.ended]
        found += [each.word for each in grown if each.ended]
        new = [each for each in grown if (each.word, each.ended) not in released]
        released.update((each.word, each.ended) for each in new)
        tokens = [[characters[ord(code) - 1] for code in each.word] for each in new]
        yield LevelDone(level, _released_rows(level, new, tokens, host.joiner))


def grown_prefixes(
    kept_values: Any, prefixes: Sequence[str], character_count: int
) -> list[GrownPrefix]:
    """The prefixes and words of the values in the most reports, an Arrow table (value, reports).

    A value is an integer: i (character_count + 1) + j for prefix number i followed by character
    number j, where j = character_count stands for the end of the word.
    """
    grown = []
    rows = (kept_values.column(name).to_pylist() for name in ("value", "reports"))
    for value, reports in sorted(zip(*rows, strict=True)):
        number, character = divmod(value, character_count + 1)
        ended = character == character_count
        word = prefixes[number] + ("" if ended else chr(character + 1))
        grown.append(GrownPrefix(word, ended, reports))
    return grown


def seats_of(price: Price) -> int:
    levels = (level for level in price.levels if isinstance(level, LocalLevel))
    return max(level.first_seat + level.users for level in levels)


def seat_users(host: Host, characters: Sequence[str], seats: int, *, pad: bool) -> None:
    """Give users seats in a random order, and keep their words by seat. `pad` adds made-up users
    where a corpus has too few; otherwise such a corpus is refused."""
    host.open()
    seating = seating_of(characters, seats)
    host.run("ldp_local_words", **seating)
    # local_words (user_id, word, row_count), by how many of the user's rows hold the word
    if not pad and host.take("fewer_users", **seating).num_rows:
        raise CorpusError(
            f"users_per_level, passes, max_length: need {seats:,} users, since no user is asked "
            "twice, and the corpus has fewer; ask fewer users per level, or pass pad=True to add "
            "made-up users without data"
        )
    host.run("ldp_seats", **seating)
    # draws (user_id, name, draw); words_in_seats (seat, word, row_count)
    host.drop("local_words", "draws")


def most_reported_values(
    host: Host, level: LocalLevel, prefixes: Sequence[str], known: Sequence[str], purpose: str
) -> Any:
    """Ask the level's users, and return the values in the most reports: an Arrow table (value,
    reports)."""
    values_per_prefix = level.characters + 1
    first_values = np.arange(len(prefixes), dtype=np.int64) * values_per_prefix
    spelled = pa.array(prefixes, pa.string())
    host.put("prefixes", pa.table({"prefix": spelled, "value": first_values}))
    # prefixes (prefix, value): the value of the prefix followed by the set's first character
    host.put("known", pa.table({"word": pa.array(known, pa.string())}))
    # known (word)
    asked = asked_of(level, purpose)
    host.run("ldp_choice", **asked)
    # choice_draws (seat, value, rank, draw); chosen (seat, report, value)
    host.run("ldp_reports", **asked)
    # messages (subset); reports (value, reports)
    prefix_values = len(prefixes) * values_per_prefix
    kept_values = host.take("ldp_kept", prefix_values=prefix_values, keep=level.keep)
    host.drop("prefixes", "known", "choice_draws", "chosen", "messages", "reports")
    return kept_values


def _released_rows(
    level: LocalLevel, added: Sequence[GrownPrefix], tokens_of_added: Any, joiner: str
) -> Any:
    """The released rows: the score estimates how many of the level's reports were for the prefix;
    the standard error is computed at that estimate."""
    tokens = pa.array(tokens_of_added, pa.list_(pa.string()))
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


def purpose_of(level: LocalLevel) -> str:
    return f"ldp_trie/pass {level.pass_number}/level {level.level}"


def seating_of(characters: Sequence[str], seats: int) -> dict[str, Any]:
    """The parameters of the steps of `seat_users`."""
    codes = [chr(number + 1) for number in range(len(characters))]
    return {"characters": list(characters), "codes": codes, "seats": seats, "purpose": SEATS}


def asked_of(level: LocalLevel, purpose: str) -> dict[str, Any]:
    """The parameters of a level's steps that the plan knows."""
    last_seat = level.first_seat + level.users
    return parameters_of(level, purpose, last_seat=last_seat, domain=level.domain)


def ldp_trie_draws(price: Price) -> Draws:
    """What `ldp_trie_levels` asks."""
    seating = seating_of(price["character_set"], seats_of(price))
    fewer = () if price["pad"] else ("fewer_users",)
    yield BEFORE_LEVELS, [(step, seating) for step in ("ldp_local_words", *fewer, "ldp_seats")]
    for level in price.levels:
        assert isinstance(level, LocalLevel)
        purpose = purpose_of(level)
        known = asked_of(level, purpose)
        if level.level == 1:  # whose prefixes are the characters
            known["prefix_values"] = level.characters * (level.characters + 1)
        steps = "ldp_choice", "ldp_reports", "ldp_kept"
        yield purpose, [(step, known) for step in steps]
