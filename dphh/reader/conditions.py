"""What callers write in a language of DuckDB's, checked before anything is paid: the condition in
SQL that chooses rows, and regular expressions."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dphh.errors import Notice, UsageError, warn
from dphh.sql import identifier
from dphh.wording.options import shown

if TYPE_CHECKING:
    import duckdb  # not at run time: a corpus without a condition needs no DuckDB

#: `since` and `until`: "COLUMN=VALUE", or a column and a date or datetime.
Bound = str | tuple[str, dt.date | str]

# `where="country = 'DE'"` leaves rows out. Each row is kept or left out by itself, so what one user
# adds depends on that user's rows alone, and the promise stays. Hence there is nothing in a
# condition but columns, constants, comparisons and listed functions of one row: no subquery, no
# aggregate, no window, no chance, no clock, no setting. A row for which the condition fails to
# compute is left out.

_MOST_CONDITION_CHARACTERS = 10_000
_ALLOWED_EXPRESSIONS = {
    "BETWEEN", "CASE", "CAST", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION",
    "OPERATOR", "TYPE",
}  # fmt: skip
_ALLOWED_OPERATORS = {
    "ARRAY_EXTRACT", "ARRAY_SLICE", "COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_COALESCE",
    "OPERATOR_IS_NOT_NULL", "OPERATOR_IS_NULL", "OPERATOR_NOT",
}  # fmt: skip
#: The functions that a condition may call: their value depends on their arguments alone.
_ALLOWED_FUNCTIONS = """
    + - * / // % ~~ !~~ ~~* !~~* ~~~ ^@ || abs ceil ceiling floor round sign trunc
    contains ends_with left length len lower lcase ltrim nullif ifnull prefix regexp_extract
    regexp_full_match regexp_matches right rtrim split_part starts_with strip_accents
    strlen strpos substr substring suffix trim ucase upper
    date_diff date_part date_sub date_trunc datediff datepart day dayofweek dayofyear epoch
    epoch_ms hour isodow make_date minute month quarter second strftime strptime try_strptime
    to_days to_hours to_minutes to_months to_seconds to_weeks to_years week weekday year
    list_contains list_has list_has_all list_has_any list_value list_position
"""
#: The fields that DuckDB's parsed `SELECT 1 FROM corpus WHERE ...` may have set.
_ALLOWED_FIELDS_OF_SELECT = {
    "type", "select_list", "cte_map", "aggregate_handling", "where_clause", "from_table",
    "query_location",
}  # fmt: skip


class Condition(NamedTuple):
    """A checked condition as DuckDB writes it, and the columns that it reads."""

    sql: str
    columns: tuple[str, ...]


def combined_condition(
    where: object = None, since: object = None, until: object = None
) -> str | None:
    """`where`, `since` and `until` as one condition; None if all are None."""
    said = []
    bounds: dict[str, str] = {}
    if where is not None:
        if not isinstance(where, str):
            raise UsageError(
                f"where: found {shown(where)}; give a condition in SQL, as a text (or, "
                "where the corpus is a frame's `.dphh`, one expression of Polars)"
            )
        checked_condition(where)
        said.append(where.strip())
    for option, value, compares in (("since", since, ">="), ("until", until, "<")):
        if value is None:
            continue
        column, bound = _column_and_bound(option, value)
        if column in bounds and _is_no_time(bounds[column], bound):
            raise UsageError(
                f"until: found {bound}, and since begins at {bounds[column]}, so that no row "
                "counts; give a later one"
            )
        bounds[column] = bound
        quoted = column.replace('"', '""'), bound.replace("'", "''")
        said.append(f"\"{quoted[0]}\" {compares} '{quoted[1]}'")
    return joined_by_and(*said)


def _column_and_bound(option: str, value: object) -> tuple[str, str]:
    """The column and the first value of `since`, or of `until`, as a condition writes them."""
    match value:
        case (str(column), dt.date() as moment):
            if isinstance(moment, dt.datetime) and moment.tzinfo is not None:
                # Engines compare times with a zone as times of UTC.
                bound = f"{moment.astimezone(dt.UTC).replace(tzinfo=None)}+00"
            else:  # a text of a day stands before that of its midnight, so midnight is the day
                bound = str(moment).removesuffix(" 00:00:00")
            column = column.strip()
        case (str(column), str(bound)):
            column, bound = column.strip(), bound.strip()
        case str():
            column, bound = (each.strip() for each in (*value.split("=", 1), "")[:2])
            column = "" if column.endswith((">", "<", "!")) else column
        case _:
            column, bound = "", ""
    if not (column and bound):
        raise UsageError(
            f"{option}: found {value!r}; give COLUMN=VALUE, such as {option}='day=2026-01-31', or "
            "in Python a column and a date: ('day', date(2026, 1, 31))"
        )
    if _YEAR_LAST.match(bound):
        raise UsageError(
            f"{option}: found {bound!r}, whose year is not first, so that it does not "
            f"compare as a day does; write it as {option}='{column}=2026-01-31'. Where the "
            "column is a text that writes days so, give instead the condition (where) "
            f"try_strptime({identifier(column)}, '%d.%m.%Y') >= DATE '2026-01-31'"
        )
    return column, bound


def _is_no_time(since: str, until: str) -> bool:
    """Whether nothing lies between two days, weeks or months, as where both are swapped. It would
    be paid for."""
    month = len("2026-11")
    days = [f"{each}-01" if len(each) == month else each for each in (since, until)]
    try:
        first, end = map(dt.datetime.fromisoformat, days)
        return first >= end
    except (ValueError, TypeError):  # no days; or one with a zone, and one without
        return False


#: Matches a day that is written otherwise than its column compares: 31.01.2026, 1/31/26.
_YEAR_LAST = re.compile(r"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d{2})\b")


def joined_by_and(*conditions: str | None) -> str | None:
    """The given conditions, joined by AND; None if all are None. A line ends after each condition,
    so that a comment at its end does not go on."""
    found = [each for each in conditions if each is not None]
    return found[0] if len(found) == 1 else " AND ".join(f"({each}\n)" for each in found) or None


#: Matches what `since` or `until` became, joined to others.
_SINCE_OR_UNTIL = re.compile(r"""\("((?:[^"\n]|"")+)" (>=|<) '((?:[^'\n]|'')*)'(?:\n\)|$)""")


