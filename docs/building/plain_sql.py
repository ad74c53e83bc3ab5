"""The files of `tests/specification/` as they are, for a page: `<!-- made: plain-NAME -->`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "tests" / "specification"


def _shown(name: str) -> str:
    text = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    lines = [line for line in text.strip().splitlines() if not line.startswith("-- noqa")]
    return "\n".join([f"`tests/specification/{name}.sql`", "", "```sql", *lines, "```"])


PLAIN_SQL: dict[str, Callable[[], str]] = {
    f"plain-{path.stem}": partial(_shown, path.stem) for path in sorted(FOLDER.glob("*.sql"))
}
