"""What devices promise, by experiment: their own coins and reports, from outside.

`answer` (ldp_trie) and `vote` (trie over devices) are asked again and again by a device that holds
one thing and by one that holds another. The event is the one that tells them apart best; bounds are
exact (Clopper-Pearson), and a claim that the event does not come close to would be no audit.
"""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from scipy.stats import beta

from dphh.collecting import vote
from dphh.devices.reports import device
from dphh.devices.reports.device import answer
from dphh.devices.reports.round import Broadcast
from dphh.devices.votes import Ballot
from dphh.privacy.subset_selection import SubsetSelection, subset_selection

#: Of one bound; a test makes two.
FAILS = 1e-9


def between(count: int, trials: int) -> tuple[float, float]:
    low = beta.ppf(FAILS, count, trials - count + 1) if count else 0.0
    high = beta.ppf(1 - FAILS, count + 1, trials - count) if count < trials else 1.0
    return float(low), float(high)


def said(mechanism: SubsetSelection, letters: str) -> Broadcast:
    return Broadcast(
        round="ldp_trie/level 1", level=0, characters=tuple(letters), prefixes=("",), known=(),
        contributions=1, sampling="random", domain=mechanism.domain,
        size=mechanism.size, numerator=mechanism.numerator,
    )  # fmt: skip


def audited(epsilon: float, claimed: float, trials: int) -> tuple[float, float]:
    """Bounds on the epsilon that one report tells of "a" against "b", where it claims so much."""
    letters = "abcdefghij"
    asked = said(subset_selection(len(letters) + 2, epsilon), letters)

    def tells(word: str) -> int:
        """How often the report holds a's value and not b's."""
        reports = [
            set(answer(asked, [[word]], local_epsilon=claimed, contributions=1)[0].tolist())
            for _ in range(trials)
        ]
        return sum(0 in report and 1 not in report for report in reports)

    low, high = between(tells("a"), trials)
    other_low, other_high = between(tells("b"), trials)
    return log(low / other_high), log(high / other_low)


@pytest.mark.parametrize(("epsilon", "trials"), [(0.5, 6_000), (1.5, 1_500)])
def test_a_report_tells_what_it_claims_and_no_more(epsilon: float, trials: int) -> None:
    """The larger epsilon is seen in fewer trials. Both bounds fail as rarely for any number."""
    low, high = audited(epsilon, epsilon, trials)
    assert low <= epsilon, "a report tells more than it claims"
    # What is claimed is told, to less than a millionth.
    assert high >= 0.999999 * epsilon, "a report tells less than it should"
    assert low > 0, "the audit sees nothing"


def test_a_report_of_more_than_is_claimed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    strong = subset_selection(12, 4.0)
    weak = subset_selection(12, 0.5)

    def draws(source, values, mechanism, *rest):
        return device_draws(source, values, SubsetSelection(12, weak.size, numerator), *rest)

    numerator = max(strong.numerator, (9 * 2**64) // 10)
    device_draws = device.draw_subsets
    monkeypatch.setattr(device, "draw_subsets", draws)
    low, _ = audited(0.5, 0.5, 3_000)
    assert low > 0.5


def test_silence_tells_what_a_coin_allows_and_no_more() -> None:
    """A device that holds what is asked is silent with 1 - p; one that holds nothing, always."""
    trials, p = 4_000, 0.6
    ballot = Ballot("run", 1, int(p * 2.0**64), False, ((),))
    silent = sum(vote(ballot, ["a"]).num_rows == 0 for _ in range(trials))
    assert all(vote(ballot, []).num_rows == 0 for _ in range(50))
    low, high = between(silent, trials)
    claimed = log(1 / (1 - p))
    assert log(1 / high) <= claimed <= log(1 / low)


def test_rounds_toss_coins_of_their_own() -> None:
    """Whoever voted in one round votes in the next as often as anybody."""
    trials = 3_000
    ballots = [
        Ballot("run", 1, 2**63, False, ((),)),
        Ballot("run", 2, 2**63, False, (("a",),)),
    ]
    voted = np.array(
        [[vote(ballot, ["a", "b"]).num_rows for ballot in ballots] for _ in range(trials)]
    )
    both = int(voted.all(axis=1).sum())
    low, high = between(both, trials)
    assert low <= 0.25 <= high
