"""Looks at a corpus, before a run pays, for what would make the run fail. DuckDB looks for Polars
and Spark too, at what it reads as they do.

There are three such faults: rows with a NULL user id; text files that cannot be parsed; and texts
that need more memory than the engine has. Rows with a NULL user id belong to no user, so either
both of two neighbouring corpora contain them or neither does. The other two checks do reveal, at no
price, that a file is damaged or that texts are very long (docs/threats.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing

import duckdb

from dphh.corpus import Corpus
from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.duckdb.run import DuckDBRows
from dphh.engines.duckdb.users import counts_sql, user_sql
from dphh.engines.room import Room, refuse_more_than_fits
from dphh.errors import CorpusError
from dphh.session.protocol import Limits
from dphh.sources.finding import files_named, is_in_memory, message_of_null_users
from dphh.sources.formats import opened
from dphh.sources.long_texts import longest_texts
from dphh.sources.quoted import identifier
from dphh.sources.text_files import reading_text

#: Shorter texts are not listed: 2,048 of them take at most 128 MiB.
LONG = 1 << 16

#: The memory that an engine has for texts, by what looks for it; None if it is not known.
RoomOf = Callable[[DuckDBRows], Room | None]


def room_on_duckdb(looking: DuckDBRows) -> Room:
    ((threads,),) = looking.con.execute("SELECT current_setting('threads')").fetchall()
    return Room(2_048, int(threads), {"words": 17, "characters": 60}, looking.memory)


def refuse_if_run_would_fail(corpus: Corpus, session: DuckDBRows) -> None:
    """Before a run pays, refuse a corpus on which it would fail."""
    look_first(corpus, room_on_duckdb, session)


def look_first(corpus: Corpus, room_of: RoomOf, of_run: DuckDBRows | None = None) -> None:
    """The same of an engine with that room. `of_run`: the run's own session, if it is DuckDB's."""
    try:
        if _finds_null_users(corpus, room_of, of_run):
            raise CorpusError(message_of_null_users(corpus))
    except CorpusError as problem:
        raise CorpusError(f"{problem}. Nothing was spent") from None


def has_rows_of_null_users(corpus: Corpus, thorough: bool) -> bool | None:
    """For `check`; None if it is not known. `thorough`: queries are run for it, and files read from
    stores. Raises any other fault that a run would be refused for."""
    found = _finds_null_users(corpus, room_on_duckdb)
    if found is not None or not thorough:
        return found
    with closing(DuckDBRows(opened(corpus), Limits())) as own:
        return _hold_and_find_null_users(own)


def _finds_null_users(
    corpus: Corpus, room_of: RoomOf, of_run: DuckDBRows | None = None
) -> bool | None:
    """Whether a row has a NULL user id; None where it is not safe to look.

    It is safe for local files, tables in memory, and remote files if DuckDB runs. Queries are not
    run: their author could make them fail depending on the rows.
    """
    if not (corpus.kind == "path" or is_in_memory(corpus)):
        return None
    if not _is_local(corpus) and of_run is None:
        return None
    table = opened(corpus)
    own = of_run or DuckDBRows(table, Limits())
    try:
        return _looks_for_null_users(corpus, table, own, room_of(of_run or own))
    finally:
        if own is not of_run:
            own.close()


def _looks_for_null_users(
    corpus: Corpus, table: Corpus, own: DuckDBRows, room: Room | None
) -> bool:
    if isinstance(table.source, duckdb.DuckDBPyRelation):
        # Text files and DuckDB files. They are scanned here in one pass: a run reads them as a
        # stream, which ends if it fails and buffers many rows at a time.
        return _scan_for_null_users(corpus, table, room) and _hold_and_find_null_users(own)
    if room is not None and table.kind == "path" and _is_local(table):
        files = [file for place in table.where for file in files_named(place)]
        for column, is_content in _text_columns(corpus):
            fits = room.fits(corpus.content if is_content else None)
            lengths = longest_texts(files, column, room.most, fits)
            refuse_more_than_fits(lengths, room, corpus.content, is_content)
    return _hold_and_find_null_users(own)


def _is_local(corpus: Corpus) -> bool:
    return corpus.kind != "path" or not any("://" in place for place in corpus.where)


def _hold_and_find_null_users(session: DuckDBRows) -> bool:
    session.hold_rows()
    return session.has_rows_of_null_users()


def _text_columns(corpus: Corpus) -> list[tuple[str, bool]]:
    """The columns that may have long texts, and whether each is the content; lists are skipped."""
    content = corpus.content
    beside = {*(column for _, column in corpus.columns_of_user), corpus.by} - {None, content.column}
    some = [] if content.reading == "list" else [(content.column, True)]
    return [*some, *((str(each), False) for each in beside)]


def _scan_for_null_users(corpus: Corpus, table: Corpus, room: Room | None) -> bool:
    """Whether a user id is NULL, in one pass over the rows; refuses texts that are too long."""
    source: duckdb.DuckDBPyRelation = table.source
    types: Mapping[str, str] = dict(zip(source.columns, map(str, source.types), strict=True))
    columns = [] if room is None else _text_columns(corpus)
    columns = [each for each in columns if types[each[0]] in ("VARCHAR", "BLOB")]
    content = identifier(corpus.content.column)
    nobody = f"{user_sql(table, types)} IS NULL AND {counts_sql(table)}"
    asked = [
        f"coalesce(bool_or({nobody}), false)",
        f"count({content})",  # so that all of a row is read
    ]
    for column, _ in columns:
        assert room is not None
        size = f"octet_length(CAST({identifier(column)} AS BLOB))"
        if types[column] == "VARCHAR":
            size = f"strlen({identifier(column)})"
        asked.append(f"max({size}, {room.most}) FILTER ({size} > {LONG})")
    # No WHERE: DuckDB would collect the filtered rows in vectors of 2,048, including their texts.
    with engine_errors("look"), reading_text(corpus):
        ((null_users, _, *longest),) = source.aggregate(", ".join(asked)).fetchall()
    for (_, is_content), lengths in zip(columns, longest, strict=True):
        assert room is not None
        refuse_more_than_fits(lengths or [], room, corpus.content, is_content)
    return bool(null_users)
