"""The rows of a corpus and its whole users, as a private instance of DuckDB reads them."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from dphh.errors import CorpusError, EngineError, EngineOutOfResources, UsageError
from dphh.files.private_folder import PrivateFolder
from dphh.reader.corpus import ROWS_WITHOUT_USER_MESSAGE, Corpus, replace_corpus
from dphh.reader.failures import replace_duckdb_errors
from dphh.reader.files import (
    are_many_and_small,
    make_private_and_alike,
    reach_stores,
    refuse_delta_and_iceberg,
    refuse_missing_files,
    refuse_unclear_columns,
)
from dphh.reader.identity import digest_of_sum, sum_of_hashes
from dphh.reader.paths import duckdb_file_of
from dphh.reader.tables import TEXT_FORMATS, rows_of_table, table_of_database
from dphh.reader.views import (
    SOURCE_TABLE_NAME,
    nulls_sql,
    open_corpus,
    tokens_by_duckdb,
    tokens_query,
)
from dphh.sql import identifier, macros_called_in, query
from dphh.udfs.kernel.gathering import Gathering, ReadWords
from dphh.udfs.kernel.spilled_texts import SpilledTexts

if TYPE_CHECKING:  # it imports Polars
    from dphh.udfs.kernel.vocabulary import Vocabulary


#: Shares of the memory limit: the most that texts use while users are gathered, what is reserved
#: for arrays of the functions that a step calls, and the least that DuckDB gets.
TEXTS_MEMORY_SHARE = 1 / 16
CALLS_MEMORY_SHARE = 1 / 4
LEAST_DUCKDB_SHARE = 1 / 4
#: 200 MB, as DuckDB rounds it. The process takes some 160 MB before it reads a row, so that less
#: could neither be kept nor suffice.
LEAST_MEMORY_LIMIT = 190 << 20
_PROCESS_MEMORY_FILE = Path("/proc/self/statm")
DISK_ERROR_MESSAGE = (
    "the temporary folder failed in the step 'gather_texts' ({why}): free disk space there, or "
    "raise the memory limit"
)
NO_MEMORY_MESSAGE = (
    "this machine has no memory left in the step 'gather_texts': free some, or run on a machine "
    "with more"
)


@dataclass(frozen=True)
class Limits:
    """Limits of an engine: memory in DuckDB's notation ("4GB"), and threads."""

    memory: str | None = None
    threads: int | None = None


def opened_unless_parquet(corpus: Corpus) -> Corpus:
    """The corpus with an open table in place of its paths, unless these are of Parquet files."""
    if corpus.read_once is not None:
        return replace_corpus(corpus, kind="frame", source=corpus.read_once.rows)
    if corpus.kind != "path":
        return corpus
    places = corpus.where
    if len(places) == 1 and (database := duckdb_file_of(places[0])) is not None:
        return replace_corpus(corpus, kind="table", source=table_of_database(database, places[0]))
    refuse_missing_files(corpus)
    refuse_delta_and_iceberg(corpus)
    for pattern, open_files in TEXT_FORMATS:
        if all(map(pattern.search, places)):
            return replace_corpus(corpus, kind="table", source=open_files(corpus))
    return replace_corpus(corpus, same_schema=refuse_unclear_columns(corpus))


def register_arrow(
    con: duckdb.DuckDBPyConnection, name: str, body: Any, argument_types: Any, result_type: str
) -> None:
    """Register a function of Arrow arrays. Without `side_effects`, DuckDB would call it twice for a
    filter on its result, and once for equal rows."""
    con.create_function(
        f"dphh_{name}",
        body,
        argument_types,
        result_type,
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
        side_effects=True,
    )


