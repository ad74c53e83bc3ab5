"""Every option of every verb, by its names in Python, in SQL and on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import Parameter, getdoc
from typing import Any, Literal, get_args, get_origin

import click

import dphh
from dphh.asking.macros import SQL_NAME_OF_OPTION, macros
from dphh.cli import cli
from dphh.cli.signatures import flag
from dphh.reader.corpus import CORPUS_OPTIONS, HELP
from dphh.registry import VERBS, Verb

#: What opens a corpus, or belongs to Python alone.
_NOT_SAID = ("self", "source", "unit")


@dataclass(frozen=True)
class Option:
    python: str
    sql: str
    command: str
    default: str
    said: str


def options_of(verb: Verb[...]) -> Iterator[Option]:
    """The options of a verb itself."""
    for name, parameter in verb.options.items():
        yield Option(name, name, flag(name), _default(parameter), verb.help[name])


def options_of_corpora() -> Iterator[Option]:
    """How a corpus is read: the same for all verbs."""
    for name, said in HELP.items():
        default = _default(CORPUS_OPTIONS[name])
        yield Option(name, SQL_NAME_OF_OPTION.get(name, name), flag(name), default, said)


def options_of_runs() -> Iterator[tuple[str, str]]:
    """What any command that runs takes beside: (flag, what it says)."""
    known = {flag(name) for name in (*HELP, *VERBS["items"].options)}
    command = command_of("items")
    for option in command.params:
        if isinstance(option, click.Option) and option.opts[0] not in known:
            yield option.opts[0], option.help or ""


def command_of(verb: str) -> click.Command:
    command = cli.get_command(click.Context(cli), verb.replace("_", "-"))
    assert command is not None
    return command


_HEAD = """\
# Every option, and Python

These tables are made from the registry of verbs (`make generated`), so they are what the code accepts. Names are the
same in Python, in SQL and on the command line, except for a few words that SQL reserves. So is their order: what a verb
looks for, then its budget; `dphh VERB --help` has them in five groups. A verb's plan is free; running it spends.

"""
_PYTHON = """

## Python

The public names of `dphh`. The site has their docstrings in full; `help(dphh.Corpus)` does too.

| name | what it is |
|---|---|
{rows}

<!-- made: api -->
"""


def whole_page() -> str:
    """The page docs/options.md, of which the site makes the last part."""
    names = sorted(name for name in dphh.__all__ if callable(getattr(dphh, name)))
    rows = "\n".join(f"| `{name}` | {_cell(_first_sentence(name))} |" for name in names)
    return _HEAD + options_page() + _PYTHON.format(rows=rows)


def _first_sentence(name: str) -> str:
    doc = " ".join((getdoc(getattr(dphh, name)) or "").partition("\n\n")[0].split())
    return doc if len(doc) < 160 else doc.partition(". ")[0].rstrip(".") + "."


def options_page() -> str:
    parts = []
    for name, verb in VERBS.items():
        command = name.replace("_", "-")
        asked = (
            f"Python `dphh.{name}(corpus, ...)`; SQL `FROM dphh_{name}(corpus, ...)`, and "
            f"`dphh_plan_{name}` for its price; `dphh {command} CORPUS ...`."
        )
        table = _table(options_of(verb))
        parts.append(f"## `{name}` {{: #{command} }}\n\n{verb.summary}\n\n{asked}\n\n{table}")
    parts.append(
        "## How the corpus is read\n\nThe same for every verb; in Python they are `Corpus`'s. "
        "Beside `ldp_trie`'s own `keep`, the command line says `--keep-tokens`. "
        "[Corpora](corpus.md) says what each does.\n\n" + _table(options_of_corpora())
    )
    rows = "\n".join(f"| `{option}` | {_cell(said)} |" for option, said in options_of_runs())
    parts.append(
        "## How a command runs\n\nOf every verb's command; in Python most are `plan.run`'s.\n\n"
        f"| option | what it says |\n|---|---|\n{rows}"
    )
    known = macros().values()
    free = ", ".join(f"`dphh_{macro.name}`" for macro in known if macro.verb is None)
    parts.append(f"## Macros that cost nothing\n\n`dphh_plan_...` of each verb, and {free}.")
    return "\n\n".join(parts)


def _table(options: Iterator[Option]) -> str:
    head = "| Python | what it says | default | command line | SQL |\n|---|---|---|---|---|"
    rows = [
        f"| `{each.python}` | {_cell(each.said)} | {each.default} | `{each.command}` "
        f"| `{each.sql} :=` |"
        for each in options
    ]
    return "\n".join([head, *rows])


def _default(parameter: Parameter) -> str:
    if parameter.default is Parameter.empty:
        return "**needed**" + _choices(parameter.annotation)
    if parameter.default in (None, "", ()):
        return "none"
    plain = str(parameter.default)
    code = f"`{_cell(plain)}`"
    if "`" in plain or not plain.isprintable():  # no fence of Markdown's holds all of it
        written = "".join(c if c.isalnum() else f"&#{ord(c)};" for c in repr(plain))
        code = f"<code>{written}</code>"
    return code + _choices(parameter.annotation)


def _choices(annotation: Any) -> str:
    if get_origin(annotation) is not Literal:
        return ""
    return " of " + ", ".join(f"`{choice}`" for choice in get_args(annotation))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
