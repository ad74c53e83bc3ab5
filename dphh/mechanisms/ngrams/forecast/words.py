"""Level 1 of the forecast ladder: words.

Without a prior, by rounds of set union. The later rounds' weights depend on earlier noised weights
(`set_union.levels`). What earlier rounds released decides how many rounds there are.

With a prior, by two rounds over the listed words and, within the same norm, over unlisted words,
which have thresholds. docs/prior.md has the proof.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.engines.host import DrawOnce, Host
from dphh.mechanisms.ngrams.forecast.purses import WORD_ROUND_PARTS, one_round_part
from dphh.mechanisms.ngrams.forecast.two_rounds import (
    ROUND_TABLES,
    Drawn,
    TwoRoundLevel,
    draw_two_rounds,
)
from dphh.mechanisms.ngrams.ladder.classes import LOG_STEP, PublicClasses, ValidClasses
from dphh.mechanisms.ngrams.ladder.rungs import ValidGrams
from dphh.mechanisms.ngrams.levels import ListedWordsLevel
from dphh.mechanisms.running import LevelDone, as_array, integer_columns, scored_words
from dphh.mechanisms.set_union.draws import draw_together, drawn_salt
from dphh.mechanisms.set_union.levels import (
    DrawnRound,
    NextRound,
    SetUnionLevel,
    round_level,
)
from dphh.price import Price
from dphh.prior import Prior
from dphh.privacy.events import DeltaEvent, GaussianEvent
from dphh.privacy.gaussian import split_sigma
from dphh.udfs.arrays import Floats, Integers

#: Later rounds follow a first one if at least this many words reach its threshold; else one round.
LEAST_WORDS_FOR_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class ReleasedWords:
    """The words that level 1 released, in ascending order; their masses; how many even shares of
    the budget the level took; and its released rows."""

    words: Any
    masses: Floats
    even_shares: float
    rows: Any


def words_without_prior(
    price: Price, host: Host, once: DrawOnce, max_n: int
) -> Generator[LevelDone, None, ReleasedWords]:
    """Runs level 1, whose rounds are one entry of the journal."""
    drawn = draw_together(host, once, "ngrams/words", words_rounds(price))
    words, masses, even_shares = pa.array([], pa.string()), np.empty(0), 0.0
    rows = []
    for number, (level, passed) in enumerate(drawn, start=1):
        is_planned = level.round == number  # else it is the one round in place of the later ones
        even_shares += WORD_ROUND_PARTS[number - 1] if is_planned else one_round_part(max_n)
        new_words = as_array(passed.column("key"), pa.string())
        (noisy,) = integer_columns(passed, "noisy")
        words = pa.concat_arrays([words, new_words])
        masses = np.concatenate([masses, noisy / 2.0**level.grid_bits])
        rows.append(scored_words(new_words, noisy, level.grid_bits))
        yield LevelDone(level, rows[-1])
    order = pc.sort_indices(words)
    masses = masses[order.to_numpy()]
    return ReleasedWords(words.take(order), masses, even_shares, pa.concat_tables(rows))


def words_rounds(price: Price) -> NextRound:
    """Level 1 without a prior: which round follows what was released so far."""
    first, *later = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    alone = one_round_of_words(price, later[-1])

    def next_round(ran: Sequence[DrawnRound]) -> SetUnionLevel | None:
        if not ran:
            return first
        if few_are_left(ran):
            return None
        after = [alone] if ran[0][1].num_rows < LEAST_WORDS_FOR_ROUNDS else later
        return after[len(ran) - 1] if len(ran) <= len(after) else None

    return next_round


def few_are_left(ran: Sequence[DrawnRound]) -> bool:
    """Whether a later round found few new words, and few of these near its threshold. Then few are
    left to find, and what another round would cost finds more among longer n-grams. `items` has
    nothing else to spend it on, and goes on."""
    if len(ran) < 2:
        return False
    level, found = ran[-1]
    new_words: int = found.num_rows
    words: int = sum(released.num_rows for _, released in ran)
    (noisy,) = integer_columns(found, "noisy")
    near_threshold = int((noisy < 2 * level.threshold_grid).sum())
    return words > 5 * near_threshold and words >= 2 * new_words


def one_round_of_words(price: Price, last: SetUnionLevel) -> SetUnionLevel:
    """The round that replaces rounds 2 and 3 if round 1 finds very few words. It has the grid of
    round 3, the `last`, and may pass new words with the probability that round 3 has paid for."""
    all_rounds, new_words = price.events[0], price.events[last.round]
    assert isinstance(all_rounds, GaussianEvent) and isinstance(new_words, DeltaEvent)
    part = one_round_part(price["max_n"])
    (sigma,) = split_sigma(all_rounds.sigma, [part / price["max_n"]])
    bits, max_items = last.grid_bits, last.max_items
    return round_level(SetUnionLevel, bits, sigma, max_items, new_words.delta, last.round)


def words_with_prior(
    price: Price, host: Host, once: DrawOnce, max_n: int
) -> Generator[LevelDone, None, ReleasedWords]:
    """Runs level 1 with a prior. Both rounds are one entry of the journal, and one even share."""
    planned, prior = price.levels[0], price.prior
    assert isinstance(planned, ListedWordsLevel) and prior is not None
    purpose = "ngrams/forecast, level 1"
    drawn = once(purpose, partial(draw_words_with_prior, host, planned, prior, purpose))
    words, masses, most_spurious = words_masses_and_bound(drawn)
    done = LevelDone(replace(planned, spurious_words=most_spurious), scored_words(words, masses, 0))
    yield done
    return ReleasedWords(words, masses, 1.0, done.rows)


def draw_words_with_prior(host: Host, planned: ListedWordsLevel, prior: Prior, purpose: str) -> Any:
    """Draw both rounds of level 1 with a prior."""
    listed = len(prior.vocabulary)
    numbers = pa.array(np.arange(listed, dtype=np.int64))
    host.put("listed", pa.table({"word": prior.vocabulary.cast(pa.string()), "key": numbers}))
    host.run("unlisted_words", first_unlisted_key=listed)
    # unlisted_words (word, key)
    host.bring("keys", "keys_by_list", to="users")
    # brought to users: each word's key
    bound = {"max_items": planned.max_items, "salt": drawn_salt(host, purpose)}
    host.run("positions_with_list", first_unlisted_key=listed, **bound)
    # positions (user_hashes, lengths, keys)
    level = level_of_listed_words(planned, prior)
    host.run("full_purses", purse=level.full_purse)
    # purses (block, purse)
    drawn = draw_two_rounds(host, level, purpose)
    host.drop("positions", "listed", "unlisted_words", "purses", *ROUND_TABLES)
    return table_of_words(prior.vocabulary, drawn)


def level_of_listed_words(planned: ListedWordsLevel, prior: Prior) -> TwoRoundLevel:
    """Level 1 with a prior, before its rounds: it follows from the plan and the prior alone. It has
    purses of its own, of which all users spend the same: the thresholds of unlisted words hide a
    user's new words if the user adds no more than they were made for (docs/prior.md)."""
    purse = planned.first_unit**2 + planned.second_unit**2
    return TwoRoundLevel(
        planned=planned,
        valid=classes_of_listed_words(prior.counts[0], prior.total),
        below=0,
        full_purse=purse,
        likely_purse=purse,
        first=planned.first_unit**2,
    )


