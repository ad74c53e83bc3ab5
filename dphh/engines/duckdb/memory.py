"""What DuckDB may take of a run's memory limit: what the rest of the process leaves of it.

The functions of `udfs/` hold arrays and words of their own, beside DuckDB, which counts and spills
only its own. So before each step DuckDB's limit is set anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

#: Of the limit, one part in so many is for the arrays of the functions that a step calls.
CALLS = 4
#: However much the rest of the process takes, DuckDB has one part in so many.
LEAST = 4
_WRITTEN = re.compile(r"([\d.]+) (bytes|KiB|MiB|GiB|TiB|PiB)")
_UNITS = {unit: 1024**power for power, unit in enumerate(("bytes", "KiB", "MiB", "GiB", "TiB"))}
_STATM = Path("/proc/self/statm")


class SharedMemory:
    """The limit that a connection was opened with; where it was asked for (`is_kept`), as that of
    the whole process."""

    def __init__(self, con: duckdb.DuckDBPyConnection, is_kept: bool) -> None:
        self._con = con
        self.is_kept = is_kept
        ((written,),) = con.execute("SELECT current_setting('memory_limit')").fetchall()
        found = _WRITTEN.fullmatch(written)
        self.limit = int(float(found[1]) * _UNITS[found[2]]) if found else None
        self._share = self.limit or 0

    def settle(self) -> None:
        if not self.is_kept:
            return
        beside = self._beside()
        if self.limit is None or beside is None:
            return
        share = max(self.limit - self.limit // CALLS - beside, self.limit // LEAST)
        try:
            self._set(share)
        except duckdb.OutOfMemoryException:  # what it holds cannot be spilled at once, and stays
            self._set(self._share)
        else:
            self._share = share

    def _set(self, share: int) -> None:
        self._con.execute(f"SET memory_limit = '{share} bytes'")

    def _beside(self) -> int | None:
        """What the process takes that DuckDB does not count; only Linux tells."""
        if not _STATM.exists():
            return None
        import resource

        resident = int(_STATM.read_text().split()[1]) * resource.getpagesize()
        ((counted,),) = self._con.execute(
            "SELECT CAST(sum(memory_usage_bytes) AS BIGINT) FROM duckdb_memory()"
        ).fetchall()
        return max(resident - int(counted), 0)
