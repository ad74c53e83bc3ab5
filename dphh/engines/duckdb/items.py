"""Set union in DuckDB: whole users, and the words that they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.duckdb.run import DuckDBRun
from dphh.engines.sources import ROWS_OF_NOBODY
from dphh.errors import CorpusError, EngineError
from dphh.levels import PrunedLevel, SetUnionLevel
from dphh.udfs.gathering import Reading, rows_of_users, whole_users
from dphh.udfs.whole_users import one_array

#: How many texts are fetched first, and how many tokens at a time then.
FEW_TEXTS, PLACES = 2048, 1 << 19


class Items(DuckDBRun):
    #: Whether the texts as they were are in `texts`, what is left of them in `users`.
    texts_kept = False

    def hold_items(self) -> None:
        self._gather(Reading())

    def items_level(self, level: SetUnionLevel, purpose: str) -> Any:
        self.noise_words(level, purpose)
        released = self.fetch("released", threshold=level.threshold_grid)
        self.drop("noised")
        return released

    def noise_words(self, level: SetUnionLevel, purpose: str) -> None:
        """To `noised`, whatever the threshold."""
        self._noised("words_level", level, purpose)

    def forget(self, released: Any, keep_texts: bool = False) -> None:
        self.whole_users.release_words(released.column("key"))
        self.execute("forget_released")
        if keep_texts and not self.texts_kept:
            self.rename("users", "texts")
            self.texts_kept = True
        self.rename("still_held", "users")

    def exact_counts(self, at_least: int) -> Any:
        return self.fetch("exact_counts", at_least=at_least)

    def _gather(self, reading: Reading) -> None:
        """Fill `users`: the words of all, as numbers."""
        self.hold_rows()
        if self.has_rows_of_nobody():
            raise CorpusError(ROWS_OF_NOBODY)
        vocabulary = self.whole_users.vocabulary
        self._fill(
            "users",
            "lot BIGINT, codes INTEGER[]",
            lambda texts: rows_of_users(texts, vocabulary, reading),
        )

    def _fill(self, table: str, columns: str, rows: Callable[[Any], Any]) -> None:
        """Make a table of whole users, in as few parts as the memory allows: `rows` makes them of
        all texts of some users at a time."""

        def start() -> None:
            self.drop(table)
            self.con.execute(f"CREATE TEMP TABLE {table} ({columns})")

        def add(parts: int, part: int) -> None:
            if self._are_misplaced():
                self.execute("texts_of_users", parts=parts, part=part, exactly=True)
                if self._are_misplaced():
                    raise EngineError("DuckDB does not sort this user column; cast it to text")
            self._add_users(table, rows)

        self.in_parts("texts_of_users", start, add, exactly=False)
        self.drop("texts_of_users")

    def _are_misplaced(self) -> bool:
        with engine_errors("texts_of_users"):
            asked = "SELECT bool_or(is_misplaced) FROM texts_of_users"
            ((misplaced,),) = self.con.execute(asked).fetchall()
        return bool(misplaced)

    def _add_users(self, table: str, rows: Callable[[Any], Any]) -> None:
        self.execute("tokens_of_users")
        with engine_errors("tokens_of_users"):
            for texts in whole_users(self._texts()):
                self.con.register("made", rows(texts))
                self.con.execute(f"INSERT INTO {table} FROM made")
                self.con.unregister("made")

    def _texts(self) -> Iterator[Any]:
        """The texts of `texts_of_users` as they lie, as many at a time as have PLACES tokens."""
        ((last,),) = self.con.execute("SELECT count(*) FROM texts_of_users").fetchall()
        done, more = 0, FEW_TEXTS
        while done < last:
            texts = self.con.sql(f"FROM tokens_of_users({done + 1}, {done + more})")
            yield (found := texts.to_arrow_table())
            done += more
            tokens = len(one_array(found.column("tokens")).flatten())
            more = max(1, min(8 * more, more * PLACES // max(tokens, 1)))

    def _noised(
        self, step: str, level: SetUnionLevel | PrunedLevel, purpose: str, **parameters: Any
    ) -> None:
        """To `noised`: bound, weigh, sum, and draw the noise once."""
        salt = int(self.randomness.words(1, f"{purpose}/salt")[0])
        with self.side_by_side():
            self.execute(
                step,
                max_items=level.max_items,
                grid_bits=level.grid_bits,
                salt=salt,
                sigma=level.sigma_grid,
                purpose=purpose,
                **parameters,
            )
