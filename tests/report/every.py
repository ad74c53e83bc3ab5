"""A release of every verb and option, found and empty, of a tiny corpus and one seed."""

from collections.abc import Callable, Iterator
from functools import cache, partial

import polars as pl

from dphh import Corpus, Plan, Release, counts, items, ldp_trie, ngrams, trie
from dphh.testing import SeededRandomness

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
GROUPS = {"by": "country", "groups": ["DE"]}
#: Every way to count what a run finds.
COUNTED = {
    "": {},
    "counted ": {"counts": 0.3},
    "grouped ": {"counts": 0.3, **GROUPS},
    "at least 5 ": {"counts": 0.3, "min_users": 5},
    "grouped at least 5 ": {"counts": 0.3, "min_users": 5, **GROUPS},
}
#: Two of these are lists whose texts are the same.
GIVEN = [["see"], ["never"], ["see", "you"], ["new york", "city"], ["new", "york city"]]
PRIOR = pl.DataFrame({"item": ["see", "you", "later", "see you"], "count": [9, 9, 4, 3]})
READINGS = {
    "words": {"text": "what"},
    "list": {"text": "list", "as_": "list"},
    "whole": {"item": "what"},
}
NAMES = {0: "no users", 900: "900 users"}


def corpus_of(users: int, **how: str) -> Corpus:
    rows = [
        {"who": who, "what": " ".join(words), "list": words, "country": "DE"}
        for who in range(users)
        for words in (["see", "you later"], ["new york", "city"], ["new", "york city"])[
            : 1 + who % 3
        ]
    ]
    schema = {"who": pl.Int64, "what": pl.String, "list": pl.List(pl.String), "country": pl.String}
    return Corpus(pl.DataFrame(rows, schema), user="who", **(how or READINGS["words"]))


def plans() -> Iterator[tuple[str, Callable[[], Plan]]]:
    """Of nobody, each priced when it is called."""
    words, lists, whole = (corpus_of(0, **how) for how in READINGS.values())
    prior = {"prior": PRIOR, "prior_is_public": True}
    for method in ("auto", "gaussian", "sips", "adaptive"):
        yield f"items {method}", partial(items, words, method=method, **BUDGET)
    yield "items single", partial(items, whole, max_items=1, **BUDGET)
    yield "items of lists", partial(items, lists, **BUDGET)
    for said, how in COUNTED.items():
        yield f"{said}items", partial(items, words, **how, **BUDGET)
        yield f"{said}items with a prior", partial(items, words, **how, **prior, **BUDGET)
        yield f"{said}ngrams", partial(ngrams, words, max_n=3, **how, **BUDGET)
        by_list = partial(ngrams, words, max_n=3, **prior)
        yield f"{said}ngrams with a prior", partial(by_list, **how, **BUDGET)
        yield f"{said}dpne", partial(ngrams, words, max_n=3, method="dpne", **how, **BUDGET)
        domain = {option: value for option, value in how.items() if option != "counts"}
        yield f"{said}domain", partial(items, lists, domain=GIVEN, **domain, **BUDGET)
        if "min_users" not in how:
            yield f"{said}trie", partial(trie, words, max_length=4, **how, **BUDGET)
            yield f"{said}trie of characters", partial(trie, whole, max_length=4, **how, **BUDGET)
    yield "ngrams of lists", partial(ngrams, lists, max_n=2, **BUDGET)
    yield "counts", partial(counts, lists, of=GIVEN, **BUDGET)
    yield "grouped counts", partial(counts, words, of=["see", "you"], **GROUPS, **BUDGET)
    together = {"simultaneous": True, "max_held": 1, "confidence": 0.9}
    yield "counts together", partial(counts, words, of=["see", "you", "new"], **together, **BUDGET)
    for passes in (1, 2):
        asked = {"max_length": 3, "keep": 9, "passes": passes, "known": ["zz"], "pad": True}
        per_level = {"users_per_level": 90, "contributions": 1, "delta": 1e-6}
        yield f"ldp_trie {passes}", partial(ldp_trie, whole, user_epsilon=2.0, **asked, **per_level)


PLANS = dict(plans())


@cache
def plan_of(name: str) -> Plan:
    return PLANS[name]()


@cache
def release_of(users: int, name: str) -> Release:
    """Each is made once for all tests; its ledger is that of the test which asks first."""
    plan = plan_of(name)
    assert plan.corpus is not None
    corpus = corpus_of(users, **READINGS[plan.corpus.content.reading])
    return plan.run(corpus=corpus, engine="polars", randomness=SeededRandomness(1))


EVERY = [(users, name) for users in NAMES for name in PLANS]
