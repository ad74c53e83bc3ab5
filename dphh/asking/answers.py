"""The tables that macros and the gateway answer with, of plans, of the ledger and of help."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from inspect import Parameter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.asking.macros import (
    CORPORA,
    HELP,
    LEDGER,
    OPTIONS,
    PLAN,
    RELEASES,
    Macro,
    content_parameters,
    macros,
)
from dphh.corpus import HELP as OF_CORPUS
from dphh.ledger import Account, Entry, Ledger
from dphh.registry import VERBS
from dphh.release import Release
from dphh.report.plan_lines import Section
from dphh.wording.options import check_choice


def table_of_ledger(
    macro: Macro,
    given: Mapping[str, str],
    ledger: Ledger,
    accounts: Sequence[Account],
    *,
    of_tables: bool,
) -> pa.Table:
    """The answer of a macro without a verb, for one who may spend of these accounts or shares, and
    ask of tables and paths or not."""
    match macro.name:
        case "ledger":
            return _ledger_table(accounts)
        case "corpora":
            return _corpora_table(accounts)
        case "releases":
            return _releases_table(ledger.runs())
        case "release":
            manifest, parquet = ledger.release(given.get("run_id", ""))
            return Release.from_parquet(parquet, manifest).table
        case "help":
            return _help_table(macros(of_tables=of_tables))
    return _options_table(given.get("verb", ""), of_tables)


def plan_table(sections: Sequence[Section]) -> pa.Table:
    """A plan with one row a fact, so that SQL can filter it; DuckDB wraps long values itself."""
    facts: list[tuple[str, str, str, int]] = []
    for section, lines in sections:
        fact = section  # the name of a fact without one is that of the fact above it
        for name, value in lines:
            fact = name or fact
            facts.append((section, fact, value, len(facts) + 1))
    return _table(facts, PLAN)


def _ledger_table(accounts: Iterable[Account]) -> pa.Table:
    rows = [
        (
            each.name,
            *(each.cap.epsilon, each.cap.delta),
            *(each.spent.epsilon, each.spent.delta),
            *(each.left.epsilon, each.left.delta),
            each.runs,
        )
        for each in accounts
    ]
    return _table(rows, LEDGER)


def _corpora_table(accounts: Iterable[Account]) -> pa.Table:
    """What is shown of each corpus to those who may ask about it: its columns, and the groups
    that its owner has declared as public."""
    rows = []
    for each in accounts:
        groups = json.dumps(each.groups) if each.groups else None
        rows.append((each.name, ", ".join(each.user), each.corpus.content.column, groups))
    return _table(rows, CORPORA)


def _releases_table(entries: Iterable[Entry]) -> pa.Table:
    """The settled releases, with the verb's own parameters: how a corpus is read is its owner's to
    show."""
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
    return _table(rows, RELEASES)


def _help_table(macros: Mapping[str, Macro]) -> pa.Table:
    costs = {True: "its price, once", False: "nothing"}
    rows = [(costs[each.spends], each.call, each.summary) for each in macros.values()]
    return _table(rows, HELP)


def _options_table(verb: str, of_tables: bool) -> pa.Table:
    """The options of a verb, and those of a corpus if the macros take them."""
    check_choice("verb", verb, VERBS)
    rows: list[tuple[str, str | None, str]] = [
        (name, _default(parameter), VERBS[verb].help[name])
        for name, parameter in VERBS[verb].options.items()
    ]
    if of_tables:
        named = content_parameters().items()
        rows += [(sql, None, OF_CORPUS[name]) for sql, name in named if name in OF_CORPUS]
        rows += [
            ("account", None, "The account in the ledger that pays, of a table or a view."),
            ("run_id", None, "A name for the run: the same name gives the same release."),
        ]
    return _table(rows, OPTIONS)


def _default(parameter: Parameter) -> str | None:
    if parameter.default is Parameter.empty:
        return "needed"
    return None if parameter.default in (None, "", ()) else str(parameter.default)


def with_columns(table: pa.Table, columns: pa.Schema) -> pa.Table:
    """The table with the columns of a macro; NULL where it has none."""
    found = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in columns
    ]
    return pa.table(found, schema=columns)


def as_parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(values, each.type) for values, each in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)
