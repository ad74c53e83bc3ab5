"""What in a Polars plan may make one row from several: all that is not known to work row by row.

A privacy statement is about all rows of a user. If each row of a frame is made from one row of its
files, adding or removing a user adds or removes that user's rows only. If rows are joined, grouped,
ordered for a window, or limited to a number, what a user contributes depends on other users' rows.
So this module lists the operations that are known to work row by row. Any other operation,
including new ones, is reported by name.
"""

from __future__ import annotations

import json
from typing import Any

#: For nodes that Polars does not show: Python functions among them, and some of its own.
NOT_SHOWN = "an operation that Polars does not show, as a function of Python's"
#: Plan nodes that make each row from one row, filter rows one by one, or pass them on.
_ROW_WISE_OPERATIONS = {
    "Cache", "Filter", "HStack", "MapFunction", "Scan", "Select", "SimpleProjection", "Sort",
    "Union",
}  # fmt: skip
#: Rows from outside the plan: how they were made is unknown.
_SCANS_OUTSIDE_FILES = {"DataFrameScan", "PythonScan"}
#: Kinds of `MapFunction` that use each row's own list or struct, or make a row per column.
_ROW_WISE_MAPS = {"explode", "rechunk", "unnest", "unpivot"}
#: Expressions of one row's values, and the fields with their inner expressions.
_EXPRESSION_FIELDS = {
    "Agg": (),
    "BinaryExpr": ("left", "right"),
    "Cast": ("expr",),
    "Column": (),
    "Function": ("input",),
    "Literal": (),
    "Ternary": ("predicate", "truthy", "falsy"),
}
#: Functions of one row's values, by their names in Polars' view of a plan.
_ROW_WISE_FUNCTIONS = {
    "abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "as_struct", "atan2",
    "cbrt", "ceil", "clip", "coalesce", "cos", "cosh", "cot", "degrees", "exp", "fill_null",
    "floor", "fused", "hash", "log", "log1p", "max_horizontal", "mean_horizontal",
    "min_horizontal", "negate", "pow", "radians", "rechunk", "reinterpret", "repeat_by", "replace",
    "replace_strict", "round", "round_sig_figs", "sign", "sin", "sinh", "sqrt", "sum_horizontal",
    "tan", "tanh", "truncate",
}  # fmt: skip
_LIST_FUNCTIONS = {
    "ArgMax", "ArgMin", "Concat", "Contains", "CountMatches", "Diff", "DropNulls", "Gather",
    "GatherEvery", "Get", "Join", "Length", "Max", "Mean", "Median", "Min", "SetOperation", "Shift",
    "Slice", "Sort", "Std", "Sum", "ToArray", "ToStruct", "Var",
}  # fmt: skip
_FUNCTIONS_BY_GROUP = {
    "ArrayFunction": _LIST_FUNCTIONS,
    "BooleanFunction": {
        "AllHorizontal", "AnyHorizontal", "IsBetween", "IsClose", "IsFinite", "IsIn", "IsInfinite",
        "IsNan", "IsNotNan", "IsNotNull", "IsNull", "Not",
    },
    "ListFunction": _LIST_FUNCTIONS,
    "StringFunction": {
        "Base64Decode", "Base64Encode", "ConcatHorizontal", "Contains", "ContainsAny",
        "CountMatches", "EndsWith", "EscapeRegex", "Extract", "ExtractAll", "ExtractGroups",
        "ExtractMany", "Find", "FindMany", "Format", "Head", "HexDecode", "HexEncode", "JsonDecode",
        "JsonPathMatch", "LenBytes", "LenChars", "Lowercase", "Normalize", "PadEnd", "PadStart",
        "Replace", "ReplaceMany", "Reverse", "Slice", "Split", "SplitExact", "SplitN", "SplitRegex",
        "StartsWith", "StripChars", "StripCharsEnd", "StripCharsStart", "StripPrefix",
        "StripSuffix", "Tail", "Titlecase", "ToDecimal", "ToInteger", "Uppercase", "ZFill",
    },
    "StructFunction": {
        "DropFields", "FieldByName", "JsonEncode", "PrefixFields", "RenameFields", "SuffixFields",
    },
    "TemporalFunction": {
        "BaseUtcOffset", "CastTimeUnit", "Century", "Combine", "ConvertTimeZone", "DSTOffset",
        "Date", "Datetime", "DatetimeFunction", "Day", "DaysInMonth", "Duration", "Hour",
        "IsLeapYear", "IsoYear", "Microsecond", "Millennium", "Millisecond", "Minute", "Month",
        "MonthEnd", "MonthStart", "Nanosecond", "OffsetBy", "OrdinalDay", "Quarter", "Replace",
        "ReplaceTimeZone", "Round", "Second", "Time", "TimeStamp", "ToString", "TotalDays",
        "TotalHours", "TotalMicroseconds", "TotalMilliseconds", "TotalMinutes", "TotalNanoseconds",
        "TotalSeconds", "Truncate", "Week", "WeekDay", "WithTimeUnit", "Year",
    },
}  # fmt: skip


