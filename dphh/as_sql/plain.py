"""The specification of a plan: the same levels row by row, for a DuckDB shell without dphh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from dphh.as_sql.corpus_rows import rows_of
from dphh.as_sql.query_text import Query, Step, Written, literal, macros_called, written
from dphh.columns import OTHER
from dphh.corpus import Corpus
from dphh.errors import UsageError
from dphh.levels.counts import CountsLevel
from dphh.levels.ldp_trie import LocalLevel
from dphh.levels.ngrams import ListedWordsLevel, PrunedLevel
from dphh.levels.set_union import CHOICE_COMMON, SetUnionLevel
from dphh.levels.trie import BatchLevel, VoteLevel
from dphh.mechanisms.set_union.adaptive import follows
from dphh.price import Price
from dphh.privacy.following import parts_of_round
from dphh.privacy.forecast_rounds import LIST_SIZES
from dphh.udfs.draws.randomness import ONE_SEQUENCE, SEATS

HEADING = """\
-- What {verb} ({method}) computes, row by row, in plain SQL: the specification, to be read and to
-- be pasted into a DuckDB shell. NOT PRIVATE: noise is left out, and so is all else that a run
-- draws (macros of sql/plain/without_noise.sql take its place); what is printed is what thresholds
-- leave of the truth. `dphh.{verb}(...).run()` draws, and pays."""
FOLLOWS = """
-- Between these queries a run computes public tables and numbers from what was released: a query's
-- "In:" names the tables, and names such as $norm stay open. So this text is to be read, and to be
-- run query by query, not as a whole."""
_MACROS = ("plain/functions", "plain/without_noise", "plain/noise_quantile")
#: After the first round of method "auto", which releases nothing: whether one round follows.
CHOICE = """\
SET VARIABLE alone = (SELECT count(*) < {common} FROM released);
DELETE FROM released;"""
#: The value of a salt; the specification draws none.
SALT = 0
#: The size of a batch: all users, since none are drawn.
EVERYONE = Written("(SELECT count(*) FROM draws)")


def plain(price: Price, corpus: Corpus | None) -> list[Query]:
    queries = [*_queries_of_verb(price)]
    heading = HEADING.format(verb=price.verb, method=price.method)
    if price.method == "forecast" or price.verb == "ldp_trie":
        heading += FOLLOWS
    macros = macros_called("\n".join(query.sql for query in queries), _MACROS)
    return [
        Query("what this is", heading),
        Query("the corpus", rows_of(corpus, whole_users=False)),
        *([Query("what the queries call", macros)] if macros else []),
        *queries,
    ]


def _queries_of_verb(price: Price) -> Iterator[Query]:
    yield _query_of_step("texts", Step("plain/texts"))
    match price.verb, price.method:
        case "items", "auto" | "adaptive":
            yield from _items_queries(price)
        case ("items", "gaussian" | "sips") | ("ngrams", "dpne"):
            yield _query_of_step("texts", Step("plain/nothing_released"))
            for level in price.levels:
                yield from _ladder_queries(level)
            bits = price.levels[0].to_json()["grid_bits"]
            yield Query("what is found", FOUND.format(bits=bits))
        case (_, "forecast"):
            yield _query_of_step("texts", Step("plain/nothing_released"))
            words = [level for level in price.levels if isinstance(level, SetUnionLevel)]
            if words:
                yield _query_of_step("texts", Step("plain/nothing_told"))
            yield from _adaptive_queries(words)
            for level in price.levels[len(words) :]:
                if isinstance(level, ListedWordsLevel):
                    yield from _listed_words(level)
                else:
                    yield from _forecast_queries(level)
        case ("trie", _):
            yield from _trie_queries(price)
            yield Query("what has grown", GROWN)
        case ("counts", _) | ("items", "domain"):
            yield from _counts_queries(price, price["of" if price.verb == "counts" else "domain"])
        case ("ldp_trie", _):
            yield from _ldp_trie_queries(price)
        case _:
            raise UsageError(
                f"plain: {price.verb} ({price.method}) has no specification that runs on its own; "
                "leave plain out to see the queries of a run"
            )


def _items_queries(price: Price) -> Iterator[Query]:
    """Method "auto": the queries of one round and of several rounds, with a condition under which
    only one of the two releases."""
    levels = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    bits = levels[-1].grid_bits
    yield _query_of_step("texts", Step("plain/nothing_released"))
    if price.method == "auto":
        first, alone, *levels = levels
        yield from _ladder_queries(first)
        yield Query("level 1, the choice", CHOICE.format(common=CHOICE_COMMON))
        yield from _ladder_queries(alone, only_if="getvariable('alone')")
    yield _query_of_step("texts", Step("plain/nothing_told"))
    yield from _adaptive_queries(levels, "NOT getvariable('alone')" * (price.method == "auto"))
    yield Query("what is found", FOUND.format(bits=bits))


def _query_of_step(section: str, step: Step) -> Query:
    return Query(section, written(step))


def _ladder_queries(level: Any, only_if: str = "") -> Iterator[Query]:
    section = f"level {level.level}"
    known = {**asdict(level), "sigma": level.sigma_grid, "salt": SALT, "noise": False}
    known |= {"purpose": section}
    if isinstance(level, SetUnionLevel):
        known |= {"threshold": _threshold(level, only_if)}
        yield _query_of_step(f"{section}, round {level.round}", Step("plain/set_union", known))
        return
    assert isinstance(level, PrunedLevel)
    asked = written(Step("plain/dpne_threshold", known)).removesuffix(";")
    yield Query(section, f"SET VARIABLE threshold = (\n{asked}\n);")
    known |= {"threshold": Written("getvariable('threshold')")}
    yield _query_of_step(section, Step("plain/dpne_level", known))


def _threshold(level: SetUnionLevel, only_if: str) -> int | Written:
    """The threshold; NULL, which nothing reaches, unless the condition holds."""
    said = f"CASE WHEN {only_if} THEN {level.threshold_grid} END"
    return Written(said) if only_if else level.threshold_grid


def _adaptive_queries(levels: Sequence[SetUnionLevel], only_if: str = "") -> Iterator[Query]:
    """Rounds whose weights depend on earlier rounds; with a condition under which they release."""
    for number, level in enumerate(levels):
        section = f"level {level.level}, round {level.round}"
        following = follows(levels[:number], level)
        weighed = {"parts": 1, "deviation": 0, "threshold": level.threshold_grid}
        known = {
            **asdict(level),
            **(asdict(following) if following else weighed),
            **{"equal": following is None, "sigma": level.sigma_grid, "salt": SALT},
            "purpose": section,
        }
        own = {"parts": parts_of_round(levels[0].grid, level.grid)}
        yield _query_of_step(section, Step("plain/union_round", known))
        passed = {"threshold": _threshold(level, only_if)}
        yield _query_of_step(section, Step("plain/union_round_released", passed))
        yield _query_of_step(section, Step("plain/union_round_told", own))


def _forecast_queries(level: Any) -> Iterator[Query]:
    """Levels of the forecast ladder; the computations between their rounds are not in SQL."""
    known = {
        "level": level.level,
        "sigma": level.sigma_grid,
        "purpose": f"level {level.level}",
        "noise": False,
        "list_sizes": tuple(LIST_SIZES.tolist()),
    }
    for name, number in (("held", 1), ("lists", 1), ("round_1", 1), ("round_2", 2), ("signs", 2),
                         ("passed", 2)):  # fmt: skip
        later = {"norm": f"a user's norm, by what round {number} has of the budget"}
        yield _query_of_step(f"level {level.level}", Step(f"plain/forecast_{name}", known, later))


def _listed_words(level: ListedWordsLevel) -> Iterator[Query]:
    """Level 1 with a list: the table with the prior's words and their classes."""
    section = f"level {level.level}"
    drawn = {"sigma": level.sigma_grid, "purpose": section}
    first = {**drawn, "norm": level.first_unit}
    of_first = {**first, "threshold": level.first_threshold_grid, "noise": False}
    for name, known in (
        ("listed_held", {"max_items": level.max_items, "salt": SALT}),
        ("forecast_lists", {**first, "list_sizes": tuple(LIST_SIZES.tolist())}),
        ("listed_round_1", of_first),
        ("forecast_round_2", {**drawn, "norm": level.second_unit}),
        ("forecast_signs", {}),
        ("forecast_passed", {"level": level.level}),
    ):
        yield _query_of_step(section, Step(f"plain/{name}", known))


