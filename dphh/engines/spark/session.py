"""What a run on Spark can be asked: what this package's files hold and draw, over one session
and one folder."""

from __future__ import annotations

from dphh.engines.answering import Answering
from dphh.engines.spark.ngrams import Ngrams
from dphh.engines.spark.trie import Tries
from dphh.folders import import_folder


class SparkSessionOfRun(Answering, Ngrams, Tries):
    """The session of a run on Spark."""


open_session = SparkSessionOfRun
import_folder("dphh.engines.spark")  # each file registers what it holds and draws
