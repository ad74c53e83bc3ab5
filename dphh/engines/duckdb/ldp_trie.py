"""LDP TrieHH in DuckDB: users' words, and the reports of some of the users at each level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dphh.engines.aggregate import aggregate_reports
from dphh.engines.declared_users import missing_users_of_ldp_trie
from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.duckdb.run import DuckDBRun
from dphh.levels.ldp_trie import LocalLevel
from dphh.udfs.draws.randomness import SEATS


class LocalTries(DuckDBRun):
    """The methods of a DuckDB session for LDP TrieHH."""

    def hold_contributions(self, characters: Sequence[str], seats: int, pad: bool) -> None:
        self.load()
        self.execute("ldp_local_words", characters=list(characters))
        self.refuse_null_users("local_words")
        self.execute("ldp_seats", seats=seats, idle=self._missing_users(seats, pad), purpose=SEATS)
        self.execute("ldp_contributions")
        self.drop("local_words")
        self.drop("seats")

    def local_level(self, level: LocalLevel, prefixes: Any, known: Any, purpose: str) -> Any:
        seats = {"first_seat": level.first_seat, "last_seat": level.first_seat + level.users}
        self.con.register("prefixes", prefixes)
        self.con.register("known", known)
        self.execute(
            "ldp_choice",
            **seats,
            level=level.level,
            characters=level.characters,
            contributions=level.contributions,
            sampling=level.sampling,
            purpose=purpose,
        )
        self.con.unregister("prefixes")
        self.con.unregister("known")
        if level.mode == "messages":
            self.execute(
                "ldp_messages",
                **seats,
                contributions=level.contributions,
                domain=level.domain,
                nothings=level.nothings,
                size=level.size,
                numerator=level.numerator,
                form=level.form,
                purpose=purpose,
            )
        else:
            held = self.fetch("ldp_held")
            drawn = aggregate_reports(self.randomness, held, level, purpose)
            self.con.register("drawn", drawn)
            self.con.execute("CREATE TEMP TABLE reports AS FROM drawn")
            self.con.unregister("drawn")
        self.drop("chosen")
        values = prefixes.num_rows * (level.characters + 1)
        kept = self.fetch("ldp_kept", values=values, keep=level.keep)
        self.drop("reports")
        return kept

    def _missing_users(self, seats: int, pad: bool) -> int:
        with engine_errors("local_words"):
            ((users,),) = self.con.execute(
                "SELECT count(DISTINCT user_id) FROM local_words"
            ).fetchall()
        return missing_users_of_ldp_trie(users, seats, pad)
