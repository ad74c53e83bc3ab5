"""The queries that a run on DuckDB would execute, level by level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from dphh.as_sql.corpus_rows import rows_of
from dphh.as_sql.query_text import Query, Step, written
from dphh.corpus import Corpus
from dphh.levels.counts import CountsLevel
from dphh.levels.ldp_trie import LocalLevel
from dphh.levels.level import Level
from dphh.levels.ngrams import ForecastLevel, ListedWordsLevel, PrunedLevel
from dphh.levels.set_union import CHOICE_COMMON, SetUnionLevel
from dphh.levels.trie import BatchLevel, VoteLevel
from dphh.mechanisms.set_union.adaptive import follows
from dphh.price import Price
from dphh.privacy.following import parts_of_round
from dphh.privacy.forecast_rounds import LIST_SIZES
from dphh.udfs.draws.randomness import ONE_SEQUENCE, SEATS

Part = tuple[str, list[Step]]

SALT = "64 random bits, drawn for this level"
RHO = "the least weight that noise reaches as seldom as `spurious` asks, from the level below"
RELEASED = "what the level below released, with the numbers of these, to be looked up"
RELEASED_WORDS = "the words that earlier rounds released, to be looked up"
PARTS = {"parts": 1, "part": 0}
GATHER = Step("gather_texts")
HEADING = """\
-- What {verb} ({method}) would execute on DuckDB, level by level. This text is free: it reads
-- nothing and spends nothing. Functions called dphh_... are dphh's own (udfs/). Names such as $salt
-- stand for values that no plan can know; a comment says what each follows from."""


def running(price: Price, corpus: Corpus | None) -> list[Query]:
    heading = HEADING.format(verb=price.verb, method=price.method)
    queries = [
        Query("what this is", heading),
        Query("the corpus", rows_of(corpus, whole_users=True)),
    ]
    for section, steps in parts_of(price):
        queries += [Query(section, written(step)) for step in steps]
    return queries


def parts_of(price: Price) -> Iterator[Part]:
    """The steps of a run in their order, grouped under headings."""
    verbs = {
        "items": _items_parts,
        "ngrams": _ngrams_parts,
        "trie": _trie_parts,
        "ldp_trie": _ldp_trie_parts,
    }
    known: dict[str, Any] = {"purpose": "counts"}
    if isinstance(level := price.levels[0], CountsLevel):
        yield "counts", _counts_steps({**known, "sigma": level.sigma_grid})
        return
    yield from verbs[price.verb](price)
    if price.counting is not None:
        yield "counts of what is found", _counts_steps(known)


def _counts_steps(known: dict[str, Any]) -> list[Step]:
    follows = {"sigma": "the noise of the counts, from how many items are found"}
    level = Step("counts_level", known, follows)
    return [GATHER, Step("counts_contributions"), level, Step("counts_drawn")]


def _items_parts(price: Price) -> Iterator[Part]:
    if price.method == "forecast":
        yield from _forecast_parts(price)
        return
    yield "whole users", [GATHER]
    levels = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    if price.method == "adaptive":
        yield from _adaptive_parts(levels, "items")
        return
    if price.method == "auto":
        first, alone, *rounds = levels
        yield "level 1, choice", _set_union_steps(first, "items/choice")
        few = f"if fewer than {CHOICE_COMMON} were found, which are not released"
        steps = _set_union_steps(alone, f"items/round {alone.round}")
        yield f"level 1, {few}", _steps_if_chosen(steps)
        for title, steps in _adaptive_parts(rounds, "items"):
            yield f"{title}, if not", _steps_if_chosen(steps)
        return
    for number, level in enumerate(levels):
        title = f"level {level.level}, round {level.round}"
        yield title, _set_union_steps(level, f"items/round {level.round}", number)


def _steps_if_chosen(steps: Sequence[Step]) -> list[Step]:
    return [replace(step, may_run=True) for step in steps]


def _adaptive_parts(levels: Sequence[SetUnionLevel], purpose: str) -> Iterator[Part]:
    """Rounds whose weights depend on earlier rounds, computed in the engine."""
    for number, level in enumerate(levels):
        known, later = _set_union_parameters(level, f"{purpose}/round {level.round}", number)
        if following := follows(levels[:number], level):
            parts = parts_of_round(levels[0].grid, levels[number - 1].grid)
            before = [
                Step("told_so_far", {"parts": parts}),
                Step("weights_of_round", asdict(following)),
            ]
            later["w"] = "what (word_id, w) of the step above is handed over as, to be looked up"
        else:
            before, known = [Step("nothing_told")], known | {"w": None}
        drawn = Step("words_of_round", known, later)
        passed = Step("released_of_round", {"threshold": level.threshold_grid})
        yield f"level {level.level}, round {level.round}", [*before, drawn, passed]


def _set_union_steps(level: SetUnionLevel, purpose: str, earlier_rounds: int = 0) -> list[Step]:
    return [
        Step("words_level", *_set_union_parameters(level, purpose, earlier_rounds)),
        Step("released_words", {"threshold": level.threshold_grid}),
    ]


def _set_union_parameters(
    level: SetUnionLevel, purpose: str, earlier_rounds: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """Those that the plan knows, and those that it leaves open."""
    known = _bounding_parameters(level, purpose) | {"is_test": False}
    if earlier_rounds:
        return known, {"salt": SALT, "released": RELEASED_WORDS}
    return known | {"released": None}, {"salt": SALT}


def _bounding_parameters(level: SetUnionLevel | PrunedLevel, purpose: str) -> dict[str, Any]:
    return {
        "max_items": level.max_items,
        "grid_bits": level.grid_bits,
        "sigma": level.sigma_grid,
        "purpose": purpose,
    }


def _ngrams_parts(price: Price) -> Iterator[Part]:
    ladders = {"dpne": _dpne_parts, "forecast": _forecast_parts}
    yield from ladders.get(price.method, _baseline_parts)(price)


def _dpne_parts(price: Price) -> Iterator[Part]:
    base, *above = price.levels
    assert isinstance(base, SetUnionLevel)
    yield "whole users", [GATHER]
    yield "level 1", _set_union_steps(base, "ngrams/level 1")
    for level in above:
        assert isinstance(level, PrunedLevel)
        steps = [
            _positions_step(level.level, level.pruning == "single"),
            Step(
                "grams_level",
                _bounding_parameters(level, f"ngrams/level {level.level}") | {"is_test": False},
                {"salt": SALT},
            ),
            Step(
                "lifted",
                {"sigma": level.sigma_grid, "purpose": f"ngrams/level {level.level}"},
                {"threshold": RHO, "valid": "the valid grams, by which they are looked up"},
            ),
            Step("released_grams", {}, {"threshold": RHO}),
        ]
        yield f"level {level.level}", steps


def _positions_step(level: int, single: bool) -> Step:
    if level == 2:
        return Step("positions_of_words", {"single": single}, {"released": RELEASED})
    ahead = level - 1 if single else 1
    return Step("positions_of_grams", {"ahead": ahead}, {"released": RELEASED})


def _forecast_parts(price: Price) -> Iterator[Part]:
    yield "whole users", [GATHER]
    words = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    for number, (title, steps) in enumerate(_adaptive_parts(words, "ngrams/words")):
        yield title, _steps_if_chosen(steps) if number else steps
    for level in price.levels[len(words) :]:
        if isinstance(level, ListedWordsLevel):
            placed = Step(
                "positions_of_listed",
                {"others": level.listed, "max_items": level.max_items},
                {"salt": SALT, "word_list": "the list, with its words' numbers, to be looked up"},
            )
        else:
            assert isinstance(level, ForecastLevel)
            placed = _positions_step(level.level, False)
        yield f"level {level.level}, two rounds", [placed, *_two_rounds_steps(level)]


def _two_rounds_steps(level: ForecastLevel | ListedWordsLevel) -> list[Step]:
    purpose = f"ngrams/forecast, level {level.level}"
    drawn = {"sigma": level.sigma_grid, "purpose": purpose}
    known = {**drawn, "is_test": False, "others": -1}
    first: dict[str, Any] = {**known, "list_bins": len(LIST_SIZES)}
    norm = "a user's norm on the grid, from the share of the budget that the round gets"
    later, second, beside = {"norm": norm}, known, []
    g = "what (key, weight) of the step above is handed over as, to be looked up"
    valid = "the valid n-grams by class, from the levels below, to be drawn from"
    if isinstance(level, ListedWordsLevel):
        others = {"others": level.listed}
        first |= {"norm": level.first_unit, **others}
        second, later = {**known, "norm": level.second_unit, **others}, {}
        beside = [Step("other_words", {"threshold": level.first_threshold_grid, **others})]
        valid = "the words of the list by class, to be drawn from"
    return [
        Step("forecast_round_1", first, later),
        *beside,
        Step("list_sizes"),
        Step("forecast_rows"),
        Step("forecast_weights"),
        Step("forecast_round_2", second, {**later, "g": g}),
        Step("forecast_signs"),
        Step("forecast_lifted", drawn, {"valid": valid}),
        Step("forecast_released"),
    ]


def _baseline_parts(price: Price) -> Iterator[Part]:
    levels: Sequence[Level] = price.levels[:1] if price.method == "dpsu-all" else price.levels
    for level in levels:
        assert isinstance(level, SetUnionLevel)
        purpose = f"ngrams/{price.method} {level.level}"
        title = "all levels" if price.method == "dpsu-all" else f"level {level.level}"
        yield title, [GATHER, *_set_union_steps(level, purpose)]


def _trie_parts(price: Price) -> Iterator[Part]:
    drawn = price["choice"] == "drawn"
    chosen = Step(
        f"sequences_{price['choice'].replace('-', '_')}",
        {"purpose": ONE_SEQUENCE} if drawn else {},
    )
    rows = Step("sequences_of_rows")
    if isinstance(price.levels[0], VoteLevel):
        contents = Step("contents_of_one_row", PARTS)
        several = Step("users_of_several_rows", PARTS, may_run=True)
        yield "one sequence a user", [rows, contents, several, chosen, Step("walkers")]
    else:
        yield "one sequence a user", [rows, chosen]
    for level in price.levels:
        yield f"level {level.level}", _votes_steps(level)


def _votes_steps(level: Level) -> list[Step]:
    purpose = f"trie/level {level.level}"
    if isinstance(level, BatchLevel):
        known = {**asdict(level), "purpose": purpose}
        idle = {"idle": f"of {level.users} users, how many hold no sequence"}
        return [
            Step("trie_batch_level", known, idle),
            Step("grown", {"theta": level.theta}),
        ]
    assert isinstance(level, VoteLevel)
    on = [Step("walk_on", {"level": level.level - 1})] if level.level > 1 else []
    known = {**asdict(level), "purpose": purpose}
    return [*on, Step("trie_level", known), Step("grown", {"theta": level.theta})]


def _ldp_trie_parts(price: Price) -> Iterator[Part]:
    levels = [level for level in price.levels if isinstance(level, LocalLevel)]
    seats = max(level.first_seat + level.users for level in levels)
    idle = {"idle": "how many users are made up, where the corpus has too few"}
    yield (
        "users and their words",
        [
            Step("ldp_local_words", {"characters": list(price["character_set"])}),
            Step("ldp_seats", {"seats": seats, "purpose": SEATS}, idle),
            Step("ldp_words_in_seats"),
        ],
    )
    for level in levels:
        yield f"pass {level.pass_number}, level {level.level}", _reports_steps(level)


def _reports_steps(level: LocalLevel) -> list[Step]:
    purpose = f"ldp_trie/pass {level.pass_number}/level {level.level}"
    last = level.first_seat + level.users
    known = {**asdict(level), "last_seat": last, "domain": level.domain, "purpose": purpose}
    values = "how many values there are: a prefix of the level below, and what comes next"
    return [
        Step("ldp_choice", known),
        Step("ldp_messages", known),
        Step("ldp_kept", {"keep": level.keep}, {"values": values}),
    ]
