"""A public table of items and counts, or an earlier release, as a prior."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dphh.corpora.content import Content
from dphh.corpora.files import files_named
from dphh.corpora.formats import opened
from dphh.corpora.tables import schema_in_memory
from dphh.corpus import Corpus, replace_corpus
from dphh.engines.duckdb.run import DuckDBRun
from dphh.errors import CorpusError, UsageError
from dphh.mechanisms.released_rows import whole
from dphh.priors.prior import Prior
from dphh.public.counted_texts import MEMORY_LIMIT
from dphh.public.made import prior_of_items
from dphh.release import Release
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import SystemRandomness

ITEM, COUNT = "item", "count"


def table_of(source: Any) -> Corpus:
    """A public table with a column `item` (a text or a list of tokens) and a column `count`. It is
    read like a corpus, with the count column in place of the user column."""
    return Corpus(source, user=COUNT, item=ITEM)


def of_table(table: Corpus, content: Content, max_n: int) -> Prior:
    """Make a prior from the table. Its texts are tokenised like the private data; lists are used as
    they are."""
    there = opened(table)
    as_read = (
        Content(column=ITEM, reading="list")
        if _holds_lists(there)
        else replace(content, column=ITEM, unit=None, where=None)  # of all its rows
    )
    run = DuckDBRun(
        replace_corpus(there, content=as_read), SystemRandomness(), Limits(memory=MEMORY_LIMIT)
    )
    try:
        run.hold_rows()
        items = run.fetch("public_items")
    finally:
        run.close()
    if pc.all(items.column("is_count")).as_py() is False:
        raise UsageError(
            f"prior: the column {COUNT!r} of its table says how often each item occurs: give a "
            "number above 0 in every row"
        )
    tokens = whole(items.column("tokens"), pa.list_(pa.string()))
    return prior_of_items(tokens, items.column("occurs").to_numpy(), max_n)


def _holds_lists(table: Corpus) -> bool:
    """Whether the items are lists, by the column's type in the first file."""
    if table.kind != "path":
        schema = schema_in_memory(table)
    else:
        files = [file for place in table.where for file in files_named(place)]
        schema = pq.read_schema(files[0]) if files else pa.schema([])
    if {ITEM, COUNT} - {*schema.names} and schema.names:
        raise CorpusError(
            f"prior: found the columns {', '.join(schema.names)}; a public table has {ITEM!r}, a "
            f"text or a list of tokens, and {COUNT!r}; of raw text, prior_text names the column"
        )
    kind = schema.field(ITEM).type if schema.names else pa.string()
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_one(kind) for is_one in lists)


def of_release(release: Release, max_n: int) -> Prior:
    """Make a prior from a release: its items, with scores as counts. An item counted in several
    groups has several rows with one score."""
    scores = {tuple(row["tokens"]): row["score"] for row in release}
    tokens = pa.array([list(item) for item in scores], pa.list_(pa.string()))
    return prior_of_items(tokens, np.array(list(scores.values())), max_n)
