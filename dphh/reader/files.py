"""The files of a corpus, here and in stores, which DuckDB reads through its httpfs extension; and
refusals of files and columns, before anything is paid."""

# Many small files: pathlib takes several times as long.
# ruff: noqa: PTH202
from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Collection
from itertools import islice, product
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dphh.columns import type_name
from dphh.errors import CorpusError, UnreachableError
from dphh.reader.corpus import USER_TYPE_MESSAGE, Corpus
from dphh.reader.paths import WILDCARD, escaped_glob, files_matching, is_remote, is_skipped
from dphh.sql import literal
from dphh.wording.options import did_you_mean

#: An error about a missing column lists at most this many columns of the corpus.
MOST_LISTED_COLUMNS = 100
#: So many files, of at most this mean size and all together of at most so many bytes, are read once
#: and kept.
LEAST_MANY_FILES, SMALL_FILE_BYTES, MOST_KEPT_BYTES = 50, 1 << 17, 1 << 28
#: Formats whose files may hold deleted rows: the files of their log, their names, and how their
#: current rows are read.
_FORMATS_WITH_DELETED_ROWS = (
    ("_delta_log/*", "Delta", "pl.scan_delta(...), or con.sql(\"FROM delta_scan('...')\")"),
    ("metadata/*.metadata.json", "Iceberg", "pyiceberg's table.scan().to_arrow()"),
)


def refuse_delta_and_iceberg(corpus: Corpus) -> None:
    """Refuse the folder of a Delta or Iceberg table, and its files: these may have deleted rows."""
    here = {Path(place) for place in corpus.where if not is_remote(place)}
    here |= {*map(Path, map(os.path.dirname, corpus.local_files))}
    folders = dict.fromkeys(above for each in here for above in (each, *each.parents))
    for folder, (log, kind, instead) in product(folders, _FORMATS_WITH_DELETED_ROWS):
        if any(folder.glob(log)):
            raise CorpusError(
                f"corpus: {folder} is a table of {kind}, whose files hold rows that were deleted; "
                f"give a frame of it, by {instead}, and name its account=... "
                f"(pip install 'dphh[{kind.lower()}]')"
            )


def refuse_unclear_columns(corpus: Corpus) -> bool:
    """Refuse local Parquet files that cannot be opened, in which two columns have the same name, or
    whose types of a user column are of different kinds. An engine casts them to one type: beside
    texts, 1.0 becomes text; beside whole numbers, 1.4 and 1.1 become the same number.

    Returns whether all files have one schema.
    """
    found: dict[str, tuple[str, str]] = {}
    seen: list[pq.ParquetSchema] = []
    for file in corpus.local_files:
        schema, columns = schemas_of_parquet(corpus, file)
        if any(map(schema.equals, seen)):
            continue
        seen.append(schema)
        refuse_duplicate_columns(corpus, columns.names, shown_file(corpus, file))
        for option, column in corpus.columns_of_user:
            if (place := columns.get_field_index(column)) < 0:
                continue
            if (kind := _kind_of_user_type(columns.field(place).type)) == "null":
                continue  # a column of NULLs alone fits every kind
            before, first = found.setdefault(column, (kind, file))
            if kind != before:
                both = " and ".join(
                    f"{each} in {shown_file(corpus, of)}"
                    for each, of in ((before, first), (kind, file))
                )
                raise CorpusError(USER_TYPE_MESSAGE.format(option=option, column=column, kind=both))
    return len(seen) == 1


def schemas_of_parquet(corpus: Corpus, file: str) -> tuple[pq.ParquetSchema, pa.Schema]:
    """The schema of one file of the corpus, as Parquet and as Arrow have it."""
    try:
        schema = pq.read_metadata(file).schema
        return schema, schema.to_arrow_schema()
    except (OSError, pa.ArrowException) as problem:
        shown, why = shown_file(corpus, file), type(problem).__name__
    if not _may_be_unfinished(file):
        raise unreadable_files_error(corpus, f"{shown} cannot be read as Parquet ({why})")
    raise UnreachableError(
        f"corpus: {', '.join(corpus.where)}: {shown} is empty, has no end or is gone: it was cut "
        "short, or is still being written. Try again when it is complete, or remove it; who writes "
        "such files should give them a name with _ or a dot before it until they are complete"
    )


def _may_be_unfinished(file: str) -> bool:
    """Whether a file is gone, is empty, or begins as Parquet and does not end so."""
    try:
        with Path(file).open("rb") as opened:
            start = opened.read(4)
            opened.seek(max(4, Path(file).stat().st_size - 4))
            return not start or (start == b"PAR1" and opened.read() != start)
    except OSError as problem:
        return isinstance(problem, FileNotFoundError)


