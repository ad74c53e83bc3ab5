"""Gathers the texts of each user."""

from __future__ import annotations

from typing import cast

import polars as pl

from dphh.engines.polars.queries.gather_texts import gather_texts
from dphh.engines.polars.run import PolarsRun
from dphh.errors import CorpusError
from dphh.rows.user import ROWS_WITHOUT_USER
from dphh.udfs.kernel.gathering import Gathering, Read

USERS_SCHEMA = {
    "user_hashes": pl.List(pl.Int64),
    "lengths": pl.List(pl.Int32),
    "ids": pl.List(pl.Int32),
}


class Gathers(PolarsRun):
    """The methods of a Polars session for gathering the texts of users."""

    def gather(self, table: str, read: Read) -> None:
        """Make a table (user_hashes, lengths, ids) of whole users."""
        gathering = Gathering(read)
        self.fetch("gather_texts", gather_texts(self.load(), gathering))
        gathering.end()
        if gathering.holds_null_users:
            raise CorpusError(ROWS_WITHOUT_USER)
        self.whole_users.vocabulary.close()
        rows = [cast(pl.DataFrame, pl.from_arrow(rows)) for rows in gathering.rows()]
        self.tables[table] = pl.concat([pl.DataFrame(schema=USERS_SCHEMA), *rows])
