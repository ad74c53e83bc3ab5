"""Gathers the texts of each user, in as few parts of the users as the memory allows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import duckdb
from pyarrow import Table

from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.duckdb.run import DuckDBRun
from dphh.errors import CorpusError, EngineError, EngineOutOfMemory
from dphh.sources.reading import ROWS_OF_NULL_USERS
from dphh.udfs.kernel.gathering import Gathering, Read, register_gathered

#: Numbers of parts to try until a part fits the memory. Each user is whole in one part, and what a
#: user contributes depends on no other user's rows, so the number of parts changes no sum.
PARTS = (1, 4, 16, 64)
#: A part may use at most one SHAREth of the memory limit.
SHARE = 4


class Gathers(DuckDBRun):
    """The methods of a DuckDB session for gathering the texts of users."""

    def gather(self, table: str, read: Read) -> None:
        """Make a table (user_hashes, lengths, ids) of whole users."""
        self.hold_rows()
        if self.has_rows_of_null_users():
            raise CorpusError(ROWS_OF_NULL_USERS)
        for parts in PARTS:
            self.drop(table)
            self.con.execute(
                f"CREATE TEMP TABLE {table} "
                "(user_hashes BIGINT[], lengths INTEGER[], ids INTEGER[])"
            )
            try:
                for part in range(parts):
                    self._write_rows_of_users(table, self._gather_part(read, parts, part))
                return
            except (EngineOutOfMemory, MemoryError):
                if parts == PARTS[-1]:
                    raise

    def _gather_part(self, read: Read, parts: int, part: int) -> Gathering:
        limit = self.memory.limit
        # The smallest parts have no limit: there is nothing smaller to try.
        most = limit // SHARE if limit is not None and parts < PARTS[-1] else None
        gathering = Gathering(read, most)
        (number,) = self.con.sql("SELECT key_of_user(user_id) FROM rows_of_corpus").types
        register_gathered(self.con, gathering, str(number))
        try:
            self.execute("gather_texts", parts=parts, part=part)
        except EngineError:
            if not gathering.is_full:  # else it refused texts, which ended the step
                raise
        finally:
            with suppress(duckdb.Error):  # keep the step's own error, if there is one
                self.con.remove_function("dphh_gathered")
                self.drop("handed")
        if gathering.is_full:
            raise EngineOutOfMemory("gather_texts: a part of the users exceeds its memory")
        return gathering

    def _write_rows_of_users(self, table: str, gathering: Gathering) -> None:
        self.memory.settle()
        with engine_errors("gather_texts"):
            for rows in prepare_one_ahead(gathering.rows()):
                self.con.register("made", rows)
                self.con.execute(f"INSERT INTO {table} FROM made")
                self.con.unregister("made")


def prepare_one_ahead(rows: Iterator[Table]) -> Iterator[Table]:
    """Prepare the next rows on another thread while DuckDB inserts the current ones."""
    with ThreadPoolExecutor(1) as beside:
        following = beside.submit(next, rows, None)
        while (made := following.result()) is not None:
            following = beside.submit(next, rows, None)
            yield made
