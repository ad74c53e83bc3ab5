"""The process that prices a plan or runs it: the only one that opens private data.

It takes a verb, its options and the name of a corpus in the ledger; no analyst's SQL reaches it. A
run has its own process, so that the gateway survives whatever happens to it.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from dphh.asking.answers import (
    Arguments,
    corpus_name,
    given_content,
    owners_corpus,
    plan_of,
    plan_table,
    queries_table,
)
from dphh.asking.macros import Macro, macros
from dphh.errors import BudgetRefused, DphhError, ElsewhereRefused, UsageError
from dphh.files.stopping import stopping
from dphh.gateway.analysts import OWNER
from dphh.gateway.child import Message, Pipe, serve
from dphh.gateway.service import budgets
from dphh.ledger import Ledger
from dphh.ledger.declared import Groups
from dphh.ledger.wording import usage_phrase
from dphh.plan import Plan
from dphh.public.counted_items import with_public
from dphh.registry import VERBS
from dphh.report.plan_lines import outlook_of, price_sections, run_takes

_PRICING_SECONDS = 60
_PRICING_ADDRESSES = 6 * 2**30


def handle(pipe: Pipe, message: Message, _: pa.Table | None = None) -> None:
    """Answer one message: {ledger, analyst, what, arguments, hold, engine, memory, threads}."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = _answer_message(message)
    except (BudgetRefused, UsageError) as problem:
        # These errors are about the request and its price, which the analyst may know.
        asked = " ".join(map(str, problem.args))  # unescaped: str() would escape file names
        kind = "failed" if _names_a_place(asked, message["ledger"]) else "refused"
        told = {"elsewhere": True} if isinstance(problem, ElsewhereRefused) else {}
        pipe.send({kind: str(problem), **told})
    except DphhError as problem:
        # These errors are about the data or the machine: only the owner may see them.
        pipe.send({"failed": str(problem)})
    except Exception as problem:
        pipe.send({"failed": f"a defect of dphh, {type(problem).__name__}"})
    else:
        pipe.send({}, table)


def _names_a_place(said: str, ledger: str) -> bool:
    """Whether a message names the ledger's path or a corpus's, which only the owner may see. What
    the message means its type tells; this looks for texts that must not leave, whatever it means.
    """
    sources = [account.source for account in Ledger(ledger).accounts()]
    places = [ledger, *(where for source in sources for where in source.where)]
    return any(place in said for place in places)


def _answer_message(message: Message) -> pa.Table:
    what, arguments = message["what"], message["arguments"]
    asker = message["analyst"]
    run_id, token = message["hold"] or (None, None)
    book = Ledger(message["ledger"], None if asker == OWNER else asker, token)
    macro = macros()[what]
    with _limited_resources():
        if asker == OWNER:
            plan = _plan_of_message(macro, arguments, book)
        else:
            declared = book.declared_groups().get(corpus_name(what, arguments), {})
            _refuse_undeclared(arguments.get("by"), (), declared)  # before pricing asks for groups
            plan = _plan_of_message(macro, arguments, book)
            asked = dict(plan.price.parameters)
            _refuse_undeclared(asked.get("by"), asked.get("groups") or (), declared)
            _refuse_counting(plan)
    if macro.spends:
        return plan.run(
            ledger=book,
            run_id=run_id,
            engine=message["engine"],
            memory_limit=message["memory"],
            threads=message["threads"],
        ).table
    if macro.shows_queries:
        # The corpus is left out: only its owner may know where it is and how it is read.
        return queries_table(Plan(plan.price))
    corpus = corpus_name(what, arguments)
    (budget,) = [each for each in budgets(book, asker) if each.label == corpus]
    told = [("yours", str(budget.cap)), ("used", usage_phrase(budget, "your budget"))]
    if plan.corpus is not None:
        outlook = outlook_of(plan.price, plan.corpus, book)
        takes, refusal = run_takes(outlook, "your budget"), outlook.refusal
        told += [] if takes is None else [("this run", takes)]
        told += [] if refusal is None else [("would refuse", refusal)]
    return plan_table([*price_sections(plan.price, plan.corpus), ("ledger", told)])


def _plan_of_message(macro: Macro, arguments: Arguments, book: Ledger) -> Plan:
    assert macro.verb is not None
    corpus = owners_corpus(corpus_name(macro.verb.name, arguments), book, given_content(arguments))
    if corpus is None:
        raise UsageError("corpus: found no such corpus; FROM dphh_ledger() lists them")
    return plan_of(macro.verb, with_public(arguments, corpus, book, files=False), corpus)


def _refuse_undeclared(column: object, groups: object, declared: Groups) -> None:
    """Refuse columns and groups that the owner has not declared: how a run by an undeclared column
    ends would reveal whether the corpus has it. The message depends on the request and on what is
    declared, which analysts may see, and not on the data."""
    if column is None:
        return
    public = declared.get(column) if isinstance(column, str) else None
    if public is None:
        of = "; ".join(f"{by}: {', '.join(values)}" for by, values in sorted(declared.items()))
        raise UsageError(
            f"by: the corpus's owner has declared no groups of {column!r}. Declared are "
            f"{of or 'none'}. Nothing was spent; "
            + ("name a declared column" if of else "leave by and groups out")
            + ", or ask the owner to declare the groups"
        )
    assert isinstance(groups, tuple)
    if unknown := [group for group in groups if group not in public]:
        raise UsageError(
            f"groups: {', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not declared; "
            f"declared are {', '.join(public)}. Nothing was spent"
        )


def _refuse_counting(plan: Plan) -> None:
    """Refuse runs whose failure would reveal the exact number of users."""
    if known := VERBS[plan.verb].assumes_known(plan.price):
        raise UsageError(
            f"{known.option}: {known.why}, which only the corpus's owner may know: the run's "
            f"outcome would reveal it. Nothing was spent; {known.instead}"
        )


@contextmanager
def _limited_resources() -> Iterator[None]:
    """Limit time and memory of pricing. Pricing reads no data, so only an absurd option is slow."""
    import resource

    def too_long(*_: Any) -> None:
        raise UsageError(f"Pricing took over {_PRICING_SECONDS} seconds; give smaller options")

    before = resource.getrlimit(resource.RLIMIT_AS)
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(_PRICING_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (_PRICING_ADDRESSES, before[1]))
    try:
        yield
    except MemoryError:
        raise UsageError("Pricing needs too much memory; give smaller options") from None
    except ArithmeticError:
        raise UsageError(
            "Pricing failed: an option is too large or too small; give a moderate value"
        ) from None
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, before)


if __name__ == "__main__":
    os.umask(0o077)
    with stopping():  # a container that stops signals all its processes
        serve(handle)