def shown_file(corpus: Corpus, file: str) -> str:
    """The file as errors name it: from the folder that was asked for on, and without the user ids
    in the names of partition folders."""
    for place in corpus.where:
        spelled = f"{place}/" if Path(place).is_dir() else WILDCARD.split(place)[0]
        if file.startswith(folder := spelled[: spelled.rindex("/") + 1]):
            file = file.removeprefix(folder)
            break
    columns = "|".join(map(re.escape, corpus.user))
    return re.sub(f"(^|/)({columns})=[^/]*(?=/)", r"\1\2=*", file)


def _kind_of_user_type(arrow_type: pa.DataType) -> str:
    """The kind of a user column's type. If types of one kind are cast to a common type, equal user
    ids stay equal and different ones stay different."""
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if pa.types.is_integer(arrow_type):
        return "integer"
    if pa.types.is_decimal(arrow_type):
        return f"decimal of {arrow_type.scale} places"
    return type_name(arrow_type)


def unreadable_files_error(
    corpus: Corpus,
    what_is_wrong: str,
    advice: str = "give a Parquet file, a glob such as 'reviews/*.parquet', or a folder of them; "
    "or text files whose names end in .csv (in Excel, 'CSV UTF-8'), .tsv or .jsonl; or read it "
    "with another library, and give the table and account= (docs/corpus.md)",
) -> CorpusError:
    return CorpusError(f"corpus: {', '.join(corpus.where)}: {what_is_wrong}; {advice}")


def no_such_file_error(corpus: Corpus) -> CorpusError:
    for folder in corpus.where:
        if is_remote(folder) or not Path(folder).is_dir():
            continue
        said = "in this folder, and below it, is no file *.parquet"
        for ending in ("csv", "tsv", "jsonl", "ndjson"):
            if files_matching(f"{escaped_glob(folder)}/**/*.{ending}"):
                said += f"; name its files of another format, as '{folder}/**/*.{ending}'"
                break
        return unreadable_files_error(corpus, said)
    return unreadable_files_error(corpus, "there is no such file")


def refuse_missing_files(corpus: Corpus) -> None:
    """Refuse local places without a file, and files whose names no engine can be given."""
    for place, files in corpus.files_of_places().items():
        if not files and not is_remote(place):
            raise no_such_file_error(corpus)
        for file in files:
            if file != file.encode(errors="ignore").decode():
                raise unreadable_files_error(
                    corpus, "the name of a file is not UTF-8, and no engine opens it; rename it"
                )


def are_many_and_small(corpus: Corpus) -> bool:
    files = corpus.local_files
    if len(files) < LEAST_MANY_FILES:
        return False
    sizes = sum(os.path.getsize(file) for file in files)
    return sizes < min(len(files) * SMALL_FILE_BYTES, MOST_KEPT_BYTES)


def make_private_and_alike(con: duckdb.DuckDBPyConnection) -> None:
    """Switch off DuckDB's own progress bar, which would tell how much data each step reads. In a
    kernel without ipywidgets it is off already, and DuckDB refuses to switch it off. And let times
    with a zone be compared and written in UTC, whatever zone the machine is in."""
    ((on,),) = con.execute("SELECT current_setting('enable_progress_bar')").fetchall()
    if on:
        con.execute("SET enable_progress_bar = false")
    con.execute("SET TimeZone = 'UTC'")


