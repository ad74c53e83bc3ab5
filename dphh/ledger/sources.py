"""Where a corpus lives, and whether two corpora share data.

A cap holds only if it cannot be walked around by naming the same files in another way. So a path
is looked at as an engine will read it: globs and folders are expanded, links followed, and files
compared by their real path and by their identity on the disk (which sees through hard links and
mounts). Where spellings differ between engines, all readings are taken: to charge an account for
a file that is not read is a nuisance, to miss one that is would be a leak.

What this cannot see: a copy of the data, a file moved elsewhere, a frame or table loaded from the
files by other hands, a view over them; of a lazy Polars frame it sees them (`dphh.ledger.behind`).
A ledger keeps honest people from overspending by mistake or by haste; who may read the data at all
is a matter of file permissions.
"""

# Globs and addresses are texts, and pathlib would tidy away what engines see.
# ruff: noqa: PTH109, PTH110, PTH111, PTH112, PTH114, PTH116, PTH117, PTH118, PTH120, PTH208
from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from dphh.errors import UsageError
from dphh.ledger.older_copy import NEW, SUFFIX

KINDS = ("path", "frame", "table")
_MAGIC = re.compile(r"[*?\[]")
_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_FILE = re.compile(r"(?:^|/)file:(?://[^/]*)?(/.*)", re.IGNORECASE | re.DOTALL)
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "http": "https", "abfs": "abfss"}


