"""What a run on Spark can be asked: what this package's files hold and draw, over one session
and one folder."""

from __future__ import annotations

from dphh.corpus import Corpus
from dphh.engines.answering import Answering
from dphh.engines.duckdb.look import refuse_if_run_would_fail
from dphh.engines.spark.ngrams import Ngrams
from dphh.engines.spark.trie import Tries
from dphh.folders import import_folder
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import Randomness


def open_session(corpus: Corpus, randomness: Randomness, limits: Limits) -> SparkSessionOfRun:
    return SparkSessionOfRun(corpus, randomness, limits)


class SparkSessionOfRun(Answering, Ngrams, Tries):
    """The session of a run on Spark."""

    name = "spark"

    def look_first(self, corpus: Corpus) -> None:
        # How much memory Spark's machines have for texts is not known here.
        refuse_if_run_would_fail(corpus, lambda looking: None)


import_folder("dphh.engines.spark")  # each file registers what it holds and draws
