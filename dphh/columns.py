"""The columns of releases, of all verbs."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphh.errors import UsageError
from dphh.wording.options import shown

#: All columns of releases and their types.
COLUMN_TYPES: dict[str, pa.DataType] = {
    "level": pa.int32(),
    "item": pa.string(),
    "tokens": pa.list_(pa.string()),
    "score": pa.float64(),
    "error": pa.float64(),
    "ended": pa.bool_(),
    "group_name": pa.string(),
    "users": pa.int64(),
    "low": pa.int64(),
    "high": pa.int64(),
    "estimate": pa.int64(),
}
#: What the columns mean, stored with a release's table for readers without the documentation.
#: `tokens` and `item` need no explanation.
COLUMN_MEANINGS = {
    "level": (
        "the step of the run that released the item, which is how many tokens the item has unless "
        "there is a column ended; items of one level compare"
    ),
    "score": (
        "a noised weight that orders the items of one level; no number of people, no share of "
        "them, and nothing between levels"
    ),
    "error": "one standard error of the score, an estimate of how many reports were for the item",
    "ended": "whether a sequence ends here, or is a prefix that goes on",
    "group_name": "the declared group that a count is within; all others are other",
    "users": (
        "about how many users hold the item, never below 0, and at least about so many where some "
        "hold more items than count in full; of a beginning, a sequence that begins so; NULL where "
        "that was not counted"
    ),
    "low": "with high, the interval for the true number of users",
    "high": "with low, the interval for the true number of users, bounding included",
    "estimate": (
        "users, not cut at 0: noise may take it below. A sum of estimates is right in the mean "
        "where no user is bounded and nothing is left out; a sum of users is too high"
    ),
}
COMMON_COLUMNS = ("level", "item", "tokens")
#: The columns of a number of users.
COUNT_COLUMNS = ("users", "low", "high", "estimate")
#: What the column `group_name` says of all users who are in no declared group.
OTHER_GROUP = "other"
#: The columns by which a release is sorted; those that it lacks are left out.
SORT_ORDER = (
    ("level", "ascending"),
    ("users", "descending"),
    ("score", "descending"),
    ("item", "ascending"),
    ("group_name", "ascending"),
)


def schema_of(*more: str) -> pa.Schema:
    """The schema of a release that has these columns besides `COMMON_COLUMNS`, with meanings."""
    described = {name: {"description": text} for name, text in COLUMN_MEANINGS.items()}
    return pa.schema(
        [
            pa.field(name, COLUMN_TYPES[name], metadata=described.get(name))
            for name in (*COMMON_COLUMNS, *more)
        ]
    )


def as_release_table(table: Any) -> Any:
    """The table of a release, with the types of its columns and with their meanings."""
    names = table.schema.names
    if len({*names}) < len(names):
        raise ValueError("two columns have one name")
    return table.cast(schema_of(*names[len(COMMON_COLUMNS) :]))


#: For releases of `items` and `ngrams` without counts, and with counts.
SCORED_SCHEMA = schema_of("score")
SCORES_AND_COUNTS_SCHEMA = schema_of("score", "group_name", *COUNT_COLUMNS)
#: For releases of `trie` without counts, and with counts; and for those of `ldp_trie`.
TRIE_SCHEMA = schema_of("score", "ended")
TRIE_AND_COUNTS_SCHEMA = schema_of("score", "ended", "group_name", *COUNT_COLUMNS)
LDP_TRIE_SCHEMA = schema_of("score", "error", "ended")
#: For releases of `counts`: over all users, and within groups.
COUNTS_SCHEMA = schema_of(*COUNT_COLUMNS)
GROUP_COUNTS_SCHEMA = schema_of("group_name", *COUNT_COLUMNS)

#: Arrow's layouts of text.
TEXT_TYPES = (pa.string(), pa.large_string(), pa.string_view())


def type_name(arrow_type: pa.DataType) -> str:
    """The name of a type as engines see it: all layouts of text are "text", in a dictionary too."""
    is_dictionary = pa.types.is_dictionary(arrow_type)
    value_type = arrow_type.value_type if is_dictionary else arrow_type
    return "text" if value_type in TEXT_TYPES else str(value_type)


def interleaved_by_level(levels: NDArray[np.int32]) -> NDArray[np.int64]:
    """An order for rows sorted by level: the first of each level, then the second of each, and so
    on, because scores do not compare between levels."""
    rank = np.arange(len(levels)) - np.searchsorted(levels, levels)
    return np.argsort(rank, kind="stable")


def sorted_rows(table: Any) -> Any:
    """The rows of a release in the order of `SORT_ORDER`."""
    return table.sort_by([key for key in SORT_ORDER if key[0] in table.column_names])


#: The field of a manifest that has the hash of the release's table.
DIGEST_FIELD = "table_sha256"


def digest_of(table: Any) -> str:
    """SHA-256 of a release's columns. It does not depend on how a Parquet file was written, nor on
    how Arrow keeps a column in memory."""
    digest = hashlib.sha256(json.dumps([table.num_rows, table.column_names]).encode())
    for column in table.columns:
        for part in _bytes_of(pa.concat_arrays([pa.nulls(0, column.type), *column.chunks])):
            digest.update(part)
    return digest.hexdigest()


def _bytes_of(column: pa.Array) -> Iterator[Any]:
    """The bytes that determine a column of known length: which values are NULL; of the others, the
    lengths of lists and texts, and their contents one after the other, or the numbers."""
    yield np.packbits(column.is_null().to_numpy(zero_copy_only=False))
    values = column.drop_null()
    if pa.types.is_list(values.type):
        yield pc.list_value_length(values).to_numpy().astype("<i8")
        yield from _bytes_of(values.flatten())
    elif pa.types.is_string(values.type):
        lengths = pc.binary_length(values).to_numpy().astype("<i8")
        yield lengths
        if lengths.any():
            _, offsets, texts = values.buffers()
            first = np.frombuffer(offsets, np.int32)[values.offset]
            yield texts.slice(int(first), int(lengths.sum()))
    else:
        numbers = values.to_numpy(zero_copy_only=False)
        yield numbers.astype("<f8" if pa.types.is_floating(values.type) else "<i8")


def checked_groups(by: str | None, groups: str | Sequence[str]) -> tuple[str, ...]:
    """The declared groups of the column `by`, each once and sorted, so that the same groups make
    the same request. Refuses a wrong `by` and wrong groups."""
    if by is None:
        if groups:
            raise UsageError("groups: needs by=, the name of the column that has these values")
        return ()
    if not isinstance(by, str) or not by:
        raise UsageError(f"by: found {shown(by)}; name the column whose values are the groups")
    if isinstance(groups, str) and ";" in groups and "," not in groups:  # it would be one group
        raise UsageError(
            f"groups: found {groups!r}, one name; put commas between names, or give a list"
        )
    listed = map(str.strip, groups.split(",")) if isinstance(groups, str) else groups
    declared = [*listed] if isinstance(listed, Iterable) else []
    are_texts = all(isinstance(group, str) and group for group in declared)
    if not declared or not are_texts or OTHER_GROUP in declared:
        raise UsageError(
            f"groups: missing, not all texts, or one is empty or {OTHER_GROUP!r}; give the values "
            f"of the column {by!r}, such as ['DE', 'FR']; all others are counted together, as "
            f"{OTHER_GROUP!r}"
        )
    return tuple(sorted(set(declared)))


def as_parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


_RUN_ID_KEY = b"dphh.run_id"


def release_file(table: pa.Table, run_id: str) -> bytes:
    """The table of a release as one Parquet file that contains its run id."""
    # The columns' meanings are also in the file's metadata: DuckDB, for one, shows no field's.
    said = {
        f"dphh.{field.name}".encode(): field.metadata[b"description"]
        for field in table.schema
        if field.metadata
    }
    return as_parquet(table.replace_schema_metadata({_RUN_ID_KEY: run_id.encode(), **said}))


def run_id_of(schema: pa.Schema) -> str | None:
    named = (schema.metadata or {}).get(_RUN_ID_KEY)
    return None if named is None else named.decode()


def stored_table(data: bytes) -> pa.Table:
    """A table that the ledger or a release's folder stores as the bytes of a Parquet file, read on
    the calling thread only.

    `pq.read_table` reads ahead in Arrow's threads. One of them may still reference `data` when the
    process ends; releasing it then without Python's global lock aborts the process.
    """
    return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
