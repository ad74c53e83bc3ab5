"""What the site makes of the code has all of it, and what pages link to is there."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

import dphh
from dphh.asking.macros import macros
from dphh.registry import VERBS
from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "docs"))
api, lines, options, plain = (
    import_module(f"building.{name}") for name in ("api", "lines", "options", "plain_sql")
)


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_of_a_verb_is_in_its_table_as_each_side_has_it(verb: str) -> None:
    table = {option.python: option for option in options.options_of(VERBS[verb])}
    assert table.keys() == VERBS[verb].options.keys()
    flags = {name for each in options.command_of(verb).params for name in each.opts}
    taken = macros(of_tables=True)[verb].parameters
    for option in table.values():
        assert option.command in flags
        assert option.sql in taken


def test_the_options_of_a_corpus_are_those_of_every_verbs_command_and_macro() -> None:
    known = {option.command: option.sql for option in options.options_of_corpora()}
    flags = {name for each in options.command_of("items").params for name in each.opts}
    assert known.keys() <= flags
    assert {*known.values()} <= {*macros(of_tables=True)["items"].parameters}


def test_the_page_of_options_says_each_in_words() -> None:
    page = options.options_page()
    for name, verb in VERBS.items():
        assert f"## `{name}`" in page
        assert all(f"| `{option}` |" in page for option in verb.options)
    run = [option for option, _ in options.options_of_runs()]
    assert {"--engine", "--ledger", "--out", "--plan"} <= {*run}


def test_every_public_name_has_its_place_in_the_reference() -> None:
    found = [name for names in api.groups().values() for name in names]
    assert sorted(found) == sorted(name for name in dphh.__all__ if not name.startswith("_"))
    page = api.api_page()
    assert all(f"#### `{name}`" in page for name in found)
    assert all(inspect_doc in page for inspect_doc in ("##### `Plan.run`", "##### `Release.save`"))


def test_every_query_of_the_specification_stands_in_its_page() -> None:
    page = (ROOT / "docs" / "plain-sql.md").read_text(encoding="utf-8")
    told = re.findall(r"<!-- made: plain-([\w-]+) -->", page)
    assert len(told) == len({*told})
    left_out = {"nothing_yet", "one_each_most_frequent"}
    files = {path.stem for path in (ROOT / "sql" / "plain").glob("*.sql")}
    assert {*told} == files - left_out
    for name in told:
        text = (ROOT / "sql" / "plain" / f"{name}.sql").read_text(encoding="utf-8")
        assert text.strip().rpartition("\n")[2] in plain.PLAIN_SQL[f"plain-{name}"]()


def test_the_tables_of_steps_name_steps_that_are_there() -> None:
    page = (ROOT / "docs" / "plain-sql.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and line.count("|") == 3]
    named = {name for line in rows for name in re.findall(r"`(\w+)`", line.split("|")[2])}
    queries = "\n".join(path.read_text() for path in (ROOT / "sql" / "plain").glob("*.sql"))
    assert len(named) > 20
    steps = re.findall(r"^(\w+) AS (?:MATERIALIZED )?\($", queries, re.MULTILINE)
    assert named - {"SELECT"} <= {*steps}


def test_a_picture_has_every_point_and_its_numbers() -> None:
    drawn = lines.lines_svg("t", "x", [lines.Line("a<b", [(1, 10), (10, 1e-9)])], (True, False))
    assert drawn.count("<circle") == 2
    assert "a&lt;b" in drawn
    assert "| a<b | 10 | 1e-9 |" in drawn.replace("&lt;", "<")


LINKED = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "tests").rglob("*.md")]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    made = {"contributing.md", "security.md", "changes.md"}
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not link.startswith(("http://", "https://")) and link not in made:
            assert (page.parent / link).exists(), link


def test_commands_of_the_pages_exist() -> None:
    """Of commands that stand in indented lines and are not run, the names and flags at least."""
    from dphh.cli import cli

    for page in LINKED:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"^    dphh ([a-z][^\n]*)", text, re.MULTILINE):
            words = line.partition("  #")[0].partition("#")[0].split()
            command: click.Command | None = cli
            while isinstance(command, click.Group) and words:
                step = command.get_command(click.Context(command), words[0])
                if step is None:
                    break
                command, words = step, words[1:]
            assert command is not None and command is not cli, line
            known = {name for each in command.params for name in each.opts} | {"--help"}
            asked = {re.split(r"[=)\]]", word)[0] for word in words if word.startswith("--")}
            assert asked <= known, f"{page.name}: {line}"


def test_the_row_of_an_option_is_one_line_whatever_its_default() -> None:
    (row,) = [line for line in options.options_page().splitlines() if "`character_set`" in line]
    assert row.endswith("| `--character-set` | `character_set :=` |")
    assert row.count("|") == 6
