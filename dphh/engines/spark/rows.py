"""Where Spark finds a corpus's rows: files, frames of Spark's own, or tables in memory."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable
from os.path import commonpath
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dphh.corpora.files import no_such_file, refuse_missing_columns, unreadable_files
from dphh.corpora.tables import rows_in_memory, schema_in_memory
from dphh.corpus import Corpus
from dphh.errors import CorpusError, UsageError
from dphh.files.paths import files_named

ROWS = "corpus_rows"
Loader = Callable[[], None]
_TEXT_TYPES = (
    pa.types.is_null, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_decimal256,
    pa.types.is_time,
)  # fmt: skip
_BINARY_TYPES = (pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)


#: Names that Spark takes for no data; a _ with a = is a folder's that spells a column.
_SKIPPED_BY_SPARK = re.compile(r"\.|_(?!.*=)")
_METADATA_FILES = ("_metadata", "_common_metadata")


class Opening(Protocol):
    """What opening a corpus asks of a host."""

    #: The run's own, and the one that it was made from.
    spark: SparkSession
    owner: SparkSession
    #: The content column, and the expression that makes tokens of it.
    tokens: tuple[str, str]

    def when_closed(self, undo: Callable[[], object]) -> None: ...


def find_rows(host: Opening, corpus: Corpus) -> Loader:
    """Define the view corpus_rows. Only names and types are asked for until the run begins."""
    load: Loader = _load_nothing
    if corpus.content.where is not None:
        raise UsageError(
            "where: is DuckDB's SQL, and goes with DuckDB and Polars; filter the Spark frame "
            "(frame.where(...)) and name its account (account=), or use another engine"
        )
    if corpus.kind == "path":
        rows = _path_rows(host, corpus)
    elif isinstance(corpus.source, DataFrame):
        rows = _frame_rows(host, corpus)
    else:
        schema = schema_in_memory(corpus)
        refuse_missing_columns(corpus, schema.names)
        rows, load = _table_in_memory(host, corpus, schema)
    rows.createOrReplaceTempView(ROWS)
    return load


def _path_rows(host: Opening, corpus: Corpus) -> DataFrame:
    """Files on this machine by their names, whatever is in them; other places as Spark does."""
    here = [path for path in corpus.where if "://" not in path]
    names = [name for path in here for name in files_named(path)]
    _refuse_files_skipped_by_spark(names)
    files = [f"file://{_without_glob_meaning(name)}" for name in names]
    remote = [path for path in corpus.where if "://" in path]
    if here and not files and not remote:
        raise no_such_file(corpus)
    several = len(files) != 1 or remote
    reader = host.spark.read.option("mergeSchema", "true" if several else "false")
    try:
        # A column of the files is taken before one that the folders' names spell.
        rows = reader.option("recursiveFileLookup", "true").parquet(*files, *remote)
        if set(corpus.columns.values()) <= set(rows.columns):
            return rows
        if files:
            reader = reader.option(
                "basePath",
                f"file://{_without_glob_meaning(_folder_above_partitions(corpus, here))}",
            )
        return reader.option("recursiveFileLookup", "false").parquet(*files, *remote)
    except (PySparkException, Py4JError) as problem:
        if re.search("ClassNotFound|UnsupportedFileSystem|No FileSystem", str(problem)):
            raise CorpusError(
                f"corpus: {', '.join(corpus.where)}: this Spark has no reader for such a store: "
                "start it with Hadoop's (for S3, --packages org.apache.hadoop:hadoop-aws:VERSION) "
                "and give an s3a:// address, or use another engine"
            ) from None
        missing = "PATH_NOT_FOUND" in str(problem)
        raise unreadable_files(
            corpus,
            "there is no such file"
            if missing
            else f"it cannot be read as Parquet ({type(problem).__name__})",
        ) from None


def _refuse_files_skipped_by_spark(files: Iterable[str]) -> None:
    """Other engines read them, so that the same request would come to another release."""
    for file in files:
        name = Path(file).name
        if _SKIPPED_BY_SPARK.match(name) and name not in _METADATA_FILES:
            raise CorpusError(
                f"corpus: {file}: Spark skips files whose name begins with a dot or with _; "
                "rename the file, or name the other files as the corpus"
            )


def _without_glob_meaning(path: str) -> str:
    """A name without the meaning that Hadoop's globs would give it."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def _folder_above_partitions(corpus: Corpus, here: list[str]) -> str:
    """The deepest folder that all files share and that is above all key=value folders."""
    folders = []
    for path in here:
        for name in files_named(path):
            parts = Path(name).parent.parts
            cut = next((i for i, part in enumerate(parts) if "=" in part), len(parts))
            folders.append(str(Path(*parts[:cut])))
    return commonpath(folders)