def _counts_queries(price: Price, items: Sequence[Sequence[str]]) -> Iterator[Query]:
    (level,) = price.levels
    assert isinstance(level, CountsLevel)
    groups = (*price["groups"], OTHER) if price["by"] is not None else (None,)
    keys = [(item, group) for item in items for group in groups]
    rows = ",\n    ".join(
        f"({key}, {literal(item)}, {literal(group)})" for key, (item, group) in enumerate(keys)
    )
    values = f"(VALUES\n    {rows}\n)" if keys else NOTHING_ASKED
    yield Query(
        "the keys",
        f"CREATE OR REPLACE TEMP TABLE asked AS\nFROM {values} AS asked (key, tokens, group_name);",
    )
    weighing = level.weighing
    known = {
        "groups": tuple(price["groups"]),
        "other": groups[-1],
        "beginnings": level.beginnings,
        "keys": weighing.keys,
        "octaves": weighing.octaves,
        "max_items": weighing.most,
        "one_user": weighing.unit,
        "sigma": level.sigma_grid,
        "purpose": "counts",
    }
    yield _query_of_step("counts", Step("plain/counts", known))
    yield Query("counts", COUNTED.format(unit=weighing.unit))


def _ldp_trie_queries(price: Price) -> Iterator[Query]:
    known: dict[str, Any] = {"characters": list(price["character_set"]), "purpose": SEATS}
    idle = {"idle": "how many users are made up, where the corpus has too few"}
    yield _query_of_step("devices", Step("plain/ldp_trie_seats", known, idle))
    for level in price.levels:
        assert isinstance(level, LocalLevel)
        section = f"pass {level.pass_number}, level {level.level}"
        known = {
            **asdict(level),
            **{"characters": known["characters"], "domain": level.domain, "purpose": section},
            "last_seat": level.first_seat + level.users,
        }
        yield _query_of_step(section, Step("plain/ldp_trie_level", known))


