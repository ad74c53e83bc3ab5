"""An Arrow table as bytes, and back: between processes, and within one value of a row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked(data: Any) -> pa.Table:
    """Of bytes or a buffer, whose memory it shares."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()
