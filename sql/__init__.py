"""The level queries: one `.sql` file a kind of level, each readable on its own."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def query(name: str) -> str:
    """The text of `<name>.sql`."""
    return files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")


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
