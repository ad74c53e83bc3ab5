"""Where a corpus lives, and whether two corpora share data.

A cap holds only if it cannot be walked around by naming the same files in another way. So a path
is looked at as an engine will read it: globs and folders are expanded, links followed, and files
compared by their real path and by their identity on the disk (which sees through hard links and
mounts). Where spellings differ between engines, all readings are taken: to charge an account for
a file that is not read is a nuisance, to miss one that is would be a leak.

Files that were moved are known by what the ledger keeps of them (`dphh.ledger.marks`), and those
behind a lazy frame or a view are found first (`dphh.ledger.origins`). What this cannot see: data
that were written anew, a frame or table loaded from the files by other hands.
A ledger keeps honest people from overspending by mistake or by haste; who may read the data at all
is a matter of file permissions.
"""

# Globs and addresses are texts, and pathlib would tidy away what engines see.
# ruff: noqa: PTH114, PTH116, PTH118
from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from dphh.corpora.user import UserColumns, as_json, checked_user, named
from dphh.errors import UsageError
from dphh.files.paths import (
    absolute_path,
    database_of,
    expression,
    files_at,
    files_of,
    is_remote,
    may_be_address,
    real_path,
    resolved,
    spellings,
)
from dphh.ledger.older_copy import NEW, SUFFIX
from dphh.rows.period import (
    ALWAYS,
    PeriodColumn,
    Spans,
    checked_spans,
    how_many,
    parsed_period,
    period_json,
)

KINDS = ("path", "frame", "table")


