"""A plan: a price and the corpus to spend it on. Plans are immutable; making one reads no row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter as Option
from inspect import Signature
from typing import TYPE_CHECKING, Any, Generic, Protocol

from dphh.counting import FoundCounts
from dphh.errors import UsageError
from dphh.exports import Exports
from dphh.ledger import Ledger
from dphh.level import Level
from dphh.price import Finds, Parameter, Price, Privacy, privacy_of_corpus
from dphh.privacy.events import Event
from dphh.public.asked import with_public_knowledge
from dphh.reader.corpus import Corpus, corpus_from_json
from dphh.registry import COUNTS, ITEMS, LDP_TRIE, NGRAMS, TRIE, VERBS, Verb, price_again
from dphh.run import run as run_plan
from dphh.wording.lines import printable_json
from dphh.wording.notebook import InNotebooks
from dphh.wording.options import Options, check_utf8, checked_call, python_value

if TYPE_CHECKING:
    from dphh.detection import Detection, Profile


@dataclass(frozen=True)
class Plan(InNotebooks, Exports):
    """What would run, what it costs, and which items it can find."""

    price: Price
    corpus: Corpus | None = None

    @property
    def verb(self) -> str:
        return self.price.verb

    @property
    def method(self) -> str:
        return self.price.method

    @property
    def parameters(self) -> tuple[tuple[str, Parameter], ...]:
        return self.price.parameters

    @property
    def levels(self) -> tuple[Level, ...]:
        return self.price.levels

    @property
    def privacy(self) -> Privacy:
        return privacy_of_corpus(self.price, self.corpus)

    @property
    def finds(self) -> Finds:
        return self.price.finds

    @property
    def events(self) -> tuple[Event, ...]:
        return self.price.events

    @property
    def counting(self) -> FoundCounts | None:
        return self.price.counting

    def __getitem__(self, parameter: str) -> Any:
        return self.price[parameter]

    run = checked_call(run_plan)

    def sql(self) -> str:
        """The queries that a run on DuckDB would execute, level by level. Free: reads nothing."""
        from dphh.as_sql import plan_sql

        return plan_sql(self.price, self.corpus)

    def detection(self, profile: Profile) -> Detection:
        """How many users an item needs to be found if each user holds as much as `profile`
        assumes."""
        from dphh.detection import detection_of

        return detection_of(self.price, profile)

    def to_json(self) -> dict[str, Any]:
        said = {**self.price.to_json(), "privacy": self.privacy.to_json()}
        return {**said, "corpus": self.corpus.to_json() if self.corpus else None}

    def dumps(self) -> str:
        return printable_json(json.dumps(self.to_json(), indent=2, ensure_ascii=False))

    def describe(self, ledger: Ledger | None = None) -> str:
        """The whole plan as text, with what is left in the ledger (default: the caller's own)."""
        from dphh.report.plan_lines import plan_text

        return plan_text(self.price, self.corpus, ledger)

    def __repr__(self) -> str:
        """The part of the plan by which people decide; `describe` has the rest."""
        from dphh.report.plan_lines import plan_text

        return plan_text(self.price, self.corpus, details=False)

    def _rows(self) -> list[tuple[str, ...]]:
        from dphh.report.plan_lines import plan_rows

        return plan_rows(self.price, self.corpus)


def plan_from_json(found: dict[str, Any] | str) -> Plan:
    """The plan that `to_json` or `dumps` wrote. A table in memory is not part of that text: pass it
    again as `run(corpus=...)`.

    A price in a file is not trusted. The plan is made again from its verb, its parameters and its
    corpus, and must equal what the text says.
    """
    try:
        said = json.loads(found if isinstance(found, str) else json.dumps(found))
        said.pop("ledger", None)  # what `--plan --json` says of accounts was so then
        check_utf8({"plan": said})  # JSON can write what UTF-8 cannot
        plan = Plan(price_again(said["verb"], said["parameters"]))
        if (corpus := said["corpus"]) is not None:
            there = corpus_from_json(corpus, account=corpus["account"])
            plan = Plan(plan.price, VERBS[plan.verb].read(there, plan.price))
    except UsageError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UsageError(
            "plan: this dphh cannot make it again: it is not what Plan.dumps() wrote, or another "
            "version wrote it. Make the plan again"
        ) from None
    anew = json.loads(json.dumps(plan.to_json()))
    if wrong := [name for name in {**anew, **said} if anew.get(name) != said.get(name)]:
        raise UsageError(
            f"plan: what it says of {', '.join(wrong)} differs from what this dphh computes for "
            f"`{plan.verb}` with its parameters: it was edited, or written by another version. "
            "Make the plan again"
        )
    is_of_table = plan.corpus is not None and plan.corpus.kind != "path"
    return Plan(plan.price) if is_of_table else plan


def asks_for_counts(options: Mapping[str, Any]) -> bool:
    """Whether these options, and not a default, ask how many users hold what is found."""
    return any(options.get(name) is not None for name in ("counts", "by", "min_users"))


class VerbFunction(Protocol, Generic[Options]):
    """A verb as a function of a corpus (optional until the run) and the options of its price."""

    def __call__(
        self, corpus: Corpus | None = None, *args: Options.args, **options: Options.kwargs
    ) -> Plan: ...


def verb_function(
    verb: Verb[Options], ledger: Ledger | None = None, *, may_read_files: bool = True
) -> VerbFunction[Options]:
    """The verb as a function: it prices the options and stores the corpus as the verb reads it.

    `ledger` has the releases and groups that options name (default: the caller's own);
    `may_read_files`: whether options may name files too.
    """

    def plan(corpus: Corpus | None = None, *args: Options.args, **options: Options.kwargs) -> Plan:
        if corpus is not None and not isinstance(corpus, Corpus):
            raise UsageError(
                f"corpus: found a {type(corpus).__name__}; make it a corpus with "
                "dphh.Corpus(source, user=..., text=...), or item=..., and pass that"
            )
        asked = {name: python_value(name, value) for name, value in options.items()}
        given: Any = with_public_knowledge(asked, corpus, ledger, may_read_files=may_read_files)
        price = verb.price(*args, **given)
        if corpus is None:
            return Plan(price)
        if len(corpus.user) > 1 and price.counting is not None and not asks_for_counts(given):
            price = verb.price(*args, **given | {"counts": 0})  # a combination is no person
        return Plan(price, verb.read(corpus, price))

    first = Option("corpus", Option.POSITIONAL_OR_KEYWORD, default=None, annotation=Corpus | None)
    plan.__name__ = plan.__qualname__ = verb.name
    plan.__doc__ = verb.doc
    plan.__signature__ = Signature(  # type: ignore[attr-defined]
        [first, *verb.options.values()], return_annotation=Plan
    )
    return checked_call(plan)


# The public verbs.
items = verb_function(ITEMS)
ngrams = verb_function(NGRAMS)
trie = verb_function(TRIE)
ldp_trie = verb_function(LDP_TRIE)
counts = verb_function(COUNTS)
