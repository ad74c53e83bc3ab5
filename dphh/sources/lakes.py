"""Folders of lake tables: Delta, Iceberg, and formats that only their own reader can read.

The Parquet files in such a folder may contain rows that were deleted, updated or never committed;
the table's log says which rows are current. So the table is read at its log's current version, or
not at all. Its files must be inside the folder, by which the ledger identifies it: the log of a
clone names another table's files.
"""

# Addresses and links stay strings: pathlib would normalise them.
# ruff: noqa: PTH112, PTH114, PTH118, PTH120, PTH208
from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from dphh.corpus import Corpus
from dphh.errors import CorpusError, UsageError
from dphh.files.paths import files_of
from dphh.sources.finding import StreamedTable, refuse_blocking_files
from dphh.wording.warned import warn

_METADATA_FILE = re.compile(r"(?:v?(\d+)(?:-[^/]*)?)(?:\.gz)?\.metadata\.json(?:\.gz)?$")
#: Arrow tries a Google store again for 15 minutes where there is no network, unless told otherwise.
GIVING_UP = "?retry_limit_seconds=5"
_STORE_ADDRESS = re.compile(r"(s3a?|gs|gcs)://")
_OUTSIDE = re.compile(r"^/|^[A-Za-z][A-Za-z0-9+.-]*:|(^|/)\.\.(/|$)")
#: Characters that URL parsers drop or take for a slash. Log writers escape them.
_DROPPED_CHARACTERS = re.compile(r"[\x00-\x1f\x7f\\]")
#: Escapes that URL parsers take for a dot or a slash, if in the name of a table's folder.
_DECODED_ESCAPES = re.compile(r"%(2e|2f|5c)", re.IGNORECASE)
_WILDCARD = re.compile(r"[*?\[{]")


def lake_table(corpus: Corpus, place: str) -> StreamedTable | None:
    """The table in this folder, at its log's current version; None if it is not a lake table."""
    kept_by = lake_format_of(place) if "://" not in place else _remote_format(place)
    if kept_by is not None and "://" not in place:
        refuse_blocking_files(files_of(place))
    if kept_by == "Delta":
        return _read_with_clear_errors(corpus, place, kept_by, _open_delta)
    if kept_by == "Iceberg" and "://" not in place:
        return _read_with_clear_errors(corpus, place, kept_by, _open_iceberg)
    return None


def lake_format_of(folder: str) -> str | None:
    """The format of the table whose folder this is; None if it is no table's folder."""
    if os.path.isdir(os.path.join(folder, "_delta_log")):
        return "Delta"
    if os.path.isdir(os.path.join(folder, ".hoodie")):
        return "Hudi"
    return "Iceberg" if _metadata_files(folder) else None


def refuse_files_of_tables(corpus: Corpus) -> None:
    """Refuse files of a lake table that are read without its log: they may have deleted rows."""
    looked: dict[str, str | None] = {}
    for place in corpus.where:
        found = _remote_tables(place) if "://" in place else _tables_of_files(place, looked)
        for folder, kept_by in found:
            raise CorpusError(f"corpus: {_refusal_of_files(folder, kept_by)}")


def warn_of_files_of_tables(files: Iterable[str]) -> None:
    """Warn instead of refusing, because the owner wrote the query of a frame or a view."""
    looked: dict[str, str | None] = {}
    for file in files:
        for folder, kept_by in () if "://" in file else _tables_of_files(file, looked):
            warn(
                f"these rows come from files of the {kept_by} table {folder}, past its log: they "
                "hold rows that were deleted. Give that folder as the corpus, or a frame of its "
                "own reader's, such as pl.scan_delta's",
            )
            return


def _refusal_of_files(folder: str, kept_by: str) -> str:
    rows = f"{folder} is a {kept_by} table, whose files hold rows that were deleted"
    if kept_by == "DuckLake":
        return (
            f"{rows}: attach it to a DuckDB connection (ATTACH 'ducklake:...'), and pass the "
            "table's name, connection= and account="
        )
    if kept_by == "Hudi" or (kept_by == "Iceberg" and "://" in folder):
        return f"{rows}: read it with its own reader, and pass the frame and account="
    return f"{rows}: give that folder itself, and no glob or file in it, as the corpus"


