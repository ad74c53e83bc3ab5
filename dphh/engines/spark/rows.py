"""Where Spark finds a corpus's rows: files, or a frame of Spark's own."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable
from os.path import commonpath
from pathlib import Path
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dphh.corpora.files import no_such_file, refuse_missing_columns, unreadable_files
from dphh.corpus import Corpus
from dphh.errors import CorpusError
from dphh.files.paths import files_named

ROWS = "corpus_rows"
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


def find_rows(host: Opening, corpus: Corpus) -> None:
    """Define the view corpus_rows. Only names and types are asked for until the run begins."""
    rows = _path_rows(host, corpus) if corpus.kind == "path" else _frame_rows(host, corpus)
    rows.createOrReplaceTempView(ROWS)


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
    """Other engines read such files, so the same request would give another release."""
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
    """A frame of the caller's session, which reaches the run's session as a global view."""
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


def identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
