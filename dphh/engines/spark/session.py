"""What a run on Spark can be asked: what this package's files hold and draw, over one session
and one folder."""

from __future__ import annotations

from dphh.corpus import Corpus
from dphh.engines.answering import Answering
from dphh.engines.duckdb.look import refuse_if_run_would_fail
from dphh.engines.spark.ngrams import Ngrams
from dphh.engines.spark.trie import Tries
from dphh.folders import import_folder


class SparkSessionOfRun(Answering, Ngrams, Tries):
    """The session of a run on Spark."""

    def look_first(self, corpus: Corpus) -> None:
        # How much memory Spark's machines have for texts is not known here.
        refuse_if_run_would_fail(corpus, lambda looking: None)


open_session = SparkSessionOfRun
import_folder("dphh.engines.spark")  # each file registers what it holds and draws
