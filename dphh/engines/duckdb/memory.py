"""Sets DuckDB's share of a run's memory limit: what the rest of the process leaves.

The functions of `udfs/` allocate arrays and words outside DuckDB, which counts and spills only its
own memory. So DuckDB's limit is set again before each step.
"""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

#: One CALLSth of the limit is reserved for the arrays of the functions that a step calls.
CALLS = 4
#: DuckDB gets at least one LEASTth of the limit, however much the rest of the process uses.
LEAST = 4
_SIZE_WITH_UNIT = re.compile(r"([\d.]+) (bytes|KiB|MiB|GiB|TiB|PiB)")
_BYTES_OF_UNIT = {
    unit: 1024**power for power, unit in enumerate(("bytes", "KiB", "MiB", "GiB", "TiB"))
}
_PROCESS_MEMORY_FILE = Path("/proc/self/statm")


class SharedMemory:
    """The memory limit of a connection; if the caller gave it (`is_kept`), it applies to the whole
    process."""

    def __init__(self, con: duckdb.DuckDBPyConnection, is_kept: bool) -> None:
        self._con = con
        self.is_kept = is_kept
        ((written,),) = con.execute("SELECT current_setting('memory_limit')").fetchall()
        found = _SIZE_WITH_UNIT.fullmatch(written)
        self.limit = int(float(found[1]) * _BYTES_OF_UNIT[found[2]]) if found else None
        self._share = self.limit or 0

    def settle(self) -> None:
        if not self.is_kept:
            return
        beside = self._memory_outside_duckdb()
        if self.limit is None or beside is None:
            return
        share = max(self.limit - self.limit // CALLS - beside, self.limit // LEAST)
        try:
            self._set_memory_limit(share)
        except duckdb.OutOfMemoryException:  # DuckDB cannot spill enough at once
            self._set_memory_limit(self._share)
        else:
            self._share = share

    def _set_memory_limit(self, share: int) -> None:
        self._con.execute(f"SET memory_limit = '{share} bytes'")

    def _memory_outside_duckdb(self) -> int | None:
        """The process's memory that DuckDB does not count; None except on Linux."""
        if not _PROCESS_MEMORY_FILE.exists():
            return None
        import resource

        resident = int(_PROCESS_MEMORY_FILE.read_text().split()[1]) * resource.getpagesize()
        ((counted,),) = self._con.execute(
            "SELECT CAST(sum(memory_usage_bytes) AS BIGINT) FROM duckdb_memory()"
        ).fetchall()
        return max(resident - int(counted), 0)
