"""What a run needs of Spark besides queries: through Java, or, with Spark Connect, without it.

A run has its own session (views, functions, settings) on the same executors, made from the caller's
session. Queries do not use this module.
"""

from __future__ import annotations

import uuid
from typing import Any, Protocol

from pyspark.sql import SparkSession

from dphh.engines.spark.artifacts import send_dphh
from dphh.engines.spark.folder import FolderOfSpark, RunDatabase, RunFolder
from dphh.udfs.spark.connection import is_connect, why_lost


class Access(Protocol):
    """What a run needs of Spark besides queries."""

    #: The run's own session, and the one that it was made from.
    spark: SparkSession
    owner: SparkSession

    def describe(self, step: str) -> None:
        """Set the description that Spark shows for the next jobs."""
        ...

    def folder(self) -> FolderOfSpark: ...

    def why_lost(self) -> str | None:
        """Why the session no longer answers; None if it does."""
        ...

    def end_jobs(self) -> None:
        """End jobs that are still running when the run ends, because it was interrupted."""
        ...

    def leave(self) -> None: ...


def access_to(owner: SparkSession) -> Access:
    return ByConnect(owner) if is_connect(owner) else ByJava(owner)


class ByJava:
    """Access through the Java objects of a classic Spark session."""

    def __init__(self, owner: SparkSession) -> None:
        self.owner, self.spark = owner, owner.newSession()
        self._context: Any = owner.sparkContext
        self._described = self._context.getLocalProperty("spark.job.description")
        self._tag = f"dphh-{uuid.uuid4().hex}"
        self._context.addJobTag(self._tag)
        partitions = "spark.sql.shuffle.partitions"
        local = str(self._context.master).startswith("local")
        if local and self._context.getConf().get(partitions) is None:
            self.spark.conf.set(partitions, str(self._context.defaultParallelism))

    def describe(self, step: str) -> None:
        # Spark would describe the job by this program's path and line.
        self._context.setJobDescription(f"dphh: {step}")

    def folder(self) -> FolderOfSpark:
        return RunFolder(self.spark)

    def why_lost(self) -> str | None:
        return None  # where Java has gone, its folder is this process's to remove

    def end_jobs(self) -> None:
        self._context.cancelJobsWithTag(self._tag)
        self._context.removeJobTag(self._tag)

    def leave(self) -> None:
        self._context.setLocalProperty("spark.job.description", self._described)


class ByConnect:
    """Access to a Spark Connect session, which has no Java objects."""

    def __init__(self, owner: SparkSession) -> None:
        own: Any = owner
        self.owner, self.spark = owner, own.cloneSession()
        self._tag = f"dphh-{uuid.uuid4().hex}"
        self.spark.addTag(self._tag)
        send_dphh(self.spark)

    def describe(self, step: str) -> None:
        """A server describes a job by its request, which holds a query and released values."""

    def folder(self) -> FolderOfSpark:
        return RunDatabase(self.spark)

    def why_lost(self) -> str | None:
        return why_lost(self.spark)

    def end_jobs(self) -> None:
        self.spark.interruptTag(self._tag)
        self.spark.removeTag(self._tag)

    def leave(self) -> None:
        # `stop` would also end a server that this process has started (`remote("local")`).
        client: Any = self.spark.client
        client.release_session()
        client.close()
