"""What would run on a device: a broadcast and the device's own words in, one message out.

This file needs `round.py`, `errors.py`, of `privacy` `subset_selection.py`, `coin_reports.py` and
`binomial_weights.py`, of `udfs/draws` `subsets.py`, `coin_reports.py` and `randomness.py`, and of
other people's code NumPy alone. Words never leave the device; what leaves it is `contributions`
sets, whatever the device holds. Of subset selection they have `size` values each, so that neither
the form of a message nor its length tells anything. By coins a set's size is random, with one law
for all values; "nothing" has another, and what the two tell is within local_epsilon.

A device must send one message in its life (or in the time that the promise is for): what a round
costs, a second round costs again. Remembering that it has answered is the part of whoever embeds
this. Where the message goes to secure aggregation, and sums alone are seen, the central and the
user's epsilon of the plan hold; where it goes to a shuffler, which drops who sent it, the shuffled
ones; where it goes to anybody else, the local one alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dphh.devices.reports.round import Broadcast, coded, numbers
from dphh.errors import UsageError
from dphh.privacy import coin_reports
from dphh.privacy.subset_selection import SubsetSelection
from dphh.udfs.draws.coin_reports import Integers, draw_reports
from dphh.udfs.draws.randomness import Randomness, SystemRandomness


def answer(
    said: Broadcast,
    words: Iterable[Sequence[str]],
    *,
    local_epsilon: float,
    contributions: int,
    randomness: Randomness | None = None,
    name: str = "",
) -> list[Integers]:
    """The device's message: `contributions` sets of values, each in rising order.

    The sets too are in the order of what they hold, which is randomised, and not of what is held.

    words: one for each time that the user has typed one, as a sequence of characters.
    local_epsilon: what the device allows a report to tell; a broadcast that asks for more is
    refused, whoever sent it. contributions: how many reports it allows, for each tells of another
    of the user's prefixes; a broadcast that asks for more is refused too. Both are what the device
    was built or told to allow, never what the broadcast says. name: for a test's randomness alone.
    """
    mechanism = SubsetSelection(said.domain, said.size, said.numerator)
    tells = coin_reports.local_epsilon(mechanism, said.form)
    if not tells <= local_epsilon:  # no number is not enough either
        raise UsageError(
            f"broadcast: a report would tell epsilon {tells:.6g}, more than the "
            f"{local_epsilon:g} that this device allows: it does not answer"
        )
    if not said.contributions <= contributions:
        raise UsageError(
            f"broadcast: it asks for {said.contributions:,} reports, more than the "
            f"{contributions:,} that this device allows: it does not answer"
        )
    if said.values + said.nothings > said.domain:
        raise UsageError(
            "broadcast: a value means both a prefix and nothing, and a user could report it twice; "
            "this device does not answer"
        )
    source = randomness or SystemRandomness()
    held = next_prefixes(said, words)
    values = sample(said, held, source, name)
    keys = _keys(source, [f"{name}\x1f{report}" for report in range(1, said.contributions + 1)])
    drawn, sizes = draw_reports(source, values, mechanism, said.form, said.round, keys)
    reports = np.split(drawn, np.cumsum(sizes)[:-1])
    # In the order of what they hold: in that of the sample, a set's place would tell of the others.
    return sorted(reports, key=lambda report: report.tolist())


def next_prefixes(said: Broadcast, words: Iterable[Sequence[str]]) -> dict[int, int]:
    """The values that the user's words stand for in this round, and how many words each has.

    A word with a character outside the set is left out whole; so is a known one.
    """
    number = numbers(said.characters)
    place = {prefix: i * (len(number) + 1) for i, prefix in enumerate(said.prefixes)}
    known = set(said.known)
    held: dict[int, int] = {}
    for tokens in words:
        word = coded(tokens, number)
        first = None if word is None or word in known else place.get(word[: said.level])
        if word is None or first is None:
            continue
        ends = len(word) == said.level
        value = first + (len(number) if ends else ord(word[said.level]) - 1)
        held[value] = held.get(value, 0) + 1
    return held


def sample(said: Broadcast, held: dict[int, int], randomness: Randomness, name: str) -> Integers:
    """So many of the values as may be reported, filled up with "nothing": no value twice."""
    values = sorted(held)
    keys = _keys(randomness, [f"{name}\x1f{value}" for value in values])
    lots = randomness.words(len(values), f"{said.round}/sample", keys)
    rank = [
        (-held[value] if said.sampling == "greedy" else 0, int(lot), value)
        for value, lot in zip(values, lots, strict=True)
    ]
    nothing = [said.nothing(report) for report in range(said.contributions)]
    chosen = np.array(nothing, dtype=np.int64)
    kept = [value for _, _, value in sorted(rank)[: said.contributions]]
    chosen[: len(kept)] = kept
    return chosen


def _keys(randomness: Randomness, names: list[str]) -> object:
    """Names for a test's randomness; the system's takes none, and needs no Arrow."""
    if not randomness.is_test:
        return None
    import pyarrow as pa

    return pa.array(names, pa.string())
