"""The registry of verbs: the one definition of each verb, used by every interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter as Option
from inspect import getdoc, signature
from typing import Any, Generic

import pyarrow as pa

from dphh.columns import (
    GROUP_COUNTS_SCHEMA,
    LDP_TRIE_SCHEMA,
    SCORES_AND_COUNTS_SCHEMA,
    TRIE_AND_COUNTS_SCHEMA,
    sorted_rows,
)
from dphh.counting import CountsLevel
from dphh.engines.host import DrawOnce, Host
from dphh.errors import UsageError
from dphh.mechanisms.counts import price as counts
from dphh.mechanisms.counts.run import count_found_items, counts_draws, counts_levels
from dphh.mechanisms.items import price as items
from dphh.mechanisms.items.run import items_draws, items_levels
from dphh.mechanisms.ldp_trie import price as ldp_trie
from dphh.mechanisms.ldp_trie.run import ldp_trie_draws, ldp_trie_levels
from dphh.mechanisms.ngrams import price as ngrams
from dphh.mechanisms.ngrams.run import ngrams_draws, ngrams_levels
from dphh.mechanisms.running import Draws, LevelDone
from dphh.mechanisms.trie import price as trie
from dphh.mechanisms.trie.run import trie_draws, trie_levels
from dphh.price import Parameter, Price
from dphh.prior import Prior, check_same_tokens
from dphh.reader.corpus import Corpus, as_sequences, replace_corpus
from dphh.wording.options import Options, check_switches


def _checked_corpus(corpus: Corpus, price: Price) -> Corpus:
    """The corpus as a run reads it: with the column of groups, if the run counts users. Refuses a
    corpus whose tokens are not the prior's, and several user columns if the run counts users."""
    if price.prior is not None:
        check_same_tokens("prior", price.prior.reading, corpus.content)
    if price.counting is None and not any(isinstance(x, CountsLevel) for x in price.levels):
        return corpus
    if len(corpus.user) > 1:
        finds = ", or give counts=0 without by and min_users, which only finds"
        alternative = "" if price.counting is None else finds
        raise UsageError(
            f"user: found the columns {', '.join(corpus.user)}; {price.verb} says how many users "
            "hold an item, and a combination of columns is not a user: name the one column of user "
            f"ids{alternative}"
        )
    return replace_corpus(corpus, by=dict(price.parameters).get("by"))


#: The headings above a verb's options: of what it looks for, and of what it may spend.
SEARCH, BUDGET = "The search", "The budget"
_BUDGET_OPTIONS = {
    *("epsilon", "delta", "local_epsilon", "central_epsilon", "user_epsilon"),
    *("spurious", "shares", "sigma", "threshold"),
    *("theta", "p", "users_per_level", "contributions", "pad"),
}


@dataclass(frozen=True)
class Verb(Generic[Options]):
    """One verb, whose options are the keyword parameters of its function `price`."""

    name: str
    price: Callable[Options, Price]
    help: Mapping[str, str]
    #: Runs the levels of a price and yields each in order.
    levels: Callable[[Price, Host, DrawOnce], Iterator[LevelDone]]
    #: The draws of `levels`, and what they ask of an engine.
    draws: Callable[[Price], Draws]
    #: The columns that the verb's releases may have. Its SQL macro always has all of them.
    columns: pa.Schema
    #: Returns the corpus as the verb reads it.
    read: Callable[[Corpus, Price], Corpus] = _checked_corpus

    @cached_property
    def options(self) -> Mapping[str, Option]:
        """The options of the verb with their types and defaults: first those of the search, then
        those of the budget, each in the order of `help`."""
        parameters = signature(self.price, eval_str=True).parameters
        place = {each: (self.heading_of(each) == BUDGET, n) for n, each in enumerate(self.help)}
        return {name: parameters[name] for name in sorted(parameters, key=place.__getitem__)}

    def heading_of(self, option: str) -> str:
        return BUDGET if option in _BUDGET_OPTIONS else SEARCH

    @property
    def summary(self) -> str:
        """What the verb finds, in one line."""
        return (getdoc(self.price) or "").partition("\n")[0]

    @property
    def doc(self) -> str:
        """What the verb does, and each of its options in one line."""
        lines = [getdoc(self.price) or ""]
        for heading in (SEARCH, BUDGET):
            lines += ["", f"{heading}:", ""]
            lines += [f"{name}: {self.help[name]}" for name in self.options
                      if self.heading_of(name) == heading]  # fmt: skip
        return "\n".join(lines)


