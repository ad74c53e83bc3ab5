"""What a run on Spark can be asked: the verbs of its files, over one session and one folder."""

from __future__ import annotations

from dphh.corpus import Corpus
from dphh.engines.spark.counts import Counts
from dphh.engines.spark.ldp_trie import LocalTries
from dphh.engines.spark.ngrams import Ngrams
from dphh.engines.spark.trie import Tries
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import Randomness


def open_session(corpus: Corpus, randomness: Randomness, limits: Limits) -> SparkSessionOfRun:
    return SparkSessionOfRun(corpus, randomness, limits)


class SparkSessionOfRun(Ngrams, Counts, Tries, LocalTries):
    """The session of a run on Spark."""

    name = "spark"
