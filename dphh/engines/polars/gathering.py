"""Gathers the texts of each user."""

from __future__ import annotations

from typing import cast

import polars as pl

from dphh.engines.polars.queries.gather_texts import gather_texts
from dphh.engines.polars.run import PolarsRun
from dphh.errors import CorpusError
from dphh.sources.reading import ROWS_OF_NOBODY
from dphh.udfs.kernel.gathering import Gathering, Read

USERS = {"lots": pl.List(pl.Int64), "lengths": pl.List(pl.Int32), "codes": pl.List(pl.Int32)}


class Gathers(PolarsRun):
    def gather(self, table: str, read: Read) -> None:
        """Make a table (lots, lengths, codes) of whole users."""
        gathering = Gathering(read)
        self.fetch("gather_texts", gather_texts(self.load(), gathering))
        rows = [cast(pl.DataFrame, pl.from_arrow(rows)) for rows in gathering.rows()]
        if gathering.holds_rows_of_nobody:
            raise CorpusError(ROWS_OF_NOBODY)
        self.tables[table] = pl.concat([pl.DataFrame(schema=USERS), *rows])
