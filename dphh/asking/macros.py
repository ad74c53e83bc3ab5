"""The verbs as SQL table macros: one definition, for the owner's connections and analysts' shells.

A macro sends its arguments, as texts, to a function of this process (in a connection) or to an
address of the gateway (in an analyst's shell). Both return rows with one column more than the
macro has, `refused`: if that is not NULL, the macro raises it as an error. Names, options and
defaults are those of Python, and NULL means that an option was not given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from dphh.columns import COLUMN_TYPES
from dphh.errors import UsageError
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
    "waits": pa.bool_(),
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
    """The macro `dphh_{name}`. The first parameters are `positional`, and must be given."""

    name: str
    parameters: tuple[str, ...]
    columns: pa.Schema
    summary: str
    #: A macro that `spends` runs this verb; any other prices it. None: the macro does neither.
    verb: Verb[...] | None = None
    spends: bool = False
    positional: int = 1
    #: Whether it is for the data's owner only, and not for a gateway's analysts.
    for_owner: bool = False

    @property
    def columns_of_answer(self) -> pa.Schema:
        """The columns that the macro reads: `refused`, and its own."""
        return pa.schema([("refused", pa.string()), *self.columns])

    def check_given(self, arguments: Mapping[str, str]) -> None:
        """Refuse a call without an argument that must be given."""
        for name in self.parameters[: self.positional]:
            if name not in arguments:
                raise UsageError(f"{name}: is missing; give it, as in {self.example_call}")

    @property
    def gateway_path(self) -> str:
        """The path of this macro at the gateway. If it ends with a slash, the macro's one argument
        follows it."""
        if self.verb is not None and not self.spends:
            return f"plan/{self.verb.name}"
        return {"release": "releases/", "options": "options/"}.get(self.name, self.name)

    @property
    def example_call(self) -> str:
        first, rest = self.parameters[: self.positional], self.parameters[self.positional :]
        return f"FROM dphh_{self.name}({', '.join([*first, *(['...'] if rest else [])])})"

    @property
    def comment(self) -> str:
        costs = "Spends its price, once" if self.spends else "Free"
        options = f" Its options: FROM dphh_options('{self.verb.name}')." if self.verb else ""
        return f"{self.summary} {costs}. {self.example_call}.{options}"


def corpus_options_by_sql_name() -> dict[str, str]:
    """The options of `Corpus` that macros take: for each name in SQL, the name in Python."""
    return {SQL_NAME_OF_OPTION.get(name, name): name for name in (*CORPUS_HELP, "account")}


_LEDGER = _columns("corpus cap_epsilon cap_delta used one_more_epsilon one_more_delta runs")
#: The options that say how a corpus is read, without the one that names who pays.
_READING = tuple(name for name in corpus_options_by_sql_name() if name != "account")
_CORPORA = _columns("corpus user_columns content_column groups")

_MACROS_WITHOUT_VERB = (
    Macro(
        "ledger",
        (),
        _LEDGER,
        "The cap of each corpus, the used share of it, and what one more run may have.",
    ),
    Macro("corpora", (), _CORPORA, "The corpora, their columns, and groups to count within."),
    Macro(
        "add_corpus",
        ("corpus", "source", "epsilon", "delta", "rule", *_READING),
        _LEDGER,
        "Names a table, a view, a path or a glob in the ledger, with a cap.",
        positional=2,
        for_owner=True,
    ),
    Macro(
        "check",
        ("corpus", *corpus_options_by_sql_name()),
        _columns("what verdict found costs"),
        "Whether a run would go through: columns, files, rows without a user, who pays.",
        for_owner=True,
    ),
    Macro(
        "declare_groups",
        ("corpus", "by", "groups"),
        _CORPORA,
        "Declares public values of a column of a corpus, within which users may be counted.",
        positional=3,
        for_owner=True,
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
        "why",
        ("run_id", "phrase"),
        _columns("phrase reason said"),
        "Why a phrase is not in a release.",
        positional=2,
    ),
    Macro(
        "save",
        ("run_id", "folder"),
        _columns("file"),
        "Writes a release to a folder: release.parquet and release.json.",
        positional=2,
        for_owner=True,
    ),
    Macro(
        "verify",
        ("folder", "account", "run_id", "days", "groups"),
        _columns("what found waits"),
        "Whether a folder may leave: an account paid for it, and no row `waits` for an answer.",
        for_owner=True,
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
        _columns("option default_value what"),
        "The options of a verb, and the default of each.",
    ),
)


@cache
def macros() -> dict[str, Macro]:
    """Every macro, by its name without `dphh_`. Those that are not `for_owner` are the same in
    analysts' shells."""
    of_verbs = []
    for name, verb in VERBS.items():
        options = ("corpus", *verb.options, *corpus_options_by_sql_name())
        of_verbs += [
            Macro(name, (*options, "run_id"), verb.columns, verb.summary, verb, spends=True),
            Macro(f"plan_{name}", options, PLAN_SCHEMA, f"What {name} would cost and find.", verb),
        ]
    return {macro.name: macro for macro in (*of_verbs, *_MACROS_WITHOUT_VERB)}


def macro_sql(macro: Macro, source_sql: str, *, temporary: bool = False) -> str:
    """The statements that create a macro and its comment. `source_sql`: what it selects FROM."""
    # All parameters default to NULL, so that dphh and not DuckDB says which are missing.
    parameters = ", ".join(f'"{name}" := NULL' for name in macro.parameters)
    kind = "TEMP MACRO" if temporary else "MACRO"
    # The error is raised below an unnest, because DuckDB evaluates a statement's own conditions
    # before a WHERE of the macro, and they would drop the row that has the refusal.
    return (
        f"CREATE OR REPLACE {kind} dphh_{macro.name}({parameters}) AS TABLE "
        "SELECT * EXCLUDE (refused) FROM (SELECT unnest(CASE WHEN answer.refused IS NULL "
        "THEN [answer] ELSE error(answer.refused) END, recursive := true) "
        f"FROM {source_sql} AS answer);\n"
        f"COMMENT ON MACRO TABLE dphh_{macro.name} IS {literal(macro.comment)};\n"
    )


def argument_as_text(name: str) -> str:
    """An SQL expression: the argument as text. Texts and NULL stay as they are, other values become
    JSON."""
    return f"to_json(\"{name}\") ->> '$'"


def column_sql_types(macro: Macro) -> dict[str, str]:
    """The SQL type of each column that a macro reads: `refused` and the macro's own columns."""
    return {field.name: _SQL_TYPE_OF_ARROW_TYPE[field.type] for field in macro.columns_of_answer}
