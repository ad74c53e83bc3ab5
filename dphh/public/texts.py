"""Public texts and tables, counted: the words and n-grams that make a prior."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from dphh.engines.duckdb.host import DuckDBHost
from dphh.errors import CorpusError
from dphh.files.whole_files import write_whole
from dphh.mechanisms.running import as_array, integer_columns
from dphh.prior import Prior
from dphh.reader.content import Content
from dphh.reader.corpus import Corpus, replace_corpus
from dphh.reader.identity import state_of_files
from dphh.reader.paths import dphh_folder
from dphh.reader.rows import Limits, opened_unless_parquet
from dphh.reader.tables import rows_of_table
from dphh.reader.views import tokens_of_texts
from dphh.udfs.noise.randomness import SystemRandomness

#: Of a text with at least this many words, words are listed that occur at least three times, and
#: longer n-grams that occur at least twice: n-grams that occur once are about as many as the text's
#: words, and say next to nothing. Of a smaller text, words are listed that occur at least twice.
LARGE_TEXT_WORDS = 1_000_000
#: The columns of a public table.
ITEM, COUNT = "item", "count"
#: The version of the counting queries. Counts that another version cached are not used.
_VERSION_OF_COUNTING = 5


def prior_of_text(source: Any, column: str, content: Content, max_n: int) -> Prior:
    """The prior of a column of public texts, tokenised like the private corpus; all rows count.

    The prior of unchanged files is counted once and cached. The cache has nothing of private data:
    the name of a cached file follows from the public text's files, from how these are read and from
    the rule by which they are counted.
    """
    text = replace_corpus(
        Corpus(source, user=f"{column} ", text=column),
        user=(column,),  # a public text has no users: any column that is there will do
        content=replace(content, column=column, unit=None, where=None),
    )
    reading, state, folder = text.content.to_json(), state_of_files(text, b""), cache_folder()
    said = json.dumps([_VERSION_OF_COUNTING, max_n, reading, text.where, state])
    name = f"{hashlib.sha256(said.encode()).hexdigest()}.npz"
    cached = folder / name if folder is not None and state is not None else None
    if cached is not None and cached.exists():
        return replace(_prior_of_file(cached), reading=reading)
    try:
        prior = count_text(text, max_n)
    except CorpusError as problem:
        raise CorpusError(f"prior, prior_text: {problem}") from None
    if cached is not None:
        with suppress(OSError):  # such as a full disk: the next call counts again
            cached.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(cached, _bytes_of_prior(prior), 0o600)
    return replace(prior, reading=reading)


def cache_folder() -> Path | None:
    """`priors` in the folder `$DPHH_CACHE`, else in dphh's cache folder; None without either."""
    caches = os.environ.get("DPHH_CACHE") or dphh_folder("XDG_CACHE_HOME", ".cache")
    return None if caches is None else Path(caches).absolute() / "priors"


def _bytes_of_prior(prior: Prior) -> bytes:
    words = np.frombuffer(json.dumps(prior.vocabulary.to_pylist()).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, np.array(prior.total), words, *prior.grams, *prior.counts)
    return file.getvalue()


def _prior_of_file(place: Path) -> Prior:
    with np.load(place, allow_pickle=False) as found:
        total, words, *arrays = (found[name] for name in found.files)
    vocabulary = pa.array(json.loads(words.tobytes()), pa.string())
    half = len(arrays) // 2
    return Prior(vocabulary, tuple(arrays[:half]), tuple(arrays[half:]), int(total))


def count_text(text: Corpus, max_n: int) -> Prior:
    """The prior of a public text: DuckDB reads it as it reads private data, and counts words and
    n-grams of up to `max_n` words."""
    # What does not fit in this much memory, DuckDB writes to disk.
    run = DuckDBHost(opened_unless_parquet(text), SystemRandomness(), Limits(memory="1GB"))
    try:
        run.open()
        run.run("public_words")
        total = int(run.take("public_total").column("total")[0].as_py())
        least = 2 if total < LARGE_TEXT_WORDS else 3
        run.run("public_places", least=least, longest=text.content.max_text_length)
        listed = run.take("public_listed")
        vocabulary = as_array(listed.column("word"), pa.string())
        grams = [np.arange(len(vocabulary), dtype=np.int64)[:, None]]
        counts = integer_columns(listed, "occurs")
        for _ in range(2, max_n + 1):
            run.run("public_pairs", least=least - 1)
            found = run.take("public_grams")
            left, right, occurs = integer_columns(found, "left_gram", "right_gram", "occurs")
            grams.append(np.concatenate([grams[-1][left], grams[-1][right][:, -1:]], axis=1))
            counts.append(occurs)
    finally:
        run.close()
    return Prior(vocabulary, tuple(grams), tuple(counts), total)


def prior_of_table(source: Any, content: Content, max_n: int) -> Prior:
    """The prior of a public table with a column `item` and a column `count`. Its texts are
    tokenised like the private data; lists are used as they are."""
    there = opened_unless_parquet(Corpus(source, user=COUNT, item=ITEM))
    try:
        files = there.local_files or [*there.where]
        in_files = there.kind == "path"
        rows = pl.read_parquet(files) if in_files else pl.DataFrame(rows_of_table(there))
        rows = rows.select(ITEM, pl.col(COUNT).cast(pl.Float64)).drop_nulls()
    except (CorpusError, OSError, pl.exceptions.PolarsError) as problem:
        raise CorpusError(
            f"prior: this could not be read as a table with a column {ITEM!r}, a text or a list of "
            f"tokens, and a column {COUNT!r}, a number ({type(problem).__name__}); give such a "
            "table, or name the column of raw texts by prior_text"
        ) from None
    rows = rows.filter(pl.col(COUNT) > 0)
    are_lists = rows.schema[ITEM] == pl.List
    lists = (
        rows[ITEM] if are_lists else tokens_of_texts(rows[ITEM].cast(pl.String).to_list(), content)
    )
    items: dict[tuple[str, ...], float] = defaultdict(float)
    for tokens, count in zip(lists, rows[COUNT], strict=True):
        # No count may be so large that the sum of all counts comes near 2^64.
        items[tuple(token for token in tokens if token)] += min(2**52, count)
    return prior_of_items(items, max_n, reading=content.to_json())


def prior_of_items(items: Mapping[tuple[str, ...], float], max_n: int, **origin: Any) -> Prior:
    """The prior of items with positive counts, with `reading` and `run_id` as in `origin`. Items of
    more than `max_n` tokens are left out, and items whose shorter parts are missing."""
    words = sorted((item[0] for item in items if len(item) == 1), key=str.encode)
    number = {word: place for place, word in enumerate(words)}
    grams, counts = [], []
    known: dict[tuple[int, ...], int] = {(): 0}
    for length in range(1, max_n + 1):
        numbered = {
            tuple(number.get(token, -1) for token in item): max(round(count), 1)
            for item, count in items.items()
            if len(item) == length
        }
        known = {
            gram: count
            for gram, count in sorted(numbered.items())
            if gram[:-1] in known and gram[1:] in known
        }
        grams.append(np.array([*known], np.int64).reshape(-1, length))
        counts.append(np.array([*known.values()], np.int64))
    vocabulary = pa.array(words, pa.string())
    return Prior(vocabulary, tuple(grams), tuple(counts), int(counts[0].sum()), **origin)
