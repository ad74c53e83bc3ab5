"""Opens a corpus in Spark: the view rows_of_corpus (user_id, content, group_name), and the function
that makes tokens. Rows are in files, in a frame of Spark's own, or in a table that DuckDB reads."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from os.path import commonpath
from pathlib import Path

import duckdb
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    StringType,
    VarcharType,
)

from dphh.engines.spark.dialect import register_arrow
from dphh.errors import CorpusError, UsageError
from dphh.reader.conditions import check_patterns
from dphh.reader.content import Content
from dphh.reader.corpus import ROWS_WITHOUT_USER_MESSAGE, Corpus
from dphh.reader.failures import replace_duckdb_errors
from dphh.reader.files import (
    refuse_duplicate_columns,
    refuse_missing_columns,
    unreadable_files_error,
)
from dphh.reader.paths import SKIPPED_NAME, is_remote
from dphh.reader.rows import Limits, Rows
from dphh.reader.views import refuse_unclear_types, tokens_by_duckdb, tokens_query

SOURCE_VIEW_NAME = "corpus_rows"
#: Makes the rows of a corpus available; called when the run has begun.
Loader = Callable[[], None]
#: A function that takes what is to be called when the run ends.
UndoAtClose = Callable[[Callable[[], object]], object]


def open_corpus(
    spark: SparkSession, corpus: Corpus, undo_at_close: UndoAtClose
) -> tuple[Loader, str]:
    """Check the names and types of the columns. Reads no row. DuckDB makes the tokens on the
    executors, so that all engines read content alike. Returns a function that loads the rows, and
    DuckDB's query that makes tokens of their content."""
    if corpus.content.where is not None:
        raise UsageError(
            "where: it is DuckDB's SQL, for the engines DuckDB and Polars; filter the Spark frame "
            "(frame.where(...)) and name its account (account=), or use another engine"
        )
    if corpus.kind == "path" or isinstance(corpus.source, DataFrame):
        load_rows, content_type = _opened_by_spark(spark, corpus, undo_at_close)
    else:
        load_rows, content_type = _opened_by_duckdb(spark, corpus, undo_at_close)
    query_of_rows = tokens_query(corpus.content, content_type, "FROM rows")

    def tokens(content: pa.Array) -> pa.Array:
        return tokens_by_duckdb(content, query_of_rows)

    def load_rows_and_define_tokens() -> None:
        load_rows()
        register_arrow(spark, "dphh_tokens", tokens, "array<string>")

    return load_rows_and_define_tokens, query_of_rows


def _opened_by_duckdb(
    spark: SparkSession, corpus: Corpus, undo_at_close: UndoAtClose
) -> tuple[Loader, str]:
    """For DuckDB's tables and tables in memory: a function that loads the rows, and the type of the
    content in DuckDB."""
    rows = Rows(corpus, Limits())
    undo_at_close(rows.close)
    described = rows.con.execute("DESCRIBE SELECT content FROM rows_of_corpus").fetchall()

    def load_rows() -> None:
        rows.open()
        with replace_duckdb_errors("rows_of_corpus"):
            read = rows.con.sql("FROM rows_of_corpus").to_arrow_table()
        rows.close()  # frees DuckDB's own copy of the rows
        frame_of(spark, read).createOrReplaceTempView("rows_of_corpus")

    return load_rows, described[0][1]


def _opened_by_spark(
    spark: SparkSession, corpus: Corpus, undo_at_close: UndoAtClose
) -> tuple[Loader, str]:
    """For files and Spark frames: a function that loads the rows, and refuses rows without a user;
    and the type of the content in DuckDB. Here only names and types are read."""
    is_path = corpus.kind == "path"
    found = _path_rows(spark, corpus) if is_path else _frame_rows(spark, corpus, undo_at_close)
    found.createOrReplaceTempView(SOURCE_VIEW_NAME)
    types = {field.name: _type_name(field.dataType) for field in found.schema.fields}
    refuse_missing_columns(corpus, types)
    with duckdb.connect() as con:
        check_patterns(con, corpus.content.patterns)
    refuse_unclear_types(corpus, types)
    name = corpus.content.column
    content, content_type = _content_and_duckdb_type(corpus.content, found.schema[name].dataType)
    user = _user_sql(corpus, types)
    group = "CAST(NULL AS STRING)" if corpus.by is None else _text_sql(corpus.by, types)
    users = [identifier(column) for column in corpus.user]
    needed = [identifier(name), *(users if corpus.content.null_users == "drop" else ())]
    counted = " AND ".join(f"{column} IS NOT NULL" for column in needed)

    def load_rows() -> None:
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW rows_of_corpus AS "
            f"SELECT {user} AS user_id, {content} AS content, {group} AS group_name "
            f"FROM {SOURCE_VIEW_NAME} WHERE {counted}"
        )
        nulls = " OR ".join(f"{column} IS NULL" for column in users)
        look = f"SELECT 1 FROM {SOURCE_VIEW_NAME} WHERE {nulls} LIMIT 1"
        if corpus.content.null_users == "refuse" and spark.sql(look).collect():
            raise CorpusError(ROWS_WITHOUT_USER_MESSAGE)

    return load_rows, content_type


