"""The verbs as SQL table macros: one definition, for `dphh.connect()` and for analysts' shells.

A macro sends its arguments, as texts, to a function of this process (in a connection) or to an
address of the gateway (in a shell). Both give back rows with one column more than the macro has,
`refused`: where that is not NULL, the macro raises it as an error. Names, options and defaults
are those of Python, and NULL means that an option was not given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from dphh.columns import COLUMN_TYPES
from dphh.reader.corpus import HELP as CORPUS_HELP
from dphh.registry import VERBS, Verb
from dphh.sql import literal

#: SQL names of the corpus's options where they differ from Python's: `user` is an SQL keyword.
SQL_NAME_OF_OPTION = {
    "user": "user_column",
    "text": "text_column",
    "item": "item_column",
    # `ldp_trie` has an option `keep` of its own.
    "keep": "keep_tokens",
    "drop": "drop_tokens",
    "where": "where_rows",
}


_NUMBERS = "epsilon delta cap_epsilon cap_delta used one_more_epsilon one_more_delta"
#: The types of the columns that macros have beside those of releases. All others are texts.
_TYPES = {
    **dict.fromkeys(_NUMBERS.split(), pa.float64()),
    "runs": pa.int64(),
    "line": pa.int32(),
    "made": pa.timestamp("us"),  # UTC
}


def _columns(names: str) -> pa.Schema:
    return pa.schema([(name, _TYPES.get(name, pa.string())) for name in names.split()])


#: The column `line` numbers the facts of a plan, because rows of SQL have no order.
PLAN_SCHEMA = _columns("section fact value line")
_SQL_TYPE_OF_ARROW_TYPE = {
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
    """The macro `dphh_{name}`. The first of its parameters is positional, the others are named."""

    name: str
    parameters: tuple[str, ...]
    columns: pa.Schema
    summary: str
    #: A macro that `spends` runs this verb; any other prices it. None: the macro does neither.
    verb: Verb[...] | None = None
    spends: bool = False

    @property
    def columns_of_answer(self) -> pa.Schema:
        """The columns that the macro reads: `refused`, and its own."""
        return pa.schema([("refused", pa.string()), *self.columns])

    @property
    def gateway_path(self) -> str:
        """The path of this macro at the gateway. If it ends with a slash, the macro's one argument
        follows it."""
        if self.verb is not None and not self.spends:
            return f"plan/{self.verb.name}"
        return {"release": "releases/", "options": "options/"}.get(self.name, self.name)

    @property
    def example_call(self) -> str:
        first, rest = self.parameters[:1], self.parameters[1:]
        return f"FROM dphh_{self.name}({', '.join([*first, *(['...'] if rest else [])])})"

    @property
    def comment(self) -> str:
        costs = "Spends its price, once" if self.spends else "Free"
        options = f" Its options: FROM dphh_options('{self.verb.name}')." if self.verb else ""
        return f"{self.summary} {costs}. {self.example_call}.{options}"


_MACROS_WITHOUT_VERB = (
    Macro(
        "ledger",
        (),
        _columns("corpus cap_epsilon cap_delta used one_more_epsilon one_more_delta runs"),
        "The cap of each corpus, the used share of it, and what one more run may have.",
    ),
    Macro(
        "corpora",
        (),
        _columns("corpus user_columns content_column groups"),
        "The corpora, their columns, and groups to count within.",
    ),
    Macro(
        "releases",
        (),
        _columns("run_id corpus verb epsilon delta made parameters"),
        "The releases that you have made, with their run ids.",
    ),
    Macro(
        "release",
        ("run_id",),
        pa.schema(COLUMN_TYPES),  # of all verbs; NULL where a release lacks one
        "A release by its run id, which dphh_releases() shows.",
    ),
    Macro(
        "help",
        (),
        _columns("costs call what"),
        "Every macro, what it costs, and how it is called.",
    ),
    Macro(
        "options",
        ("verb",),
        _columns("option default what"),
        "The options of a verb, and the default of each.",
    ),
)


def corpus_options_by_sql_name() -> dict[str, str]:
    """The options of `Corpus` that macros take: for each name in SQL, the name in Python."""
    return {SQL_NAME_OF_OPTION.get(name, name): name for name in (*CORPUS_HELP, "account")}


@cache
def macros(*, with_corpus_options: bool) -> dict[str, Macro]:
    """Every macro, by its name without `dphh_`. `with_corpus_options`: a corpus may also be a table
    or a path, and arguments then name its columns and the run."""
    content = corpus_options_by_sql_name() if with_corpus_options else ()
    named = ("run_id",) if with_corpus_options else ()
    found = []
    for name, verb in VERBS.items():
        asked = ("corpus", *verb.options, *content)
        found += [
            Macro(name, (*asked, *named), verb.columns, verb.summary, verb, spends=True),
            Macro(f"plan_{name}", asked, PLAN_SCHEMA, f"What {name} would cost and find.", verb),
        ]
    return {macro.name: macro for macro in (*found, *_MACROS_WITHOUT_VERB)}


def macro_sql(macro: Macro, source_sql: str, *, temporary: bool = False) -> str:
    """The statements that create a macro and its comment. `source_sql`: what it selects FROM."""
    parameters = ", ".join(
        f'"{name}"' if place == 0 else f'"{name}" := NULL'
        for place, name in enumerate(macro.parameters)
    )
    kind = "TEMP MACRO" if temporary else "MACRO"
    return (
        f"CREATE OR REPLACE {kind} dphh_{macro.name}({parameters}) AS TABLE "
        f"SELECT * EXCLUDE (refused) FROM {source_sql} "
        "WHERE CASE WHEN refused IS NULL THEN true ELSE error(refused) END;\n"
        f"COMMENT ON MACRO TABLE dphh_{macro.name} IS {literal(macro.comment)};\n"
    )


def argument_as_text(name: str) -> str:
    """An SQL expression: the argument as text. Texts and NULL stay as they are, other values become
    JSON."""
    return f"to_json(\"{name}\") ->> '$'"


def column_sql_types(macro: Macro) -> dict[str, str]:
    """The SQL type of each column that a macro reads: `refused` and the macro's own columns."""
    return {each.name: _SQL_TYPE_OF_ARROW_TYPE[each.type] for each in macro.columns_of_answer}