@dataclass(frozen=True)
class Source:
    """Where a corpus is: `path` (absolute paths or globs), `frame` or `table` (a label).

    `content` says how it is read, and is nothing to the ledger but JSON to keep.
    """

    kind: str
    where: tuple[str, ...]
    user: str
    content: dict[str, Any] = field(default_factory=dict, hash=False)
    #: Of a frame or a table: the paths and globs that it reads, as far as they can be told.
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
        """Its paths; of a table in memory what it is and which columns count."""
        where = ", ".join(self.where)
        column = self.content.get("column")
        return where if self.kind == "path" or not column else f"{where}({self.user}, {column})"

    def absolute(self) -> Source:
        """The same source, whatever the working folder. `..` stays: it may follow a link."""
        if self.kind != "path":
            return replace(self, files=tuple(_absolute(place) for place in self.files))
        return replace(self, where=tuple(_absolute(place) for place in self.where))

    def fingerprint(self) -> str:
        """Tells where the corpus lives, with links resolved, and by which column users count."""
        where = self.where
        if self.kind == "path":
            where = tuple(p if _remote(p) else _resolved(_absolute(p)) for p in self.where)
        if self.kind != "path":  # a label says little: what is read of it tells more
            where = (self.label,)
        canonical = json.dumps([self.kind, sorted(set(where)), self.user])
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "where": list(self.where),
            "user": self.user,
            "content": self.content,
            **({"files": list(self.files)} if self.files else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Source:
        files = tuple(data.get("files", ()))
        return cls(data["kind"], tuple(data["where"]), data["user"], data["content"], files)


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
        labels.add((source.kind, source.user, *source.where))
    paths: set[str] = set()
    identities: set[tuple[int, int]] = set()
    patterns: set[str] = set()
    remote: set[str] = set()
    folders: dict[str, str] = {}
    for place in source.where if source.kind == "path" else source.files:
        for spelling in _spellings(place):
            if _remote(spelling):
                remote.add(_address(spelling))
                continue
            path = _absolute(spelling)
            patterns.add(_resolved(path))
            for file in _files(path):
                folder, name = os.path.split(file)
                if folder not in folders:
                    folders[folder] = _real(folder)
                linked = os.path.islink(file)
                paths.add(_real(file) if linked else os.path.join(folders[folder], name))
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
    """Tells files that changed by their names, sizes and times; reads none, nor `besides`.

    Not how many there are: of a corpus in folders named by user, that is its number of users. Who
    reads the hash can try guesses on it, which a key beside it would not stop (docs/threats.md).
    What lies in memory or elsewhere cannot be told like that.
    """
    if source.kind != "path":
        return "in memory"
    apart = {_real(besides + ending) for ending in ("", "-journal", SUFFIX, SUFFIX + NEW)}
    spellings = {_absolute(each) for place in source.where for each in _spellings(place)}
    found = set()
    for spelling in spellings:
        for file in () if _remote(spelling) else _files(spelling):
            try:
                status = os.stat(file)
            except OSError:
                continue  # gone since it was listed, or a dangling link: nothing to read
            if (real := _real(file)) not in apart:
                found.add((real, status.st_size, status.st_mtime_ns))
    digest = hashlib.sha256(json.dumps(sorted(found)).encode()).hexdigest()
    return digest[:32]


#: Hexadecimal digits of what stays in the ledger of a corpus's files.
CHECK = 4


def files_check(source: Source, besides: str) -> str:
    """Sixteen bits of `files_state`, which stay in the ledger. Equal if no file changed; if one
    did, equal by chance once in 65,536 times. '' where the data cannot be compared.

    So few, because whoever reads the ledger can try guesses on them (docs/threats.md).
    """
    spelled = (each for place in source.where for each in _spellings(place))
    if source.kind != "path" or any(_remote(place) for place in spelled):
        return ""
    return files_state(source, besides)[:CHECK]


def _absolute(path: str) -> str:
    if (address := _FILE.match(path)) is not None:
        return address[1]
    return path if _remote(path) else os.path.join(os.getcwd(), path)


def _remote(path: str) -> bool:
    scheme = _REMOTE.match(path)
    return scheme is not None and scheme[1].lower() != "file"


def _address(url: str) -> str:
    """A remote address as far as it can be compared: one scheme a store, no query, no wildcard."""
    scheme, _, rest = url.partition("://")
    scheme = _SAME_STORE.get(scheme.lower(), scheme.lower())
    host, _, path = _MAGIC.split(rest)[0].partition("/")
    return f"{scheme}://{host.lower()}/" + "/".join(
        p for p in path.split("/") if p not in ("", ".")
    )


def _spellings(place: str) -> set[str]:
    """A path, and what one engine or another would also take it for."""
    found = {place, unquote(place)}
    # Joined to a working folder by someone, a `file:` address or `~` still means what it did.
    if (address := _FILE.search(place)) is not None:
        found.add(address[1])
    if (home := re.search(r"(?:^|/)(~[^/]*(?:/.*)?)$", place)) is not None:
        found.add(os.path.expanduser(home[1]))
    found |= {spelling.replace("\\", "/") for spelling in found}
    return {each for spelling in found for each in _braces(spelling)}


def _braces(pattern: str, most: int = 1000) -> set[str]:
    """The pattern itself and, for Spark, every choice of its `{a,b}`."""
    found, todo = {pattern}, [pattern]
    while todo:
        if (group := re.search(r"\{([^{}]*)\}", text := todo.pop())) is None:
            found.add(text)
            continue
        todo += [text[: group.start()] + part + text[group.end() :] for part in group[1].split(",")]
        if len(todo) + len(found) > most:
            raise UsageError(f"The braces of a path expand to more than {most} paths: name fewer.")
    return found


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError:  # a link that this user may not read, so not one that leads to data
        return path


def _resolved(path: str) -> str:
    """The real path of what comes before the first wildcard, and the rest as it stands."""
    if os.path.exists(path) or _MAGIC.search(path) is None:
        return _real(path)
    folder = os.path.dirname(_MAGIC.split(path)[0])
    return _real(folder).rstrip("/") + "/" + path[len(folder) :].lstrip("/")


def _files(pattern: str) -> Iterator[str]:
    """Every file that a path, a folder or a glob reaches."""
    found = {os.sep} if os.path.isabs(pattern) else {os.curdir}
    if os.path.exists(pattern):
        yield from _beneath([pattern], folders=False)
    if _MAGIC.search(pattern) is None:
        return
    drive, rest = os.path.splitdrive(pattern)
    if drive:
        found = {drive + os.sep}
    for segment in filter(None, rest.split("/")):
        if "**" in segment:
            found = set(_beneath(found, folders=True))
            found |= set(_children(found, segment))
        elif _MAGIC.search(segment):
            found = set(_children(found, segment))
        else:
            found = {j for f in found if os.path.lexists(j := os.path.join(f, segment))}
    yield from _beneath(found, folders=False)


def _children(folders: Iterable[str], segment: str) -> Iterator[str]:
    """Entries that match one segment of a glob, those with a leading dot too."""
    matches = re.compile(_expression(segment), re.DOTALL).fullmatch
    for folder in folders:
        try:
            yield from (os.path.join(folder, n) for n in os.listdir(folder) if matches(n))
        except OSError:
            continue  # not a folder, or one whose names this user may not see: see `patterns`


def _beneath(roots: Iterable[str], folders: bool) -> Iterator[str]:
    """The folders, or the files, in and beneath each root; links are followed, circles left."""
    for root in roots:
        if not os.path.isdir(root):
            if not folders:
                yield root
            continue
        seen: set[str] = set()
        for folder, inner, names in os.walk(root, followlinks=True):
            if (real := _real(folder)) in seen:
                inner.clear()
                continue
            seen.add(real)
            if folders:
                yield folder
            else:
                yield from (os.path.join(folder, name) for name in names)


def _expression(glob: str) -> str:
    """A glob as a regular expression that takes at least what any engine takes."""
    wild = {"**": ".*", "**/": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/?|\*|\?|\[[!^]?\]?[^\]]*\])", glob)
    return "".join(
        wild.get(part) or (_choice(part) if index % 2 else re.escape(part))
        for index, part in enumerate(parts)
    )


def _choice(brackets: str) -> str:
    """`[a-z]`. Negations take any character: which sign negates depends on the engine."""
    inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", brackets[1:-1])
    try:
        re.compile(f"[{inner}]")
    except re.error:
        return "[^/]"
    return "[^/]" if brackets[1] in "!^" else f"[{inner}]"


def _any_match(patterns: Iterable[str], paths: frozenset[str]) -> bool:
    """Whether a real path lies in what a pattern names, or in a folder that it names."""
    if not paths:
        return False
    for pattern in patterns:
        literal = re.escape(pattern.rstrip("/"))
        either = f"(?:{literal}|{_expression(pattern.rstrip('/'))})(?:/.*)?"
        matches = re.compile(either, re.DOTALL).fullmatch
        if any(matches(path) for path in paths):
            return True
    return False
