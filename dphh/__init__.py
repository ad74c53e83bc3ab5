"""dphh: what many people share in private data, published with differential privacy."""

from __future__ import annotations

from importlib.metadata import version

from dphh import _tree  # noqa: F401 - first: it says where all else is
from dphh.asking.connect import connect
from dphh.asking.frames import register as _register_frames
from dphh.corpus import TRIEHH_WORDS, Content, Corpus
from dphh.errors import (
    BudgetRefused,
    CorpusError,
    DphhError,
    EngineError,
    LedgerError,
    UsageError,
)
from dphh.evaluate import Evaluation, ExactCounts, evaluate, exact_ngrams
from dphh.ledger import Ledger
from dphh.plan import Plan, plan_from_json
from dphh.price import Price, Privacy
from dphh.release import Release
from dphh.verbs import counts, items, ldp_trie, ngrams, trie

__version__ = version("dphh")
_register_frames()

__all__ = [
    "TRIEHH_WORDS",
    "BudgetRefused",
    "Content",
    "Corpus",
    "CorpusError",
    "DphhError",
    "EngineError",
    "Evaluation",
    "ExactCounts",
    "Ledger",
    "LedgerError",
    "Plan",
    "Price",
    "Privacy",
    "Release",
    "UsageError",
    "__version__",
    "connect",
    "counts",
    "evaluate",
    "exact_ngrams",
    "items",
    "ldp_trie",
    "ngrams",
    "plan_from_json",
    "trie",
]


def __dir__() -> list[str]:
    """What completes after `dphh.`: the public names, and none of how they are made."""
    return __all__