def _tables_of_files(place: str, looked: dict[str, str | None]) -> Iterator[tuple[str, str]]:
    real: dict[str, str] = {}
    for file in files_of(place):
        folder, name = os.path.split(os.path.realpath(file) if os.path.islink(file) else file)
        if name.startswith("ducklake-") and name.endswith(".parquet"):
            yield folder, "DuckLake"
        if folder in real:
            continue
        above = real[folder] = os.path.realpath(folder)
        while above not in looked:
            kept_by = looked[above] = lake_format_of(above)
            if kept_by is not None:
                yield above, kept_by
            above = os.path.dirname(above)


def _read_with_clear_errors(corpus: Corpus, place: str, kept_by: str, read: Any) -> StreamedTable:
    try:
        table: StreamedTable = read(place)
    except (CorpusError, UsageError):
        raise
    except ModuleNotFoundError as problem:
        raise UsageError(
            f"corpus: {place} is a {kept_by} table, and reading one needs the package "
            f"{problem.name}: pip install 'dphh[{kept_by.lower()}]'"
        ) from None
    except Exception as problem:
        raise CorpusError(
            f"corpus: {', '.join(corpus.where)}: the {kept_by} table could not be read "
            f"({type(problem).__name__}): read it with its own reader, and pass the frame and "
            "account="
        ) from None
    return table


def _open_delta(place: str) -> StreamedTable:
    folder = place if "://" in place else _resolved_folder(place)
    table = import_module("deltalake").DeltaTable(folder)
    # The paths as the log writes them: `file_uris` would place a clone's addresses in the folder.
    paths = pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()
    if any(map(_may_leave_folder, paths)):
        raise _error_of_outside_file(place)
    return StreamedTable(
        pa.schema(table.schema().to_arrow()), lambda names: table.scan(columns=names)
    )


def _resolved_folder(folder: str) -> str:
    """The folder with links and `..` resolved; Delta's reader would resolve them differently."""
    real = os.path.realpath(folder)
    if _DROPPED_CHARACTERS.search(real) or _DECODED_ESCAPES.search(real):
        raise CorpusError(
            f"corpus: {folder} is a Delta table in a folder whose name Delta's reader would "
            "change: the name must have no control character, no backslash, and no dot or slash "
            "written as %2E or %2F; rename the folder"
        )
    return real


def _may_leave_folder(spelled: str) -> bool:
    """Whether a path in a log may mean a file outside the table's folder.

    The reader resolves it as browsers resolve a relative URL: it drops tabs and line ends anywhere
    and spaces at the ends, takes a backslash for a slash, and `%2e` for a dot. Apart from these,
    only a scheme, a leading slash and `..` lead outside.
    """
    readings = (spelled, unquote(spelled))
    return any(
        _DROPPED_CHARACTERS.search(each) or _OUTSIDE.search(each.strip()) for each in readings
    )


def _open_iceberg(folder: str) -> StreamedTable:
    tables = import_module("pyiceberg.table")
    metadata_file = _current_metadata(os.path.realpath(folder))
    files = _files_within(folder)
    metadata = import_module("pyiceberg.serializers").FromInputFile.table_metadata(
        files.new_input(metadata_file)
    )
    # Not `from_metadata`: it would open files as the table's own properties say.
    table = tables.StaticTable(
        identifier=("static-table", metadata_file),
        metadata=metadata,
        metadata_location=metadata_file,
        io=files,
        catalog=import_module("pyiceberg.catalog.noop").NoopCatalog("static-table"),
    )
    for task in table.scan().plan_files():
        for file in (task.file, *task.delete_files):
            files.new_input(file.file_path)  # checked now, before anything is paid

    def read(names: list[str]) -> Any:
        return table.scan(selected_fields=tuple(names)).to_arrow_batch_reader()

    return StreamedTable(table.schema().as_arrow(), read)


