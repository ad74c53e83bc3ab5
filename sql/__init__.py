"""The queries of levels: each in one `.sql` file, which can be read on its own."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

#: Folders whose queries have the names of other folders' queries: the plain form, and Spark's own.
_FOLDERS_OF_OTHER_FORMS = ("plain", "spark")


@cache
def query(name: str) -> str:
    """The text of `<name>.sql`, which lies in the folder of its mechanism, or at the top."""
    return files(__package__).joinpath(query_path(name)).read_text(encoding="utf-8")


@cache
def query_path(name: str) -> str:
    """The path of the query in `sql/`, such as `ngrams/grams_level.sql`."""
    (found,) = _query_paths(name)
    return found


@cache
def query_for_engine(engine: str, name: str) -> str:
    """The text of the query on this engine: the engine's own, `<engine>/<name>.sql`, if it has
    one, else that of `query`."""
    found = query_path_for_engine(engine, name) or query_path(name)
    return files(__package__).joinpath(found).read_text(encoding="utf-8")


@cache
def query_path_for_engine(engine: str, name: str) -> str | None:
    """The path of that query in `sql/`; None if no query has this name."""
    own = f"{engine}/{name}.sql"
    found = [own] if files(__package__).joinpath(own).is_file() else _query_paths(name)
    return found[0] if found else None


def _query_paths(name: str) -> list[str]:
    top = files(__package__)
    folders = (each.name for each in top.iterdir() if each.is_dir())
    candidates = (
        f"{folder}/{name}.sql" for folder in folders if folder not in _FOLDERS_OF_OTHER_FORMS
    )
    return [each for each in (f"{name}.sql", *candidates) if top.joinpath(each).is_file()]
