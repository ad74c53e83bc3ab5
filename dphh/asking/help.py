"""`dphh_help()` and `dphh_options(verb)`: the macros of a connection and their options, in SQL."""

from __future__ import annotations

from dphh.as_sql.query_text import literal
from dphh.asking.macros import SQL_NAMES, Macro, content_signature, macro_sql, macros, signature_of
from dphh.corpus import HELP
from dphh.registry import VERBS


def help_sql(temporary: bool = False) -> str:
    """`dphh_help()`: every macro of a connection, how it is called, and what it does; and
    `dphh_options(verb)`."""
    told = []
    for name, macro in macros().items():
        first = next(iter(macro.parameters), "")
        options = ", ".join([first, *(["..."] if len(macro.parameters) > 1 else [])])
        told.append(
            (
                "spends" if macro.spends else "free",
                f"FROM dphh_{name}({options})",
                _summary_of_macro(name, macro),
            )
        )
    told.append(_OPTIONS)
    rows = ", ".join(f"({', '.join(map(literal, row))})" for row in told)
    body = f"SELECT kind, call, what FROM (VALUES {rows}) AS told (kind, call, what)"
    return f"{_options_sql(temporary)}; {macro_sql('dphh_help', '', body, temporary)}"


def _summary_of_macro(name: str, macro: Macro) -> str:
    if macro.verb is None:
        return _LEDGER_MACROS[name]
    if macro.shows_queries:
        return f"the queries that {macro.verb.name} would run"
    return macro.verb.summary if macro.spends else f"what {macro.verb.name} would cost and find"


_LEDGER_MACROS = {
    "ledger": "what is spent and left of each corpus",
    "releases": "the releases that there are, with their run ids",
    "release": "a release by its run id",
}


#: DuckDB checks the names of a macro's arguments itself, and calls none of dphh's functions if one
#: is unknown, so what it says cannot be said better: this is where the names can be looked up.
_OPTIONS = (
    "free",
    "FROM dphh_options('ngrams')",
    "the options of a verb: look here if DuckDB says that a macro 'does not "
    "support the supplied arguments'",
)


def _options_sql(temporary: bool) -> str:
    """`dphh_options(verb)`: what the verb's macros take, and the default of each."""
    python = {sql: name for name, sql in SQL_NAMES.items()}
    rows = [
        (verb.name, name, _shown(default), verb.help[name])
        for verb in VERBS.values()
        for name, default in signature_of(verb).items()
    ]
    said = {name: HELP.get(python.get(name, name), "") for name in content_signature()}
    said["account"] = "The account in the ledger that pays, of a table or a view."
    rows += [(verb, name, None, text) for verb in VERBS for name, text in said.items()]
    again = "A name for the run: the same name gives the same release."
    rows += [(verb, "run_id", None, again) for verb in VERBS]
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
    unknown = f"dphh_options: found no such verb; the verbs are {', '.join(VERBS)}"
    body = (
        f'SELECT option, "default", what FROM (VALUES {values}) '
        'AS told (verb, option, "default", what) '
        f"WHERE CASE WHEN asked IN ({', '.join(map(literal, VERBS))}) THEN told.verb = asked "
        f"ELSE error({literal(unknown)}) END"
    )
    return macro_sql("dphh_options", "asked", body, temporary)


def _shown(default: object) -> str | None:
    return None if default is None else literal(default)
