"""The level queries: one `.sql` file a kind of level, each readable on its own."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

#: Folders of queries that have another's name: the plain form, and an engine's own.
_NAMESAKES = ("plain", "spark")


@cache
def place(name: str) -> str:
    """Where `<name>.sql` lies below `sql/`: in the folder of its mechanism, or at the top."""
    folders = [each for each in _top().iterdir() if each.is_dir() and each.name not in _NAMESAKES]
    (found,) = (
        place
        for place in (f"{name}.sql", *(f"{each.name}/{name}.sql" for each in folders))
        if _top().joinpath(place).is_file()
    )
    return found


@cache
def query(name: str) -> str:
    return _top().joinpath(place(name)).read_text(encoding="utf-8")


def _top() -> Traversable:
    return files(__package__)


@cache
def query_for(engine: str, name: str) -> str:
    """The same, of an engine's own where its step differs: `<engine>/<name>.sql`."""
    own = files(__package__).joinpath(engine, f"{name}.sql")
    return own.read_text(encoding="utf-8") if own.is_file() else query(name)


@cache
def looking() -> str:
    """The part of `shell.sql` that looks at releases: trees, next words, comparisons."""
    _, heading, rest = query("shell").partition("-- Saved releases ")
    return (heading + rest).partition("-- Help ")[0]
