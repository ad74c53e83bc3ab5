"""Makes a checkout import its own `sql/` and `udfs/`.

In a checkout `sql/` and `udfs/` lie beside `dphh/`; in an installed package they lie inside it.
Without this, a checkout would import the `sql/` and `udfs/` of another installed copy.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]

if all((_ROOT / part).exists() for part in ("pyproject.toml", "sql", "udfs")):
    sys.modules["dphh"].__path__.append(str(_ROOT))