class Rows:
    """Views of a corpus's rows: rows_of_corpus (user_id, content, group_name) and texts_of_corpus
    (user_id, tokens, group_name, long_text)."""

    def __init__(self, corpus: Corpus, limits: Limits) -> None:
        self._corpus = corpus
        self._is_loaded = False
        #: Private rows that do not fit into memory go to this folder, which one login can read.
        self._spill = PrivateFolder()
        given = {"memory_limit": limits.memory, "threads": limits.threads}
        config: dict[str, Any] = {name: limit for name, limit in given.items() if limit is not None}
        config["temp_directory"] = self._spill.path
        try:
            self.con = duckdb.connect(":memory:", config=config)
            self.memory = MemoryLimit(self.con, limits.memory is not None)
            if limits.memory is not None and self.memory.limit < LEAST_MEMORY_LIMIT:
                raise UsageError(
                    f"memory_limit: found {limits.memory!r}, but Python and DuckDB alone take some "
                    "160 MB before a row is read; give 200MB or more, and more with many threads"
                )
            make_private_and_alike(self.con)
            # Functions get 2,048 rows at a time. With four-byte offsets, 2 GiB of text in these
            # (128 texts of the greatest length) would end a run that has been paid for.
            self.con.execute("SET arrow_large_buffer_size = true")
            reach_stores(self.con, corpus)
            self._macros: set[str] = set()
            self._relation, self._types = self._open_hiding_errors(corpus)
        except duckdb.Error as problem:
            self._spill.close()
            # DuckDB's message names the wrong setting. The type of the error is the same for all.
            message = f"DuckDB could not be opened ({type(problem).__name__}: {problem})"
            if limits.memory is not None and re.search("memory", str(problem), re.IGNORECASE):
                message = f"memory_limit: found {limits.memory!r}; write it as 500MB or 4GB"
            raise UsageError(message) from None
        except BaseException:
            self._spill.close()
            raise

    def close(self) -> None:
        self.con.close()
        self._spill.close()

    def _open_hiding_errors(self, corpus: Corpus) -> tuple[str, dict[str, str]]:
        try:
            return open_corpus(self.con, corpus, self.define_macros)
        except duckdb.Error as problem:  # its message may quote folders' names, which may be users
            raise CorpusError(
                "corpus: DuckDB cannot take its columns or its folders "
                f"({type(problem).__name__}); cast the columns to plain types, or rename the "
                "folders"
            ) from None

    def define_macros(self, text: str) -> None:
        """Define what a text of SQL calls of `sql/rows/text.sql`, unless another text has."""
        for macro in macros_called_in(text):
            if macro not in self._macros:
                self._macros.add(macro)
                self.con.execute(macro)

    def open(self) -> None:
        """Load the rows, once. Rows that can be read only once are copied to a temporary table.

        Refuses a corpus with rows that have NULL in a user column. They belong to no user: a unit
        of several columns is a combination of values, and NULL is none. So either both of two
        neighbouring corpora have them or neither does. All rows are looked at, whatever `where`
        says: so no user's rows decide how a request is answered, however many requests are made.
        """
        if self._is_loaded:
            return
        corpus = self._corpus
        look = f"FROM {self._relation} WHERE {nulls_sql(corpus)}"
        if corpus.kind != "path":
            self.con.unregister(SOURCE_TABLE_NAME)
            once = corpus.read_once
            rows = rows_of_table(corpus) if once is None else once.rows
            self.con.register(SOURCE_TABLE_NAME, rows)
            look = "FROM rows_of_corpus WHERE user_id IS NULL"  # a stream is read only once
        with replace_duckdb_errors("rows_of_corpus"):
            # Of many small files DuckDB makes as many small batches, each time that it reads them.
            if corpus.kind == "table" or are_many_and_small(corpus):
                self.con.execute("CREATE TEMP TABLE kept_rows AS FROM rows_of_corpus")
                self.con.execute("CREATE OR REPLACE TEMP VIEW rows_of_corpus AS FROM kept_rows")
            refuses = corpus.content.null_users == "refuse"
            if refuses and self._known("NULL users", partial(self._has_rows, look)):
                raise CorpusError(ROWS_WITHOUT_USER_MESSAGE)
        self._is_loaded = True

    def _has_rows(self, look: str) -> bool:
        return bool(self.con.execute(f"SELECT 1 {look} LIMIT 1").fetchall())

    def _known(self, what: object, compute: Callable[[], Any]) -> Any:
        """What is computed of the rows and their groups: of a prepared corpus, once."""
        corpus = self._corpus
        if corpus.read_once is None:
            return compute()
        return corpus.read_once.known((what, corpus.content, corpus.by), compute)

    def needed_columns(self) -> Any:
        """The columns that the corpus names, as an Arrow table or stream, before anything is made
        of them."""
        if self._corpus.kind != "path":
            return rows_of_table(self._corpus)
        columns = ", ".join(map(identifier, dict.fromkeys(self._corpus.columns.values())))
        with replace_duckdb_errors("rows_of_corpus"):
            return self.con.sql(f"SELECT {columns} FROM {self._relation}").to_arrow_table()

    def digest(self, key: bytes) -> str:
        self.open()
        with replace_duckdb_errors("digest"):
            total = self._known(
                ("sum", key), partial(sum_of_hashes, self.con, "rows_of_corpus", key)
            )
        return digest_of_sum(total, key)

    def whole_users(self, reading: ReadWords, words: Vocabulary) -> Iterator[pa.Table]:
        """Gather whole users, as rows of lists (block, user_hashes, lengths, ids). Texts that do
        not fit into memory meanwhile are written to files; those of a prepared corpus stay in
        memory for later runs, unless words of this run's own decide what is gathered."""
        self.open()
        if self._corpus.read_once is None or reading.only is not None or len(words):
            return self._gather(reading, words)

        def gathered() -> tuple[list[pa.Table], Vocabulary]:
            users, known = [*self._gather(reading, words)], type(words)()
            known.take_words(words)
            return users, known

        what = "users", reading.marks_ends, tuple(reading.groups)
        users, known = self._known(what, gathered)
        words.take_words(known)
        return iter(users)

    def _gather(self, reading: ReadWords, words: Vocabulary) -> Iterator[pa.Table]:
        spilled = SpilledTexts(self._spill.path, int(self.memory.limit * TEXTS_MEMORY_SHARE))
        content = self._corpus.content
        of_rows = tokens_query(content, self._types[content.column], "FROM rows")
        tokens = partial(tokens_by_duckdb, query_of_rows=of_rows)
        gathering = Gathering(
            reading.reader(words), spilled, tokens, distinct=not reading.marks_ends
        )
        takes = ["VARCHAR", "VARCHAR[]", "VARCHAR", "VARCHAR"]
        register_arrow(self.con, "gathered", gathering.add, takes, "INTEGER")
        with _explain_what_ran_out(gathering):
            try:
                with replace_duckdb_errors("gather_texts"):
                    self.memory.update_limit()
                    self.con.execute(query("gather_texts"))
                    gathering.finish_adding()
            finally:
                with suppress(duckdb.Error):  # the step's own error is the one to raise
                    self.con.remove_function("dphh_gathered")
        self._forget_rows()
        if gathering.holds_null_users:  # a file was replaced since `open` has looked
            raise CorpusError(ROWS_WITHOUT_USER_MESSAGE)
        words.close()
        return _gathered_rows(gathering)

    def _forget_rows(self) -> None:
        """Free the memory of rows that a frame or a table has: none is read after users are
        gathered."""
        self.con.execute("DROP TABLE IF EXISTS kept_rows")
        if self._corpus.kind != "path":
            self.con.unregister(SOURCE_TABLE_NAME)


