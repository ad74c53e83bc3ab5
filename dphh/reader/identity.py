"""Which data a corpus has: a digest of the rows that count, by which the ledger knows them again.

Whatever object or file holds the rows, in whatever order: each row (user_id, content, group_name),
as all engines read it, has a keyed hash of 128 bits, and the digest is of the sum of these. A row
that is there twice counts twice.

The key is the ledger's, and random. Who writes rows knows neither it nor any hash, and so cannot
choose rows whose hashes come to the same sum. The ledger stores a keyed hash of the sum: two
digests do not tell the hash of the row by which two states of the data differ. Who has the ledger's
file has the key, and can test guesses of all rows at once (docs/threats.md).
"""

# Many small files: pathlib takes several times as long.
# ruff: noqa: PTH116
from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from hashlib import blake2b

import duckdb
import pyarrow as pa

from dphh.reader.corpus import Corpus
from dphh.reader.paths import is_remote

_MODULUS = 1 << 128
_HALF = (1 << 64) - 1


def digest_of_sum(total: int, key: bytes) -> str:
    return blake2b((total % _MODULUS).to_bytes(16), key=key, digest_size=16).hexdigest()


def sum_of_hashes(con: duckdb.DuckDBPyConnection, rows: str, key: bytes) -> int:
    """The sum of the hashes of a relation's rows (user_id, content, group_name).

    MD5 is the fastest of DuckDB's functions that all its versions share. Its known collisions need
    a known state; here the first block is the secret key, whose 64 digits fill it.
    """
    types = {row[0]: row[1] for row in con.execute(f"DESCRIBE FROM {rows}").fetchall()}
    columns = ("user_id", "content", "group_name")
    row = ", ".join(["$key", *(_spelled(column, types[column]) for column in columns)])
    halves = con.execute(
        f"SELECT sum(CAST(hash & {_HALF}::UHUGEINT AS UBIGINT)), sum(CAST(hash >> 64 AS UBIGINT)) "
        f"FROM (SELECT CAST(md5_number(concat({row})) AS UHUGEINT) AS hash FROM {rows})",
        {"key": key.hex()},
    ).fetchall()
    low, high = (int(half or 0) for half in halves[0])
    return low + (high << 64)


def _spelled(value: str, kind: str) -> str:
    """Arguments of SQL's `concat` that spell a value so that several, side by side, can be told
    apart: each has its length before it, and NULL, which `concat` leaves out, has none."""
    if kind.endswith("[]"):
        each = _spelled("each", kind.removesuffix("[]"))
        joined = f"array_to_string(list_transform({value}, lambda each: concat({each})), '')"
        return f"len({value}), '[', {joined}"
    if kind == "BLOB":
        return f"octet_length({value}), ':', hex({value})"
    return f"strlen({value}), ':', {value}"


def sums_of_batches(key: bytes) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function from batches of rows to one row `total`, the sum of their hashes: for an engine
    whose workers read parts of the rows."""

    def sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = 0
        with closing(duckdb.connect(config={"threads": 1})) as con:
            for batch in batches:
                con.register("rows", pa.table(batch.columns, batch.schema.names))
                total += sum_of_hashes(con, "rows", key)
        yield pa.RecordBatch.from_pydict({"total": [f"{total % _MODULUS:x}"]})

    return sums


def state_of_files(corpus: Corpus, key: bytes, *, stores_too: bool = False) -> str | None:
    """A keyed hash of the paths, sizes and times of a corpus's files, and of how it is read: if it
    is that of an earlier run, the rows are the same, and are not read for a digest. None for tables
    in memory and for stores, whose files are not looked at; `stores_too`: by their addresses."""
    is_remote_too = any(map(is_remote, corpus.where))
    is_in_memory = corpus.kind != "path" or corpus.read_once is not None
    if is_in_memory or (is_remote_too and not stores_too):
        return None
    found = []
    for file in corpus.local_files:
        with suppress(OSError):  # the file was removed since it was listed, or is a dangling link
            status = os.stat(file)
            found.append((file, status.st_size, status.st_mtime_ns))
    said = json.dumps([sorted(found), {**corpus.to_json(), "account": None}], sort_keys=True)
    return blake2b(said.encode(errors="surrogatepass"), key=key, digest_size=16).hexdigest()
