"""What a user spends and adds in all rounds of a ladder, against one user after another in plain
Python (`person.py`); and the bins, and the draws that are charged for."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, isqrt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh.mechanisms.ngrams.ladder.rungs import GRAM_NUMBER_BITS
from dphh.mechanisms.terms import LARGEST_TABLE_DISTANCE, forecast_draws_delta
from dphh.udfs.kernel.contributions import PIECE_SIZE
from dphh.udfs.kernel.positions import KeyIndex
from dphh.udfs.noise.table import Bins
from dphh.udfs.rules.forecast import (
    LIST_SIZE_BIN_STARTS,
    ONE_PART,
    PURSE_PARTS,
    Reserve,
    Spending,
    bins_of_list_sizes,
    count_weight,
    finds_of_users,
    full_purses,
    later_round_contributions,
    norm_on_grid,
    purse_counts,
    round_1_contributions,
    round_1_weight,
)
from dphh.udfs.rules.weights import weights_in_proportion
from tests.conftest import full
from tests.forecast.person import Person, eighth

SIGMA_GRID = 2**15
units = st.integers(1, 2**20)


@given(st.integers(0, 2**40), st.integers(1, 10**6))
def test_round_1_stays_within_what_is_spent(spent, held):
    """On the grams, on the bin of the list size and on the cell of the purse."""
    on_grams = held * round_1_weight(spent, held) ** 2
    assert on_grams + 2 * count_weight(spent) ** 2 <= spent


@given(units, st.lists(st.integers(1, 4_000), min_size=1, max_size=50))
def test_a_later_round_stays_within_the_norm_whatever_the_weights(unit, g):
    """A planted bug, weights that are not shared out, would break this."""
    weights = weights_in_proportion(unit, np.array(g), np.zeros(len(g), dtype=np.int64), 1)
    assert sum(int(w) ** 2 for w in weights) <= unit**2


@given(st.floats(0.05, 1e4))
def test_the_noise_is_no_less_than_asked_for(sigma):
    assert SIGMA_GRID / norm_on_grid(sigma, SIGMA_GRID) >= sigma


def test_a_bin_begins_where_it_says():
    law = Bins(SIGMA_GRID)
    assert list(law.bin_of(law.starts)) == list(range(len(law.starts)))
    assert list(law.bin_of(law.starts[1:] - 1)) == list(range(len(law.starts) - 1))
    assert law.bin_of(np.array([-(10**12), 10**12])).tolist() == [0, len(law.starts) - 1]


def test_list_sizes_have_bins():
    assert list(bins_of_list_sizes(LIST_SIZE_BIN_STARTS)) == list(range(len(LIST_SIZE_BIN_STARTS)))
    assert bins_of_list_sizes(np.array([5, 10**6])).tolist() == [3, len(LIST_SIZE_BIN_STARTS) - 1]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 9.5, 40.0])
def test_draws_distance_is_charged_for_all_that_may_be_drawn(epsilon):
    """Of a level: in each of three rounds the noise of 2^62 valid grams, each within the table's
    distance; and of 2^22 cells seven draws each, each within 2^-150: how many absent grams there
    are; in round 2 and in the late round, signs, what passes and its weights; and between these the
    bin. Laws that are d apart cost (1 + e^epsilon) d."""
    apart = 3 * 2**62 * LARGEST_TABLE_DISTANCE + 8 * 2**22 * Fraction(1, 2**150)
    charged = forecast_draws_delta(epsilon) / (1 + exp(epsilon))
    assert apart <= charged < 3 * apart


# The real functions, over users in blocks


WORDS = 6
KEYS = np.array([a << GRAM_NUMBER_BITS | b for a in range(WORDS) for b in range(WORDS)])
#: One text: places in KEYS, or -1.
TEXT = st.lists(st.integers(-1, len(KEYS) - 1), max_size=12)
#: What stands in a user's texts on each of four levels. Every text ends with -1.
USER = st.lists(st.lists(TEXT, max_size=3), min_size=4, max_size=4)


def positions(texts):
    places = [place for text in texts for place in [*text, -1]]
    return [int(KEYS[place]) if place >= 0 else -1 for place in places]


def arrays(blocks, kind):
    return pa.array(blocks, pa.list_(kind))


def columns(blocks):
    """(lengths, keys) of blocks of users, each of whom is a list of keys."""
    return (
        arrays([[len(user) for user in block] for block in blocks], pa.int32()),
        arrays([[key for user in block for key in user] for block in blocks], pa.int64()),
    )


def added(contributions):
    sums = {}
    for row in contributions.flatten().to_pylist():
        sums[row["key"]] = sums.get(row["key"], 0) + row["weight"]
    return sums


@dataclass
class Block:
    """Users whom the product's functions look at together, in blocks."""

    blocks: list[list[list[list[int]]]]
    purse: pa.Array

    @classmethod
    def of(cls, blocks, purse):
        hashes = arrays([[0] * len(block) for block in blocks], pa.int64())
        return cls(blocks, full_purses(hashes, purse))

    def find(self, level, numbers):
        """The grams of these numbers are found: what each user holds of them is added."""
        lengths, keys = self.at(level)
        of_keys = [[numbers.get(key, -1) for key in block] for block in keys.to_pylist()]
        self.purse = finds_of_users(lengths, arrays(of_keys, pa.int64()), self.purse)

    def at(self, level):
        return columns([[user[level] for user in block] for block in self.blocks])

    def round_1(self, level, how):
        lengths, keys = self.at(level)
        return added(round_1_contributions(lengths, keys, self.purse, how))

    def later(self, level, g, how):
        lengths, keys = self.at(level)
        return self.after(later_round_contributions(lengths, keys, self.purse, g, how))

    def counts(self, how):
        return self.after(purse_counts(self.purse, how))

    def after(self, made):
        self.purse = made.field("purse")
        return added(made.field("contributions"))


