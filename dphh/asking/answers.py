"""The tables that macros and the gateway return, other than a run's release: plans, help, and lists
from the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from inspect import Parameter
from typing import Any

import pyarrow as pa

from dphh.asking.macros import PLAN_SCHEMA, Macro, corpus_options_by_sql_name, macros
from dphh.asking.parsed import typed_value
from dphh.checking import Finding
from dphh.gate.verifying import WAITS, verify
from dphh.ledger import Account, Ledger
from dphh.ledger.paying import label_of
from dphh.reader.corpus import CORPUS_OPTIONS
from dphh.reader.corpus import HELP as CORPUS_HELP
from dphh.registry import VERBS
from dphh.release import MANIFEST, TABLE, stored_release
from dphh.report.plan_lines import Section
from dphh.run import HELP as RUN_HELP
from dphh.wording.options import check_choice, shown_default


def answer_without_plan(macro: Macro, arguments: Mapping[str, Any], ledger: Ledger) -> pa.Table:
    """The answer of a macro that neither prices nor runs a plan. An analyst's ledger has only the
    runs and shares of that analyst."""
    rows: Sequence[tuple[Any, ...]]
    match macro.name:
        case "release":
            return stored_release(ledger, arguments["run_id"]).table
        case "why":
            phrase = arguments["phrase"]
            tokens = typed_value("phrase", Sequence[str], phrase) if phrase[:2] == '["' else phrase
            why = stored_release(ledger, arguments["run_id"]).why(tokens)
            rows = [(phrase, why.reason, why.said)]
        case "save":
            folder = arguments["folder"]
            saved = stored_release(ledger, arguments["run_id"]).save(folder)
            rows = [(str(saved / name),) for name in (TABLE, MANIFEST)]
        case "verify":
            lines = verify(**arguments, ledger=ledger)
            rows = [(*line, line[0] in WAITS) for line in lines]
        case "ledger":
            return ledger_table(macro, ledger.accounts())
        case "corpora":
            return _corpora_table(macro, ledger.accounts())
        case "declare_groups":
            groups = typed_value("groups", Sequence[str], arguments["groups"])
            account = arguments["corpus"]
            ledger.declare_groups(account, arguments["by"], groups)
            return _corpora_table(macro, ledger.accounts(account))
        case "releases":
            rows = _rows_of_releases(ledger)
        case "help":
            costs = {True: "its price, once", False: "nothing"}
            shown = [each for each in macros().values() if not (each.for_owner and ledger.analyst)]
            rows = [(costs[each.spends], each.example_call, each.summary) for each in shown]
        case _:
            rows = _rows_of_options(arguments["verb"], for_owner=ledger.analyst is None)
    return _table(rows, macro.columns)


def check_table(macro: Macro, findings: Iterable[Finding]) -> pa.Table:
    rows = [(finding.what, finding.verdict, finding.found, finding.costs) for finding in findings]
    return _table(rows, macro.columns)


def ledger_table(macro: Macro, accounts: Sequence[Account]) -> pa.Table:
    """A row for each account: its cap, what is used of it, and what one more run may have."""
    rows = [
        (
            account.name,
            *(account.cap.epsilon, account.cap.delta),
            account.used,
            *(account.one_more.epsilon, account.one_more.delta),
            account.runs,
        )
        for account in accounts
    ]
    return _table(rows, macro.columns)


def _corpora_table(macro: Macro, accounts: Sequence[Account]) -> pa.Table:
    rows = [
        (
            account.name,
            ", ".join(account.corpus.user),
            account.corpus.content.column,
            json.dumps(account.groups) if account.groups else None,
        )
        for account in accounts
    ]
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
    """A row for each settled run, with the verb's parameters only: those that say how the corpus is
    read are for its owner."""
    of_corpus = ("user", "content")
    return [
        (
            entry.run_id,
            ", ".join(entry.accounts) or label_of(entry.corpus),
            entry.verb,
            entry.epsilon,
            entry.delta,
            entry.changed.replace(tzinfo=None),
            json.dumps({k: v for k, v in entry.parameters.items() if k not in of_corpus}),
        )
        for entry in ledger.runs()
        if entry.state == "settled"
    ]


def _rows_of_options(verb: str, *, for_owner: bool) -> list[tuple[Any, ...]]:
    """The options of a verb and, for an owner, those of its corpus and its run."""
    check_choice("verb", verb, VERBS)
    help_of_verb = VERBS[verb].help
    rows = [
        _row_of_option(name, name, option, help_of_verb)
        for name, option in VERBS[verb].options.items()
    ]
    if for_owner:
        rows += [
            _row_of_option(sql, name, CORPUS_OPTIONS[name], CORPUS_HELP)
            for sql, name in corpus_options_by_sql_name().items()
            if name in CORPUS_HELP
        ]
        rows += [
            ("account", None, "The account in the ledger that pays, of a table or a view."),
            ("run_id", None, RUN_HELP["run_id"]),
        ]
    return rows


def _row_of_option(
    sql_name: str, name: str, option: Parameter, help_lines: Mapping[str, str]
) -> tuple[Any, ...]:
    needed = option.default is option.empty
    return sql_name, "needed" if needed else shown_default(option), help_lines[name]


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    records = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(records, schema)
