"""The verbs as methods of `frame.dphh`, for Polars frames. Each prices a run for free.

A frame's verb makes the frame a corpus and calls the verb. A lazy frame stays lazy until the plan
runs. `frames.pyi` has the methods written out, for editors and type checkers: `make generated`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, TypeVar

import polars as pl

from dphh.errors import UsageError
from dphh.plan import Plan, verb_function
from dphh.reader.corpus import CORPUS_OPTIONS, Corpus
from dphh.reader.sources import schema_of_frame
from dphh.registry import VERBS, Verb
from dphh.sql import identifier
from dphh.wording.lines import one_line
from dphh.wording.options import checked_call

Result = TypeVar("Result")
_Frame = pl.DataFrame | pl.LazyFrame

#: The options of `Corpus` that a frame's verbs take: the frame is the source and needs no
#: connection, and `unit` is an option of `trie`.
_CORPUS_OPTIONS = {
    name: option
    for name, option in CORPUS_OPTIONS.items()
    if name not in {"source", "connection", "unit"}
}
#: The options that name a column; these, and the one that chooses rows, may be expressions.
_COLUMNS = ("user", "text", "item", "by")
_EXPRESSIONS = {*_COLUMNS, "where"}
#: How each method is called, for its docstring.
_EXAMPLES = {
    "corpus": 'dphh.check(frame.dphh.corpus(user="author", text="body"))',
    "items": 'frame.dphh.items(user="author", item="dish", epsilon=1.0, delta=1e-7)',
    "ngrams": 'frame.dphh.ngrams(user="author", text="body", max_n=3, epsilon=1.0, delta=1e-7)',
    "counts": 'frame.dphh.counts(user="author", item="dish", of=menu, epsilon=0.5, delta=1e-8)',
    "trie": 'frame.dphh.trie(user="author", item="query", max_length=12, epsilon=1.0, delta=1e-8)',
    "ldp_trie": 'frame.dphh.ldp_trie(user="author", item="query", max_length=8, keep=100,\n'
    "    users_per_level=100_000, contributions=1, local_epsilon=4.0, delta=1e-8)",
}


class FrameVerbs:
    """The verbs of dphh on this frame. Each prices a run for free; `plan.run()` spends.

    The options are those of `dphh.Corpus` and of the verb; what names a column or chooses rows may
    be an expression over one row: `text=pl.col("body").str.to_lowercase()`,
    `where=pl.col("lang") == "en"`. Releases say it by its alias, or as Polars writes it.
    `frame.dphh.corpus(...)` is the corpus, for `dphh.check`, `compare` and `evaluate`. `keep` is
    the verb's own in `ldp_trie`; to filter tokens there, clean the frame.
    """

    def __init__(self, frame: _Frame) -> None:
        self._frame = frame

    def __dir__(self) -> list[str]:
        return ["corpus", *VERBS]


def frame(frame: _Frame) -> FrameVerbs:
    """`frame.dphh`, for those who check types: `dphh.frame(messages).ngrams(user=..., ...)`."""
    if not isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        raise UsageError(
            f"frame: found a {type(frame).__name__}; give a Polars frame, or make anything else a "
            "dphh.Corpus"
        )
    return FrameVerbs(frame)


def _verb_as_method(verb: Verb[...]) -> Callable[..., Plan]:
    """The verb as a method, which passes options that the verb lacks to `Corpus`."""
    make_plan, verb_options = verb_function(verb), verb.options

    def plan(self: FrameVerbs, **options: Any) -> Plan:
        source, values = _with_columns(self._frame, options)
        of_verb = {name: value for name, value in values.items() if name in verb_options}
        of_corpus = {name: value for name, value in values.items() if name not in verb_options}
        return make_plan(Corpus(source, **of_corpus), **of_verb)

    return _as_method(plan, verb.name, verb.doc, {**_CORPUS_OPTIONS, **verb_options})


def _corpus(self: FrameVerbs, **options: Any) -> Corpus:
    source, values = _with_columns(self._frame, options)
    return Corpus(source, **values)


def _as_method(
    method: Callable[..., Result], name: str, doc: str, options: Mapping[str, Parameter]
) -> Callable[..., Result]:
    """The function as a method of this name with these options; some may be expressions."""
    keywords = [
        option.replace(kind=Parameter.KEYWORD_ONLY, annotation=_annotation(keyword, option))
        for keyword, option in options.items()
    ]
    method.__name__ = method.__qualname__ = name
    summary, _, rest = doc.partition("\n")
    method.__doc__ = f"{summary}\n\n    {_EXAMPLES[name]}\n{rest}"
    method.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter("self", Parameter.POSITIONAL_ONLY), *keywords]
    )
    return checked_call(method)


def _annotation(name: str, option: Parameter) -> Any:
    if name == "user":
        return str | pl.Expr | Sequence[str | pl.Expr]
    return option.annotation | pl.Expr if name in _EXPRESSIONS else option.annotation


def _with_columns(frame: _Frame, options: dict[str, Any]) -> tuple[_Frame, dict[str, Any]]:
    """The frame with a column for each expression among the options, and the options with the names
    of these columns. `where` filters the frame, so that Polars reads no other rows; the option then
    names a column that is always true, so that the corpus still says which rows count."""
    if not any(isinstance(value, pl.Expr) for value in _values(options)):
        return frame, options
    frame = frame.lazy()  # nothing is computed, and no error quotes a value, before a run
    schema = schema_of_frame(frame)
    columns: dict[str, pl.Expr] = {}

    def name_of(option: str, value: pl.Expr) -> str:
        _check_one_row(option, value, schema)
        if value.meta.is_column():
            return value.meta.output_name()
        name = _name(value)
        if name in schema or (name in columns and columns[name].meta != value.meta):
            raise UsageError(f"{option}: another column is {name!r}; give the expression an alias")
        columns[name] = value
        return name

    named = dict(options)
    for option in _COLUMNS:
        match options.get(option):
            case pl.Expr() as value:
                named[option] = name_of(option, value)
            case [*values] if option == "user":
                named[option] = [
                    name_of(option, value) if isinstance(value, pl.Expr) else value
                    for value in values
                ]
    if isinstance(rows := options.get("where"), pl.Expr):
        name = name_of("where", rows.alias(_name(rows)))
        columns[name] = pl.lit(True)
        frame, named["where"] = frame.filter(rows), identifier(name)
    return frame.with_columns(**columns), named


def _values(options: Mapping[str, Any]) -> Iterator[Any]:
    """The values of the options that may be expressions."""
    for option in (*_COLUMNS, "where"):
        value = options.get(option)
        yield from value if isinstance(value, (list, tuple)) else [value]


def _name(expression: pl.Expr) -> str:
    """The name of an expression in releases: its alias, or else its text as Polars writes it."""
    bare = expression.meta.undo_aliases()
    if bare.meta != expression.meta:
        return expression.meta.output_name()
    return " ".join(str(expression).replace('"', "'").split())


def _check_one_row(option: str, expression: pl.Expr, schema: pl.Schema) -> None:
    """Refuse an expression that looks at other rows than its own: it could show one user's text as
    everybody's, and no theorem covers it."""
    if expression.meta.has_multiple_outputs():
        raise UsageError(f"{option}: found {expression}, which is several columns; give one")
    if not _is_of_one_row(expression, schema):
        raise UsageError(
            f"{option}: found {one_line(str(expression))}, which dphh cannot see to be made from "
            "each row alone, as aggregates, windows, ranks and Python's functions are not; make "
            "that column in the frame, if each of its values comes from rows of its own user"
        )


