"""All mutants, read from the lists beside this file, kind by kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """`old`, which stands once in what `at` names (places.py), becomes `new`."""

    name: str
    at: str
    old: str
    new: str
    #: As pytest is told them: files, or tests in them.
    caught_by: tuple[str, ...]
    #: Whether its tests need the long-term line of DuckDB, and are skipped on the current one.
    older: bool = False


def read(text: str) -> Iterator[Mutant]:
    """The mutants of a list. An empty line ends each; lines that begin with # are comments."""
    for block in text.split("\n\n"):
        name, *lines = [line for line in block.splitlines() if not line.startswith("#")] or [""]
        if not name:
            continue
        said: dict[str, list[str]] = {}
        for line in lines:
            word, _, rest = line.partition(" ")
            said.setdefault(word, []).append(rest)
        if unknown := said.keys() - {"in", "-", "+", "by", "by-older"}:
            raise ValueError(f"{name}: lines begin with {sorted(unknown)}")
        (at,) = said["in"]
        old, new = ("\n".join(said.get(sign, [])) for sign in "-+")
        tests = (*said.get("by", ()), *said.get("by-older", ()))
        yield Mutant(name, at, old, new, tests, "by-older" in said)


MUTANTS = tuple(
    mutant
    for path in sorted(Path(__file__).parent.glob("*.txt"))
    for mutant in read(path.read_text(encoding="utf-8"))
)
