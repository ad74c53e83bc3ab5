"""Which tree this is: in a checkout `sql/` and `udfs/` stand beside `dphh/`, and are its own.

An installed dphh has them inside of it. Where another checkout is installed, Python would find that
one's, and run this tree's driver on them.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]

if all((_ROOT / part).exists() for part in ("pyproject.toml", "sql", "udfs")):
    sys.modules["dphh"].__path__.append(str(_ROOT))