@dataclass(frozen=True)
class Source:
    """Where a corpus is: `path` (absolute paths or globs), `frame` or `table` (a label).

    `content` says how it is read, and is nothing to the ledger but JSON to keep.
    """

    kind: str
    where: tuple[str, ...]
    user: UserColumns
    content: dict[str, Any] = field(default_factory=dict, hash=False)
    #: The period, if the unit is a user in one period; and the periods that are read.
    period: PeriodColumn | None = None
    periods: Spans | None = None
    #: For a frame or a table: the paths and globs that it reads, as far as they are known.
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"A source's kind is one of {', '.join(KINDS)}, not {self.kind!r}.")
        where: object = self.where
        if isinstance(where, str) or not self.where or not all(self.where):
            raise UsageError("A source's `where` is a tuple of one or more paths or labels.")
        if any("\0" in place for place in self.where):
            raise UsageError("A source's `where` holds a NUL character, which no path can.")
        object.__setattr__(self, "where", tuple(self.where))

    @property
    def label(self) -> str:
        """Its paths; for a table in memory, its type and columns."""
        where = ", ".join(self.where)
        column = self.content.get("column")
        return (
            where if self.kind == "path" or not column else f"{where}({named(self.user)}, {column})"
        )

    def absolute(self) -> Source:
        """The same source, whatever the working folder. `..` stays: it may follow a link."""
        if self.kind != "path":
            return replace(self, files=tuple(absolute_path(place) for place in self.files))
        return replace(self, where=tuple(absolute_path(place) for place in self.where))

    def fingerprint(self) -> str:
        """A hash of the corpus's resolved location and of its unit."""
        where = self.where
        if self.kind == "path":
            where = tuple(p if is_remote(p) else resolved(absolute_path(p)) for p in self.where)
        if self.kind != "path":  # a label says little: what is read of it tells more
            where = (self.label,)
        unit = [] if self.period is None else [self.period.to_json()]
        canonical = json.dumps([self.kind, sorted(set(where)), self.user, *unit])
        return hashlib.sha256(canonical.encode()).hexdigest()

    def is_at(self, other: Source) -> bool:
        """Whether both name the same paths, in the same words."""
        return self.kind == other.kind == "path" and self.where == other.where

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "where": list(self.where),
            "user": as_json(self.user),
            "content": self.content,
            **period_json(self.period, self.periods),
            **({"files": list(self.files)} if self.files else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Source:
        files = tuple(data.get("files", ()))
        user = checked_user(data["user"])
        period, periods = parsed_period(data.get("period")), checked_spans(data.get("periods"))
        where = tuple(data["where"])
        return cls(data["kind"], where, user, data["content"], period, periods, files)

    @property
    def reads(self) -> dict[str, Any]:
        """The periods that a run reads, and the largest number of units that one person has in
        them."""
        if self.period is None:
            return {}
        read = ALWAYS if self.periods is None else self.periods
        return {"read": read, "of_a_person": how_many(read)}

    @property
    def unit(self) -> tuple[UserColumns, PeriodColumn | None]:
        """The protected unit. A guarantee for one kind of unit need not hold for another."""
        return self.user, self.period


@dataclass(frozen=True)
class Places:
    """All that a source may read, resolved at one moment."""

    labels: frozenset[tuple[str, ...]] = frozenset()
    paths: frozenset[str] = frozenset()  # real paths of files
    identities: frozenset[tuple[int, int]] = frozenset()  # device and inode of files
    patterns: frozenset[str] = frozenset()  # real folder and glob: for what cannot be listed
    remote: frozenset[str] = frozenset()  # addresses up to their first wildcard

    def overlap(self, other: Places) -> bool:
        return bool(
            self.labels & other.labels
            or self.paths & other.paths
            or self.identities & other.identities
            or self.patterns & other.patterns
            or _any_match(self.patterns, other.paths | other.patterns)
            or _any_match(other.patterns, self.paths | self.patterns)
            or any(a.startswith(b) or b.startswith(a) for a in self.remote for b in other.remote)
        )


def places(source: Source) -> Places:
    """Resolve a source now. Reads names, never contents."""
    labels: set[tuple[str, ...]] = set()
    if source.kind != "path":
        # A label says little ("a Polars frame"), so the user column belongs to it.
        labels.add((source.kind, named(source.user), *source.where))
    paths: set[str] = set()
    identities: set[tuple[int, int]] = set()
    patterns: set[str] = set()
    remote: set[str] = set()
    folders: dict[str, str] = {}
    for place in source.where if source.kind == "path" else source.files:
        for spelling in spellings(place):
            if (address := may_be_address(spelling)) is not None:
                remote.add(address)
            if is_remote(spelling):
                continue
            path = absolute_path(spelling)
            path = database_of(path) or path  # all tables of a file are one place
            patterns.add(resolved(path))
            for file in files_at(path):
                folder, name = os.path.split(file)
                if folder not in folders:
                    folders[folder] = real_path(folder)
                linked = os.path.islink(file)
                paths.add(real_path(file) if linked else os.path.join(folders[folder], name))
                try:
                    status = os.stat(file)
                except OSError:
                    continue  # gone since it was listed, or a dangling link: nothing to read
                identities.add((status.st_dev, status.st_ino))
    return Places(
        labels=frozenset(labels),
        paths=frozenset(paths),
        identities=frozenset(identities),
        patterns=frozenset(patterns),
        remote=frozenset(remote),
    )


def files_state(source: Source, besides: str) -> str:
    """A hash of the names, sizes and times of a source's files, which changes when a file changes.
    No file is read, and `besides` is left out.

    The number of files is not stored: in folders named by user it is the number of users. A reader
    of the hash can test guesses on it, which a key beside it would not prevent (docs/threats.md).
    Data in memory or in remote stores have no such hash.
    """
    if source.kind != "path":
        return "in memory"
    apart = {real_path(besides + ending) for ending in ("", "-journal", SUFFIX, SUFFIX + NEW)}
    found = set()
    for file in (file for place in source.where for file in files_of(place)):
        try:
            status = os.stat(file)
        except OSError:
            continue  # gone since it was listed, or a dangling link: nothing to read
        if (real := real_path(file)) not in apart:
            found.add((real, status.st_size, status.st_mtime_ns))
    digest = hashlib.sha256(json.dumps(sorted(found)).encode()).hexdigest()
    return digest[:32]


#: The number of hexadecimal digits of the files' hash that the ledger stores.
CHECK = 4


def files_check(source: Source, besides: str) -> str:
    """Sixteen bits of `files_state`, which stay in the ledger. Equal if no file changed; if one
    did, equal by chance once in 65,536 times. '' where the data cannot be compared.

    So few, because whoever reads the ledger can try guesses on them (docs/threats.md).
    """
    spelled = (each for place in source.where for each in spellings(place))
    if source.kind != "path" or any(may_be_address(place) is not None for place in spelled):
        return ""
    return files_state(source, besides)[:CHECK]


def _any_match(patterns: Iterable[str], paths: frozenset[str]) -> bool:
    """Whether a real path matches a pattern, or is in a folder that matches it."""
    if not paths:
        return False
    for pattern in patterns:
        literal = re.escape(pattern.rstrip("/"))
        either = f"(?:{literal}|{expression(pattern.rstrip('/'))})(?:/.*)?"
        matches = re.compile(either, re.DOTALL).fullmatch
        if any(matches(path) for path in paths):
            return True
    return False
