"""The tables that macros and the gateway return, other than a run's release: plans, help, and what
the ledger holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from dphh.asking.macros import PLAN_SCHEMA, Macro, corpus_options_by_sql_name, macros
from dphh.ledger import Ledger
from dphh.reader.corpus import HELP as CORPUS_HELP
from dphh.registry import VERBS
from dphh.release import stored_release
from dphh.report.plan_lines import Section
from dphh.run import HELP as RUN_HELP
from dphh.wording.options import check_choice, shown_default


def answer_without_plan(
    macro: Macro,
    arguments: Mapping[str, str],
    ledger: Ledger,
    *,
    with_corpus_options: bool,
) -> pa.Table:
    """The answer of a macro that neither prices nor runs a plan. `with_corpus_options`: as in
    `macros`."""
    rows: list[tuple[Any, ...]]
    match macro.name:
        case "release":
            return stored_release(ledger, arguments.get("run_id", "")).table
        case "ledger":
            rows = [
                (
                    each.name,
                    *(each.cap.epsilon, each.cap.delta),
                    each.used,
                    *(each.one_more.epsilon, each.one_more.delta),
                    each.runs,
                )
                for each in ledger.accounts()
            ]
        case "corpora":
            rows = [
                (
                    each.name,
                    ", ".join(each.corpus.user),
                    each.corpus.content.column,
                    json.dumps(each.groups) if each.groups else None,
                )
                for each in ledger.accounts()
            ]
        case "releases":
            rows = _rows_of_releases(ledger)
        case "help":
            costs = {True: "its price, once", False: "nothing"}
            every = macros(with_corpus_options=with_corpus_options).values()
            rows = [(costs[each.spends], each.example_call, each.summary) for each in every]
        case _:
            rows = _rows_of_options(arguments.get("verb", ""), with_corpus_options)
    return _table(rows, macro.columns)


def plan_table(sections: Sequence[Section]) -> pa.Table:
    """A plan as a table: each fact is one row, so that SQL can filter the facts."""
    facts: list[tuple[str, str, str, int]] = []
    for section, lines in sections:
        fact = section  # a fact without a name gets the name of the fact above it
        for name, value in lines:
            fact = name or fact
            facts.append((section, fact, value, len(facts) + 1))
    return _table(facts, PLAN_SCHEMA)


def _rows_of_releases(ledger: Ledger) -> list[tuple[Any, ...]]:
    """The settled releases. Their parameters are those of the verb alone: how the corpus is read is
    shown to its owner only."""
    of_corpus = ("user", "content")
    return [
        (
            entry.run_id,
            ", ".join(entry.accounts),
            entry.verb,
            entry.epsilon,
            entry.delta,
            entry.changed.replace(tzinfo=None),
            json.dumps({k: v for k, v in entry.parameters.items() if k not in of_corpus}),
        )
        for entry in ledger.runs()
        if entry.state == "settled"
    ]


def _rows_of_options(verb: str, with_corpus_options: bool) -> list[tuple[Any, ...]]:
    """The options of a verb and, `with_corpus_options`, those of its corpus and its run."""
    check_choice("verb", verb, VERBS)
    rows: list[tuple[Any, ...]] = [
        (
            name,
            "needed" if option.default is option.empty else shown_default(option),
            VERBS[verb].help[name],
        )
        for name, option in VERBS[verb].options.items()
    ]
    if with_corpus_options:
        named = corpus_options_by_sql_name().items()
        rows += [(sql, None, CORPUS_HELP[name]) for sql, name in named if name in CORPUS_HELP]
        rows += [
            ("account", None, "The account in the ledger that pays, of a table or a view."),
            ("run_id", None, RUN_HELP["run_id"]),
        ]
    return rows


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema)