def classes_of_listed_words(public_counts: Integers, public_total: int) -> ValidClasses:
    """The classes of listed words, from their counts in a public text of `public_total` words.

    A word of the list is its number there, and as a valid gram the pair of the empty gram, number
    0, and itself: so its key is its number. The class is floor(ln share / LOG_STEP), the forecast
    is the public share at the class's middle. Keys from the list's length on are words that it
    lacks.
    """
    step = np.floor(np.log(public_counts / public_total) / LOG_STEP).astype(np.int64)
    lowest = int(step.min())
    class_number = step - lowest
    sizes = np.bincount(class_number)
    return ValidClasses(
        left=np.zeros(len(public_counts), dtype=np.int64),
        right=class_number,
        forecasts=np.exp(LOG_STEP * (np.arange(len(sizes)) + lowest + 0.5)),
        bundles=ValidGrams(
            ending=np.zeros(1, dtype=np.int64),
            beginning=np.argsort(class_number, kind="stable"),
            starts_ending=np.zeros(len(sizes), dtype=np.int64),
            starts_beginning=np.cumsum(sizes) - sizes,
            begins=sizes,
            cumulative=np.cumsum(sizes),
        ),
        ends=np.arange(1, len(sizes) + 1),
        public=PublicClasses.unchanged(len(public_counts)),
    )


def table_of_words(listed: Any, drawn: Drawn) -> Any:
    """The table (word, mass) of the release, as the journal stores it. The row of the empty word
    has the bound on the expected number of spurious listed words."""
    keys = drawn.passed.column("key").drop_null()
    unlisted = as_array(drawn.passed.column("word").drop_null(), listed.type)
    found = listed.take(as_array(keys, pa.int64()))
    words = pa.concat_arrays([found, unlisted, pa.array([""], listed.type)])
    return pa.table({"word": words, "mass": np.append(drawn.masses, drawn.most_spurious)})


def words_masses_and_bound(table: Any) -> tuple[Any, Floats, float]:
    """Reads the table of `table_of_words`: the released words, ascending, their
    masses, and the bound on the expected number of spurious listed words."""
    # No word is empty, so the row of the bound is the first.
    table = table.sort_by("word")
    words = as_array(table.column("word"), pa.string())
    masses = table.column("mass").to_numpy()
    return words[1:], masses[1:], float(masses[0])
