"""Every command that a page shows is one that the command line takes, with every option in it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from dphh.cli import cli
from tests.docs.pages import ROOT

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "tests").rglob("*.md")),
]
_COMMAND = re.compile(r"^(?:    |\$ )(?:DPHH_TOKEN=\S+ )?(dphh (?:.*\\\n)*.*)$", re.MULTILINE)
#: What stands for something else: `[--json]`, `NAME`, `E`, `...`.
_STANDS_FOR = re.compile(r"[\[\]]|\b(?:NAME|CORPUS|FILE|DIR|RUN_ID|VERB|[A-Z])\b|\.\.\.")


def commands(page: Path) -> list[str]:
    text = re.sub(r"(DPHH_TOKEN=)\S+", r"\1token", page.read_text(encoding="utf-8"))
    found = (each[1].replace("\\\n", " ") for each in _COMMAND.finditer(text))
    return [line for line in found if not _STANDS_FOR.search(re.split(r"\s{2,}", line)[0])]


def taken(line: str) -> None:
    """Read as the shell and the command line would; nothing is run."""
    words = shlex.split(line, comments=True)[1:]
    words = words[: words.index("|")] if "|" in words else words
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        _, inner, words = command.resolve_command(context, words)
        assert inner is not None
        command, context = inner, click.Context(inner, parent=context)
    command.make_context(str(command.name), words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_is_taken(page, tmp_path, monkeypatch, ledger):
    monkeypatch.chdir(tmp_path)
    for line in commands(page):
        try:
            taken(line)
        except click.ClickException as problem:
            pytest.fail(f"{page.name}: {line}\n{problem.format_message()}")
