"""Reads a table from the bytes of a Parquet file that the ledger or a release's folder stores."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq


def stored_table(data: bytes) -> pa.Table:
    """Read the table on the calling thread only.

    `pq.read_table` reads ahead in Arrow's threads. One of them may still reference `data` when the
    process ends; releasing it then without Python's global lock aborts the process.
    """
    return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