def _frame_rows(host: Opening, corpus: Corpus) -> DataFrame:
    """A frame of another session: they meet in Spark's global views, under a name of its own."""
    frame = corpus.source
    for option, column in corpus.columns.items():
        if frame.columns.count(column) > 1:
            raise CorpusError(
                f"{option}: the corpus has {frame.columns.count(column)} columns {column!r}; "
                "rename all but one"
            )
    refuse_missing_columns(corpus, frame.columns)
    view = f"dphh_{uuid.uuid4().hex}"
    wanted = dict.fromkeys(corpus.columns.values())
    frame.select(*(identifier(column) for column in wanted)).createGlobalTempView(view)
    host.when_closed(lambda: host.owner.catalog.dropGlobalTempView(view))
    return host.spark.table(f"global_temp.{view}")


def _table_in_memory(host: Opening, corpus: Corpus, schema: Any) -> tuple[DataFrame, Loader]:
    """Tables in memory come in as Arrow. Only their schema is asked for until the run begins."""

    def load() -> None:
        rows = _with_spark_types(corpus, pa.table(rows_in_memory(corpus)))
        host.spark.createDataFrame(rows).createOrReplaceTempView(ROWS)

    wanted = list(dict.fromkeys(corpus.columns.values()))
    empty = pa.schema([schema.field(name) for name in wanted]).empty_table()
    return host.spark.createDataFrame(_with_spark_types(corpus, empty)), load


def _with_spark_types(corpus: Corpus, table: pa.Table) -> pa.Table:
    """The same values in types that Spark has."""
    columns = []
    try:
        for column in table.columns:
            wanted = _spark_type(column.type)
            chunks = [
                _without_extension_or_dictionary(chunk).cast(wanted) for chunk in column.chunks
            ]
            columns.append(pa.chunked_array(chunks, wanted))
    except (pa.ArrowException, ValueError) as problem:
        raise CorpusError(
            f"source: {corpus.where[0]} has a user or content column of a type that Spark cannot "
            f"take ({type(problem).__name__}); cast it to text"
        ) from None
    return pa.table(columns, names=table.column_names)


def _without_extension_or_dictionary(values: Any) -> Any:
    if isinstance(values, pa.ExtensionArray):
        return values.storage
    if isinstance(values, pa.DictionaryArray):
        return values.dictionary.cast(_spark_type(values.type)).take(values.indices)
    return values


def _spark_type(kind: Any) -> Any:
    """Spark has one kind of list, of text and of bytes, and no unsigned numbers."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        plain = _spark_type(kind.storage_type)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        plain = pa.list_(_spark_type(kind.value_type))
    elif types.is_dictionary(kind):
        plain = _spark_type(kind.value_type)
    elif any(check(kind) for check in _TEXT_TYPES):
        plain = pa.string()
    elif any(check(kind) for check in _BINARY_TYPES):
        plain = pa.binary()
    elif types.is_unsigned_integer(kind):
        plain = pa.decimal128(20, 0) if kind.bit_width == 64 else pa.int64()
    elif types.is_float16(kind):
        plain = pa.float32()
    elif types.is_timestamp(kind):
        plain = pa.timestamp("us", kind.tz)
    else:
        plain = kind
    return plain


def _load_nothing() -> None:
    """Files are read where they are."""


def identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
