"""`dphh.compare`: plans side by side, before any of them is paid for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_origin

from dphh.asking.parsed import types_of_option
from dphh.errors import UsageError
from dphh.ledger import Ledger, Request
from dphh.plan import Plan, verb_function
from dphh.prior import PRIOR_HELP
from dphh.reader.corpus import Corpus
from dphh.registry import VERBS
from dphh.release import Release
from dphh.wording.options import check_known

if TYPE_CHECKING:
    import polars as pl


def compare(
    verb: Callable[..., Plan] | str,
    corpus: Corpus | None = None,
    *,
    ledger: Ledger | str | Path | None = None,
    **options: Any,
) -> pl.DataFrame:
    """Plans of a verb side by side: an option given as a list takes each value in turn.

        dphh.compare(dphh.items, corpus, delta=1e-7, epsilon=[0.5, 1, 2], max_items=[10, 50])

    A row for each plan: the options that vary; `users`, how many must hold an item so that it is
    found with probability 0.9, and the same by length, `users_2` and so on; `users_many_from` and
    `_to`, the same where each of them holds as many other words as people do; `interval`, how many
    users the intervals of what is found reach to either side; `share`, which part of the corpus's
    cap a run takes; `runs_left`, how many such runs the ledger would still grant; and `refused`,
    why a run would be refused now. Free: nothing is read.
    """
    import polars as pl

    name = verb if isinstance(verb, str) else getattr(verb, "__name__", "")
    if name not in VERBS:
        raise UsageError(f"verb: found {verb!r}; give one of {', '.join(VERBS)}")
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    make_plan = verb_function(VERBS[name], book)
    known = VERBS[name].options
    check_known(options, known, name)
    varied = {
        option: value
        for option, value in options.items()
        if isinstance(value, list)
        and (option == "prior" or _takes_number_or_choice(known[option].annotation))
    }
    fixed = {option: value for option, value in options.items() if option not in varied}
    choices = [dict(zip(varied, values, strict=True)) for values in product(*varied.values())]
    if not choices:
        empty = next(option for option, values in varied.items() if not values)
        raise UsageError(f"{empty}: found an empty list; give one value or more")
    rows = [_row_of_plan(make_plan, corpus, book, choice, fixed) for choice in choices]
    columns = dict.fromkeys(column for row in rows for column in row)
    last = ["share", "runs_left", "refused"]
    order = [*(column for column in columns if column not in last), *last]
    return pl.DataFrame(rows, schema=order, infer_schema_length=None)


def _row_of_plan(
    make_plan: Callable[..., Plan],
    corpus: Corpus | None,
    book: Ledger,
    varied_options: dict[str, Any],
    fixed_options: dict[str, Any],
) -> dict[str, Any]:
    options = {**fixed_options, **varied_options}
    if options.get("prior") is None:  # `prior_is_public` is meant for the rows with a prior
        options = {name: value for name, value in options.items() if name not in PRIOR_HELP}
    row = {name: _shown_value(value) for name, value in varied_options.items()}
    try:
        made = make_plan(corpus, **options)
    except UsageError as problem:
        if not varied_options or not isinstance(corpus, Corpus | None):
            raise  # so would every other plan
        return {**row, "users": None, "refused": str(problem)}
    row["users"] = made.finds.users
    row |= {f"users_{n}": users for n, users in made.finds.users_by_length if n > 1}
    if (many := made.finds.users_of_many) is not None:
        _, row["users_many_from"], row["users_many_to"] = many
    if made.counting is not None:
        row["interval"] = round(made.counting.noisiest_level.half_width, 1)
    if made.corpus is not None:
        outlook = book.outlook(Request.of(made.price, made.corpus))
        row["refused"] = outlook.refusal
        if outlook.scarcest is not None:
            _, row["share"], row["runs_left"] = outlook.scarcest
    return row


def _shown_value(value: Any) -> Any:
    """An option's value as the table shows it: a short name of a prior; other values unchanged."""
    if isinstance(value, Release):
        return f"run {value.run_id}"
    if isinstance(value, Path):
        return value.name
    if isinstance(value, tuple):
        return list(value)
    return type(value).__name__ if hasattr(value, "__arrow_c_stream__") else value


def _takes_number_or_choice(annotation: Any) -> bool:
    """Whether an option of this type takes one number or one choice, so a list is several plans."""
    kinds = types_of_option(annotation)
    return any(kind in (int, float, bool) or get_origin(kind) is Literal for kind in kinds)