def mixing(plan: Any, view: Any) -> str:
    """The operation that may mix rows in the plan's current node; '' if there is none. `view` is
    the node as Polars shows it, or None."""
    kind = type(view).__name__
    if view is None:
        return NOT_SHOWN if plan.get_inputs() else ""
    if kind in _SCANS_OUTSIDE_FILES:
        return ""
    if kind not in _ROW_WISE_OPERATIONS:
        return kind
    if (found := _mixing_options(kind, view)) or kind == "Sort":  # the sort key does not matter
        return found
    return next(
        (found for each in plan.get_exprs() if (found := _mixing_in_expression(plan, each.node))),
        "",
    )


def _mixing_options(kind: str, view: Any) -> str:
    """Checks the options of nodes that otherwise work row by row."""
    match kind:
        case "Scan" if _depends_on_row_numbers(view):
            return "rows by where they lie (n_rows, row_index_name, skip_rows_after_header)"
        case "Sort" | "Union" if view.slice is not None:
            return "Slice"
        case "MapFunction" if view.function[0] not in _ROW_WISE_MAPS:
            return str(view.function[0])
    return ""


def _depends_on_row_numbers(scan: Any) -> bool:
    """Whether a scan numbers, limits or skips rows, which depends on the other rows."""
    kind, *options = scan.scan_type
    passed = json.loads(options[0])["skip_rows_after_header"] if kind == "csv" else 0
    counted = scan.file_options.row_index, scan.file_options.n_rows
    return passed != 0 or counted != (None, None)


def _mixing_in_expression(plan: Any, expression: int) -> str:
    """The operation in an expression that needs more than one row; '' if there is none."""
    ahead = [expression]
    while ahead:
        view = _view_expression(plan, ahead.pop())
        if found := _mixing_expression(plan, view):
            return found
        for name in _EXPRESSION_FIELDS[type(view).__name__]:
            part = getattr(view, name)
            ahead += part if isinstance(part, list) else [part]
    return ""


def _view_expression(plan: Any, expression: int) -> Any:
    try:
        return plan.view_expression(expression)
    except NotImplementedError:
        return None


def _mixing_expression(plan: Any, view: Any) -> str:
    match kind := type(view).__name__:
        case "NoneType":
            return NOT_SHOWN
        case "Literal":
            return "a Series beside columns" if _has_value_per_row(view.value) else ""
        case "Function":
            return _mixing_function(view.function_data)
        case "Agg":  # the constant list of `is_in(pl.Series([1, 2]))` appears as an aggregate
            among = type(_view_expression(plan, view.arguments[0])).__name__ == "Literal"
            return "" if view.name == "implode" and among else str(view.name)
    return "" if kind in _EXPRESSION_FIELDS else kind


def _has_value_per_row(value: Any) -> bool:
    """Whether a literal has one value per row: a Series of several values, or a range (a pair)."""
    return isinstance(value, tuple) or (type(value).__name__ == "PySeries" and value.len() != 1)


def _mixing_function(function: tuple[Any, ...]) -> str:
    """The function's name if it may depend on other rows, else ''."""
    if isinstance(function[0], str):
        constant = function[0] == "fill_null_with_strategy" and function[1] in ("zero", "one")
        return "" if constant or function[0] in _ROW_WISE_FUNCTIONS else function[0]
    kind, _, name = str(function[0]).partition(".")
    if (kind, name) == ("StringFunction", "Strptime"):  # without a format, the first text sets it
        return "" if function[1] is not None else "a format that is inferred (Strptime)"
    return "" if name in _FUNCTIONS_BY_GROUP.get(kind, set()) else f"{kind}.{name}"