#: Of Polars' expressions, as Polars writes them: those that are made of one row if their parts are.
_PLAIN = {"Column", "Literal", "Alias", "BinaryExpr", "Ternary", "Cast"}
#: Kinds of functions and functions that are made of one row if all arguments but the first are
#: constants: others read such an argument as a whole column, as `is_in` and `replace` do.
_OF_ONE_COLUMN = {
    *("StringExpr", "TemporalExpr", "ListExpr", "ArrayExpr", "StructExpr"),
    *("IsNull", "IsNotNull", "IsNan", "IsNotNan", "IsFinite", "IsInfinite", "Not", "IsIn"),
    *("Replace", "ReplaceStrict", "Round", "Floor", "Ceil", "Abs", "Negate", "Hash", "Cut"),
}
#: Those that are made of one row, whatever columns their arguments are.
_OF_SEVERAL_COLUMNS = {
    *("ConcatHorizontal", "Format", "Coalesce", "FillNull", "AsStruct", "IsBetween", "Clip"),
    *("MaxHorizontal", "MinHorizontal", "SumHorizontal", "AllHorizontal", "AnyHorizontal"),
}


def _is_of_one_row(expression: pl.Expr, schema: pl.Schema) -> bool:
    """Whether it and all of its parts are made row by row, as far as Polars says."""
    meta = expression.meta
    try:
        [(kind, node)] = json.loads(meta.serialize(format="json")).items()
        parts = meta.pop()[::-1]
    except (pl.exceptions.PolarsError, AttributeError, ValueError):  # of Python, or not to be seen
        return False
    if not (meta.is_row_separable() and all(_is_of_one_row(part, schema) for part in parts)):
        return False
    if kind == "Cast":  # the codes of categories hang on which values came first
        kinds = [node["dtype"], *(str(schema.get(name)) for name in meta.root_names())]
        return "Categorical" not in str(kinds)
    if kind != "Function":
        return kind in _PLAIN
    names = {*_names_of_function(node["function"])}
    if names & _OF_SEVERAL_COLUMNS:
        return True
    constants = not any(part.meta.root_names() for part in parts[1:])
    return constants and bool(names & _OF_ONE_COLUMN) and "Sample" not in names


def _names_of_function(function: Any) -> Iterator[str]:
    """Its kind, if it has one, and its name: {"StringExpr": {"Split": false}}."""
    while isinstance(function, dict) and len(function) == 1:
        [(name, function)] = function.items()
        yield name
    if isinstance(function, str):
        yield function


_CORPUS_DOC = "The frame as a corpus, for `dphh.check`, `compare`, `evaluate` and the ledger."
FrameVerbs.corpus = _as_method(_corpus, "corpus", _CORPUS_DOC, _CORPUS_OPTIONS)
for _verb in VERBS.values():
    setattr(FrameVerbs, _verb.name, _verb_as_method(_verb))