def _files_within(folder: str) -> Any:
    """An Iceberg FileIO that opens no file outside the folder. It checks each location as the
    FileIO itself parses it."""
    files = import_module("pyiceberg.io.pyarrow").PyArrowFileIO()
    opened = files.new_input
    within = os.path.join(os.path.realpath(folder), "")

    def new_input(location: str) -> Any:
        scheme, _, path = files.parse_location(location)
        leads_in = scheme == "file" and os.path.realpath(path).startswith(within)
        if _DROPPED_CHARACTERS.search(location) or not leads_in:
            raise _error_of_outside_file(folder)
        return opened(location)

    files.new_input = new_input
    return files


def _error_of_outside_file(folder: str) -> CorpusError:
    """The error for files outside the folder, by which the ledger identifies the table."""
    return CorpusError(
        f"corpus: {folder} is a table whose log names files outside its folder (it was cloned or "
        "moved), so the ledger cannot know which account pays: give the table that contains the "
        "files, or pass a frame and account="
    )


def _current_metadata(folder: str) -> str:
    """The newest metadata file; each commit writes the next version number."""
    versions = [(int(m[1]), f) for f in _metadata_files(folder) if (m := _METADATA_FILE.search(f))]
    newest = max(number for number, _ in versions)
    of_newest = [file for number, file in versions if number == newest]
    if len(of_newest) > 1:
        raise CorpusError(
            f"corpus: {folder} is an Iceberg table with {len(of_newest)} newest versions, and only "
            "its catalog knows the current one: pass catalog.load_table(...).scan().to_arrow() and "
            "account="
        )
    return of_newest[0]


def _metadata_files(folder: str) -> list[str]:
    inner = os.path.join(folder, "metadata")
    try:
        return [
            os.path.join(inner, name) for name in os.listdir(inner) if _METADATA_FILE.search(name)
        ]
    except OSError:
        return []


def _host_and_path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc}/{parts.path.strip('/')}"


def _remote_format(place: str) -> str | None:
    if _STORE_ADDRESS.match(place) is None or _WILDCARD.search(place):
        return None
    return next(
        (
            kept
            for folder, kept in _remote_tables(place)
            if _host_and_path(folder) == _host_and_path(place)
        ),
        None,
    )


def _remote_tables(place: str) -> Iterator[tuple[str, str]]:
    """Lake tables inside or above an address in a store. Lists names only."""
    if (scheme := _STORE_ADDRESS.match(place)) is None:
        return  # a web address cannot be listed
    store = scheme[0].replace("s3a:", "s3:").replace("gcs:", "gs:")
    rest = place[len(scheme[0]) :]
    base = _WILDCARD.split(rest)[0]
    if base != rest:  # keep the part up to the last folder before a wildcard
        base = base.rpartition("/")[0]
    try:
        limit = GIVING_UP if store == "gs://" else ""
        system, path = fs.FileSystem.from_uri(store + base.strip("/") + limit)
        names = [
            each.path
            for each in system.get_file_info(
                fs.FileSelector(path, recursive=True, allow_not_found=True)
            )
        ]
        above = path
        while "/" in above:
            above = above.rpartition("/")[0]
            marks = [f"{above}/_delta_log", f"{above}/.hoodie"]
            names += [
                each.path
                for each in system.get_file_info(marks)
                if each.type == fs.FileType.Directory
            ]
            selector = fs.FileSelector(f"{above}/metadata", allow_not_found=True)
            names += [each.path for each in system.get_file_info(selector)]
    except (OSError, ValueError, NotImplementedError) as problem:
        warn(
            f"it could not be looked whether {place} holds files of a Delta or an Iceberg table "
            f"({type(problem).__name__}), which may hold rows that were deleted",
        )
        return
    for name in names:
        folder, _, last = name.rpartition("/")
        if last in ("_delta_log", ".hoodie"):
            yield store + folder, "Delta" if last == "_delta_log" else "Hudi"
        elif folder.endswith("/_delta_log"):
            yield store + folder.removesuffix("/_delta_log"), "Delta"
        elif folder.endswith("/metadata") and _METADATA_FILE.search(last):
            yield store + folder.removesuffix("/metadata"), "Iceberg"
        elif last.startswith("ducklake-") and last.endswith(".parquet"):
            yield store + folder, "DuckLake"
