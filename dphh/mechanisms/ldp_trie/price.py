"""`ldp_trie`: LDP TrieHH (Sun, Kairouz, Sun, Gascon & Suresh 2024, the system of Gboard).

P_0 = X, every character; H = {}. For i = 1..D: ask N users who were not asked before. Each user
takes those words that are not known (V) and whose first i characters are in P_{i-1}, and their
prefixes one character longer; chooses B of these, with "nothing" for any that are missing; and
reports each by subset selection over Z_i = P_{i-1} x (X and the end) and B values that mean
"nothing", so that no user reports a value twice. P_i: the eta_max values in the most reports. Those
that end are found words, and join H. Each further pass grows a new trie, from other users, without
the words found before.

The plan fixes the set of values before any row is read: level i has values for as many prefixes as
P_{i-1} can have at most. So the form of a report does not depend on any user's data.

Privacy (docs/ldp_trie.md). Unit: an item, one contribution. Locally: every report is epsilon_0-LDP.
Centrally: the sums of a level's N B reports are (epsilon, delta)-DP, for one report and for all B
of a user; levels and passes ask disjoint users, so the run costs as much as one level. The ledger
books the price of replacing all that a user sends. An observer of shuffled messages instead of sums
learns more; the plan states those epsilons too.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, get_args

import numpy as np

from dphh.errors import UsageError
from dphh.mechanisms.ldp_trie.levels import LocalLevel, PrefixSampling
from dphh.mechanisms.ldp_trie.local_reports import (
    EpsilonLimit,
    epsilon_of_sums,
    epsilons_of_shuffled_messages,
    local_epsilon_within,
    randomisers_by_domain,
)
from dphh.mechanisms.terms import FINDING_PROBABILITY, check_budget
from dphh.price import Finds, Parameter, Price, Privacy
from dphh.privacy.events import EpsilonDeltaEvent, LocalEvent
from dphh.privacy.search import least_whole
from dphh.udfs.rules.reports import LevelReports, SubsetSelection
from dphh.wording.options import check_choice, check_whole

HELP = {
    "max_length": "Levels, and characters of a sequence.",
    "keep": "The most prefixes that a level keeps.",
    "sampling": "Which prefixes a user reports: random or greedy.",
    "passes": "How many tries grow, each with words not found yet.",
    "character_set": "All characters; a word with another is left out.",
    "known": "Words not to ask for: a file, one a line.",
    "local_epsilon": "Epsilon of one report, against its receiver.",
    "central_epsilon": "Or: epsilon of one report, against who sees only sums.",
    "user_epsilon": "Or: epsilon of a user, against who sees only sums.",
    "delta": "The delta, against who sees only sums.",
    "users_per_level": "Users asked at a level, each once.",
    "contributions": "Reports that each user sends.",
    "pad": "If there are too few users, add made-up ones.",
}
#: Characters are coded as code points from 1 on. Above this limit begin the surrogates, which no
#: text may have.
MOST_CHARACTERS = 50_000
#: The most values of a level; the server counts the reports of each.
LARGEST_DOMAIN = 10**8
#: The most reports of a level. Bounds hold with a margin for the errors of SciPy's binomials, which
#: grow with the number of reports: with 10^11 reports the errors are a tenth of the margin, with
#: 10^14 ten times the margin.
MOST_REPORTS = 10**11
UNIT = "an item: one of a user's contributions, of which one report is made"
ADJACENCY = (
    "one contribution replaced by another or by nothing; the number of users staying the same"
)


def price_ldp_trie(
    *,
    local_epsilon: float | None = None,
    delta: float,
    users_per_level: int,
    contributions: int,
    max_length: int,
    keep: int,
    sampling: PrefixSampling = "random",
    passes: int = 1,
    character_set: str | Sequence[str] = string.printable,
    known: str | Path | Sequence[str | Sequence[str]] = (),
    pad: bool = False,
    central_epsilon: float | None = None,
    user_epsilon: float | None = None,
) -> Price:
    """Sequences, grown level by level from locally randomised votes.

    This is LDP TrieHH. Give one epsilon: `local_epsilon` of one report, against its receiver; or,
    at `delta` and if only counts are seen, `central_epsilon` of one report or `user_epsilon` of all
    that a user sends, within which the largest local epsilon is used. passes x max_length x
    users_per_level users are needed, since no user is asked twice; with `pad`, made-up users
    without rows are added where users are too few. A user with too many prefixes reports "random"
    ones, or by "greedy" those in most of the user's rows.
    """
    named = {
        "local_epsilon": local_epsilon,
        "central_epsilon": central_epsilon,
        "user_epsilon": user_epsilon,
    }
    if sum(epsilon is not None for epsilon in named.values()) != 1:
        raise UsageError(
            "local_epsilon, central_epsilon, user_epsilon: give exactly one of them; the others "
            "follow from it"
        )
    for name, epsilon in named.items():
        if epsilon is not None:
            check_budget(epsilon, delta, name)
            named[name] = float(epsilon)
    asked, central, of_user, delta = *named.values(), float(delta)
    for name, value, most in (
        ("users_per_level", users_per_level, MOST_REPORTS),
        ("contributions", contributions, 10**6),
        ("max_length", max_length, 1000),
        ("keep", keep, LARGEST_DOMAIN),
        ("passes", passes, 1000),
    ):
        check_whole(name, value, most=most)
    check_choice("sampling", sampling, get_args(PrefixSampling))
    alphabet = _checked_characters(character_set)
    sent = LevelReports(users_per_level, contributions, delta)
    if sent.reports > MOST_REPORTS:
        raise UsageError(
            f"users_per_level, contributions: found {sent.reports:,} reports a level, their "
            f"product; lower one of them, so that the product is at most {MOST_REPORTS:,}"
        )
    prefixes_below = _most_prefixes(len(alphabet), max_length, keep)
    domains = [prefixes * (len(alphabet) + 1) + contributions for prefixes in prefixes_below]
    local_epsilon, chosen = _local_epsilon_and_randomisers(
        frozenset(domains), asked, central, of_user, sent
    )
    levels = [
        LocalLevel(
            level=1 + place % max_length,
            pass_number=1 + place // max_length,
            first_seat=place * users_per_level,
            users=users_per_level,
            contributions=contributions,
            sampling=sampling,
            prefixes=prefixes,
            characters=len(alphabet),
            size=chosen[domain].size,
            numerator=chosen[domain].numerator,
            keep=keep,
        )
        for place, (prefixes, domain) in enumerate(
            list(zip(prefixes_below, domains, strict=True)) * passes
        )
    ]
    one_report, whole_user, one_shuffled, user_shuffled = _costliest_level_epsilons(
        chosen.values(), sent
    )
    return Price(
        verb="ldp_trie",
        method="ldp-triehh",
        parameters=(
            ("local_epsilon", asked),
            ("delta", delta),
            ("users_per_level", users_per_level),
            ("contributions", contributions),
            ("max_length", max_length),
            ("keep", keep),
            ("sampling", sampling),
            ("passes", passes),
            ("character_set", "".join(alphabet) if max(map(len, alphabet)) == 1 else alphabet),
            ("known", _checked_known(known)),
            ("pad", pad),
            ("central_epsilon", central),
            ("user_epsilon", of_user),
        ),
        levels=tuple(levels),
        privacy=Privacy(
            epsilon=local_epsilon,
            delta=delta,
            unit=UNIT,
            adjacency=ADJACENCY,
            theorem=THEOREM,
            caveats=(
                "epsilon holds for one report, against its receiver. Against an observer of the "
                "sums of all reports, central_epsilon, at delta, holds for one report, and "
                f"user_epsilon for all {contributions:,} reports of a user; the ledger books "
                "user_epsilon, since a release is computed from sums only",
                "seeing sums only requires secure aggregation, or a curator trusted with counts. "
                "Against an observer of shuffled messages without senders, shuffled_epsilon holds "
                "for one report and shuffled_user_epsilon for all of a user's, by group privacy",
                "the order in which users are asked is random and secret, and no user is asked "
                "twice",
            ),
            central_epsilon=one_report,
            user_epsilon=whole_user,
            shuffled_epsilon=one_shuffled,
            shuffled_user_epsilon=user_shuffled,
            protects="contribution",
        ),
        finds=_holders_needed(levels, max_length, passes),
        events=(
            EpsilonDeltaEvent(
                whole_user, delta, note="LDP TrieHH, sums; all that one user reports is replaced"
            ),
            LocalEvent(contributions * local_epsilon, note="LDP TrieHH, a whole user's reports"),
        ),
    )


THEOREM = (
    "subset selection is epsilon-LDP (Ye & Barg 2017); sums of its reports are priced by Theorem B "
    "of docs/ldp_trie.md, with proof; both directions"
)


def _costliest_level_epsilons(
    level_randomisers: Iterable[SubsetSelection], sent: LevelReports
) -> tuple[float, float, float, float]:
    """The epsilons of the most expensive level, for one report and for a whole user: first of sums,
    then of shuffled messages."""
    levels = list(level_randomisers)
    shuffled, user_shuffled = epsilons_of_shuffled_messages(levels, sent)
    one_report, whole_user = (
        max(epsilon_of_sums(each, sent, replaced) for each in levels)
        for replaced in (1, sent.contributions)
    )
    # Sums are computed from shuffled messages, so their guarantee holds for sums too.
    return min(one_report, shuffled), min(whole_user, user_shuffled), shuffled, user_shuffled


def _local_epsilon_and_randomisers(
    domains: frozenset[int],
    local_epsilon: float | None,
    central_epsilon: float | None,
    user_epsilon: float | None,
    sent: LevelReports,
) -> tuple[float, dict[int, SubsetSelection]]:
    """The local epsilon, given or the largest that another given epsilon allows, and the randomiser
    of each domain."""
    if local_epsilon is not None:
        return local_epsilon, randomisers_by_domain(domains, local_epsilon, sent)
    if central_epsilon is not None:
        limit = EpsilonLimit(1, central_epsilon)
    else:
        assert user_epsilon is not None
        limit = EpsilonLimit(sent.contributions, user_epsilon)
    local = local_epsilon_within(limit, max(domains), sent)
    return local, randomisers_by_domain(domains, local, sent, limit)


def _most_prefixes(characters: int, max_length: int, keep: int) -> list[int]:
    """For each level, the largest possible number of prefixes of the level below."""
    prefixes, found = characters, []
    for _ in range(max_length):
        domain = prefixes * (characters + 1)
        if domain > LARGEST_DOMAIN:
            raise UsageError(
                f"keep, character_set: {prefixes:,} prefixes with {characters:,} characters make "
                f"{domain:,} values; give a smaller keep or character_set, for at most "
                f"{LARGEST_DOMAIN:,} values"
            )
        found.append(prefixes)
        prefixes = min(keep, prefixes * characters)
    return found


def _checked_characters(character_set: str | Sequence[str]) -> tuple[str, ...]:
    """The characters, sorted, so that the same ones make the same request."""
    alphabet = tuple(character_set)
    if not 1 <= len(alphabet) <= MOST_CHARACTERS or not all(
        isinstance(character, str) and character for character in alphabet
    ):
        raise UsageError(
            f"character_set: give all characters as one text or as a list of tokens, from 1 to "
            f"{MOST_CHARACTERS:,} of them and none empty"
        )
    if len(set(alphabet)) < len(alphabet):
        raise UsageError("character_set: found a character twice; give each once")
    return tuple(sorted(alphabet))


def _checked_known(known: str | Path | Sequence[str | Sequence[str]]) -> tuple[Parameter, ...]:
    """The distinct words, as characters, sorted, so that the same words make the same request."""

    def is_word(word: Any) -> bool:
        is_list = isinstance(word, list | tuple)
        return isinstance(word, str) or (is_list and all(isinstance(each, str) for each in word))

    if isinstance(known, str) or not (isinstance(known, Collection) and all(map(is_word, known))):
        raise UsageError(
            "known: give the words not to ask for as a list, each a text or a list of its "
            "characters"
        )
    return tuple(sorted({tuple(word) for word in known}))


def _holders_needed(levels: Sequence[LocalLevel], max_length: int, passes: int) -> Finds:
    """The smallest number of holders, among all users asked, with which an item is found with
    FINDING_PROBABILITY."""
    one_pass = levels[:max_length]
    everyone = len(levels) * one_pass[0].users

    alike = Counter(replace(level, level=1, first_seat=0) for level in one_pass)

    def finding_probability(holders: int) -> float:
        once = prod(
            _keep_probability(level, holders / everyone) ** count for level, count in alike.items()
        )
        return 1 - (1 - once) ** passes

    wanted = float(FINDING_PROBABILITY)
    if finding_probability(everyone) < wanted:
        raise UsageError(
            f"users_per_level: with {one_pass[0].users:,} users per level, even an item that all "
            f"of them hold is found only with probability {finding_probability(everyone):.2g}; "
            "ask more users, or give a larger local_epsilon"
        )
    return Finds(
        wanted,
        least_whole(lambda holders: finding_probability(holders) >= wanted, 0, everyone),
        note=f"of the {everyone:,} users asked, {one_pass[0].users:,} at each level; this supposes "
        f"a sequence of {max_length} characters that shares no prefix with others, whose holders "
        "have no other sequence, and fewer than `keep` prefixes more frequent than its own",
    )


def _keep_probability(level: LocalLevel, holder_share: float) -> float:
    """The probability that a prefix is kept, if each user holds it with probability
    `holder_share`.

    It must be in more reports than all but `keep` of the values that no user holds.
    """
    # Imported here, not above: loading scipy.stats takes half a second; most plans do not need it.
    from scipy.stats import binom

    p, q = level.mechanism.p, level.mechanism.q
    values = level.keepable_values
    bar = binom.isf(level.keep / values, level.reports, q) if level.keep < values else 0
    # One report of each holder is for the prefix; any other report has it with probability q.
    chance = q + holder_share * (p - q)
    first, last = binom.ppf(1e-14, level.users, chance), binom.isf(1e-14, level.users, chance)
    own = np.arange(first, last + 1)
    others = binom.sf(bar - own, level.reports - level.users, q)
    return float(np.sum(binom.pmf(own, level.users, chance) * others))
