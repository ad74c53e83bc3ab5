"""The public verbs. Each prices a run and returns its plan for free; `plan.run()` spends."""

from __future__ import annotations

import string
from collections.abc import Sequence

from dphh.corpus import Corpus, as_sequences
from dphh.devices.reports.round import Sampling
from dphh.errors import UsageError
from dphh.levels import Choice, Mode, Pruning
from dphh.mechanisms.items import plan_items
from dphh.mechanisms.ldp_trie import plan_ldp_trie
from dphh.mechanisms.ngrams import plan_ngrams
from dphh.mechanisms.trie import Accounting, plan_trie
from dphh.plan import Plan


def items(
    corpus: Corpus | None = None,
    *,
    epsilon: float,
    delta: float,
    max_items: int = 100,
    method: str = "gaussian",
) -> Plan:
    """Single items that many users hold (differentially private set union).

    max_items: how many different items one user may count for; about what a typical user holds.
    method: "gaussian", the weighted Gaussian policy; "sips", three rounds of it, each freeing the
    users of what is found already, better where users hold many popular items.
    """
    return plan_items(
        _read_as(corpus), epsilon=epsilon, delta=delta, max_items=max_items, method=method
    )


def ngrams(
    corpus: Corpus | None = None,
    *,
    max_n: int,
    epsilon: float,
    delta: float,
    max_items: int | Sequence[int] = 100,
    spurious: float = 0.01,
    pruning: Pruning = "both",
    decay: float = 1.0,
    shares: Sequence[float] | None = None,
    method: str = "dpne",
) -> Plan:
    """Runs of up to `max_n` tokens that many users hold (DPNE).

    max_items: how many different n-grams of one length a user may count for; one number, or one a
    length. spurious: the share of n-grams, of the number found one length below, that nobody need
    hold. pruning: a longer n-gram is looked at if "both" its ends were found, or on a "single"
    side, its beginning and its last token. decay: each length's noise over that of the length
    below; `shares=` gives each length's share of the budget instead. method: "dpne", or the
    paper's baselines "dpsu-all", "dpsu-even", "dpsu-single".
    """
    return plan_ngrams(
        _read_as(corpus),
        max_n=max_n,
        epsilon=epsilon,
        delta=delta,
        max_items=max_items,
        spurious=spurious,
        pruning=pruning,
        decay=decay,
        shares=shares,
        method=method,
    )


def trie(
    corpus: Corpus | None = None,
    *,
    epsilon: float,
    delta: float,
    max_length: int,
    unit: int = 1,
    choice: Choice = "drawn",
    accounting: Accounting = "path",
    theta: int | None = None,
    p: float | None = None,
    users: int | None = None,
) -> Plan:
    """Sequences, grown level by level from sampled votes (TrieHH).

    A corpus of whole items is read as sequences of `unit` characters; words, characters and lists
    are sequences already. max_length: the most levels, the end of a sequence counted as one.
    choice: how a user of several rows comes to one sequence for the run, "drawn" in proportion to
    local frequency or the "most-frequent". accounting: "path" (tight, both directions; `theta` and
    `p` may be given, else they are chosen), or "paper" (the published theorem; needs `users`, a
    public count).
    """
    return plan_trie(
        _read_as(corpus, unit),
        epsilon=epsilon,
        delta=delta,
        max_length=max_length,
        unit=unit,
        choice=choice,
        accounting=accounting,
        theta=theta,
        p=p,
        users=users,
    )


def ldp_trie(
    corpus: Corpus | None = None,
    *,
    local_epsilon: float,
    delta: float,
    users_per_level: int,
    contributions: int,
    max_length: int,
    keep: int,
    sampling: Sampling = "random",
    passes: int = 1,
    character_set: str | Sequence[str] = string.printable,
    known: Sequence[str | Sequence[str]] = (),
    mode: Mode = "messages",
    pad: bool = False,
) -> Plan:
    """Sequences, grown level by level from locally randomised votes (LDP TrieHH).

    local_epsilon: what one report tells of one contribution; delta: for the central promise, after
    all reports are counted. passes x max_length x users_per_level users are needed, for nobody is
    asked twice; with `pad`, users who hold nothing sit in for those who are wanting. contributions:
    how many reports each of them sends. max_length: levels; sequences of so many characters are
    found whole. keep: how many prefixes go on from a level at most. sampling: which of an over-full
    user's prefixes are reported, "random" ones or, "greedy", those of most of the user's rows.
    passes: tries grown one after the other, each without the words found before. character_set: a
    text of all characters there are, or a list of tokens; a word with any other is left out whole.
    known: words not asked for. mode: "messages" draws every report, "aggregate" only their counts.
    """
    return plan_ldp_trie(
        _read_as(corpus, 1),
        local_epsilon=local_epsilon,
        delta=delta,
        users_per_level=users_per_level,
        contributions=contributions,
        max_length=max_length,
        keep=keep,
        sampling=sampling,
        passes=passes,
        character_set=character_set,
        known=known,
        mode=mode,
        pad=pad,
    )


def _read_as(corpus: object, unit: int | None = None) -> Corpus | None:
    """The corpus, for tries as sequences of units; a path or frame alone does not say its user."""
    if corpus is None:
        return None
    if not isinstance(corpus, Corpus):
        raise UsageError(
            f"corpus: found a {type(corpus).__name__}; say what it means with "
            "dphh.Corpus(source, user=..., text=...) or item=..., and give that"
        )
    return corpus if unit is None else as_sequences(corpus, unit)
