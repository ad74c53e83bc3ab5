"""Turns a macro's arguments into a plan, and plans and ledgers into the tables that SQL shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import pyarrow as pa

from dphh.asking.macros import (
    LEDGER_SCHEMA,
    PLAN_SCHEMA,
    RELEASES_SCHEMA,
    SQL_NAMES,
    SQL_SCHEMA,
    Macro,
    content_signature,
    macros,
    signature_of,
)
from dphh.corpus import Corpus
from dphh.errors import DphhError, UsageError
from dphh.ledger import Account, Entry, Ledger, Share
from dphh.ledger.entries import Groups
from dphh.plan import Plan, verb_function
from dphh.registry import Verb
from dphh.report.plan_lines import Section

Arguments = dict[str, Any]


def answered(
    what: str,
    arguments: Arguments,
    *,
    accounts: Callable[[], Iterable[Account | Share]],
    releases: Callable[[], tuple[Iterable[Entry], Set[str] | None]],
    release: Callable[[Any], pa.Table],
    verb: Callable[[Macro, Arguments], pa.Table],
    groups: Callable[[], Mapping[str, Groups]],
) -> pa.Table:
    """The table that a macro returns; the callables decide what the caller may see and run."""
    macro = macros()[what]
    if macro.verb is not None:
        return verb(macro, arguments)
    of_the_ledger: dict[str, Callable[[], pa.Table]] = {
        "ledger": lambda: ledger_table(accounts(), groups()),
        "releases": lambda: releases_table(*releases()),
        "release": lambda: release(arguments.get("run_id")),
    }
    return of_the_ledger[what]()


def corpus_name(what: str, arguments: Arguments) -> str:
    name = arguments.get("corpus")
    if not isinstance(name, str) or not name:
        raise UsageError(
            f"corpus: found {name!r}; give the corpus as text, as in dphh_{what}('reviews', ...)"
        )
    return name


def given_content(arguments: Arguments) -> dict[str, Any]:
    """The arguments that say how to read the corpus, as keywords of `Corpus`."""
    python = {sql: name for name, sql in SQL_NAMES.items()}
    return {
        python.get(name, name): arguments[name]
        for name in content_signature()
        if arguments.get(name) is not None
    }


def owners_corpus(name: str, ledger: Ledger, content: dict[str, Any]) -> Corpus | None:
    """The corpus that the ledger knows by this name; its owner has said how it is read."""
    if not any(account.name == name for account in ledger.accounts()):
        return None
    if said := [SQL_NAMES.get(key, key) for key in content]:
        raise UsageError(
            f"{', '.join(said)}: the ledger has the corpus {name!r}, whose owner has declared how "
            "it is read; leave these out"
        )
    return ledger.corpus(name)


def plan_of(verb: Verb[...], arguments: Arguments, corpus: Corpus) -> Plan:
    """The priced plan. Refuses options that SQL passed wrongly, and names them."""
    options = {
        name: tuple(value) if isinstance(value, list) else value
        for name, default in signature_of(verb).items()
        if (value := arguments.get(name, default)) is not None
    }
    required = (each.name for each in verb.options.values() if each.default is each.empty)
    if missing := [repr(name) for name in required if name not in options]:
        raise UsageError(
            f"dphh_{verb.name}: missing {' and '.join(missing)}; pass each option by name, as in "
            "epsilon := 1.0, delta := 1e-8"
        )
    try:
        return verb_function(verb)(corpus, **options)
    except DphhError:
        raise
    except (TypeError, ValueError, ArithmeticError) as problem:
        what = "of another type" if isinstance(problem, TypeError) else "that is out of range"
        raise UsageError(
            f"dphh_{verb.name}: an option has a value {what}; docs/options.md lists the options "
            "and their ranges"
        ) from None


def plan_table(sections: Sequence[Section]) -> pa.Table:
    """A plan with one row a fact, so that SQL can filter it; DuckDB wraps long values itself."""
    facts = []
    for section, lines in sections:
        fact = section  # the name of a fact without one is that of the fact above it
        for name, value in lines:
            fact = name or fact
            facts.append({"section": section, "fact": fact, "value": value})
    return _with_row_numbers(facts, PLAN_SCHEMA)


def _with_row_numbers(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    numbered = [{**row, "line": line} for line, row in enumerate(rows, start=1)]
    return pa.Table.from_pylist(numbered, schema=schema)


def queries_table(plan: Plan) -> pa.Table:
    """The queries of a plan in order, one row each; `Plan.sql` has them in one text."""
    rows = [{"section": each.section, "sql": each.sql} for each in plan.queries()]
    return _with_row_numbers(rows, SQL_SCHEMA)


def ledger_table(accounts: Iterable[Account | Share], groups: Mapping[str, Groups]) -> pa.Table:
    rows = [
        {
            "corpus": account.label,
            "cap_epsilon": account.cap and account.cap.epsilon,
            "cap_delta": account.cap and account.cap.delta,
            "spent_epsilon": account.spent.epsilon,
            "spent_delta": account.spent.delta,
            "left_epsilon": account.left and account.left.epsilon,
            "left_delta": account.left and account.left.delta,
            "runs": account.runs,
            "used": account.used,
            "groups": json.dumps(groups[account.label]) if account.label in groups else None,
        }
        for account in accounts
    ]
    return pa.Table.from_pylist(rows, schema=LEDGER_SCHEMA)


def releases_table(entries: Iterable[Entry], corpora: Set[str] | None = None) -> pa.Table:
    """The settled releases; of the accounts that paid, only those in `corpora` are named."""
    rows = [
        {
            "run_id": entry.run_id,
            "corpus": ", ".join(
                name for name in entry.accounts if corpora is None or name in corpora
            ),
            "verb": entry.verb,
            "epsilon": entry.epsilon,
            "delta": entry.delta,
            "made": entry.changed.replace(tzinfo=None),
            # Only the verb's parameters: how the corpus is read is known to its owner alone.
            "parameters": json.dumps(
                {k: v for k, v in entry.parameters.items() if k not in ("user", "content")}
            ),
        }
        for entry in entries
        if entry.state == "settled"
    ]
    return pa.Table.from_pylist(rows, schema=RELEASES_SCHEMA)
