"""Makes the options of commands from the signatures of Python's functions: names, types, defaults.
Help shows the options in groups, each in one line, those that everybody needs first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import Parameter
from typing import Any, Literal, get_args, get_origin

import click

from dphh.asking.parsed import typed_value, types_of_option
from dphh.errors import UsageError
from dphh.registry import BUDGET, SEARCH
from dphh.wording.options import shown_default

#: The placeholder of an option's value in help, if the option's type does not say enough.
METAVAR_OF_OPTION = {
    name: metavar
    for metavar, names in {
        "COLUMN": ("user", "text", "item", "prior_text", "by"),
        "REGEX": ("keep", "keep_tokens", "drop"),
        "CHARS": ("strip", "character_set"),
        "HOW": ("as_", "choice", "sampling", "split"),
        "WHAT": ("too_long", "null_users"),
        "METHOD": ("method",),
        "S[,S...]": ("shares",),
        "A[,B...]": ("groups",),
        "CONDITION": ("where",),
        "COLUMN=VALUE": ("since", "until"),
        "FILE": ("known",),
        "ENGINE": ("engine",),
        "SIZE": ("memory_limit",),
        "ID": ("run_id",),
        "DIR": ("out",),
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


#: A `click.option` that the command's help shows in the group that it names by `group=`.
grouped_option = partial(click.option, cls=GroupedOption)


class GroupedCommand(click.Command):
    """A command whose help shows its options by their groups."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as problem:
            # Only the nearest name: another similar one might spend.
            near = list(problem.possibilities or ())[:1]
            raise click.NoSuchOption(problem.option_name, possibilities=near, ctx=ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        for group in (CORPUS, SEARCH, BUDGET, WHERE, SHOW):
            members = [option for option in options if getattr(option, "group", SHOW) == group]
            records = [record for option in members if (record := option.get_help_record(ctx))]
            if records:
                with formatter.section(group):
                    # Names have at most 24 characters of a line, descriptions the rest.
                    formatter.write_dl(records, col_max=24)


def option(
    parameter: Parameter,
    help_line: str,
    group: str,
    option_name: str | None = None,
    **settings: Any,
) -> Callable[[Any], Any]:
    """The command-line option for a parameter of a Python function. `settings`: arguments of
    `click.option` that do not follow from the parameter. Help only shows the default: Python
    applies it to an option that was not given."""
    name = option_name or parameter.name
    kinds = types_of_option(parameter.annotation)
    if kinds == [bool]:
        # A switch with the default None, which may come to mean "on", can also be turned off.
        no = f"/--no-{flag(name)[2:]}" if parameter.default is None else ""
        return grouped_option(flag(name) + no, name, group=group, is_flag=True, help=help_line)
    default = shown_default(parameter)
    is_shown = default is not None and default.isprintable()
    from_parameter = {
        "type": _click_type(name, parameter.annotation),
        "required": parameter.default is parameter.empty,
        "metavar": {(int,): "N", (float,): "NUMBER"}.get((*kinds,)) or METAVAR_OF_OPTION.get(name),
        "help": f"{help_line}  [{default}]" if is_shown else help_line,
    }
    return grouped_option(flag(name), name, group=group, **{**from_parameter, **settings})


def flag(name: str) -> str:
    return f"--{name.rstrip('_').replace('_', '-')}"


def as_flag(name: str, value: str) -> str:
    """The option as the command line spells it, for an error that has `name=value`."""
    if value in ("True", "False"):
        return flag(name) if value == "True" else f"--no-{flag(name)[2:]}"
    # A shell needs no quotes around one word.
    return f"{flag(name)} " + (value if " " in value else value.strip("'"))


def _click_type(name: str, annotation: Any) -> Any:
    """The click type of an option, from the annotation of its parameter in Python."""
    kinds = types_of_option(annotation)
    if str in kinds:
        return str
    if get_origin(kinds[0]) is Literal:
        return click.Choice(get_args(kinds[0]))

    def typed(text: Any) -> Any:
        try:
            return typed_value(name, annotation, str(text))
        except UsageError as problem:
            raise click.BadParameter(str(problem).partition(": ")[2]) from None

    return typed
