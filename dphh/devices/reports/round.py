"""What the server of LDP TrieHH says to every device of a round, and how words are coded in it.

A word is written with one code point a character: character number i of the character set is
chr(i + 1), whatever it looks like itself. So a character may be any token, a page's name say, a
prefix is a plain string's beginning, and nothing is an escape.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from dphh.errors import UsageError
from dphh.privacy.coin_reports import Form
from dphh.udfs.draws.coin_reports import NOTHING

#: Which of an over-full user's prefixes are reported: any as likely as any other, or those that
#: most of the user's own rows begin with.
Sampling = Literal["random", "greedy"]
#: Code points run into the surrogates, which are no characters, beyond this many.
MOST_CHARACTERS = 50_000
#: What a broadcast's JSON holds it under: another name where devices have to answer differently.
_NAMED = "broadcast 2"


@dataclass(frozen=True)
class Broadcast:
    """One round: all that a device needs to answer, and nothing that is not public."""

    #: Names the round; answers name it too.
    round: str
    #: Prefixes have so many characters; what comes next is asked for.
    level: int
    characters: tuple[str, ...]
    #: Coded. Prefix number i with character number j is the value i (|characters| + 1) + j.
    prefixes: tuple[str, ...]
    #: Coded: words that nobody is asked about any more.
    known: tuple[str, ...]
    #: How many reports every device sends, whatever it holds.
    contributions: int
    sampling: Sampling
    #: The randomiser: sets of `size` of `domain` values, one's own with probability numerator/2^64;
    #: or by coins, sets of any size, with the same probability of one's own and of another value.
    form: Form
    domain: int
    size: int
    numerator: int

    def nothing(self, report: int) -> int:
        """What a user's report number 0, 1, ... says who has nothing more to say: a value of its
        own for each, so that no user reports a value twice; by coins, no value."""
        return NOTHING if self.form == "coins" else self.domain - self.contributions + report

    @property
    def values(self) -> int:
        """How many values stand for a prefix and what comes next."""
        return len(self.prefixes) * (len(self.characters) + 1)

    @property
    def nothings(self) -> int:
        """How many values say "nothing"."""
        return 0 if self.form == "coins" else self.contributions

    def dumps(self) -> str:
        # Under a name of its own: devices of before, which say "nothing" by one value for all of a
        # user's reports, find nothing that they would answer.
        return json.dumps({_NAMED: asdict(self)})


def broadcast_from_json(text: str) -> Broadcast:
    """The broadcast that `dumps` wrote; a device believes nothing that it can check."""
    try:
        said = Broadcast(**of_fields(Broadcast, json.loads(text)[_NAMED]))
        _check(said)
    except (KeyError, TypeError, ValueError) as problem:
        raise UsageError(f"broadcast: not what a server's `dumps` wrote ({problem})") from None
    return said


def of_fields(kind: type[Any], found: Any) -> dict[str, Any]:
    """What was found of a dataclass's fields, lists as tuples; other keys are passed over."""
    said = ((field.name, found[field.name]) for field in fields(kind))
    return {name: tuple(one) if isinstance(one, list) else one for name, one in said}


def _check(said: Broadcast) -> None:
    numbers = (said.level, said.contributions, said.domain, said.size, said.numerator)
    if not all(type(value) is int and value > 0 for value in numbers):
        raise ValueError("its numbers are not whole and above 0")
    lists = (said.characters, said.prefixes, said.known)
    if not all(type(listed) is tuple and all(type(x) is str for x in listed) for listed in lists):
        raise ValueError("its characters, prefixes or known words are not lists of texts")
    if said.form not in get_args(Form):
        raise ValueError("its reports are of a form that is unknown")
    if said.values + said.nothings > said.domain:
        raise ValueError("its prefixes, and a nothing for each report, do not fit its domain")
    for listed in (said.characters, said.prefixes):
        if len(set(listed)) < len(listed):
            raise ValueError("one of its characters or prefixes is there twice")
    if said.sampling not in get_args(Sampling) or type(said.round) is not str:
        raise ValueError("its sampling or round is unknown")


def coded(tokens: Sequence[str], number: Mapping[str, int]) -> str | None:
    """A word, one code point a character; None where a character is outside the set."""
    places = [number.get(token) for token in tokens]
    inside = [place for place in places if place is not None]
    return "".join(chr(place + 1) for place in inside) if len(inside) == len(places) else None


def numbers(characters: Sequence[str]) -> dict[str, int]:
    return {character: number for number, character in enumerate(characters)}


def decoded(word: str, characters: Sequence[str]) -> list[str]:
    """The characters that a coded word stands for."""
    return [characters[ord(code) - 1] for code in word]
