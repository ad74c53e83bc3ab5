"""The device's side: from a broadcast and the device's own words, makes one message.

Words never leave the device; a message is always `contributions` sets of `size` values, whatever
words the device has, so the form and the length of a message disclose nothing.

A device must send one message in its life (or in the period of the guarantee): a second round costs
as much again. The embedding application must remember that the device has answered. If the message
goes to secure aggregation, so that only sums are seen, the plan's central and user epsilon hold; if
it goes to a shuffler, which drops the sender, the shuffled ones hold; otherwise only the local one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dphh.devices.reports.round import Broadcast, coded, numbers
from dphh.errors import UsageError
from dphh.privacy.subset_selection import SubsetSelection
from dphh.udfs.draws.randomness import Randomness, SystemRandomness
from dphh.udfs.draws.subsets import Integers, draw_subsets


def answer(
    said: Broadcast,
    words: Iterable[Sequence[str]],
    *,
    local_epsilon: float,
    contributions: int,
    randomness: Randomness | None = None,
    name: str = "",
) -> list[Integers]:
    """The device's message: `contributions` sets of values, each in ascending order.

    The sets are sorted by their randomised contents, so that their order discloses nothing.

    words: one for each time that the user typed it, as a sequence of characters.
    local_epsilon: the largest epsilon that the device allows for a report; a broadcast that asks
    for more is refused, whoever sent it. contributions: the most reports that the device allows,
    since each is about another of the user's prefixes; a broadcast that asks for more is refused
    too. Both limits are the device's own, never taken from the broadcast. name: for tests only.
    """
    mechanism = SubsetSelection(said.domain, said.size, said.numerator)
    tells = mechanism.epsilon
    if not tells <= local_epsilon:  # no number is not enough either
        raise UsageError(
            f"broadcast: a report would cost epsilon {tells:.6g}, and this device allows "
            f"{local_epsilon:g}: nothing is sent. Broadcast a smaller epsilon, or allow more"
        )
    if not said.contributions <= contributions:
        raise UsageError(
            f"broadcast: it asks for {said.contributions:,} reports, and this device allows "
            f"{contributions:,}: nothing is sent. Broadcast fewer contributions, or allow more"
        )
    if said.values + said.contributions > said.domain:
        raise UsageError(
            'broadcast: one value stands for a prefix and also for "no word", so that a user could '
            "report it twice. No report is sent. Broadcast what the server's `dumps` wrote, "
            "unchanged"
        )
    source = randomness or SystemRandomness()
    held = next_prefixes(said, words)
    values = sample(said, held, source, name)
    keys = _keys_of_names(
        source, [f"{name}\x1f{report}" for report in range(1, said.contributions + 1)]
    )
    reports = draw_subsets(source, values, mechanism, said.round, keys)
    # Sorted by content: in the sample's order, a set's position would disclose something.
    return sorted(reports, key=lambda report: report.tolist())


def next_prefixes(said: Broadcast, words: Iterable[Sequence[str]]) -> dict[int, int]:
    """The values of the user's words in this round, and the number of words of each value.

    Known words, and words with a character outside the set, are left out.
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
    """The values to report: at most `contributions`, then "nothing"; no value twice."""
    values = sorted(held)
    keys = _keys_of_names(randomness, [f"{name}\x1f{value}" for value in values])
    draws = randomness.words(len(values), f"{said.round}/sample", keys)
    rank = [
        (-held[value] if said.sampling == "greedy" else 0, int(draw), value)
        for value, draw in zip(values, draws, strict=True)
    ]
    nothing = [said.nothing_value(report) for report in range(said.contributions)]
    chosen = np.array(nothing, dtype=np.int64)
    kept = [value for _, _, value in sorted(rank)[: said.contributions]]
    chosen[: len(kept)] = kept
    return chosen


def _keys_of_names(randomness: Randomness, names: list[str]) -> object:
    """Keys for a test's randomness; the system's needs none, and so no Arrow."""
    if not randomness.is_test:
        return None
    import pyarrow as pa

    return pa.array(names, pa.string())
