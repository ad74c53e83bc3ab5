"""A table from the bytes of a Parquet file, as the ledger and a release's folder keep it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq


def stored_table(data: bytes) -> pa.Table:
    """Read by this thread alone.

    `pq.read_table` reads ahead in threads of Arrow's. One of them may still hold `data` when the
    process ends, and letting go of it then, without Python's lock, aborts the process.
    """
    return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
