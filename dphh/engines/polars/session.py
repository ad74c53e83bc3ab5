"""A session on Polars: the verbs of this package's files, on the frames of one run."""

from __future__ import annotations

from dphh.corpus import Corpus
from dphh.engines.polars.counts import Counts
from dphh.engines.polars.ldp_trie import LocalTries
from dphh.engines.polars.ngrams import Ngrams
from dphh.engines.polars.trie import Tries
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import Randomness


def open_session(corpus: Corpus, randomness: Randomness, limits: Limits) -> PolarsSession:
    return PolarsSession(corpus, randomness, limits)


class PolarsSession(Ngrams, Counts, Tries, LocalTries):
    """The session of a run on Polars."""

    name = "polars"
