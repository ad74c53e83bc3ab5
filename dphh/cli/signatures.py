"""Options of the command line, made from the signatures of Python: names, types and defaults; and
help that shows them in groups, each in one line, those that everybody needs first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from click.core import ParameterSource

from dphh.asking.asked import types_of_option, value_of
from dphh.errors import UsageError
from dphh.registry import BUDGET, SEARCH

#: What stands for a value in the help, where the option's type does not say enough.
_SHOWN_FOR_VALUES = {
    "COLUMN": ("user", "text", "item", "prior_text", "by"),
    "REGEX": ("keep", "keep_tokens", "drop"),
    "CHARS": ("strip", "character_set"),
    "HOW": ("as_", "accounting", "choice", "sampling", "split"),
    "WHAT": ("characters", "too_long", "null_users"),
    "METHOD": ("method",),
    "N[,N...]": ("max_items",),
    "S[,S...]": ("shares",),
    "A[,B...]": ("groups",),
    "SHARE": ("counts",),
    "CONDITION": ("where",),
    "COLUMN=VALUE": ("since", "until"),
    "FILE": ("known",),
    "RUN_ID|DIR|FILE": ("of", "domain"),
    "PATH|DIR|RUN_ID": ("prior",),
}
METAVARS = {name: shown for shown, names in _SHOWN_FOR_VALUES.items() for name in names}
_NAMES_OF_NUMBERS: dict[Any, str] = {int: "N", float: "NUMBER"}
CORPUS, WHERE, SHOW = "The corpus", "Where it runs", "What to show"
GROUPS = (CORPUS, SEARCH, BUDGET, WHERE, SHOW)
#: How wide names of options may be, so that what they do stands beside them in 80 columns.
_NAMES_WIDTH = 24


class Option(click.Option):
    """An option of a group."""

    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if (record := super().get_help_record(ctx)) is None:
            return None
        note = " [needed]" if self.required else f" [{self.default}]" if self.show_default else ""
        return record[0], f"{self.help}{note}"


class Command(click.Command):
    """A command whose help shows its options by their groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for option in self.get_params(ctx):
            if not isinstance(option, click.Option):
                continue
            if (record := option.get_help_record(ctx)) is not None:
                groups[getattr(option, "group", SHOW)].append(record)
        for group, records in groups.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records, col_max=_NAMES_WIDTH)


def option(
    parameter: Parameter,
    said: str,
    group: str,
    called: str | None = None,
    *,
    required: bool = True,
    often: bool = False,
) -> Callable[[Any], Any]:
    """The command-line option of a keyword: `required` if it has no default, a tuple if it may be
    given `often`. Its default is only shown; Python applies it to options that are not `given`."""
    name = called or parameter.name
    kind = _click_type(name, parameter.annotation)
    default: dict[str, Any] = {}
    if _is_short_default(parameter.default):
        default = {"default": parameter.default, "show_default": True}
    switch = kind is bool
    # A switch that is on for some readings can be turned off.
    no = f"/--no-{flag(name)[2:]}" if switch and parameter.default is None else ""
    return click.option(
        flag(name) + no,
        name,
        cls=Option,
        group=group,
        type=None if switch else kind,
        # None and not False, which lets a value be left out and takes -1 for an option.
        is_flag=True if switch else None,
        multiple=often,
        required=required and parameter.default is parameter.empty,
        metavar=_NAMES_OF_NUMBERS.get(kind) or METAVARS.get(name),
        help=said,
        **default,
    )


def flag(name: str) -> str:
    return f"--{name.rstrip('_').replace('_', '-')}"


def as_flag(name: str, value: str) -> str:
    """An option of an error's text, which has Python's `name=value`, as the command line writes
    it."""
    if value in ("True", "False"):
        return flag(name) if value == "True" else f"--no-{flag(name)[2:]}"
    # A shell needs no quotes around one word.
    return f"{flag(name)} " + (value if " " in value else value.strip("'"))


def given(context: click.Context, names: Sequence[str]) -> dict[str, Any]:
    """The options that the user gave, including those given with their default value."""
    return {
        name: context.params[name]
        for name in names
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def _click_type(name: str, annotation: Any) -> Any:
    """The click type for a parameter's annotation."""
    kinds = types_of_option(annotation)
    several = next((part for part in kinds if get_origin(part) is Sequence), None)
    if several is None or str in kinds:
        kind = next(part for part in kinds if part is not several)
        return click.Choice(get_args(kind)) if get_origin(kind) is Literal else kind
    if {int, float}.isdisjoint(get_args(several)):
        return _lines_of_file

    def numbers(text: Any) -> Any:
        try:
            return value_of(name, annotation, str(text))
        except UsageError as problem:
            raise click.BadParameter(str(problem).partition(": ")[2]) from None

    return numbers


def _lines_of_file(path: str) -> tuple[str, ...]:
    """Reads a file of one word a line."""
    try:
        return tuple(Path(path).read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as problem:
        raise click.BadParameter(
            f"{path} cannot be read ({type(problem).__name__}); give a text file with one word a "
            "line"
        ) from None


def _is_short_default(default: Any) -> bool:
    plain = default is not Parameter.empty and not isinstance(default, bool)
    return plain and default not in (None, "", ()) and str(default).isprintable()
