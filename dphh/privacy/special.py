"""SciPy's special functions, imported on the first call.

The import takes longer than most commands, many of which need no prices.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def _when_called(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        return getattr(import_module("scipy.special"), name)(*args)

    function.__name__ = function.__qualname__ = name
    return function


bdtrc = _when_called("bdtrc")
betaincc = _when_called("betaincc")
betaln = _when_called("betaln")
erfcx = _when_called("erfcx")
gammaln = _when_called("gammaln")
log_expit = _when_called("log_expit")
ndtr = _when_called("ndtr")
ndtri = _when_called("ndtri")
