"""A user of the forecast ladder, as docs/ngrams.md has it, in plain Python and by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from math import isqrt
from typing import Any


@dataclass
class Person:
    """Spends a purse as docs/ngrams.md says, and adds up the squares of all that is added."""

    purse: int
    top: int = 0
    #: How many finds the user holds, and what is kept for counting them.
    finds: int = 0
    squares: int = 0
    #: The most that the squares may be of what is added to counts, and the finds held.
    counted: tuple[int, ...] = ()
    #: What the last round added, by key.
    added: dict[int, int] = field(default_factory=dict)

    def _adds(self, added: dict[int, int], spent: int) -> None:
        assert 0 <= spent <= self.purse
        assert sum(x * x for x in added.values()) <= spent
        self.added = added
        self.squares += sum(x * x for x in added.values())

    def round_1(self, keys: Sequence[int], how: Any) -> None:
        held = {key for key in keys if key >= 0}
        if not held:
            self.added = {}
            return
        further = longer(keys, len(how.parts) - 1)
        free = self.free(how.reserve, len(held), further)
        spent, of_grams = min(how.first, free), 98 if how.reserve is None else 93
        each, counting = isqrt(spent * of_grams // (100 * len(held))), isqrt(spent // 100)
        sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24] + [2**power for power in range(5, 15)]
        bin_of_size = sum(size <= len(held) for size in sizes) - 1
        cell = 8 * climbs(keys, len(how.parts) - 1) + eighth(free, how.full)
        added = {**dict.fromkeys(held, each), -1 - bin_of_size: counting,
                 -1 - len(sizes) - cell: counting}  # fmt: skip
        if how.reserve is not None:
            expected = max(1, self.expected(how.reserve, len(held), further))
            after = len(sizes) + 8 * len(how.parts) + sum(size <= expected for size in sizes) - 1
            added[-1 - after] = isqrt(spent * 5 // 100)
        self._adds(added, spent)

    def later(self, keys: Sequence[int], g: Mapping[int, int], how: Any) -> None:
        """Also takes away what round 1 took, which a late round did not have."""
        held = {key for key in keys if key >= 0}
        if held:
            self.top = max(self.top, how.level)
        further = 0
        if how.late:
            climb = max(self.top - how.level, 0)
        else:
            most = len(how.parts) - 1
            climb, further = climbs(keys, most), longer(keys, most)
            free = self.free(how.reserve, len(held), further)
            self.purse -= min(how.first, free) if held else 0
        square = sum(g[key] ** 2 for key in held)
        kept = how.later_reserve or how.reserve
        free = self.free(kept, sum(g[key] > 0 for key in held), further)
        spent = free * how.parts[climb] // 2**15 if square else 0
        if how.saturation:
            spent = spent * min(square, how.saturation) // how.saturation
        norm = isqrt(max(square - 1, 0)) + 1
        self._adds({key: isqrt(spent) * g[key] // norm for key in held}, spent)
        self.purse -= spent

    def is_counted(self, how: Any) -> None:
        self.added = {}
        if self.top == 0:
            return
        free = self.free(how.reserve, 0, 0)
        spent = min(how.first, free)
        cell = 8 * max(self.top - 2, 0) + eighth(free, how.full)
        self._adds({-1 - cell: isqrt(spent)}, spent)
        self.purse -= spent

    def expected(self, kept: Any, undecided: int, further: int) -> int:
        """Twentieths of what is held, rounded down."""
        held = kept.found * self.finds + kept.undecided * undecided + kept.longer * further
        return int(held // 20)

    def free(self, kept: Any, undecided: int, further: int) -> int:
        """What may be spent beside what is kept for counts."""
        if kept is None:
            return self.purse
        expected = self.expected(kept, undecided, further)
        return max(0, self.purse - kept.each * min(max(expected, kept.least), kept.most))

    def is_counted_for(self, keys: Sequence[int], how: Any, of_grids: Fraction) -> None:
        """Adds to the counts of these finds, by a cap: what is left of the purse on their grid,
        of which a square is `of_grids` of the purse's."""
        g, users, cap = how.unit, min(how.max_items, how.keys), int(self.purse * of_grids)
        loss, w = isqrt(users * g * g), g
        while len(keys) * w * w + (-(loss * (w - g) // g)) ** 2 > cap:
            w -= 1
        self.counted, self.added = (cap, *sorted(keys)), dict.fromkeys(keys, w)
        if w < g:
            self.added[how.keys] = -(loss * (w - g) // g)
        assert sum(x * x for x in self.added.values()) <= cap


def runs_of(keys: Sequence[int]) -> list[int]:
    return [len([*run]) for is_gram, run in groupby(keys, lambda key: key >= 0) if is_gram]


def climbs(keys: Sequence[int], most: int) -> int:
    return min(max([run - 1 for run in runs_of(keys)], default=0), most)


def longer(keys: Sequence[int], most: int) -> int:
    """How many grams of the next `most` levels may be there."""
    return sum(min(place, most) for run in runs_of(keys) for place in range(run))


def eighth(purse: int, whole: int) -> int:
    return min(purse * 8 // max(whole, 1), 7)
