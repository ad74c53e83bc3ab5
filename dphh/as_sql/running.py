"""The queries that a run on DuckDB executes, level by level, in the order of the mechanisms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from dphh.as_sql.corpus_rows import rows_of
from dphh.as_sql.query_text import Step, section, written
from dphh.corpus import Corpus
from dphh.levels.counts import CountsLevel
from dphh.levels.ldp_trie import LocalLevel
from dphh.levels.level import Level
from dphh.levels.ngrams import ListedWordsLevel
from dphh.levels.set_union import CHOICE_COMMON, SetUnionLevel
from dphh.levels.trie import BatchLevel, VoteLevel
from dphh.mechanisms.set_union.adaptive import follows
from dphh.price import Price
from dphh.privacy.following import parts_of_round
from dphh.privacy.forecast_rounds import LIST_SIZES
from dphh.udfs.draws.randomness import ONE_SEQUENCE, SEATS

#: A section and its steps. A section whose name has an "if" may be left out of a run.
Part = tuple[str, list[Step]]

GATHER = Step("gather_texts")
#: What a plan leaves open, and what each follows from.
LATER = {
    "codes": "one code point for each of the characters: chr(1), chr(2), ...",
    "g": "the value that the step above gives for each key, to be looked up",
    "keys": "the value that the step above gives for each word, to be looked up",
    "norm": "a user's norm on the grid, from the share of the budget that the round gets",
    "released": "what was released before, with the numbers of these, to be looked up",
    "salt": "64 random bits, drawn for this level",
    "sigma": "the noise of the counts, from how many items are found",
    "threshold": "the least weight that noise reaches as seldom as `spurious` asks, from the level "
    "below",
    "valid": "the valid n-grams, or the words of the list, by which they are looked up and drawn",
    "values": "how many values there are: a prefix of the level below, and what comes next",
    "w": "the value that the step above gives for each word, to be looked up",
    "weighing": "how much a user adds to each of the keys that they hold, to be looked up",
    "words_of_corpus": "how many different words the corpus has",
}
HEADING = """\
-- What {verb} ({method}) would execute on DuckDB, level by level. This text is free: it reads
-- nothing and spends nothing. Functions called dphh_... are dphh's own (udfs/). Names such as $salt
-- stand for values that no plan can know; a comment says what each follows from."""


def running(price: Price, corpus: Corpus | None) -> str:
    """The queries as one text."""
    parts = [
        section("what this is", HEADING.format(verb=price.verb, method=price.method)),
        section("the corpus", rows_of(corpus)),
        *(section(title, *(written(step, LATER) for step in steps))
          for title, steps in parts_of(price)),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def parts_of(price: Price) -> Iterator[Part]:
    """The steps of a run in their order, grouped under headings."""
    if isinstance(level := price.levels[0], CountsLevel):
        yield "counts", _counts({"sigma": level.sigma_grid})
        return
    match price.verb, price.method:
        case "trie", _:
            yield from _trie(price)
        case "ldp_trie", _:
            yield from _ldp_trie(price)
        case _, "forecast":
            yield from _forecast(price)
        case "ngrams", "dpne":
            yield from _dpne(price)
        case _:
            yield from _items(price)
    if price.counting is not None:
        yield "counts of what is found", _counts({})


def _known(level: Level, purpose: str) -> dict[str, Any]:
    """What a plan knows of a level, by the names that queries have for it."""
    known = {**vars(level), "purpose": purpose, "is_test": False}
    for said, name in (("sigma", "sigma_grid"), ("threshold", "threshold_grid")):
        known[said] = known.get(name)
    return {name: value for name, value in known.items() if value is not None}


def _counts(sigma: dict[str, Any]) -> list[Step]:
    level = Step("counts_level", {"purpose": "counts", **sigma})
    return [GATHER, level, Step("counts_drawn")]


def _items(price: Price) -> Iterator[Part]:
    yield "whole users", [GATHER]
    levels = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    if price.method == "adaptive":
        yield from _adaptive(levels, "items")
    elif price.method == "auto":
        first, alone, *rounds = levels
        yield "level 1, choice", _set_union(first, "items/choice")
        yield (
            f"level 1, if fewer than {CHOICE_COMMON} were found, which are not released",
            _set_union(alone, f"items/round {alone.round}"),
        )
        for title, steps in _adaptive(rounds, "items"):
            yield f"{title}, if more were found", steps
    else:
        for number, level in enumerate(levels):
            steps = _set_union(level, f"items/round {level.round}", follows=number > 0)
            yield f"level {level.level}, round {level.round}", steps


def _set_union(level: SetUnionLevel, purpose: str, *, follows: bool = False) -> list[Step]:
    known = _known(level, purpose) | ({} if follows else {"released": None})
    return [Step("words_level", known), Step("released_words", known)]


def _adaptive(levels: Sequence[SetUnionLevel], purpose: str) -> Iterator[Part]:
    """Rounds whose weights depend on earlier rounds, computed in the engine."""
    for number, level in enumerate(levels):
        known = _known(level, f"{purpose}/round {level.round}")
        known |= {} if number else {"released": None}
        if following := follows(levels[:number], level):
            parts = parts_of_round(levels[0].grid, levels[number - 1].grid)
            first = [Step("nothing_told")] if number == 1 else []
            told = Step("told_so_far", {"parts": parts})
            before = [*first, told, Step("weights_of_round", asdict(following))]
        else:
            before, known = [], known | {"w": None}
        drawn = [Step("words_of_round", known), Step("released_of_round", known)]
        yield f"level {level.level}, round {level.round}", [*before, *drawn]


def _dpne(price: Price) -> Iterator[Part]:
    base, *above = price.levels
    assert isinstance(base, SetUnionLevel)
    yield "whole users", [GATHER]
    yield "level 1", _set_union(base, "ngrams/level 1")
    for level in above:
        known = _known(level, f"ngrams/level {level.level}")
        names = ("grams_level", "lifted", "released_grams")
        placed = _positions(level.level, single=price["pruning"] == "single")
        yield f"level {level.level}", [placed, *(Step(name, known) for name in names)]


def _positions(level: int, *, single: bool = False) -> Step:
    if level == 2:
        return Step("positions_of_words", {"single": single})
    return Step("positions_of_grams", {"ahead": level - 1 if single else 1})


def _forecast(price: Price) -> Iterator[Part]:
    yield "whole users", [GATHER]
    words = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    for number, (title, steps) in enumerate(_adaptive(words, "ngrams/words")):
        yield f"{title}, if not all is found" if number else title, steps
    for level in price.levels[len(words) :]:
        yield f"level {level.level}, two rounds", _two_rounds(level)


def _two_rounds(level: Level) -> list[Step]:
    known = _known(level, f"ngrams/forecast, level {level.level}")
    known |= {"others": -1, "list_bins": len(LIST_SIZES)}
    first, second = known, known
    placed = [_positions(level.level)]
    if isinstance(level, ListedWordsLevel):
        known |= {"others": level.listed, "threshold": level.first_threshold_grid}
        first, second = {**known, "norm": level.first_unit}, {**known, "norm": level.second_unit}
        placed = [Step(name, known) for name in
                  ("other_words", "keys_by_list", "positions_of_listed")]  # fmt: skip
    else:
        first = {**known, "threshold": 0}
    return [
        *placed,
        Step("forecast_round_1", first),
        *(Step(name) for name in ("forecast_rows", "list_sizes", "forecast_weights")),
        Step("forecast_round_2", second),
        Step("forecast_signs"),
        Step("forecast_lifted", known),
        Step("forecast_released"),
    ]


def _trie(price: Price) -> Iterator[Part]:
    chosen = Step(f"sequences_{price['choice'].replace('-', '_')}", {"purpose": ONE_SEQUENCE})
    first = price.levels[0]
    by_coins = isinstance(first, VoteLevel)
    held = [Step("walkers")]
    if isinstance(first, BatchLevel):
        held = [Step("one_each"), Step("more_users", {"users": first.users})]
    yield "one sequence a user", [Step("contents_of_users"), chosen, *held]
    for level in price.levels:
        known = _known(level, f"trie/level {level.level}")
        votes = "trie_batch_level" if isinstance(level, BatchLevel) else "trie_level"
        steps = [Step(votes, known), Step("grown", known)]
        if by_coins and level.level > 1:
            steps = [Step("walk_on", {"level": level.level - 1}), *steps]
        yield f"level {level.level}", steps


def _ldp_trie(price: Price) -> Iterator[Part]:
    levels = [level for level in price.levels if isinstance(level, LocalLevel)]
    seats = max(level.first_seat + level.users for level in levels)
    enough = [] if price["pad"] else [Step("fewer_users", {"seats": seats})]
    yield (
        "users and their words",
        [
            Step("ldp_local_words", {"characters": list(price["character_set"])}),
            *enough,
            Step("ldp_seats", {"seats": seats, "purpose": SEATS}),
            Step("ldp_words_in_seats"),
        ],
    )
    for level in levels:
        title = f"pass {level.pass_number}, level {level.level}"
        known = _known(level, f"ldp_trie/pass {level.pass_number}/level {level.level}")
        known |= {"last_seat": level.first_seat + level.users, "domain": level.domain}
        yield title, [Step(name, known) for name in ("ldp_choice", "ldp_messages", "ldp_kept")]
