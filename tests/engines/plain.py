"""The queries of `tests/specification/`, run in a bare DuckDB, over rows in memory.

Nothing here is an engine's: only noise and draws, which are the randomness's to say, are
registered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa

from dphh.counting import CountsLevel
from dphh.mechanisms.ldp_trie.levels import LocalLevel
from dphh.mechanisms.ngrams.levels import ListedWordsLevel, PrunedLevel
from dphh.mechanisms.set_union.levels import (
    ChoiceLevel,
    ReweighedLevel,
    SetUnionLevel,
    SingleLevel,
)
from dphh.mechanisms.trie.price import SequenceChoice, VoteLevel
from dphh.udfs.rules.forecast import Reserve, Spending
from tests.draws import register_draws
from tests.specification import specified

Gram = tuple[str, ...]
#: A user, and the tokens of one row of theirs.
Rows = Sequence[tuple[Any, Sequence[str | None] | None]]


@dataclass(frozen=True)
class Forecast:
    """What is public of a level of the forecast ladder: what earlier outputs decide."""

    sigma_grid: int
    #: What users spend in the two rounds.
    first: Spending
    second: Spending
    list_sizes: Sequence[int]
    #: Arrow tables, as the queries of `forecast_*.sql` say.
    forecasts: Any
    bins: Any
    weights: Any
    thresholds: Any
    lifts: Any = None
    public_grams: Any = None


@dataclass(frozen=True)
class Rounds:
    """What the rounds of a level made of the grams that somebody holds."""

    #: By bin: users by list size and by purse. None of a late round.
    user_counts: list[int]
    #: The cell, and the noised weights of both rounds.
    held: dict[Gram, list[int]]
    #: By cell: how many grams, and how many of them at 0 or below in the later round.
    signs: dict[int, list[int]]
    passed: dict[Gram, int]


def kept(reserve: Reserve | None) -> list[int]:
    """What a find costs of a purse, and for how many finds users keep, at least and at most."""
    return [0, 0, 0] if reserve is None else [reserve.each, reserve.least, reserve.most]


class CurrentRandomness:
    """That of the plain run whose query is run."""

    of_run: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of_run, name)


CURRENT = CurrentRandomness()


@cache
def instance() -> duckdb.DuckDBPyConnection:
    """One DuckDB with the functions: to open it takes longer than most of what is run in it."""
    con = duckdb.connect(config={"threads": 1})
    register_draws(con, CURRENT)
    con.execute(specified("functions").replace("TEMP MACRO", "MACRO"))
    return con


class Plain:
    """A run, with temporary tables of its own."""

    def __init__(self, rows: Rows, randomness: Any, *, users: str | None = None) -> None:
        """`users`: an expression over the column `who`, for users of types that Arrow has not."""
        self.randomness = randomness
        self.con = instance().cursor()
        who = [user for user, *_ in rows]
        tokens = pa.array([row[1] for row in rows], pa.list_(pa.string()))
        groups = pa.array([row[2] if len(row) > 2 else None for row in rows], pa.string())
        table = pa.table({"who": who, "tokens": tokens, "group_name": groups})
        self.con.register("given", table)
        self.con.execute(
            f"CREATE TEMP VIEW tokens_of_rows AS SELECT {users or 'who'} AS user_id, * FROM given"
        )
        self.run("texts")
        self.run("nothing_yet")

    def run(self, name: str, **parameters: Any) -> None:
        CURRENT.of_run = self.randomness
        for statement in self.con.extract_statements(specified(name)):
            named = {name: parameters[name] for name in statement.named_parameters}
            self.con.execute(statement, named or None)

    def release(self, level: int, tokens: Sequence[Gram]) -> None:
        """What an earlier level of another run released, to go on from there."""
        grams = pa.array([list(gram) for gram in tokens], pa.list_(pa.string()))
        self.con.register("below", pa.table({"tokens": grams}))
        self.con.execute("INSERT INTO released SELECT ?, tokens, 0 FROM below", [level])
        self.con.unregister("below")

    def set_union(self, level: SetUnionLevel, purpose: str) -> dict[Gram, int]:
        """One round; what it releases, with its noised weights."""
        before = self.released(1)
        self.run("held_items")
        self.run(
            "set_union",
            max_items=level.max_items,
            grid_bits=level.grid_bits,
            salt=self._salt(purpose),
            sigma=level.sigma_grid,
            threshold=level.threshold_grid,
            purpose=purpose,
        )
        found = self.released(1)
        return {gram: found[gram] for gram in found.keys() - before.keys()}

    def buckets(self, level: ChoiceLevel, purpose: str) -> dict[int, int]:
        """The noised sum of each bucket."""
        self.run("held_items")
        self.run(
            "buckets",
            buckets=level.buckets,
            max_items=level.max_items,
            grid_bits=level.grid_bits,
            sigma=level.sigma_grid,
            purpose=purpose,
        )
        return dict(self.con.execute("FROM bucket_sums").fetchall())

    def single_items(self, level: SingleLevel, purpose: str) -> dict[Gram, int]:
        """Optimal selection; what it releases, with its noised counts."""
        self.run("held_items")
        self.run(
            "single_items",
            salt=self._salt(purpose),
            ratio=level.ratio,
            reach=level.reach,
            edge=level.edge,
            purpose=purpose,
        )
        return self.released(1)

    def items_rounds(
        self, levels: Sequence[SetUnionLevel], follows: Sequence[Any], purpose: str
    ) -> list[dict[Gram, int]]:
        """What each of several rounds releases. `follows`: the numbers of its weights, as a round
        asks (total_precision, deviation, threshold), and the precision of its own sums."""
        done = []
        for level, (total_precision, deviation, threshold, own) in zip(
            levels, follows, strict=True
        ):
            before, name = self.released(1), f"{purpose}/round {level.round}"
            self.run("held_items")
            self.run(
                "union_round",
                equal=not isinstance(level, ReweighedLevel),
                max_items=level.max_items,
                grid_bits=level.grid_bits,
                salt=self._salt(name),
                sigma=level.sigma_grid,
                threshold=level.threshold_grid,
                first_grid_threshold=threshold,
                total_precision=total_precision,
                deviation=deviation,
                own_precision=own,
                purpose=name,
            )
            found = self.released(1)
            done.append({gram: found[gram] for gram in found.keys() - before.keys()})
        return done

    def dpne(
        self, level: PrunedLevel, purpose: str, threshold: int, *, absent: bool = True
    ) -> dict[Gram, int]:
        """`absent`: whether valid grams that nobody holds take part."""
        self.run(
            "dpne_level",
            level=level.level,
            max_items=level.max_items,
            grid_bits=level.grid_bits,
            salt=self._salt(purpose),
            sigma=level.sigma_grid,
            threshold=threshold,
            purpose=purpose,
            noise=absent,
        )
        return self.released(level.level)

    def fill_purses(self, purse: int) -> None:
        self.run("forecast_purses", purse=purse)

    def add_finds(self, level: int) -> None:
        """To what each user holds of finds: the released grams of this level."""
        self.run("forecast_finds", level=level)

    def caps(self, sigma_of_counts: int, sigma: int) -> dict[Any, int]:
        """By user: what is left to be counted, on the counts' grid."""
        self.run("forecast_caps", sigma_of_counts=sigma_of_counts, sigma=sigma)
        return dict(self.con.execute("SELECT user_id, cap FROM caps").fetchall())

    def purses(self) -> dict[Any, tuple[int, int]]:
        """By user: what is left, and the highest level on which the user held a valid gram."""
        rows = self.con.execute("SELECT user_id, purse, top FROM purses").fetchall()
        return {user: (purse, top) for user, purse, top in rows}

    def forecast_rounds(self, level: int, given: Forecast, purpose: str) -> Rounds:
        """Both rounds of the valid grams that somebody holds, by what is public; and users counted.
        What is undecided is kept for `late_round`."""
        self._tell("forecasts", given.forecasts)
        self._tell("lifts", given.lifts)
        self._tell("public_grams", given.public_grams)
        self.run("forecast_valid", level=level)
        self.run("forecast_held", level=level)
        rounds = self._two_rounds(level, given, purpose, threshold=0)
        self.run("forecast_undecided", level=level, bin_count=given.bins.num_rows)
        return rounds

    def listed_rounds(self, level: ListedWordsLevel, given: Forecast, purpose: str) -> Rounds:
        """The same of level 1 with a list, `given.forecasts` being (gram, key, class)."""
        self._tell("valid", given.forecasts)
        self.run("held_items")
        self.run("listed_held", max_items=level.max_items, salt=self._salt(purpose))
        return self._two_rounds(1, given, purpose, threshold=level.first_threshold_grid)

    def _two_rounds(self, level: int, given: Forecast, purpose: str, threshold: int) -> Rounds:
        self._tell("bins", given.bins)
        noise = {"sigma": given.sigma_grid, "purpose": purpose}
        levels_after = len(given.first.parts) - 1
        first = {"first": given.first.first, "levels_after": levels_after,
                 "reserve": kept(given.first.reserve), **noise}  # fmt: skip
        self.run(
            "forecast_round_1",
            bin_count=given.bins.num_rows,
            unlisted_threshold=threshold,
            noise=False,
            **first,
        )
        full = given.first.full
        self.run("forecast_user_counts", list_sizes=given.list_sizes, full_purse=full, **first)
        counts = self._user_counts()
        return self._later_round(
            level, given.second, given.weights, given.thresholds, noise, counts
        )

    def late_purses(self, how: Spending, highest_level: int, **noise: Any) -> list[int]:
        """Before the late rounds: the noised numbers of users by what is left."""
        asked = {"first": how.first, "full_purse": how.full, "reserve": kept(how.reserve)}
        self.run("forecast_late_purses", highest_level=highest_level, **asked, **noise)
        return self._user_counts()

    def late_round(
        self, level: int, how: Spending, weights: Any, thresholds: Any, **noise: Any
    ) -> Rounds:
        self.run("forecast_late_level", level=level)
        self.forget(level)
        return self._later_round(level, how, weights, thresholds, noise, [])

    def _user_counts(self) -> list[int]:
        rows = self.con.execute("SELECT noisy FROM user_counts ORDER BY bin").fetchall()
        return [noisy for (noisy,) in rows]

    def _later_round(
        self,
        level: int,
        how: Spending,
        weights: Any,
        thresholds: Any,
        noise: dict[str, Any],
        counts: list[int],
    ) -> Rounds:
        self._tell("row_weights", weights)
        self._tell("row_thresholds", thresholds)
        self.run(
            "forecast_later_round",
            level=level,
            first=0 if how.late else how.first,
            parts=list(how.parts),
            saturation=how.saturation,
            is_late=how.late,
            reserve=kept(how.reserve),
            later_reserve=kept(how.later_reserve or how.reserve),
            **noise,
        )
        signs = self.con.execute(specified("forecast_nonpositive_counts")).fetchall()
        held = self.con.execute(
            "SELECT gram, cell, first, second FROM later_round WHERE is_held"
        ).fetchall()
        self.run("forecast_passed", level=level)
        return Rounds(
            user_counts=counts,
            held={tuple(gram): row for gram, *row in held},
            signs={cell: numbers for cell, *numbers in signs},
            passed=self.released(level),
        )

    def counts(
        self, level: CountsLevel, asked: Any, groups: Sequence[str], other: Any,
        caps: Mapping[Any, int] = MappingProxyType({}),
    ) -> list[int]:  # fmt: skip
        """The noised sums of all keys and losses; `asked` is a table (key, tokens, group_name).
        `caps`: of users who have a cap of their own."""
        self._tell("asked", asked)
        ids = pa.array([*caps], None if caps else pa.int64())
        own = pa.array([*caps.values()], pa.int64())
        self._tell("caps", pa.table({"user_id": ids, "cap": own}))
        factors = [*(level.factors or [1] * level.keys)]
        self._tell("factors", pa.table({"key": range(level.keys), "factor": factors}))
        self.run("counts_held", groups=list(groups), other=other, beginnings=level.beginnings)
        weighing = level.weighing
        self.run(
            "counts",
            keys=weighing.keys,
            losses=weighing.losses,
            groups=weighing.groups,
            max_items=weighing.most_in_full,
            one_user=weighing.unit,
            sigma=level.sigma_grid,
            purpose="counts",
        )
        rows = self.con.execute("SELECT key, noisy FROM counted ORDER BY key").fetchall()
        assert [key for key, _ in rows] == [*range(len(rows))]
        return [noisy for _, noisy in rows]

    def rough_counts(self, level: CountsLevel) -> list[int]:
        """The noised rough counts; `counts` says who holds what."""
        asked = {"keys": level.keys, "bits": level.rough_bits, "sigma": level.rough_sigma}
        self.run("counts_rough", **asked, purpose="rough")
        rows = self.con.execute("SELECT noisy FROM rough ORDER BY key").fetchall()
        return [noisy for (noisy,) in rows]

    def numbers_held(self, level: CountsLevel) -> list[int]:
        """The noised histogram of what users hold; `counts` says who holds what, and factors."""
        asked = {"groups": level.groups_of_item, "sigma": level.held_sigma, "purpose": "held"}
        self.run("counts_histogram", **asked)
        rows = self.con.execute("SELECT noisy FROM histogram ORDER BY key").fetchall()
        return [noisy for (noisy,) in rows]

    def trie(self, levels: Sequence[VoteLevel], choice: SequenceChoice) -> Any:
        """The prefixes that each level grows, and whether a sequence ends there."""
        self.run(f"one_each_{choice.replace('-', '_')}", **(
            {"purpose": "one sequence a user"} if choice == "drawn" else {}
        ))  # fmt: skip
        found = []
        for level in levels:
            self.run(
                "trie_level",
                level=level.level,
                numerator=level.numerator,
                theta=level.theta,
                purpose=f"trie/level {level.level}",
            )
            asked = "SELECT tokens, ended FROM trie WHERE level = ?"
            rows = self.con.execute(asked, [level.level]).fetchall()
            found.append({(tuple(tokens), ended) for tokens, ended in rows})
        return found

    def sit(self, characters: Sequence[str], seats: int, users: int) -> None:
        """The devices of `ldp_trie`, of so many users; those who are wanting are made up."""
        idle, characters = max(seats - users, 0), list(characters)
        self.run("ldp_trie_seats", characters=characters, idle=idle, purpose="ldp_trie/seats")

    def reports(
        self, level: LocalLevel, prefixes: Sequence[Gram], known: Sequence[Gram],
        characters: Sequence[str], purpose: str,
    ) -> list[Any]:  # fmt: skip
        """(value, reports, prefix, ended) of what a level keeps."""
        lists = pa.list_(pa.string())
        numbers = pa.array(range(len(prefixes)), pa.int64())
        tokens = pa.array([list(prefix) for prefix in prefixes], lists)
        self._tell("prefixes", pa.table({"number": numbers, "tokens": tokens}))
        self._tell("known", pa.table({"word": pa.array([list(word) for word in known], lists)}))
        self.run(
            "ldp_trie_level",
            level=level.level,
            seats_before=level.first_seat,
            last_seat=level.first_seat + level.users,
            characters=list(characters),
            contributions=level.contributions,
            sampling=level.sampling,
            domain=level.domain,
            subset_size=level.size,
            numerator=level.numerator,
            keep=level.keep,
            purpose=purpose,
        )
        return self.con.execute("SELECT value, reports, prefix, ended FROM kept").fetchall()

    def _tell(self, table: str, rows: Any) -> None:
        self.con.register("handed_over", rows)
        self.con.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS FROM handed_over")
        self.con.unregister("handed_over")

    def forget(self, level: int) -> None:
        """As if the level had not been run."""
        self.con.execute("DELETE FROM released WHERE level = ?", [level])

    def released(self, level: int) -> dict[Gram, int]:
        asked = "SELECT tokens, noisy FROM released WHERE level = ?"
        rows = self.con.execute(asked, [level]).fetchall()
        found = {tuple(tokens): noisy for tokens, noisy in rows}
        assert len(found) == len(rows)
        return found

    def _salt(self, purpose: str) -> int:
        return int(self.randomness.random_words(1, f"{purpose}/salt")[0])
