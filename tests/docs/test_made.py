"""What the site makes of the code has all of it; links have targets, and commands are taken."""

import math
import re
import shlex
import sys
from importlib import import_module

import click
import pytest

import dphh
from dphh.asking.macros import macros
from dphh.cli import cli
from dphh.privacy.accounting import compose
from dphh.registry import VERBS
from tests.docs.pages import ROOT
from tests.specification import specified

sys.path.insert(0, str(ROOT / "docs"))
api, options, plain, write = (
    import_module(f"building.{name}") for name in ("api", "options", "plain_sql", "write")
)


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_of_a_verb_is_in_its_table_as_each_side_has_it(verb):
    table = {option.python: option for option in options.options_of(VERBS[verb])}
    assert table.keys() == VERBS[verb].options.keys()
    flags = {name for each in options.command_of(verb).params for name in each.opts}
    taken = macros()[verb].parameters
    page = options.options_page()
    for name, option in table.items():
        assert option.command in flags
        assert option.sql in taken
        assert f"| `{name}` |" in page


def test_the_options_of_a_corpus_are_those_of_every_verbs_command_and_macro():
    known = {option.command: option.sql for option in options.options_of_corpora()}
    flags = {name for each in options.command_of("items").params for name in each.opts}
    assert known.keys() <= flags
    assert {*known.values()} <= {*macros()["items"].parameters}


@pytest.mark.parametrize("path", write.MADE)
def test_what_is_made_and_committed_is_as_the_code_is(path):
    assert (ROOT / path).read_text(encoding="utf-8") == write.MADE[path](), "make generated"


def test_every_public_name_has_its_place_in_the_reference():
    found = [name for names in api.groups().values() for name in names]
    assert sorted(found) == sorted(name for name in dphh.__all__ if not name.startswith("_"))
    page = api.api_page()
    assert all(f"#### `{name}`" in page for name in found)
    assert all(inspect_doc in page for inspect_doc in ("##### `Plan.run`", "##### `Release.save`"))


def test_every_query_of_the_specification_stands_in_its_page():
    page = (ROOT / "docs" / "plain-sql.md").read_text(encoding="utf-8")
    told = re.findall(r"<!-- made: plain-([\w-]+) -->", page)
    assert len(told) == len({*told})
    left_out = {"nothing_yet", "one_each_most_frequent"}
    files = {path.stem for path in (ROOT / "tests" / "specification").glob("*.sql")}
    assert {*told} == files - left_out
    for name in told:
        assert specified(name).strip().rpartition("\n")[2] in plain.PLAIN_SQL[f"plain-{name}"]()


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "tests").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page):
    made = {"contributing.md", "security.md", "changes.md"}
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not link.startswith(("http://", "https://")) and link not in made:
            assert (page.parent / link).exists(), link


#: A command, and what stands for something else: `[--json]`, `NAME`, `E`, `...`.
_COMMAND = re.compile(r"^(?:    |\$ )(?:DPHH_TOKEN=\S+ )?(dphh (?:.*\\\n)*.*)$", re.MULTILINE)
_STANDS_FOR = re.compile(r"[\[\]]|\b(?:NAME|CORPUS|FILE|DIR|RUN_ID|VERB|[A-Z])\b|\.\.\.")


def commands(page) -> list[str]:
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_is_taken(page, tmp_path, monkeypatch, ledger):
    monkeypatch.chdir(tmp_path)
    for line in commands(page):
        try:
            taken(line)
        except click.ClickException as problem:
            pytest.fail(f"{page.name}: {line}\n{problem.format_message()}")


def test_what_officers_are_told_of_guesses_is_what_the_promise_allows():
    """By Bayes: the odds grow by e^epsilon at most. Rounded up, and not further."""
    page = (ROOT / "docs" / "officers.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 80
    rows = re.findall(
        r"^\| epsilon (\S+) \| (\S+) in 100 \| (\S+) \| (\S+) \| (\S+) \|$", page, re.M
    )
    assert [float(row[0]) for row in rows] == [0.5, 1, 2, 4, 8]
    for epsilon, *told in (map(float, row) for row in rows):
        odds = (math.exp(epsilon) * before for before in (1, 1 / 9, 1 / 99))
        allowed = [100 * each / (1 + each) for each in odds]
        # The best test of one run: half of one more than the distance of its two distributions.
        events = dphh.items(epsilon=epsilon, delta=1e-6).price.events
        allowed.append(50 * (1 + compose(events).delta(0.0)))
        assert all(
            0 <= said - exact < 0.1 + 1e-6 for said, exact in zip(told, allowed, strict=True)
        )
    # With delta, the best test at even odds is right (e^epsilon + delta) / (1 + e^epsilon).
    assert 100 * 1e-6 / (1 + math.exp(0.5)) < 0.001
