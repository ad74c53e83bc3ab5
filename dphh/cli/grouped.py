"""Help in groups, each option in one line, those that everybody needs first."""

from __future__ import annotations

from typing import Any

import click

from dphh.registry import BUDGET, SEARCH

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
