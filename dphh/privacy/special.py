"""SciPy's special functions, imported on the first call.

The import takes longer than most commands, many of which need no prices.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def _import_when_called(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        return getattr(import_module("scipy.special"), name)(*args)

    function.__name__ = function.__qualname__ = name
    return function


bdtrc = _import_when_called("bdtrc")
betaincc = _import_when_called("betaincc")
betaln = _import_when_called("betaln")
erfcx = _import_when_called("erfcx")
gammaln = _import_when_called("gammaln")
log_expit = _import_when_called("log_expit")
ndtr = _import_when_called("ndtr")
ndtri = _import_when_called("ndtri")
