"""The specification of a plan: the same levels row by row, for a DuckDB shell without dphh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dphh.as_sql.rows import rows_of
from dphh.as_sql.text import Query, Step, Written, macros_called, written
from dphh.corpus import Corpus
from dphh.errors import UsageError
from dphh.levels import BatchLevel, PrunedLevel, SetUnionLevel, VoteLevel
from dphh.price import Price
from dphh.udfs.randomness import ONE_SEQUENCE

HEADING = """\
-- What {verb} ({method}) computes, row by row, in plain SQL: the specification, to be read and to
-- be pasted into a DuckDB shell. NOT PRIVATE: noise is left out, and so is all else that a run
-- draws (macros of sql/plain/without_noise.sql take its place); what is printed is what thresholds
-- leave of the truth. `dphh.{verb}(...).run()` draws, and pays."""
_MACROS = ("plain/functions", "plain/without_noise", "shell")
#: What is left of a salt where nothing is drawn.
SALT = 0
#: And of a batch: nobody is drawn, so all of them vote.
EVERYONE = Written("(SELECT count(*) FROM lots)")


def plain(price: Price, corpus: Corpus | None) -> list[Query]:
    queries = [*_queries(price)]
    macros = macros_called("\n".join(query.sql for query in queries), _MACROS)
    return [
        Query("what this is", HEADING.format(verb=price.verb, method=price.method)),
        Query("the corpus", rows_of(corpus, whole_users=False)),
        *([Query("what the queries call", macros)] if macros else []),
        *queries,
    ]


def _queries(price: Price) -> Iterator[Query]:
    yield _step("texts", Step("plain/texts"))
    match price.verb, price.method:
        case ("items", _) | ("ngrams", "dpne"):
            yield _step("texts", Step("plain/nothing_released"))
            for level in price.levels:
                yield from _ladder(level)
            bits = price.levels[0].to_json()["grid_bits"]
            yield Query("what is found", FOUND.format(bits=bits))
        case ("trie", _):
            yield from _trie(price)
            yield Query("what has grown", GROWN)
        case _:
            raise UsageError(
                f"plain: {price.verb} ({price.method}) has no plain form that runs by itself; "
                "leave plain out for the queries of a run"
            )


def _step(section: str, step: Step) -> Query:
    return Query(section, written(step))


def _ladder(level: Any) -> Iterator[Query]:
    section = f"level {level.level}"
    known = {
        "max_items": level.max_items,
        "grid_bits": level.grid_bits,
        "sigma": level.sigma_grid,
        "salt": SALT,
        "noise": False,
        "purpose": section,
    }
    if isinstance(level, SetUnionLevel):
        known |= {"threshold": level.threshold_grid}
        yield _step(f"{section}, round {level.round}", Step("plain/set_union", known))
        return
    assert isinstance(level, PrunedLevel)
    known |= {"level": level.level, "pruning": level.pruning, "spurious": level.spurious}
    asked = written(Step("plain/dpne_threshold", known)).removesuffix(";")
    yield Query(section, f"SET VARIABLE threshold = (\n{asked}\n);")
    known |= {"threshold": Written("getvariable('threshold')")}
    yield _step(section, Step("plain/dpne_level", known))


def _trie(price: Price) -> Iterator[Query]:
    chosen = Step(f"plain/one_each_{price['choice'].replace('-', '_')}", {"purpose": ONE_SEQUENCE})
    yield _step("one sequence a user", chosen)
    yield _step("one sequence a user", Step("plain/nothing_grown"))
    for level in price.levels:
        section, purpose = f"level {level.level}", f"trie/level {level.level}"
        known: dict[str, Any] = {"level": level.level, "purpose": purpose}
        if isinstance(level, VoteLevel):
            known |= {"numerator": level.numerator, "theta": level.theta}
            yield _step(section, Step("plain/trie_level", known))
        else:
            assert isinstance(level, BatchLevel)
            known |= {"batch": EVERYONE, "theta": level.theta, "idle": 0}
            yield _step(section, Step("plain/trie_batch_level", known))


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
