"""Public texts, tables and releases, counted: the words and n-grams that make a prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from dphh.corpora.formats import opened
from dphh.corpora.tables import rows_in_memory
from dphh.corpus import Corpus
from dphh.engines.duckdb.content import tokens_sql
from dphh.engines.duckdb.host import DuckDBHost
from dphh.engines.host import Limits
from dphh.errors import CorpusError, UsageError
from dphh.files.paths import parquet_pattern
from dphh.mechanisms.released_rows import whole
from dphh.prior import Integers, Prior, PublicGrams, prior_of
from dphh.release import Release
from dphh.rows.content import Content
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.kernel.lists import one_array
from dphh.udfs.text.tokens import tokens_of

#: A word is listed if it occurs so often; in a text of fewer words than SMALL, so often.
LEAST, LEAST_OF_SMALL, SMALL = 3, 2, 1_000_000
#: Of a text of more words than this, longer n-grams that occur once are left out: there are about
#: as many of them as words, and they say next to nothing.
LARGE_TEXT = 1_000_000
#: The columns of a public table.
ITEM, COUNT = "item", "count"
#: Above this no sum of counts is near what 64 bits hold.
_MOST_COUNT = 2**52
#: What DuckDB may take; the rest is spilled.
_LIMITS = Limits(memory="1GB")


def of_text(corpus: Corpus, max_n: int) -> Prior:
    """Count the words and the n-grams of up to `max_n` words that occur often enough. DuckDB reads
    the text as it reads the private data, out of core."""
    run = DuckDBHost(opened(corpus), SystemRandomness(), _LIMITS)
    try:
        run.open()
        run.run("public_words")
        total = int(run.take("public_total").column("total")[0].as_py())
        run.run("public_list", least=LEAST if total >= SMALL else LEAST_OF_SMALL)
        run.drop("word_counts")
        listed = run.take("public_listed")
        vocabulary = whole(listed.column("word"), pa.string())
        numbers = np.arange(len(vocabulary), dtype=np.int64)[:, None]
        grams = [PublicGrams(numbers, _integers(listed, "occurs"))]
        if max_n > 1:
            run.run("public_places", longest=corpus.content.max_text_length)
        for length in range(2, max_n + 1):
            run.run("public_pairs", least=2 if total > LARGE_TEXT else 1)
            grams.append(_grams_one_longer(grams[-1], run))
            if length < max_n:
                run.run("public_next_places")
    finally:
        run.close()
    return prior_of(vocabulary, grams, total)


def _grams_one_longer(below: PublicGrams, run: DuckDBHost) -> PublicGrams:
    """The n-grams that are one word longer: the words of each pair's left gram and the last word of
    its right gram."""
    found = run.take("public_grams")
    left, right = _integers(found, "left_gram"), _integers(found, "right_gram")
    words = np.concatenate([below.words[left], below.words[right][:, -1:]], axis=1)
    return PublicGrams(words, _integers(found, "occurs"))


def _integers(table: pa.Table, name: str) -> Integers:
    found: Integers = whole(table.column(name), pa.int64()).to_numpy()
    return found


def of_table(source: Any, content: Content, max_n: int) -> Prior:
    """Make a prior from a public table with a column `item` and a column `count`. Its texts are
    tokenised like the private data; lists are used as they are."""
    rows = _rows_of(source)
    counts = rows.column(COUNT).to_pylist()
    if not all(count is not None and isfinite(count) and count > 0 for count in counts):
        raise UsageError(
            f"prior: the column {COUNT!r} of its table says how often each item occurs: give a "
            "number above 0 in every row"
        )
    items: dict[tuple[str, ...], float] = {}
    for tokens, count in zip(_tokens_of(rows.column(ITEM), content), counts, strict=True):
        item = tuple(token for token in tokens or () if token)
        items[item] = items.get(item, 0.0) + count
    return prior_of_items(items, max_n)


def _rows_of(source: Any) -> pa.Table:
    """The columns `item` and `count` of files or of a table in memory."""
    there = opened(Corpus(source, user=COUNT, item=ITEM))
    try:
        if there.kind == "path":
            with duckdb.connect() as con:
                found = con.read_parquet([parquet_pattern(place) for place in there.where])
                rows = found.select(ITEM, COUNT).to_arrow_table()
        else:
            read = rows_in_memory(there)
            rows = read if isinstance(read, pa.Table) else read.read_all()
        counts = rows.column(COUNT).cast(pa.float64())
        return pa.table({ITEM: rows.column(ITEM), COUNT: counts})
    except (CorpusError, KeyError, duckdb.Error, pa.ArrowException) as problem:
        raise CorpusError(
            f"prior: a public table has a column {ITEM!r}, a text or a list of tokens, and a "
            f"column {COUNT!r}, a number, and this could not be read as one "
            f"({type(problem).__name__}); of raw text, prior_text names the column"
        ) from None


def _tokens_of(column: pa.ChunkedArray, content: Content) -> list[list[str] | None]:
    found: list[list[str] | None]
    if pa.types.is_nested(column.type):
        found = column.to_pylist()
        return found
    as_read = tokens_sql(replace(content, column=ITEM, unit=None, where=None), "VARCHAR")
    found = tokens_of(one_array(column.cast(pa.string())), ITEM, as_read).to_pylist()
    return found


def of_release(release: Release, max_n: int) -> Prior:
    """Make a prior from a release: its items, with scores as counts. An item counted in several
    groups has several rows with one score."""
    return prior_of_items({tuple(row["tokens"]): row["score"] for row in release}, max_n)


def prior_of_items(items: Mapping[tuple[str, ...], float], max_n: int) -> Prior:
    """Make a prior from items and their positive counts. Items of more than `max_n` tokens are left
    out, and items whose shorter parts are missing."""
    counts = {item: min(max(round(count), 1), _MOST_COUNT) for item, count in items.items()}
    words = sorted((item[0] for item in counts if len(item) == 1), key=str.encode)
    number = {word: place for place, word in enumerate(words)}
    known: dict[tuple[int, ...], int] = {
        (place,): counts[(word,)] for word, place in number.items()
    }
    grams = [_in_order(known, 1)]
    for length in range(2, max_n + 1):
        longer = {
            tuple(number.get(token, -1) for token in item): count
            for item, count in counts.items()
            if len(item) == length
        }
        known = {
            gram: count
            for gram, count in longer.items()
            if gram[:-1] in known and gram[1:] in known
        }
        grams.append(_in_order(known, length))
    return prior_of(pa.array(words, pa.string()), grams, int(grams[0].counts.sum()))


def _in_order(grams: Mapping[tuple[int, ...], int], length: int) -> PublicGrams:
    ordered = sorted(grams)
    words = np.array(ordered, np.int64).reshape(-1, length)
    return PublicGrams(words, np.array([grams[gram] for gram in ordered], np.int64))
