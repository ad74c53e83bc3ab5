"""Makes the options of commands from the signatures of Python's functions: names, types, defaults.
Help shows the options in groups, each in one line, those that everybody needs first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from click.core import ParameterSource

from dphh.asking.asked import typed_value, types_of_option
from dphh.errors import UsageError
from dphh.registry import BUDGET, SEARCH

#: What help shows in place of an option's value, if the type of the option does not say enough.
METAVAR_OF_OPTION = {
    name: metavar
    for metavar, names in {
        "COLUMN": ("user", "text", "item", "prior_text", "by"),
        "REGEX": ("keep", "keep_tokens", "drop"),
        "CHARS": ("strip", "character_set"),
        "HOW": ("as_", "accounting", "choice", "sampling", "split"),
        "WHAT": ("too_long", "null_users"),
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
    }.items()
    for name in names
}
CORPUS, WHERE, SHOW = "The corpus", "Where it runs", "What to show"


class GroupedOption(click.Option):
    """An option that help shows in a group."""

    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if (record := super().get_help_record(ctx)) is None:
            return None
        note = " [needed]" if self.required else f" [{self.default}]" if self.show_default else ""
        return record[0], f"{self.help}{note}"


class GroupedCommand(click.Command):
    """A command whose help shows its options by their groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        in_order = (CORPUS, SEARCH, BUDGET, WHERE, SHOW)
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in in_order}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)):
                groups[getattr(option, "group", SHOW)].append(record)
        for group, records in groups.items():
            if records:
                with formatter.section(group):
                    # Names have at most 24 characters of a line, descriptions the rest.
                    formatter.write_dl(records, col_max=24)


def option(
    parameter: Parameter,
    help_line: str,
    group: str,
    option_name: str | None = None,
    *,
    required: bool = True,
    repeatable: bool = False,
) -> Callable[[Any], Any]:
    """The command-line option for a parameter of a Python function. `required`: it must be given if
    the parameter has no default. `repeatable`: it may be given several times, and its value is a
    tuple. Help only shows the default: Python applies it to an option that was not given."""
    name = option_name or parameter.name
    kind = _click_type(name, parameter.annotation)
    default: dict[str, Any] = {}
    plain = parameter.default is not parameter.empty and not isinstance(parameter.default, bool)
    if plain and parameter.default not in (None, "", ()) and str(parameter.default).isprintable():
        default = {"default": parameter.default, "show_default": True}
    switch = kind is bool
    # A switch with the default None, which may come to mean "on", can also be turned off.
    no = f"/--no-{flag(name)[2:]}" if switch and parameter.default is None else ""
    return click.option(
        flag(name) + no,
        name,
        cls=GroupedOption,
        group=group,
        type=None if switch else kind,
        # None, because click would take the value -1 for an option if `is_flag` were False.
        is_flag=True if switch else None,
        multiple=repeatable,
        required=required and parameter.default is parameter.empty,
        metavar={int: "N", float: "NUMBER"}.get(kind) or METAVAR_OF_OPTION.get(name),
        help=help_line,
        **default,
    )


def flag(name: str) -> str:
    return f"--{name.rstrip('_').replace('_', '-')}"


def as_flag(name: str, value: str) -> str:
    """The option as the command line has it, for an error that has it as `name=value`."""
    if value in ("True", "False"):
        return flag(name) if value == "True" else f"--no-{flag(name)[2:]}"
    # A shell needs no quotes around one word.
    return f"{flag(name)} " + (value if " " in value else value.strip("'"))


def options_given(context: click.Context, names: Sequence[str]) -> dict[str, Any]:
    """The options that the caller gave, including those given with their default value."""
    return {
        name: context.params[name]
        for name in names
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def _click_type(name: str, annotation: Any) -> Any:
    """The click type of an option, from the annotation of its parameter in Python."""
    kinds = types_of_option(annotation)
    several = next((part for part in kinds if get_origin(part) is Sequence), None)
    if several is None or str in kinds:
        kind = next(part for part in kinds if part is not several)
        return click.Choice(get_args(kind)) if get_origin(kind) is Literal else kind
    if {int, float}.isdisjoint(get_args(several)):
        return _lines_of_file

    def parsed_numbers(text: Any) -> Any:
        try:
            return typed_value(name, annotation, str(text))
        except UsageError as problem:
            raise click.BadParameter(str(problem).partition(": ")[2]) from None

    return parsed_numbers


def _lines_of_file(path: str) -> tuple[str, ...]:
    """The lines of a text file."""
    try:
        return tuple(Path(path).read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as problem:
        raise click.BadParameter(
            f"{path} cannot be read ({type(problem).__name__}); give a text file with one word a "
            "line"
        ) from None
