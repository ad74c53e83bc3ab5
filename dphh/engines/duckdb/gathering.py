"""Gathers the texts of each user; what does not fit into memory meanwhile goes to files."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import duckdb
from pyarrow import Table

from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.duckdb.run import DuckDBRun
from dphh.errors import CorpusError, EngineError, EngineOutOfMemory
from dphh.rows.user import ROWS_WITHOUT_USER
from dphh.udfs.kernel.gathering import Gathering, Read, register_gathered
from dphh.udfs.kernel.spilled_texts import SpilledTexts

#: Texts that were read may use at most one SHAREth of the memory limit.
SHARE = 16
NO_DISK = (
    "the temporary folder failed in the step 'gather_texts' ({why}): free disk space there, or "
    "raise the memory limit"
)
NO_MEMORY = (
    "this machine has no memory left in the step 'gather_texts': free some, or run on a machine "
    "with more"
)


class Gathers(DuckDBRun):
    """The methods of a DuckDB session for gathering the texts of users."""

    def gather(self, table: str, read: Read) -> None:
        """Make a table (user_hashes, lengths, ids) of whole users."""
        self.drop(table)
        self.hold_rows()
        limit = self.memory.limit
        spilled = None if limit is None else SpilledTexts(self._spill.path, limit // SHARE)
        gathering = Gathering(read, spilled)
        register_gathered(self.con, gathering)
        try:
            self.execute("gather_texts")
            gathering.end()
            if gathering.holds_null_users:
                raise CorpusError(ROWS_WITHOUT_USER)
            self.whole_users.vocabulary.close()
            self._write_rows_of_users(table, gathering)
        except (EngineError, OSError):
            if gathering.disk_error is None:
                raise
            why = gathering.disk_error.strerror
            raise EngineOutOfMemory(NO_DISK.format(why=why)) from None
        except MemoryError:  # NumPy's says how large an array was to be
            raise EngineOutOfMemory(NO_MEMORY) from None
        finally:
            with suppress(duckdb.Error):  # keep the step's own error, if there is one
                self.con.remove_function("dphh_gathered")
                self.drop("handed")

    def _write_rows_of_users(self, table: str, gathering: Gathering) -> None:
        with engine_errors("gather_texts"):
            self.con.execute(
                f"CREATE TEMP TABLE {table} "
                "(user_hashes BIGINT[], lengths INTEGER[], ids INTEGER[])"
            )
            for rows in prepare_one_ahead(gathering.rows()):
                self.memory.settle()  # the vocabulary gives its memory back by and by
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
