"""What can be seen for free is looked at before a run pays, whatever engine the run is for.

Three things, of which a run would fail when it is paid for: rows of nobody; of files of text, that
they cannot be read; and texts of which an engine would hold more at a time than its memory.
Rows of nobody are no user's, so both of two neighbouring corpora hold them or neither does. The
others do tell, for nothing, that a file is damaged or that texts are very long (docs/threats.md).
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from dphh.corpus import Corpus
from dphh.engines.duckdb.content import user_sql
from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.duckdb.held import ROWS_AT_A_TIME, Room, refuse_more_than_fits
from dphh.engines.duckdb.session import DuckDBSession, open_session
from dphh.engines.session import Limits, Session
from dphh.errors import CorpusError
from dphh.lineage.conditions import condition
from dphh.sources.formats import opened
from dphh.sources.long_texts import longest_texts
from dphh.sources.quoted import identifier
from dphh.sources.reading import ROWS_OF_NOBODY, at_hand, files_named
from dphh.sources.text_files import reading_text
from dphh.udfs.draws.randomness import SystemRandomness

#: Of shorter ones 2,048 are 128 MiB, and are not listed.
LONG = 1 << 16


def can_be_looked_at(corpus: Corpus, session: Session | None = None) -> bool:
    """Files of this machine, tables at hand, and of a store what DuckDB is to read in any case.

    Views, relations and lazy frames are not: whoever writes a query could have it fail, or not, as
    rows have it, and would ask as many questions for nothing.
    """
    if corpus.kind != "path":
        return at_hand(corpus)
    return _is_here(corpus) or isinstance(session, DuckDBSession)


def look_first(corpus: Corpus, session: Session) -> None:
    """Before a run pays: refuses what it would fail of."""
    if not can_be_looked_at(corpus, session):
        return
    try:
        if _has_rows_of_nobody(corpus, session):
            raise CorpusError(ROWS_OF_NOBODY)
    except CorpusError as problem:
        raise CorpusError(f"{problem}. Nothing was spent") from None


def has_rows_of_nobody(corpus: Corpus) -> bool:
    """For `check`, which looks at queries too; raises whatever else a run would be refused for."""
    own = open_session(opened(corpus), SystemRandomness(), Limits())
    try:
        return _has_rows_of_nobody(corpus, own) if can_be_looked_at(corpus) else _nobodys(own)
    finally:
        own.close()


def _has_rows_of_nobody(corpus: Corpus, session: Session) -> bool:
    """By the run's own session where that is DuckDB's, else by one for this alone."""
    if isinstance(session, DuckDBSession):
        return _looked(corpus, session, session)
    own = open_session(opened(corpus), SystemRandomness(), Limits())
    try:
        return _looked(corpus, own, session)
    finally:
        own.close()


def _looked(corpus: Corpus, own: DuckDBSession, session: Session) -> bool:
    table, room = opened(corpus), _room(own, session)
    if isinstance(table.source, duckdb.DuckDBPyRelation):
        # Files of text, and DuckDB's. They are looked at where they lie, in one pass: a run has
        # them as one stream, which ends where it fails and holds many rows at a time.
        return _has_null_users(corpus, table, room) and _nobodys(own)
    if room is not None and table.kind == "path" and _is_here(table):
        files = [file for place in table.where for file in files_named(place)]
        for column, is_content in _texts(corpus):
            fits = room.fits(corpus.content if is_content else None)
            lengths = longest_texts(files, column, room.most, fits)
            refuse_more_than_fits(lengths, room, corpus.content, is_content)
    return _nobodys(own)


def _is_here(corpus: Corpus) -> bool:
    return corpus.kind != "path" or not any("://" in place for place in corpus.where)


def _nobodys(session: DuckDBSession) -> bool:
    session.hold_rows()
    return session.has_rows_of_nobody()


def _room(own: DuckDBSession, session: Session) -> Room | None:
    """Of Spark's machines nobody here knows it."""
    if session.name not in ROWS_AT_A_TIME:
        return None
    if session.name == "polars":
        import polars as pl

        threads = pl.thread_pool_size()
    else:
        ((threads,),) = own.con.execute("SELECT current_setting('threads')").fetchall()
    return Room(session.name, int(threads), own.memory)


def _texts(corpus: Corpus) -> list[tuple[str, bool]]:
    """The columns that may be long, and whether it is the content: lists are not looked into."""
    content = corpus.content
    beside = {*(column for _, column in corpus.columns_of_user), corpus.by} - {None, content.column}
    some = [] if content.reading == "list" else [(content.column, True)]
    return [*some, *((str(each), False) for each in beside)]


def _has_null_users(corpus: Corpus, table: Corpus, room: Room | None) -> bool:
    """Whether a user is NULL, by one pass over the rows; refuses what is too long."""
    source: duckdb.DuckDBPyRelation = table.source
    types: Mapping[str, str] = dict(zip(source.columns, map(str, source.types), strict=True))
    columns = [] if room is None else _texts(corpus)
    columns = [each for each in columns if types[each[0]] in ("VARCHAR", "BLOB")]
    content = identifier(corpus.content.column)
    counts = f"{content} IS NOT NULL"
    if corpus.content.where is not None:
        counts += f" AND {condition(corpus.content.where).sql}"
    asked = [
        f"coalesce(bool_or({user_sql(table, types)} IS NULL AND {counts}), false)",
        f"count({content})",  # so that all of a row is read
    ]
    for column, _ in columns:
        assert room is not None
        size = f"octet_length(CAST({identifier(column)} AS BLOB))"
        if types[column] == "VARCHAR":
            size = f"strlen({identifier(column)})"
        asked.append(f"max({size}, {room.most}) FILTER ({size} > {LONG})")
    # Without WHERE: DuckDB would gather what is left of a filter in rows of 2,048, texts and all.
    with engine_errors("look"), reading_text(corpus):
        ((nobodys, _, *longest),) = source.aggregate(", ".join(asked)).fetchall()
    for (_, is_content), lengths in zip(columns, longest, strict=True):
        assert room is not None
        refuse_more_than_fits(lengths or [], room, corpus.content, is_content)
    return bool(nobodys)