def rows_in_words(where: str) -> str:
    """The condition on one line, with `since` and `until` in words: (day from 2026-11-01)."""

    def bound_in_words(found: re.Match[str]) -> str:
        compares = "from" if found[2] == ">=" else "before"
        column, bound = found[1].replace('""', '"'), found[3].replace("''", "'")
        return f"({column} {compares} {bound})"

    alone = _SINCE_OR_UNTIL.fullmatch(f"({where}")
    said = bound_in_words(alone) if alone else _SINCE_OR_UNTIL.sub(bound_in_words, where)
    return " ".join(said.split()).replace(" )", ")")


@lru_cache(maxsize=256)
def checked_condition(where: str) -> Condition:
    """The condition as SQL that DuckDB writes from its parsed tree, after a check of every node."""
    import duckdb

    if len(where) > _MOST_CONDITION_CHARACTERS:
        raise UsageError(
            f"where: found {len(where):,} characters; give at most {_MOST_CONDITION_CHARACTERS:,}"
        )
    with duckdb.connect() as con:
        tree, written = _parse_and_check(con, where)
        # DuckDB may parse what it wrote in another way. That text is run, so it is checked too.
        again, _ = _parse_and_check(con, written)
    columns = dict.fromkeys(_columns_in(tree))
    if tuple(columns) != tuple(dict.fromkeys(_columns_in(again))):
        raise _condition_error("a name that DuckDB does not read as it writes it")
    if not columns:
        raise UsageError(
            "where: the condition names no column; name one, such as where=\"country = 'DE'\""
        )
    return Condition(f"try({written})", tuple(columns))


def _parse_and_check(con: duckdb.DuckDBPyConnection, where: str) -> tuple[dict[str, Any], str]:
    """The condition's tree, and its text as DuckDB writes it from that; refuses forbidden parts."""
    serialize = "SELECT json_serialize_sql($1::VARCHAR)"
    parsed = json.loads(_query_one_text(con, serialize, f"SELECT 1 FROM corpus WHERE {where}"))
    if parsed.get("error"):
        said = parsed.get("error_message", "it cannot be parsed")
        raise UsageError(
            f"where: {said}; give one condition in SQL, such as \"country = 'DE'\"; names with "
            "blanks, and those that are words of SQL, stand in double quotes"
        )
    node = parsed["statements"][0]["node"] if len(parsed["statements"]) == 1 else {}
    more = [name for name, value in node.items() if value and name not in _ALLOWED_FIELDS_OF_SELECT]
    if not node or more or node["from_table"].get("type") != "BASE_TABLE":
        raise _condition_error("more than a condition" if node else "more than one statement")
    if node.get("cte_map", {}).get("map") or node.get("aggregate_handling") != "STANDARD_HANDLING":
        raise _condition_error("more than a condition")
    tree: dict[str, Any] = node["where_clause"]
    for each in _all_nodes(tree):
        if (what := _forbidden_part(each)) is not None:
            raise _condition_error(what)
    deserialize = "SELECT json_deserialize_sql($1::VARCHAR)"
    written = _query_one_text(con, deserialize, json.dumps(parsed))
    return tree, written.partition(" WHERE ")[2]


def _query_one_text(con: duckdb.DuckDBPyConnection, query: str, parameter: str) -> str:
    import duckdb

    try:
        ((found,),) = con.execute(query, [parameter]).fetchall()
    except duckdb.Error as problem:
        raise UsageError(f"where: {type(problem).__name__}; give one condition in SQL") from None
    return str(found)


def _condition_error(what: str) -> UsageError:
    return UsageError(
        f"where: found {what}; a row is kept or left out by its own values alone, so a condition "
        "is columns, constants, comparisons and functions of one row (docs/corpus.md)"
    )


