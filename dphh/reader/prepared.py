"""A corpus that is read once, for many runs: its rows in memory, and what follows from them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dphh.errors import UsageError
from dphh.reader.corpus import Corpus, ReadOnce, replace_corpus
from dphh.reader.rows import Limits, Rows, opened_unless_parquet
from dphh.wording.options import checked_call


@checked_call
def prepared(corpus: Corpus) -> Corpus:
    """The corpus as it is now, read into memory once, for many runs.

    Runs are booked, and released again, as of the corpus itself: the digest is of the copied rows,
    and computed once. A later change of a file or a frame is not seen. Only the columns that the
    corpus names are there.
    """
    if type(corpus.source).__module__.startswith("pyspark"):
        raise UsageError(
            "prepared: a Spark frame stays on its executors; keep it there with .cache(), or give "
            "its files"
        )
    rows = Rows(opened_unless_parquet(corpus), Limits())
    try:
        copied = _copied(rows.needed_columns())
    finally:
        rows.close()
    return replace_corpus(corpus, read_once=ReadOnce(copied))


def _copied(rows: Any) -> pa.Table:
    """A copy of an Arrow table or stream. Arrow itself shares memory, as with a NumPy array that
    its owner may write to."""
    copied = pa.BufferOutputStream()
    with pa.ipc.new_stream(copied, rows.schema) as stream:
        for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
            stream.write_batch(batch)
    return pa.ipc.open_stream(copied.getvalue()).read_all()
