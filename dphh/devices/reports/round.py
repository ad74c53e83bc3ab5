"""The broadcast of the LDP TrieHH server to every device of a round, and the coding of words in it.

A word is coded with one code point for each character: character number i of the character set is
chr(i + 1), whatever its own spelling. So a character may be any token, such as the name of a page,
a prefix of a word is a prefix of its string, and no escapes are needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

from dphh.errors import UsageError
from dphh.levels.ldp_trie import Sampling

#: A limit below the surrogate code points, which are no characters.
MOST_CHARACTERS = 50_000
#: The key of a broadcast in its JSON. It changes whenever devices must answer differently.
_FORMAT_NAME = "broadcast 2"


@dataclass(frozen=True)
class Broadcast:
    """One round: all that a device needs to answer. Everything in it is public."""

    #: The round's name, which answers repeat.
    round: str
    #: The number of characters of each prefix; devices report the next character.
    level: int
    characters: tuple[str, ...]
    #: Coded. Prefix number i with character number j is the value i (|characters| + 1) + j.
    prefixes: tuple[str, ...]
    #: Coded words that devices are no longer asked about.
    known: tuple[str, ...]
    #: How many reports every device sends, whatever words it has.
    contributions: int
    sampling: Sampling
    #: The randomiser: a report is a set of `size` of `domain` values, which has the own value with
    #: probability numerator/2^64.
    domain: int
    size: int
    numerator: int

    def nothing_value(self, report: int) -> int:
        """The value that means "nothing" in a user's report number 0, 1, ...: a different one for
        each, so that no user reports a value twice."""
        return self.domain - self.contributions + report

    @property
    def values(self) -> int:
        """The number of values that encode a prefix and what follows it."""
        return len(self.prefixes) * (len(self.characters) + 1)

    def dumps(self) -> str:
        # The key is new, so that older devices, which use one value of "nothing" for all of a
        # user's reports, refuse to answer.
        return json.dumps({_FORMAT_NAME: asdict(self)})


def broadcast_from_json(text: str) -> Broadcast:
    """The broadcast that `dumps` wrote, with all fields checked."""
    try:
        said = Broadcast(**of_fields(Broadcast, json.loads(text)[_FORMAT_NAME]))
        _check_broadcast(said)
    except (KeyError, TypeError, ValueError) as problem:
        raise UsageError(f"broadcast: not what a server's `dumps` wrote ({problem})") from None
    return said


def of_fields(kind: type[Any], found: Any) -> dict[str, Any]:
    """A dataclass's fields from JSON, with tuples for lists; other keys are ignored."""
    said = ((field.name, found[field.name]) for field in fields(kind))
    return {name: tuple(one) if isinstance(one, list) else one for name, one in said}


def _check_broadcast(said: Broadcast) -> None:
    numbers = (said.level, said.contributions, said.domain, said.size, said.numerator)
    if not all(type(value) is int and value > 0 for value in numbers):
        raise ValueError("its numbers must be whole and above 0")
    lists = (said.characters, said.prefixes, said.known)
    if not all(type(listed) is tuple and all(type(x) is str for x in listed) for listed in lists):
        raise ValueError("its characters, prefixes and known words must be lists of texts")
    if said.values + said.contributions > said.domain:
        raise ValueError("its domain is too small for its prefixes and a nothing for each report")
    for listed in (said.characters, said.prefixes):
        if len(set(listed)) < len(listed):
            raise ValueError("it has a character or a prefix twice")
    if said.sampling not in get_args(Sampling) or type(said.round) is not str:
        raise ValueError("it has an unknown sampling or round")


def coded(tokens: Sequence[str], number: Mapping[str, int]) -> str | None:
    """A word in code points, one for each character; None if a character is outside the set."""
    places = [number.get(token) for token in tokens]
    inside = [place for place in places if place is not None]
    return "".join(chr(place + 1) for place in inside) if len(inside) == len(places) else None


def numbers(characters: Sequence[str]) -> dict[str, int]:
    return {character: number for number, character in enumerate(characters)}


def decoded(word: str, characters: Sequence[str]) -> list[str]:
    """The characters of a coded word."""
    return [characters[ord(code) - 1] for code in word]
