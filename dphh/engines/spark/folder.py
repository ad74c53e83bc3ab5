"""Where a run on Spark keeps its tables: a folder of its own that goes when the run ends."""

from __future__ import annotations

import uuid
from typing import Any

from pyspark.sql import SparkSession

from dphh.errors import UsageError
from dphh.files.private_folder import PrivateFolder

#: Of Spark's own configuration, for `spark-submit --conf`: a folder that all executors reach.
SETTING = "spark.dphh.folder"


class RunFolder:
    """Readable by its user alone (mode 0700), on this machine or wherever a cluster's data lie."""

    def __init__(self, spark: SparkSession) -> None:
        parent = spark.sparkContext.getConf().get(SETTING)
        self._local: PrivateFolder | None = None
        self._spark: Any = spark
        if parent is not None:
            self.path = f"{parent.rstrip('/')}/dphh-{uuid.uuid4().hex}"
            there = spark._jvm.org.apache.hadoop.fs.permission.FsPermission("700")  # type: ignore[union-attr]
            files, path = self._files(self.path)
            files.mkdirs(path, there)
            files.setPermission(path, there)  # whatever the umask has taken away
            self._leave_with_spark()
            return
        master = str(spark.sparkContext.master)
        if not master.startswith("local"):
            raise UsageError(
                f"{SETTING}: Spark runs on {master.split(':', maxsplit=1)[0]}, whose "
                f"executors share no folder with this machine; pass --conf {SETTING}=URL of a "
                "folder that they all can reach and no one else can read, as "
                "hdfs:///user/me/private"
            )
        self._local = PrivateFolder()
        self.path = f"file://{self._local.path}"
        self._leave_with_spark()

    def _leave_with_spark(self) -> None:
        """Where this process is killed, Spark's own ends by itself, and takes the folder along."""
        files, path = self._files(self.path)
        files.deleteOnExit(path)

    def drop(self, name: str) -> None:
        files, path = self._files(f"{self.path}/{name}")
        files.delete(path, True)

    def close(self) -> None:
        if self._local is not None:
            self._local.close()
            return
        files, path = self._files(self.path)
        files.delete(path, True)
        files.cancelDeleteOnExit(path)

    def _files(self, url: str) -> tuple[Any, Any]:
        """Hadoop's file system of a URL, and the URL as its path."""
        path = self._spark._jvm.org.apache.hadoop.fs.Path(url)
        return path.getFileSystem(self._spark._jsc.hadoopConfiguration()), path
