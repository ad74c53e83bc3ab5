"""The private folder with the tables of one run on Spark, removed when the run ends."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dphh.errors import UsageError
from dphh.files.private_folder import PrivateFolder

#: The key in Spark's configuration (`spark-submit --conf`) for a folder that all executors reach.
FOLDER_SETTING = "spark.dphh.folder"
_WRITE_OPTIONS = {
    # With this committer a task's files are moved into the table only after one attempt of the task
    # and then the job are committed.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    # The values of these tables (blocks, keys, noised sums) seldom repeat, and for a dictionary
    # Parquet would hash all bytes of each block.
    "parquet.enable.dictionary": "false",
    # A block is a row of tens of megabytes. By default Parquet looks at sizes at every 100th row,
    # so that a writer or reader would hold all blocks of a task, several times. Now it looks at
    # each row, and a group of rows has about this many bytes, or is one block.
    "parquet.page.size.row.check.min": "1",
    "parquet.block.size": str(16 * 2**20),
}
#: On this machine no network carries the tables: reading more bytes costs less than compression.
_LOCAL_WRITE_OPTIONS = {"compression": "uncompressed"}
_SUITABLE_FOLDER_IN_WORDS = (
    "a folder that the driver and all executors reach and no one else can read, as "
    "hdfs:///user/me/private"
)


class RunFolder:
    """A folder of mode 0700 that Java can write, on this machine or in a cluster's storage."""

    def __init__(self, spark: SparkSession) -> None:
        parent = spark.conf.get(FOLDER_SETTING, None)
        #: The folder if it is this process's own, which can remove it without Java.
        self.local: PrivateFolder | None = None
        self._spark: Any = spark
        if parent is None:
            master = str(spark.sparkContext.master)
            if not master.startswith("local"):
                raise UsageError(
                    f"{FOLDER_SETTING}: Spark runs on {master.split(':', maxsplit=1)[0]}, whose "
                    "executors share no folder with this machine; pass --conf "
                    f"{FOLDER_SETTING}=URL of {_SUITABLE_FOLDER_IN_WORDS}"
                )
            self.local = PrivateFolder()
            self.path = f"file://{self.local.path}"
        else:
            self.path = f"{parent.rstrip('/')}/dphh-{uuid.uuid4().hex}"
            try:
                self._make_for_owner_only()
            except (PySparkException, Py4JError) as problem:
                raise _unwritable_error(parent, problem) from None
        # If this process is killed, Spark's Java process deletes the folder when it ends.
        files, path = self._file_system_and_path(self.path)
        files.deleteOnExit(path)
        if parent is not None:
            self._refuse_unshared(parent)

    def _make_for_owner_only(self) -> None:
        owner_only = self._spark._jvm.org.apache.hadoop.fs.permission.FsPermission("700")
        files, path = self._file_system_and_path(self.path)
        files.mkdirs(path, owner_only)
        files.setPermission(path, owner_only)  # mkdirs obeys the umask, which may remove a bit

    def write(self, name: str, rows: DataFrame) -> DataFrame:
        path, options = f"{self.path}/{name}", _WRITE_OPTIONS
        if self.local is not None:
            options = {**options, **_LOCAL_WRITE_OPTIONS}
        rows.write.options(**options).parquet(path)
        return self._spark.read.schema(rows.schema).parquet(path)  # type: ignore[no-any-return]

    def drop(self, name: str) -> None:
        files, path = self._file_system_and_path(f"{self.path}/{name}")
        files.delete(path, True)

    def close(self) -> None:
        if self.local is not None:
            self.local.close()
            return
        files, path = self._file_system_and_path(self.path)
        files.delete(path, True)
        files.cancelDeleteOnExit(path)

    def _refuse_unshared(self, parent: str) -> None:
        """Refuse a folder that is not shared: rows that an executor wrote to its own disk would be
        missing."""
        rows = 64
        try:
            found = self.write("seen", self._spark.range(0, rows, 1, 4)).count()
            self.drop("seen")
        except (PySparkException, Py4JError) as problem:
            with suppress(PySparkException, Py4JError):
                self.close()
            raise _unwritable_error(parent, problem) from None
        if found != rows:
            self.close()
            raise UsageError(
                f"{FOLDER_SETTING}: executors wrote {rows} rows below {parent}, and {found} of "
                "them were found there: they do not all see one folder; set it to the URL of "
                f"{_SUITABLE_FOLDER_IN_WORDS}"
            )

    def _file_system_and_path(self, url: str) -> tuple[Any, Any]:
        """Hadoop's file system for a URL, and the URL as a Hadoop path."""
        path = self._spark._jvm.org.apache.hadoop.fs.Path(url)
        return path.getFileSystem(self._spark._jsc.hadoopConfiguration()), path


def _unwritable_error(parent: str, problem: BaseException) -> UsageError:
    return UsageError(
        f"{FOLDER_SETTING}: nothing can be written below {parent} ({type(problem).__name__}); set "
        f"it to the URL of {_SUITABLE_FOLDER_IN_WORDS}"
    )
