"""The tables that macros and the gateway return, other than a run's release: plans, help, and what
the ledger holds."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.asking.macros import (
    CORPORA_SCHEMA,
    HELP_SCHEMA,
    LEDGER_SCHEMA,
    OPTIONS_SCHEMA,
    PLAN_SCHEMA,
    RELEASES_SCHEMA,
    Macro,
    corpus_options_by_sql_name,
    macros,
)
from dphh.ledger import Account, Entry, Ledger
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
    match macro.name:
        case "ledger":
            return _ledger_table(ledger.accounts())
        case "corpora":
            return _corpora_table(ledger.accounts())
        case "releases":
            return _releases_table(ledger.runs())
        case "release":
            return stored_release(ledger, arguments.get("run_id", "")).table
        case "help":
            costs = {True: "its price, once", False: "nothing"}
            every = macros(with_corpus_options=with_corpus_options).values()
            rows = [(costs[each.spends], each.example_call, each.summary) for each in every]
            return _table(rows, HELP_SCHEMA)
    return _options_table(arguments.get("verb", ""), with_corpus_options)


def plan_table(sections: Sequence[Section]) -> pa.Table:
    """A plan as a table: each fact is one row, so that SQL can filter the facts."""
    facts: list[tuple[str, str, str, int]] = []
    for section, lines in sections:
        fact = section  # a fact without a name gets the name of the fact above it
        for name, value in lines:
            fact = name or fact
            facts.append((section, fact, value, len(facts) + 1))
    return _table(facts, PLAN_SCHEMA)


def _ledger_table(accounts: Iterable[Account]) -> pa.Table:
    rows = [
        (
            each.name,
            *(each.cap.epsilon, each.cap.delta),
            each.used,
            *(each.one_more.epsilon, each.one_more.delta),
            each.runs,
        )
        for each in accounts
    ]
    return _table(rows, LEDGER_SCHEMA)


def _corpora_table(accounts: Iterable[Account]) -> pa.Table:
    """A row for each corpus: its columns, and the groups that its owner has declared as public."""
    rows = []
    for each in accounts:
        groups = json.dumps(each.groups) if each.groups else None
        rows.append((each.name, ", ".join(each.corpus.user), each.corpus.content.column, groups))
    return _table(rows, CORPORA_SCHEMA)


def _releases_table(entries: Iterable[Entry]) -> pa.Table:
    """The settled releases. Their parameters are those of the verb alone: how the corpus is read is
    shown to its owner only."""
    of_corpus = ("user", "content")
    rows = [
        (
            entry.run_id,
            ", ".join(entry.accounts),
            entry.verb,
            entry.epsilon,
            entry.delta,
            entry.changed.replace(tzinfo=None),
            json.dumps({k: v for k, v in entry.parameters.items() if k not in of_corpus}),
        )
        for entry in entries
        if entry.state == "settled"
    ]
    return _table(rows, RELEASES_SCHEMA)


def _options_table(verb: str, with_corpus_options: bool) -> pa.Table:
    """The options of a verb and, `with_corpus_options`, those of its corpus and its run."""
    check_choice("verb", verb, VERBS)
    rows: list[tuple[str, str | None, str]] = [
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
    return _table(rows, OPTIONS_SCHEMA)


def as_parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema)
