"""Writes what is made from the code and committed: `make generated`. A test compares it."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from building.frames import frames_stub  # noqa: E402
from building.options import whole_page  # noqa: E402

MADE = {"dphh/asking/frames.pyi": frames_stub, "docs/options.md": whole_page}

if __name__ == "__main__":
    for path, made in MADE.items():
        (ROOT / path).write_text(made(), encoding="utf-8")