def weights_of(rng):
    """What each gram weighs in a later round: by what was seen of it, and so for everybody."""
    kinds = [np.zeros(len(KEYS)), rng.integers(0, 30, len(KEYS)), rng.integers(1, 3_500, len(KEYS))]
    return kinds[rng.integers(3)].astype(np.int64)


def spendings(rng, purse):
    """Public numbers of a ladder of four levels: round 1 and 2 of each; and of the late rounds."""

    def parts(number):
        return tuple(rng.choice([0, 1, 9_000, ONE_PART], number).tolist())

    saturation = int(rng.choice([0, 2 * 64**2, 10**7]))
    firsts = [int(rng.choice([0, 1, purse // 20, purse // 3, 2 * purse])) for _ in range(5)]
    each, least = int(rng.choice([0, 1, 50, purse // 30 + 1])), int(rng.integers(1, 9))
    reserve = Reserve(each, least, least + int(rng.integers(20))) if rng.integers(2) else None
    less = reserve and replace(reserve, each=each // 2)
    two = [
        Spending(purse, firsts[at], parts(4 - at), saturation, at + 2, False, kept, less)
        for at, kept in zip(range(4), (reserve, less, less, less), strict=True)
    ]
    late = [Spending(purse, 0, parts(4 - at), saturation, at + 2, True, less) for at in range(4)]
    return two, Spending(purse, firsts[4], reserve=less), late


def total(each):
    sums = {}
    for one in each:
        for key, weight in one.items():
            sums[key] = sums.get(key, 0) + weight
    return sums


def lists_in(column):
    return [value for block in column.to_pylist() for value in block]


def without_zeros(sums):
    return {key: weight for key, weight in sums.items() if weight}


@settings(max_examples=300 if full() else 60)
@given(
    st.lists(st.lists(USER, max_size=3), min_size=1, max_size=3),
    st.sampled_from([0, 1, 99, 5_000, 2**30, 2**38]),
    st.integers(0, 2**32),
)
def test_over_a_whole_ladder_each_user_spends_a_purse_and_no_more(texts, purse, seed):
    """Whoever else is there, in one block or in several, and all with one user hash: what users add
    is the sum of what each would add alone, their purses are those that each would have alone, and
    both are the plain person's. A gram has a row wherever somebody holds it."""
    rng = np.random.default_rng(seed)
    two, counting, late = spendings(rng, purse)
    users = [[[positions(level) for level in user] for user in block] for block in texts]
    block, everybody = Block.of(users, purse), [user for part in users for user in part]
    people = [Person(purse) for _ in everybody]

    def agree(sums):
        assert without_zeros(sums) == without_zeros(total(person.added for person in people))
        for person in people:
            assert person.squares <= purse - person.purse <= purse

    for level, how in enumerate(two):
        g = weights_of(rng)
        by_key = dict(zip(KEYS.tolist(), g.tolist(), strict=True))
        sums = block.round_1(level, how)
        assert {key for key in sums if key >= 0} == {
            key for user in everybody for key in user[level] if key >= 0
        }
        for person, user in zip(people, everybody, strict=True):
            person.round_1(user[level], how)
        assert without_zeros(sums) == without_zeros(total(person.added for person in people))
        sums = block.later(level, (KeyIndex(KEYS), g), how)
        for person, user in zip(people, everybody, strict=True):
            person.later(user[level], by_key, how)
        agree(sums)
        assert lists_in(block.purse.field("rest")) == [person.purse for person in people]
        assert lists_in(block.purse.field("tops")) == [person.top for person in people]
        found = rng.permutation(KEYS)[: rng.integers(len(KEYS))].tolist()
        block.find(level, {key: number for number, key in enumerate(found)})
        for person, user in zip(people, everybody, strict=True):
            person.finds += len({*user[level]} & {*found})
        assert lists_in(block.purse.field("finds")) == [person.finds for person in people]
    sums = block.counts(counting)
    for person in people:
        person.is_counted(counting)
    agree(sums)
    for level, how in enumerate(late):
        g = weights_of(rng)
        by_key = dict(zip(KEYS.tolist(), g.tolist(), strict=True))
        sums = block.later(level, (KeyIndex(KEYS), g), how)
        for person, user in zip(people, everybody, strict=True):
            person.later(user[level], by_key, how)
        agree(sums)
    assert lists_in(block.purse.field("rest")) == [person.purse for person in people]
    kept = 0 if counting.reserve is None else counting.reserve.each * counting.reserve.least
    assert min([purse, *lists_in(block.purse.field("rest"))]) >= min(kept, purse)


def test_a_block_that_is_divided_gives_what_one_user_after_another_gives():
    """More positions than are looked at together, so that users' places begin anew."""
    rng = np.random.default_rng(3)
    places = rng.integers(-1, len(KEYS), (60, PIECE_SIZE // 20))
    places[:, -1] = -1
    users = [[positions([row[:-1].tolist()])] for row in places] + [[[-1]]]
    purse, how = 10**9, Spending(10**9, 10**8, (ONE_PART // 2, ONE_PART // 3), 2 * 64**2, 2)
    g = KeyIndex(KEYS), rng.integers(1, 90, len(KEYS))
    together = Block.of([users], purse)
    alone = [Block.of([[user]], purse) for user in users]
    assert together.round_1(0, how) == total(each.round_1(0, how) for each in alone)
    assert together.later(0, g, how) == total(each.later(0, g, how) for each in alone)
    assert lists_in(together.purse.field("rest")) == [
        left for each in alone for left in lists_in(each.purse.field("rest"))
    ]
    assert len(set(lists_in(together.purse.field("rest")))) == 2


def test_who_holds_nothing_pays_nothing_and_who_spent_all_holds_as_before():
    nobody, somebody = [[-1]], [[int(KEYS[3]), -1]]
    how = Spending(4_000, 500, (ONE_PART,), 0, 2)
    block = Block.of([[nobody, somebody]], 4_000)
    g = KeyIndex(KEYS), np.full(len(KEYS), 64)
    assert block.round_1(0, how)[int(KEYS[3])] == isqrt(500 * 98 // 100)
    assert block.later(0, g, how) == {int(KEYS[3]): isqrt(3_500)}
    assert lists_in(block.purse.field("rest")) == [4_000, 0]
    # The next level: the row is there, with the weight 0.
    assert block.round_1(0, how) == {int(KEYS[3]): 0}
    assert block.later(0, g, how) == {}
    assert lists_in(block.purse.field("tops")) == [0, 2]


def test_round_2_takes_off_what_round_1_took_beside_its_own_reserve():
    """Round 1 spends all but 1,000; what round 2 keeps, 100, is known only after it."""
    how = Spending(
        4_000, 9_999, (ONE_PART,), 0, 2, False, Reserve(100, 10, 10), Reserve(10, 10, 10)
    )
    key, block = int(KEYS[3]), Block.of([[[[int(KEYS[3]), -1]]]], 4_000)
    sums = block.round_1(0, how)
    assert sums[key] == isqrt(3_000 * 93 // 100)
    assert sorted(sums.values()) == [isqrt(30), isqrt(30), isqrt(150), sums[key]]
    assert block.later(0, (KeyIndex(KEYS), np.full(len(KEYS), 64)), how) == {key: isqrt(900)}
    assert lists_in(block.purse.field("rest")) == [100]


def test_a_round_that_is_not_the_first_refuses_a_gram_that_round_1_did_not_name():
    """Its weight would depend on who else holds it."""
    g, how = (KeyIndex(KEYS[::2]), np.full(len(KEYS[::2]), 64)), Spending(900, 9)

    def weights(*places):
        return Block.of([[[positions([[*places]])]]], 900).later(0, g, how)

    assert weights(0, 2, 4)
    with pytest.raises(RuntimeError, match="a gram that round 1 did not"):
        weights(0, 1)


@pytest.mark.parametrize(("weight", "is_taken"), [(4_095, True), (4_096, False), (2**23, False)])
def test_weights_whose_squares_could_overflow_are_refused(weight, is_taken):
    g = KeyIndex(KEYS[:2]), np.array([1, weight], dtype=np.int64)
    block = Block.of([[[positions([[0, 1]])]]], 1024)
    if is_taken:
        assert block.later(0, g, Spending(1024, 1))
        return
    with pytest.raises(ValueError, match="4,096 or more"):
        block.later(0, g, Spending(1024, 1))


@given(st.integers(0, 2**38), st.integers(0, 3))
def test_a_purse_is_counted_by_its_part_of_a_full_one(purse, climb):
    how = Spending(2**38 - 7, 0)
    cell = int(how.cells_of_purses(np.array([min(purse, how.full)]), np.array([climb]))[0])
    assert cell == PURSE_PARTS * climb + eighth(min(purse, how.full), how.full)
