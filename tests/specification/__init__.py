"""The specification: each level once more in plain SQL, one row at a time, for a bare DuckDB.

`tests/engines/plain.py` runs it; `docs/plain-sql.md` shows it. Nothing of the product is used here.
"""

from pathlib import Path


def specified(name: str) -> str:
    """The text of the plain query `<name>.sql`."""
    return (Path(__file__).parent / f"{name}.sql").read_text(encoding="utf-8")
