"""dphh: what many people share in private data, published with differential privacy.

Flat in this folder is the spine: `plan.py` (a price and a corpus), `run.py`, `release.py`,
`registry.py` (the verbs), `price.py`, `level.py`, `columns.py`; and what is free before a run:
`checking.py`, `comparing.py`, `detection.py`. Folders hold the parts, and imports run one way
(docs/architecture.md). This file has the public names. Begin at `plan.py`, then `run.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dphh import _tree  # noqa: F401 - first: it finds dphh.sql and dphh.udfs
from dphh.asking import polars_namespace

if TYPE_CHECKING:
    from dphh.asking.connect import connect as connect
    from dphh.asking.connect import register as register
    from dphh.asking.frames import frame as frame
    from dphh.checking import check as check
    from dphh.comparing import compare as compare
    from dphh.detection import profile as profile
    from dphh.errors import BudgetRefused as BudgetRefused
    from dphh.errors import CorpusError as CorpusError
    from dphh.errors import DphhError as DphhError
    from dphh.errors import EngineError as EngineError
    from dphh.errors import LedgerError as LedgerError
    from dphh.errors import UsageError as UsageError
    from dphh.evaluation import evaluate as evaluate
    from dphh.evaluation import exact_ngrams as exact_ngrams
    from dphh.gate.verifying import verify as verify
    from dphh.ledger import Ledger as Ledger
    from dphh.plan import Plan as Plan
    from dphh.plan import counts as counts
    from dphh.plan import items as items
    from dphh.plan import ldp_trie as ldp_trie
    from dphh.plan import ngrams as ngrams
    from dphh.plan import plan_from_json as plan_from_json
    from dphh.plan import trie as trie
    from dphh.reader.content import TRIEHH_WORDS as TRIEHH_WORDS
    from dphh.reader.corpus import Corpus as Corpus
    from dphh.reader.prepared import prepared as prepared
    from dphh.release import Release as Release

    __version__: str

#: The public names, by the module that defines them. A module is imported when one of its names is
#: first used, so that `import dphh` waits for no engine. No public name is also the name of a
#: module of dphh: importing that module later would replace the name.
_NAMES_OF_MODULE = {
    "asking.connect": "connect register",
    "asking.frames": "frame",
    "checking": "check",
    "comparing": "compare",
    "reader.corpus": "Corpus",
    "detection": "profile",
    "errors": "BudgetRefused CorpusError DphhError EngineError LedgerError UsageError",
    "evaluation": "evaluate exact_ngrams",
    "ledger": "Ledger",
    "plan": "Plan plan_from_json counts items ldp_trie ngrams trie",
    "release": "Release",
    "reader.content": "TRIEHH_WORDS",
    "reader.prepared": "prepared",
    "gate.verifying": "verify",
}
_MODULE_OF_NAME = {
    name: f"dphh.{module}" for module, names in _NAMES_OF_MODULE.items() for name in names.split()
}
__all__ = list(_MODULE_OF_NAME)
__all__ += ["__version__"]

polars_namespace.register()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        made: Any = version("dphh")
    elif name in _MODULE_OF_NAME:
        made = getattr(import_module(_MODULE_OF_NAME[name]), name)
    else:
        raise AttributeError(f"module 'dphh' has no attribute {name!r}")
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    """The public names, for completion after `dphh.`."""
    return __all__
