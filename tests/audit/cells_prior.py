"""Audited pairs of neighbours with a public list of words: `ngrams` with a prior.

In each, the user who is there or not is alone in holding what the trial looks at.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from dphh import Plan, ngrams
from dphh.mechanisms.ngrams.levels import ListedWordsLevel
from dphh.udfs.noise.table import rounded_gaussian
from dphh.udfs.rules.forecast import round_1_weight
from tests.audit.cells_union import LADDER
from tests.audit.corpora import WORDS, extra, groups_of, of_rows, written
from tests.audit.measure import Measured, in_turn, released_once, scores

#: A plan reads its prior as it reads a corpus: any that is read so.
READ = of_rows([("a", "b")], **WORDS)
PRIOR = {"prior_is_public": True}


def _measured(plan: Plan, neighbours: str, exact: float | None, seen: Sequence[int]) -> Measured:
    return replace(Measured.of(plan, neighbours, seen, exact), method="forecast, prior")


def list_of(words: list[str], pairs: list[tuple[str, str]]) -> pl.DataFrame:
    items = [[word] for word in words] + [[*pair] for pair in pairs]
    return pl.DataFrame({"item": items, "count": [100] * len(words) + [5_000] * len(pairs)})


def listed_word(engine: str, folder: Path, size: int) -> Measured:
    """Half of the words of the list have one holder each, the others nobody."""
    groups = 4000 * size
    words = [f"{g}/listed" for g in range(groups)]
    plan = ngrams(READ, max_n=1, **LADDER, max_items=2, prior=list_of(words, []), **PRIOR)
    corpus = written(folder, extra("g || '/listed'", groups), **WORDS)
    seen = groups_of(scores(released_once(plan, corpus, engine)), groups)
    return _measured(plan, "a user of a listed word", None, in_turn(seen))


def _unlisted(engine: str, folder: Path, groups: int, held: int) -> Measured:
    """Whether any of the user's new words passes. `max_items` of them count, the rest do not."""
    plan = ngrams(READ, max_n=1, **LADDER, max_items=4, prior=list_of(["listed"], []), **PRIOR)
    corpus = written(folder, extra(f"g || '/' || unnest(range({held}))", groups), **WORDS)
    found = scores(released_once(plan, corpus, engine))
    seen = groups_of([word for word in found if "/" in word], groups)
    (level,) = plan.levels
    assert isinstance(level, ListedWordsLevel)
    noise, kept = rounded_gaussian(level.sigma_grid), min(held, level.max_items)
    missed = 1.0
    # All of the words have one weight in round 2: the whole norm, where none passed before.
    second = int(level.second_unit / kept**0.5)
    for threshold, own in (
        (level.first_threshold_grid, round_1_weight(level.first_unit, kept)),
        (level.second_threshold_grid, second),
    ):
        missed *= (1 - float(noise.tail_upper_bound(threshold - own))) ** kept
    says = "a user of an unlisted word" if held == 1 else f"a user of {held} unlisted words"
    return _measured(plan, says, 1 - missed, in_turn(seen))


def unlisted_word(engine: str, folder: Path, size: int) -> Measured:
    return _unlisted(engine, folder, 4000 * size, 1)


def unlisted_words(engine: str, folder: Path, size: int) -> Measured:
    return _unlisted(engine, folder, 2000 * size, 400)


def lifted_pair(engine: str, folder: Path, size: int) -> Measured:
    """Pairs that the public text has 50 times as often as chance, half of them with a holder."""
    words = [f"w{i}" for i in range(60)]
    pairs = [(one, other) for place, one in enumerate(words) for other in words[place % 7 :: 7]]
    plan = ngrams(READ, max_n=2, **LADDER, max_items=4, prior=list_of(words, pairs), **PRIOR)
    seen = np.zeros((2, 2), dtype=np.int64)
    for _ in range(8 * size):
        alone = np.random.default_rng().random(len(pairs)) < 0.5
        rows = [(f"{word} {i}", word) for word in words for i in range(60)]
        rows += [(f"extra {i}", " ".join(pairs[i])) for i in np.flatnonzero(alone)]
        found = scores(released_once(plan, of_rows(rows, **WORDS), engine))
        passed = np.array([" ".join(pair) in found for pair in pairs])
        for row, trials in enumerate((passed[alone], passed[~alone])):
            seen[row] += int(trials.sum()), len(trials)
    return _measured(plan, "a user of a pair of large lift", None, seen.ravel().tolist())


CELLS = (listed_word, unlisted_word, unlisted_words, lifted_pair)