def reach_stores(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> None:
    """Let an instance read the remote addresses of a corpus, if it has any."""
    remote = [place for place in corpus.where if corpus.kind == "path" and is_remote(place)]
    if not remote:
        return
    try:
        file = extension_file("httpfs")
        # INSTALL does nothing if the extension is installed.
        con.execute("INSTALL httpfs; LOAD httpfs" if file is None else f"LOAD {literal(str(file))}")
    except duckdb.Error as problem:
        raise CorpusError(
            f"corpus: {remote[0]}: DuckDB needs its extension httpfs to read from a store, and "
            f"could not load it ({type(problem).__name__}): run INSTALL httpfs in DuckDB "
            f"{duckdb.__version__} with a network connection, or download the files"
        ) from None
    if any(place.lower().startswith("s3") for place in remote):
        con.execute(_credentials_sql())


def extension_file(name: str, version: str = duckdb.__version__) -> Path | None:
    """The file of a DuckDB extension, if a Python package has it for this version of DuckDB; None
    otherwise. An extension loads only into the version for which it was built."""
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    for folder in (spec and spec.submodule_search_locations) or ():
        file = Path(folder, "extensions", f"v{version}", f"{name}.duckdb_extension")
        if file.is_file():
            return file
    return None


def _credentials_sql() -> str:
    """SQL that gives DuckDB the credentials in the `AWS_...` variables, where Polars and Delta's
    reader also find them. Without credentials, SQL that does nothing."""
    given = os.environ.get
    options = {
        "KEY_ID": given("AWS_ACCESS_KEY_ID"),
        "SECRET": given("AWS_SECRET_ACCESS_KEY"),
        "SESSION_TOKEN": given("AWS_SESSION_TOKEN"),
        "REGION": given("AWS_REGION") or given("AWS_DEFAULT_REGION"),
    }
    if endpoint := given("AWS_ENDPOINT_URL_S3") or given("AWS_ENDPOINT_URL"):
        parts = urlsplit(endpoint)
        options |= {"ENDPOINT": parts.netloc, "URL_STYLE": "path"}
        options["USE_SSL"] = "false" if parts.scheme == "http" else "true"
    said = "".join(
        f", {option} {literal(value)}" for option, value in options.items() if value is not None
    )
    return f"CREATE SECRET (TYPE s3{said})" if options["KEY_ID"] else "SELECT 1"


def files_to_read(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> list[str]:
    """The files of a corpus, each as a glob that matches it alone. DuckDB lists those of stores."""
    found = [*map(escaped_glob, corpus.local_files)]
    for place in filter(is_remote, corpus.where):
        if WILDCARD.search(place) is None:
            found.append(place)
            continue
        listed = con.execute("SELECT file FROM glob($1) ORDER BY file", [place]).fetchall()
        if not (files := [file for (file,) in listed if not is_skipped(file, place)]):
            raise no_such_file_error(corpus)
        found += files
    return [*dict.fromkeys(found)]


def unreadable_parquet_error(
    corpus: Corpus, problem: duckdb.Error
) -> CorpusError | UnreachableError:
    """The error for Parquet files that DuckDB cannot open."""
    said, kind = str(problem), type(problem).__name__
    remote = [place for place in corpus.where if is_remote(place)]
    # Only the text of DuckDB's error says that a file is missing.
    if any(text in said for text in ("No files found", "404 Not Found", "HTTP 404")):
        return no_such_file_error(corpus)
    if remote and isinstance(problem, (duckdb.IOException, duckdb.HTTPException)):
        return UnreachableError(
            f"corpus: {', '.join(remote)}: the store refused, or could not be reached ({kind}); "
            "see that the address is right, that there is a network, and that the credentials may "
            "read it (for S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION)"
        )
    return unreadable_files_error(corpus, f"it cannot be read as Parquet ({kind})")


def refuse_duplicate_columns(
    corpus: Corpus, columns: list[str], columns_of: str = "the corpus"
) -> None:
    """Refuse a corpus whose columns cannot be told apart by their names, for which DuckDB and Spark
    do not mind upper and lower case."""
    for option, column in corpus.columns.items():
        if (times := columns.count(column)) > 1:
            raise CorpusError(
                f"{option}: {columns_of} has {times} columns {column!r}; rename all but one"
            )
        alike = [each for each in columns if each.lower() == column.lower()]
        if len(alike) > 1:
            raise CorpusError(
                f"{option}: {columns_of} has the columns {', '.join(alike)}, whose names differ "
                "only in upper and lower case; rename all but one"
            )


def refuse_missing_columns(corpus: Corpus, columns: Collection[str], what_it_has: str = "") -> None:
    """Refuse a corpus that names a column which is not in `columns`. `what_it_has`: how the message
    describes what is there, if not by the names of the columns, which may then be data."""
    for option, column in corpus.columns.items():
        if column not in columns:
            first = ", ".join(islice(columns, MOST_LISTED_COLUMNS))
            more = len(columns) - MOST_LISTED_COLUMNS
            first += f" and {more:,} more" if more > 0 else ""
            there = what_it_has or f"it has {first or 'no columns at all'}"
            if option.startswith("where"):  # it may have been meant as a text
                there += f"; a text needs single quotes: '{column}'"
            plain = column.strip().lower()
            alike = [each for each in columns if not what_it_has or each.strip().lower() == plain]
            raise CorpusError(
                f"{option}: the corpus has no column {column!r}; "
                f"{did_you_mean(column, alike, there)}"
            )
