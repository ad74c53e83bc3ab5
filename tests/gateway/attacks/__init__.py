"""What a hostile analyst with a valid token tries, by kind.

A module holds `GUARD`, statements that the guard must refuse and that do harm without it;
`GUESSES`, which it must refuse too; and `PASSES`, statements that get through it, each with what
the refusal behind it must say, or None where there is an answer. `{raw}`, `{ledger}`, `{secret}`
(a file), `{out}` (a folder) and `{target}` (a file to overwrite) are filled in.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

_KINDS = """
    raw_tables files corpora options budget copying attaching extensions pragmas settings
    catalogs query_functions explaining errors_with_data stuffing disguises writing injected
"""
KINDS = tuple(_KINDS.split())
_BY_GUARD = "Not authorised"


@dataclass(frozen=True)
class Attempt:
    kind: str
    statement: str
    reason: str | None  # a regular expression for the refusal; None where there is an answer
    does_harm: bool = False  # where nothing stops it

    def aimed(self, places: dict[str, str]) -> str:
        statement = self.statement
        for name, place in places.items():
            statement = statement.replace("{" + name + "}", place)
        return statement


def attempts(kind: str) -> list[Attempt]:
    module = importlib.import_module(f"{__name__}.{kind}")
    label = kind.replace("_", " ")
    return [
        *(Attempt(label, each, _BY_GUARD, True) for each in getattr(module, "GUARD", ())),
        *(Attempt(label, each, _BY_GUARD) for each in getattr(module, "GUESSES", ())),
        *(Attempt(label, each, reason) for each, reason in getattr(module, "PASSES", ())),
    ]
