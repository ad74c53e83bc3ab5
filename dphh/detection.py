"""How many users an item needs to be found in text:
`plan.detection(dphh.profile(words_per_user=12))`.

A plan's own number assumes users who hold that one item and nothing else. Real users hold more, and
add less weight to each item: 1 / sqrt(t) with t items, and with more than `max_items` only a random
choice of them counts. A profile states how much a user is assumed to hold. It must be public: from
general knowledge of such texts, or from a similar public text, never from the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dphh.errors import UsageError
from dphh.mechanisms.ngrams.dpne import ASSUMED_FOUND_WORDS, with_assumed_threshold
from dphh.mechanisms.ngrams.levels import PrunedLevel
from dphh.mechanisms.set_union.levels import ReweighedLevel, SetUnionLevel, possible_runs
from dphh.mechanisms.terms import FINDING_PROBABILITY, NO_NUMBER, Ways, users_needed
from dphh.price import Price
from dphh.wording.lines import with_noun
from dphh.wording.options import check_whole, checked_call


@dataclass(frozen=True)
class Profile:
    """How much a user is assumed to hold: distinct words, in a number of texts."""

    words_per_user: tuple[int, ...]
    texts_per_user: int = 1


@dataclass(frozen=True)
class Detection:
    """How many users must hold an n-gram of each length so that it is found with `probability`, for
    each assumed number of words per user."""

    #: (words per user, ((length, users or None where no number of users is enough), ...)).
    scenarios: tuple[tuple[int, tuple[tuple[int, int | None], ...]], ...]
    probability: float
    note: str

    def __repr__(self) -> str:
        lines = [f"found with probability {self.probability:g} when held by at least"]
        for words, by_length in self.scenarios:
            said = ", ".join(
                f"{'no number of' if users is None else f'{users:,}'} users"
                + (f" if {length} words long" if length > 1 else "")
                for length, users in by_length
            )
            lines.append(f"  {said}, of {with_noun(words, 'word')} each")
        return "\n".join([*lines, f"  ({self.note})"])


@checked_call
def profile(words_per_user: int | Sequence[int], texts_per_user: int = 1) -> Profile:
    """State how much a user is assumed to hold, from public knowledge and never measured on the
    corpus. Several numbers of words are several scenarios."""
    several = [words_per_user] if isinstance(words_per_user, int) else list(words_per_user)
    for words in several:
        check_whole("words_per_user", words)
    check_whole("texts_per_user", texts_per_user)
    if not several:
        raise UsageError("words_per_user: found no number; give at least one")
    return Profile(tuple(several), texts_per_user)


def detection_of(price: Price, assumed: Profile) -> Detection:
    """The numbers of users that n-grams need, if users hold as much as is assumed and no part of an
    n-gram is missed.

    That is the worst case: a gram that is not released at one length is pruned at the next, and
    the user's remaining grams then get more weight.
    """
    if price.prior is not None:
        raise UsageError(
            "profile: with a prior, no number of users is known in advance for the prior's words; "
            "leave the prior out to see the numbers of the same plan without it"
        )
    first = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    longer = [level for level in price.levels if isinstance(level, PrunedLevel)]
    if price.verb not in ("items", "ngrams") or {level.level for level in first} != {1}:
        raise UsageError(
            f"profile: found {price.verb} with method={price.method!r}, for which the number of "
            "users is not known in advance; give a plan of `items`, or of `ngrams` with "
            "method='forecast' or 'dpne'"
        )
    lengths = range(1, 2 + len(longer))
    scenarios = tuple(
        (words, tuple((n, _users_needed(n, words, assumed, price)) for n in lengths))
        for words in assumed.words_per_user
    )
    note = "where each of these users holds so many words"
    if price.verb == "ngrams" and not longer and price["max_n"] > 1:
        note += (
            "; six tenths of this number may suffice where two thirds of these words are found in "
            "earlier rounds; method='forecast' promises no number for longer n-grams"
        )
    if longer:
        note += f", all of which are found, and at most {ASSUMED_FOUND_WORDS:,} words are released"
    return Detection(scenarios, float(FINDING_PROBABILITY), note)


def _users_needed(length: int, words: int, assumed: Profile, price: Price) -> int | None:
    first = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    longer = [
        with_assumed_threshold(level) for level in price.levels if isinstance(level, PrunedLevel)
    ]
    # With method="forecast" only the last round's probability is known in advance; where weights
    # follow earlier rounds and users hold other items, only the first round's.
    runs = possible_runs(first)
    if price.method == "forecast":
        runs = [first[-1:]]
    elif words > 1 and any(isinstance(level, ReweighedLevel) for level in first):
        runs = [rounds[:1] for rounds in runs]
    held = [max(1, words - assumed.texts_per_user * shorter) for shorter in range(length)]
    ways: list[Ways] = [runs, *([[level]] for level in longer)]
    users = users_needed(ways[:length], held)
    return None if users == NO_NUMBER else users
