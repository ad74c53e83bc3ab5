"""The verbs as SQL table macros: one definition, for `dphh.connect()` and for analysts' shells.

A macro sends its arguments, as texts, to a source of rows: in a connection to a function of this
process, in a shell to an address of the gateway. Either gives back rows with one column more than
the macro has, `refused`: where that is not NULL, the macro raises it. Names, options and defaults
are those of Python, and NULL means that an option was not given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from dphh.columns import COLUMNS
from dphh.corpora.quoted import literal
from dphh.corpus import HELP as OF_CORPUS
from dphh.registry import VERBS, Verb

#: SQL names of the corpus's options where they differ from Python's: `user` is an SQL keyword.
SQL_NAMES = {
    "user": "user_column",
    "text": "text_column",
    "item": "item_column",
    # `keep` is an option of `ldp_trie` itself.
    "keep": "keep_tokens",
    "drop": "drop_tokens",
    "where": "where_rows",
}


def _columns(names: str, kind: pa.DataType) -> dict[str, pa.DataType]:
    return dict.fromkeys(names.split(), kind)


_TEXT, _NUMBER = pa.string(), pa.float64()
#: A plan. Rows of SQL have no order, so the column `line` numbers them.
PLAN = pa.schema({**_columns("section fact value", _TEXT), "line": pa.int32()})
_BUDGET = "cap_epsilon cap_delta spent_epsilon spent_delta left_epsilon left_delta"
LEDGER = pa.schema({"corpus": _TEXT, **_columns(_BUDGET, _NUMBER), "runs": pa.int64()})
CORPORA = pa.schema(_columns("corpus user_columns content_column groups", _TEXT))
RELEASES = pa.schema(
    {
        **_columns("run_id corpus verb", _TEXT),
        **_columns("epsilon delta", _NUMBER),
        "made": pa.timestamp("us"),  # UTC
        "parameters": _TEXT,
    }
)
#: The columns of all verbs; NULL where the release has none.
RELEASE = pa.schema(COLUMNS)
HELP = pa.schema(_columns("costs call what", _TEXT))
OPTIONS = pa.schema(_columns("option default what", _TEXT))
_TYPES = {
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.string(): "VARCHAR",
    pa.list_(pa.string()): "VARCHAR[]",
    pa.timestamp("us"): "TIMESTAMP",
}


@dataclass(frozen=True)
class Macro:
    """`dphh_{name}`: its parameters, of which the first is positional, and its columns."""

    name: str
    parameters: tuple[str, ...]
    columns: pa.Schema
    summary: str
    #: The verb that it prices or, if it `spends`, runs.
    verb: Verb[...] | None = None
    spends: bool = False

    @property
    def path(self) -> str:
        """The path of this macro at the gateway; the argument follows a path that ends with a
        slash."""
        if self.verb is not None and not self.spends:
            return f"plan/{self.verb.name}"
        return {"release": "releases/", "options": "options/"}.get(self.name, self.name)

    @property
    def call(self) -> str:
        first, rest = self.parameters[:1], self.parameters[1:]
        return f"FROM dphh_{self.name}({', '.join([*first, *(['...'] if rest else [])])})"

    @property
    def comment(self) -> str:
        costs = "Spends its price, once" if self.spends else "Free"
        options = f" Its options: FROM dphh_options('{self.verb.name}')." if self.verb else ""
        return f"{self.summary} {costs}. {self.call}.{options}"


def content_parameters() -> dict[str, str]:
    """The options of `Corpus` that say how the content is read and who pays, by their SQL names."""
    return {SQL_NAMES.get(name, name): name for name in (*OF_CORPUS, "account")}


@cache
def macros(*, of_tables: bool) -> dict[str, Macro]:
    """Every macro, by its name without `dphh_`. `of_tables`: whether a corpus may also be a table
    or a path, whose columns the macro's arguments then name."""
    content = content_parameters() if of_tables else ()
    named = ("run_id",) if of_tables else ()
    found = []
    for name, verb in VERBS.items():
        asked = ("corpus", *verb.options, *content)
        found += [
            Macro(name, (*asked, *named), verb.columns, verb.summary, verb, spends=True),
            Macro(f"plan_{name}", asked, PLAN, f"What {name} would cost and find.", verb),
        ]
    run_id = "A release by its run id, which dphh_releases() shows."
    found += [
        Macro("ledger", (), LEDGER, "What you may spend of each corpus, and what is left."),
        Macro("corpora", (), CORPORA, "The corpora, their columns, and groups to count within."),
        Macro("releases", (), RELEASES, "The releases that you have made, with their run ids."),
        Macro("release", ("run_id",), RELEASE, run_id),
        Macro("help", (), HELP, "Every macro, what it costs, and how it is called."),
        Macro("options", ("verb",), OPTIONS, "The options of a verb, and the default of each."),
    ]
    return {macro.name: macro for macro in found}


def macro_sql(macro: Macro, source: Callable[[Macro], str], *, temporary: bool = False) -> str:
    """The statements that define a macro over a source of rows, and its comment."""
    parameters = ", ".join(
        f'"{name}"' if place == 0 else f'"{name}" := NULL'
        for place, name in enumerate(macro.parameters)
    )
    kind = "TEMP MACRO" if temporary else "MACRO"
    return (
        f"CREATE OR REPLACE {kind} dphh_{macro.name}({parameters}) AS TABLE "
        f"SELECT * EXCLUDE (refused) FROM {source(macro)} "
        "WHERE CASE WHEN refused IS NULL THEN true ELSE error(refused) END;\n"
        f"COMMENT ON MACRO TABLE dphh_{macro.name} IS {literal(macro.comment)};\n"
    )


def argument_as_text(name: str) -> str:
    """SQL that writes an argument as text: a text as it is, all else as JSON, NULL as NULL."""
    return f"to_json(\"{name}\") ->> '$'"


def columns_sql(macro: Macro) -> dict[str, str]:
    """The columns of the rows that a source gives, with their types in SQL."""
    return {"refused": "VARCHAR"} | {each.name: _TYPES[each.type] for each in macro.columns}