def _trie_queries(price: Price) -> Iterator[Query]:
    chosen = Step(f"plain/one_each_{price['choice'].replace('-', '_')}", {"purpose": ONE_SEQUENCE})
    yield _query_of_step("one sequence a user", chosen)
    yield _query_of_step("one sequence a user", Step("plain/nothing_grown"))
    for level in price.levels:
        section, purpose = f"level {level.level}", f"trie/level {level.level}"
        assert isinstance(level, VoteLevel | BatchLevel)
        known = {**asdict(level), "purpose": purpose, "batch": EVERYONE, "idle": 0}
        query = "trie_level" if isinstance(level, VoteLevel) else "trie_batch_level"
        yield _query_of_step(section, Step(f"plain/{query}", known))


NOTHING_ASKED = "(SELECT 0, CAST([] AS VARCHAR[]), CAST(NULL AS VARCHAR) WHERE false)"

COUNTED = """-- How many users, where nobody is bounded: else somewhat fewer.
SELECT
    asked.tokens,
    asked.group_name,
    counted.noisy / {unit} AS users
FROM counted
INNER JOIN asked ON counted.key = asked.key
ORDER BY asked.key;"""

FOUND = """-- What was found. A score orders items within a level, and is no number of people.
SELECT
    level,
    tokens,
    noisy / pow(2, {bits}) AS score
FROM released
ORDER BY level, score DESC, tokens;"""

GROWN = """-- What has grown.
SELECT
    level,
    tokens,
    ended
FROM trie
WHERE level > 0
ORDER BY level, tokens, ended;"""
