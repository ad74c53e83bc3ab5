"""Makes a checkout import its own `sql/` and `udfs/`.

In a checkout `sql/` and `udfs/` lie beside `dphh/`; in an installed package they lie inside it.
Without this, a checkout would import the `sql/` and `udfs/` of another installed copy, or none.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PARTS = ("sql", "udfs")

if all((_ROOT / part).exists() for part in ("pyproject.toml", *_PARTS)):
    for part in _PARTS:
        name, start = f"dphh.{part}", _ROOT / part / "__init__.py"
        spec = spec_from_file_location(name, start, submodule_search_locations=[str(start.parent)])
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        setattr(sys.modules["dphh"], part, sys.modules[name])
        spec.loader.exec_module(sys.modules[name])
