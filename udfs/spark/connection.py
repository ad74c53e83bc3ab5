"""Whether Spark Connect's server still answers: its client asks a lost one for ten minutes."""

from __future__ import annotations

from typing import Any

from dphh.errors import CorpusError

LOST_SERVER = (
    "source: the Spark Connect session's server no longer answers ({}): connect again "
    "(SparkSession.builder.remote(URL).getOrCreate()), and make the frame and its corpus anew"
)


def is_connect(spark: object) -> bool:
    """Whether a session is Spark Connect's, which has no Java beside it."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def why_lost(spark: Any) -> str | None:
    """The type of the error with which a session fails to answer, asked once; None if it answers,
    as a session that is not Spark Connect's does."""
    if not is_connect(spark):
        return None
    client = spark.client
    patience = client.get_retry_policies()
    client.set_retry_policies([])
    try:
        spark.conf.get("spark.app.id", None)
    except Exception as problem:
        if type(problem).__module__.split(".")[0] not in ("pyspark", "grpc"):
            raise
        return type(problem).__name__
    finally:
        client.set_retry_policies(patience)
    return None


def refuse_lost(spark: Any) -> None:
    if (problem := why_lost(spark)) is not None:
        raise CorpusError(LOST_SERVER.format(problem))