ITEMS = Verb(
    "items", items.price_items, items.HELP, items_levels, items_draws, SCORES_AND_COUNTS_SCHEMA
)
NGRAMS = Verb(
    "ngrams",
    ngrams.price_ngrams,
    ngrams.HELP,
    ngrams_levels,
    ngrams_draws,
    SCORES_AND_COUNTS_SCHEMA,
)
TRIE = Verb(
    "trie",
    trie.price_trie,
    trie.HELP,
    trie_levels,
    trie_draws,
    TRIE_AND_COUNTS_SCHEMA,
    read=lambda corpus, price: _checked_corpus(as_sequences(corpus, price["unit"]), price),
)
LDP_TRIE = Verb(
    "ldp_trie",
    ldp_trie.price_ldp_trie,
    ldp_trie.HELP,
    ldp_trie_levels,
    ldp_trie_draws,
    LDP_TRIE_SCHEMA,
    read=lambda corpus, _: as_sequences(corpus, 1),
)
COUNTS = Verb(
    "counts", counts.price_counts, counts.HELP, counts_levels, counts_draws, GROUP_COUNTS_SCHEMA
)

VERBS: dict[str, Verb[...]] = {verb.name: verb for verb in (ITEMS, NGRAMS, TRIE, LDP_TRIE, COUNTS)}


def price_again(verb: str, parameters: Mapping[str, Any], prior: Prior | None = None) -> Price:
    """The price that this dphh makes of a price's parameters, as JSON has them."""
    asked = {option: _tuples_for_lists(value) for option, value in parameters.items()}
    check_switches(asked, VERBS[verb].options)
    try:
        return VERBS[verb].price(**asked if prior is None else asked | {"prior": prior})
    except TypeError:
        raise UsageError(
            f"plan: `{verb}` does not have all of the parameters {', '.join(parameters)}; "
            "make the plan again"
        ) from None


def _tuples_for_lists(value: Any) -> Parameter:
    return tuple(map(_tuples_for_lists, value)) if isinstance(value, list) else value


#: The levels that ran, the table of all that they released, and how users were counted.
RunOutcome = tuple[list[LevelDone], pa.Table, dict[str, Any] | None]


def run_levels(price: Price, host: Host, once: DrawOnce, say: Callable[[str], None]) -> RunOutcome:
    """Run the levels of a verb, and count what they found if the price says so."""
    levels, counting, counts = [], price.counting, None
    running = VERBS[price.verb].levels(price, host, once)
    while True:
        try:
            done = next(running)
        except StopIteration as end:
            if end.value is not None:  # what was found was counted with it, and so
                counting, counts = end.value
            break
        number = getattr(done.level, "round", 1)
        which = f"{done.level.level}, round {number}" if number > 1 else done.level.level
        say(f"level {which}: {done.rows.num_rows:,} released")
        levels.append(done)
    table = sorted_rows(pa.concat_tables([done.rows for done in levels]))
    if counting is None:
        return levels, table, None
    say("counting what was found")
    said, counted = count_found_items(table, counting, host, once, counts)
    return levels, sorted_rows(counted), said


def draws_of(price: Price) -> Draws:
    """The draws of `run_levels`, and what they ask of an engine."""
    yield from VERBS[price.verb].draws(price)
    if price.counting is not None:
        yield from counts_draws(price)