def _forbidden_part(node: dict[str, Any]) -> str | None:
    """None if conditions may contain this node of a parsed condition, else the node's name."""
    kind = str(node["class"])
    if kind == "COLUMN_REF":
        names = node["column_names"]
        return None if len(names) == 1 else f"the name {'.'.join(names)}"
    if kind == "FUNCTION":
        name = str(node["function_name"])
        more = ("schema", "catalog", "filter", "distinct", "export_state")
        ordered = (node.get("order_bys") or {}).get("orders")
        is_plain = not ordered and not any(map(node.get, more))
        is_allowed = is_plain and name.lower() in _ALLOWED_FUNCTIONS.split()
        return None if is_allowed else f"the function {name!r}"
    if kind == "OPERATOR" and node["type"] not in _ALLOWED_OPERATORS:
        return str(node["type"])
    return None if kind in _ALLOWED_EXPRESSIONS else {"SUBQUERY": "a subquery"}.get(kind, kind)


def _all_nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        if "class" in tree:
            yield tree
        for value in tree.values():
            yield from _all_nodes(value)
    elif isinstance(tree, list):
        for each in tree:
            yield from _all_nodes(each)


def _columns_in(tree: dict[str, Any]) -> list[str]:
    return [node["column_names"][0] for node in _all_nodes(tree) if node["class"] == "COLUMN_REF"]


def columns_of_bounds(where: str) -> set[str]:
    """The columns that `since` and `until` named."""
    return {column.replace('""', '"') for column, *_ in _SINCE_OR_UNTIL.findall(f"({where}")}


def _check_zones(where: str, column_types: Mapping[str, str]) -> None:
    """Refuse a time with a zone where the column has none; and say that a day is one of UTC where
    the column has a zone, perhaps that of its people."""
    for quoted, _, bound in _SINCE_OR_UNTIL.findall(f"({where}"):
        column = quoted.replace('""', '"')
        has_zone, zoned = _ZONE.search(bound), column_types[column] == "TIMESTAMP WITH TIME ZONE"
        if has_zone and not zoned and column_types[column].startswith("TIMESTAMP"):
            raise UsageError(
                f"since, until: the times of {column!r} have no zone, so {bound!r} is no moment in "
                "them; leave its zone out"
            )
        if zoned and not has_zone:
            warn(
                f"since, until: {bound} of {column!r} is that of UTC; of another zone it is "
                f"written so: '{column}={bound[:10]} 00:00+01'",
                Notice,
            )


#: Matches the zone at the end of a time.
_ZONE = re.compile(r"\d:\d\d(:\d\d(\.\d+)?)? ?(Z|[+-]\d\d(:?\d\d)?)$")


def check_condition_types(where: str, column_types: Mapping[str, str]) -> None:
    """Check before a run pays that a condition is boolean for columns of these types and that its
    constants fit them, by evaluating it on one row of NULLs."""
    import duckdb

    _check_zones(where, column_types)
    asked = checked_condition(where)
    names = {column: column.replace('"', '""') for column in asked.columns}
    nulls = ", ".join(
        f'CAST(NULL AS {column_types[each]}) AS "{name}"' for each, name in names.items()
    )
    plain = asked.sql.removeprefix("try")  # try() would hide a constant that does not fit
    try:
        with duckdb.connect() as con:
            con.execute("PRAGMA disable_optimizer")  # optimizing skips comparisons with NULL
            con.execute(f"CREATE TABLE nulls AS SELECT {nulls}")
            asking = f"SELECT typeof(kept), kept FROM (SELECT {plain} AS kept FROM nulls)"
            ((kind, _),) = con.execute(asking).fetchall()
    except duckdb.Error as problem:
        said = str(problem).partition("\n")[0]
        # DuckDB's error quotes values of an ENUM, which are data.
        if any("ENUM" in column_types[column] for column in asked.columns):
            said = type(problem).__name__
        for column, _, bound in _SINCE_OR_UNTIL.findall(f"({where}"):
            if re.search(f"""["']{re.escape(bound)}["']""", said):
                raise UsageError(
                    f"since, until: found {bound!r}, and the column {column!r} is "
                    f"{column_types[column]}; give a value of that type, as 2026-01-31 is of DATE"
                ) from None
        raise UsageError(f"where: {said}; cast the column or the constant") from None
    if kind != "BOOLEAN":
        raise UsageError(
            f"where: the condition gives {kind}, not true or false; write a comparison, such as "
            "column > 0"
        )


def check_patterns(con: duckdb.DuckDBPyConnection, patterns: Mapping[str, str]) -> None:
    """Refuse regular expressions that are not RE2's: DuckDB makes the tokens, for all engines."""
    import duckdb

    for option, pattern in patterns.items():
        try:
            con.execute("SELECT regexp_matches('', $pattern)", {"pattern": pattern})
        except duckdb.Error as problem:
            raise UsageError(
                f"{option}: {pattern!r} is not a valid regular expression in RE2's syntax, which "
                f"all engines use: {problem}"
            ) from None
