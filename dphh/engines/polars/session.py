"""A session on Polars: what this package's files hold and draw, on the frames of one run."""

from __future__ import annotations

from dphh.engines.answering import Answering
from dphh.engines.polars.ngrams import Ngrams
from dphh.engines.polars.trie import Tries
from dphh.folders import import_folder


class PolarsSession(Answering, Ngrams, Tries):
    """The session of a run on Polars."""


open_session = PolarsSession
import_folder("dphh.engines.polars")  # each file registers what it holds and draws
