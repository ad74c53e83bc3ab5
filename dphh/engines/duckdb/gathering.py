"""Brings the texts of each user together, in as few parts of the users as the memory allows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import duckdb
from pyarrow import Table

from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.duckdb.run import DuckDBRun
from dphh.errors import CorpusError, EngineOutOfMemory
from dphh.sources.reading import ROWS_OF_NOBODY
from dphh.udfs.kernel.gathering import Gathering, Read, register_gathered

#: In how many parts the users are taken, until each fits the memory. A user is whole in one of
#: them, and what a user adds hangs on no other's rows, so how many parts there are changes no sum.
PARTS = (1, 4, 16, 64)
#: What is gathered of a part takes one part in so many of the memory limit.
SHARE = 4


class Gathers(DuckDBRun):
    def gather(self, table: str, read: Read) -> None:
        """Make a table (lots, lengths, codes) of whole users."""
        self.hold_rows()
        if self.has_rows_of_nobody():
            raise CorpusError(ROWS_OF_NOBODY)
        for parts in PARTS:
            self.drop(table)
            self.con.execute(
                f"CREATE TEMP TABLE {table} (lots BIGINT[], lengths INTEGER[], codes INTEGER[])"
            )
            try:
                for part in range(parts):
                    self._lay_out(table, self._gathered(read, parts, part))
                return
            except (EngineOutOfMemory, MemoryError):
                if parts == PARTS[-1]:
                    raise

    def _gathered(self, read: Read, parts: int, part: int) -> Gathering:
        limit = self.memory.limit
        # In the smallest parts what is left to try is to go on.
        most = limit // SHARE if limit is not None and parts < PARTS[-1] else None
        gathering = Gathering(read, most)
        (number,) = self.con.sql("SELECT key_of_user(user_id) FROM rows_of_corpus").types
        register_gathered(self.con, gathering, str(number))
        try:
            self.execute("gather_texts", parts=parts, part=part)
        finally:
            with suppress(duckdb.Error):  # a step's own error is the one to tell
                self.con.remove_function("dphh_gathered")
                self.drop("handed")
        if gathering.is_full:
            raise EngineOutOfMemory("gather_texts: more than may be held at a time")
        return gathering

    def _lay_out(self, table: str, gathering: Gathering) -> None:
        self.memory.settle()
        with engine_errors("gather_texts"):
            for rows in one_ahead(gathering.rows()):
                self.con.register("made", rows)
                self.con.execute(f"INSERT INTO {table} FROM made")
                self.con.unregister("made")


def one_ahead(rows: Iterator[Table]) -> Iterator[Table]:
    """Lays out the next rows in a thread while DuckDB takes these."""
    with ThreadPoolExecutor(1) as beside:
        following = beside.submit(next, rows, None)
        while (made := following.result()) is not None:
            following = beside.submit(next, rows, None)
            yield made
