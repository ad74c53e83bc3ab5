"""The level queries: one `.sql` file a kind of level, each readable on its own."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

#: Folders of queries that have another's name: the plain form, and an engine's own.
_NAMESAKES = ("plain", "spark")


@cache
def query(name: str) -> str:
    """The text of `<name>.sql`, which lies in the folder of its mechanism, or at the top."""
    return files(__package__).joinpath(place(name)).read_text(encoding="utf-8")


@cache
def place(name: str) -> str:
    """Where in `sql/` that is: `ngrams/grams_level.sql`."""
    (found,) = _places(name)
    return found


@cache
def query_for(engine: str, name: str) -> str:
    """The same, of an engine's own where its step differs: `<engine>/<name>.sql`."""
    found = place_for(engine, name) or place(name)
    return files(__package__).joinpath(found).read_text(encoding="utf-8")


@cache
def place_for(engine: str, name: str) -> str | None:
    """Where in `sql/` that is; None if no query has this name."""
    own = f"{engine}/{name}.sql"
    found = [own] if files(__package__).joinpath(own).is_file() else _places(name)
    return found[0] if found else None


def _places(name: str) -> list[str]:
    top = files(__package__)
    folders = (each.name for each in top.iterdir() if each.is_dir())
    candidates = (f"{folder}/{name}.sql" for folder in folders if folder not in _NAMESAKES)
    return [each for each in (f"{name}.sql", *candidates) if top.joinpath(each).is_file()]