def _path_rows(spark: SparkSession, corpus: Corpus) -> DataFrame:
    """The rows of the corpus's files. On this machine each file is given to Spark by its name, with
    wildcards escaped; paths elsewhere are given as they are."""
    names = corpus.local_files
    _refuse_files_skipped_by_spark(names)
    files = [f"file://{_escaped_glob(name)}" for name in names]
    remote = [*dict.fromkeys(filter(is_remote, corpus.where))]
    several = len(files) != 1 or remote
    reader = spark.read.option("mergeSchema", "true" if several else "false")
    try:
        # A column in the files takes precedence over one in the names of partition folders.
        rows = reader.option("recursiveFileLookup", "true").parquet(*files, *remote)
        if set(corpus.columns.values()) <= set(rows.columns):
            return rows
        if files:
            folder = _escaped_glob(_folder_above_partitions(names))
            reader = reader.option("basePath", f"file://{folder}")
        return reader.option("recursiveFileLookup", "false").parquet(*files, *remote)
    except (PySparkException, Py4JError) as problem:
        if re.search("ClassNotFound|UnsupportedFileSystem|No FileSystem", str(problem)):
            raise CorpusError(
                f"corpus: {', '.join(corpus.where)}: this Spark has no reader for that store: "
                "start it with one (for S3, --packages org.apache.hadoop:hadoop-aws:VERSION) "
                "and give an s3a:// address, or use another engine"
            ) from None
        fault = f"it cannot be read as Parquet ({type(problem).__name__})"
        if "PATH_NOT_FOUND" in str(problem):
            fault = "there is no such file"
        raise unreadable_files_error(corpus, fault) from None


def _refuse_files_skipped_by_spark(files: Iterable[str]) -> None:
    """Refuse files that were named and that only other engines read: one request would give
    different releases."""
    for file in files:
        if SKIPPED_NAME.match(Path(file).name):
            raise CorpusError(
                f"corpus: {file}: Spark skips files whose name begins with a dot or with _; "
                "rename the file, or name the other files as the corpus"
            )


def _escaped_glob(path: str) -> str:
    """The path with backslashes before the characters that Hadoop's globs would interpret."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def _folder_above_partitions(files: Iterable[str]) -> str:
    """The deepest folder that all files share and that is above all key=value folders."""
    folders = []
    for file in files:
        names = Path(file).parent.parts
        folders.append(str(Path(*takewhile(lambda name: "=" not in name, names))))
    return commonpath(folders)


def _frame_rows(spark: SparkSession, corpus: Corpus, undo_at_close: UndoAtClose) -> DataFrame:
    """A frame of the caller's session, which reaches the run's session as a global view."""
    frame = corpus.source
    refuse_duplicate_columns(corpus, frame.columns)
    refuse_missing_columns(corpus, frame.columns)
    view = f"dphh_{uuid.uuid4().hex}"
    wanted = dict.fromkeys(corpus.columns.values())
    frame.select(*(identifier(column) for column in wanted)).createGlobalTempView(view)
    undo_at_close(lambda: spark.catalog.dropGlobalTempView(view))
    return spark.table(f"global_temp.{view}")


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """An Arrow table as a frame of Spark's. Without rows, Spark Connect asks its types, and a
    classic session takes no column of lists without a chunk."""
    if not rows.num_rows:
        return spark.createDataFrame(rows.schema.empty_table(), from_arrow_schema(rows.schema))
    return spark.createDataFrame(rows)


def identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _user_sql(corpus: Corpus, types: Mapping[str, str]) -> str:
    """SQL for the id of the row's user as text, which is all that later steps see. Several columns
    make one text of lengths in bytes and values; NULL if one of the values is NULL."""
    texts = [_text_sql(column, types) for column in corpus.user]
    if len(texts) == 1:
        return texts[0]
    spelled = [f"CAST(octet_length({text}) AS STRING), ':', {text}" for text in texts]
    return f"concat({', '.join(spelled)})"


def _text_sql(column: str, types: Mapping[str, str]) -> str:
    """SQL for a column's values as texts."""
    if types[column] == "VARCHAR":
        return f"checked({identifier(column)})"
    return f"CAST({identifier(column)} AS STRING)"


def _type_name(kind: DataType) -> str:
    """The name of a column's type: for all texts DuckDB's, else Spark's own."""
    return "VARCHAR" if is_text(kind) else kind.simpleString()


def is_text(kind: DataType) -> bool:
    return isinstance(kind, (StringType, VarcharType))


def _content_and_duckdb_type(content: Content, kind: DataType) -> tuple[str, str]:
    """Spark's SQL for the content column cut to its limits, as text, bytes or a list of these; and
    the name of this type in DuckDB."""
    column, longest = identifier(content.column), content.max_text_length
    if isinstance(kind, ArrayType):
        if isinstance(kind.elementType, BinaryType):
            return f"slice({column}, 1, {longest})", "BLOB[]"
        texts = is_text(kind.elementType)
        read = f"all_checked({column})" if texts else f"CAST({column} AS ARRAY<STRING>)"
        return f"slice({read}, 1, {longest})", "VARCHAR[]"
    if isinstance(kind, BinaryType):
        return column, "BLOB"
    if is_text(kind):
        return f"left(checked({column}), {longest})", "VARCHAR"
    return f"left(CAST({column} AS STRING), {longest})", kind.simpleString()
