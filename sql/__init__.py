"""The level queries: one `.sql` file a kind of level, each readable on its own.

Folders are those of `dphh/mechanisms/`; `rows/` reads corpora, `spark/` has what Spark must write
otherwise. This file finds a text by its name and imports nothing of dphh. Begin at
`set_union/words_of_round.sql`; docs/plain-sql.md has the algorithms.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files


@cache
def query(name: str, engine: str = "duckdb") -> str:
    """The text of the query `<name>.sql` on this engine."""
    (path,) = query_paths(name, engine)
    return files(__package__).joinpath(path).read_text(encoding="utf-8")


@cache
def query_paths(name: str, engine: str = "duckdb") -> list[str]:
    """The path of that query in `sql/`; none, if no query has this name. It is the engine's own,
    `<engine>/<name>.sql`, if there is one; or in the folder of its mechanism, such as
    `ngrams/grams_level.sql`, or at the top."""
    top = files(__package__)
    if top.joinpath(own := f"{engine}/{name}.sql").is_file():
        return [own]
    folders = (each.name for each in top.iterdir() if each.is_dir())
    candidates = (f"{folder}/{name}.sql" for folder in folders if folder != "spark")
    return [each for each in (f"{name}.sql", *candidates) if top.joinpath(each).is_file()]


@lru_cache(maxsize=256)  # some texts name files
def macros_called_in(text: str) -> list[str]:
    """The statements of `rows/text.sql` that make the macros which a text of SQL calls, after those
    that these call, which stand above them there. To make all takes as long as a small query."""
    made: list[str] = []
    for statement in reversed(query("text").split(";\n")):
        name = statement.partition("MACRO ")[2].partition("(")[0]
        if name and any(re.search(rf"\b{name}\(", each) for each in (text, *made)):
            made.insert(0, statement)
    return made


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