def check_columns(corpus: Corpus) -> None:
    """Check names and types of columns, as a run does before it pays, so that a plan that is only
    shown reports a missing path or column."""
    Rows(opened_unless_parquet(corpus), Limits()).close()


def _gathered_rows(gathering: Gathering) -> Iterator[pa.Table]:
    with _explain_what_ran_out(gathering):
        yield from gathering.rows()


@contextmanager
def _explain_what_ran_out(gathering: Gathering) -> Iterator[None]:
    """Replace the error by one that names the resource that ran out: DuckDB reports an error of the
    disk as an error of the function that met it."""
    try:
        yield
    except (EngineError, OSError):
        if gathering.disk_error is None:
            raise
        why = gathering.disk_error.strerror
        raise EngineOutOfResources(DISK_ERROR_MESSAGE.format(why=why)) from None
    except MemoryError:  # its message from NumPy has the size of an array, which is private
        raise EngineOutOfResources(NO_MEMORY_MESSAGE) from None


class MemoryLimit:
    """The memory limit of a run, and how much of it DuckDB may use at present. A limit that the
    caller gave (`is_from_caller`) applies to the whole process, so DuckDB gets what the rest of the
    process leaves of it.

    The functions of `udfs/` allocate arrays and words outside DuckDB, which counts and spills only
    its own memory. So DuckDB's limit is set again before each step.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, is_from_caller: bool) -> None:
        self._con = con
        self.is_from_caller = is_from_caller
        written = "parse_formatted_bytes(current_setting('memory_limit'))"
        ((self.limit,),) = con.execute(f"SELECT {written}").fetchall()
        self._duckdb_limit: int = self.limit

    def update_limit(self) -> None:
        if not self.is_from_caller:
            return
        outside = self._memory_outside_duckdb()
        if outside is None:
            return
        left = self.limit - int(self.limit * CALLS_MEMORY_SHARE) - outside
        duckdb_limit = max(left, int(self.limit * LEAST_DUCKDB_SHARE))
        try:
            self._set_duckdb_limit(duckdb_limit)
        except duckdb.OutOfMemoryException:  # DuckDB cannot spill enough at once to obey it
            self._set_duckdb_limit(self._duckdb_limit)
        else:
            self._duckdb_limit = duckdb_limit

    def _set_duckdb_limit(self, limit_in_bytes: int) -> None:
        self._con.execute(f"SET memory_limit = '{limit_in_bytes} bytes'")

    def _memory_outside_duckdb(self) -> int | None:
        """The process's memory that DuckDB does not count; None on systems other than Linux."""
        if not _PROCESS_MEMORY_FILE.exists():
            return None
        resident = int(_PROCESS_MEMORY_FILE.read_text().split()[1]) * mmap.PAGESIZE
        ((counted,),) = self._con.execute(
            "SELECT CAST(sum(memory_usage_bytes) AS BIGINT) FROM duckdb_memory()"
        ).fetchall()
        return max(resident - int(counted), 0)
