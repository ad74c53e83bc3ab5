"""A page of documentation as what it runs: its Python, its commands, and what it says they print.

- A block of `python` is run, page by page in one namespace, in an empty folder.
- In a block of `console`, lines after `$ ` are commands of dphh.
- The block of `text` after a block of `python`, and the lines after a command, are what it prints.

Pages run with the same noise, so numbers are compared too; run ids and days are not, and `...`
stands for anything.
"""

import io
import re
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from dphh.cli import cli
from dphh.errors import DphhError
from dphh.testing import SeededRandomness
from dphh.udfs.noise.randomness import SystemRandomness

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUN_ID_OR_DAY = re.compile(r"\b[0-9a-f]{32}\b|\b\d{4}-\d{2}-\d{2}\b")


@dataclass(frozen=True)
class Shown:
    """Something to run, and what the page says that it prints (None: nothing is said)."""

    kind: str
    source: str
    printed: str | None
    #: Where in the page what is printed stands.
    place: tuple[int, int]
    line: int


def shown(text: str) -> Iterator[Shown]:
    blocks = list(_FENCE.finditer(text))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        line = text.count("\n", 0, block.start()) + 1
        if block[1] == "python":
            beside = following is not None and following[1] == "text"
            beside = beside and not text[block.end() : following.start()].strip()
            printed = following[2] if beside else None
            place = following.span(2) if beside else (block.end(), block.end())
            yield Shown("python", block[2], printed, place, line)
        elif block[1] == "console":
            yield from _commands(block[2], block.start(2), line)


def _commands(block: str, start: int, line: int) -> Iterator[Shown]:
    for found in re.finditer(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        said = found[2] if found[2].strip() else None
        place = (start + found.start(2), start + found.end(2))
        yield Shown("console", found[1].replace("\\\n", " "), said, place, line)


class Running:
    """A page's namespace, in the folder where it runs."""

    def __init__(self, **given: Any) -> None:
        self.names: dict[str, Any] = {"__name__": "page", **given}

    def run(self, what: Shown) -> str:
        printed = self._python(what) if what.kind == "python" else self._command(what.source)
        return printed.replace(f"{Path.cwd()}/", "")

    def _python(self, what: Shown) -> str:
        code = compile("\n" * what.line + what.source, "the page", "exec")
        with redirect_stdout(io.StringIO()) as out:
            exec(code, self.names)
        return out.getvalue()

    def _command(self, source: str) -> str:
        words = shlex.split(source.partition("  #")[0])
        assert words[0] == "dphh", f"only dphh is run, found {words[0]}"
        found = CliRunner().invoke(cli, words[1:])
        if isinstance(found.exception, DphhError):
            return f"{found.output}dphh: {found.exception}\n"
        assert found.exit_code == 0, found.output
        return found.output


@contextmanager
def same_noise() -> Iterator[None]:
    """The same noise at every run, so that a page's releases are those that it shows."""
    seeded, drawn = SeededRandomness(5), SystemRandomness.random_words
    SystemRandomness.random_words = lambda _, *asked: seeded.random_words(*asked)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        SystemRandomness.random_words = drawn


def alike(printed: str, said: str) -> bool:
    """Whether what was printed is what the page says, run ids and days aside."""
    pattern = "".join(
        "(?:.*\n)?" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + "\n"
        for line in _lines(said)
    )
    text = "".join(f"{line}\n" for line in _lines(printed))
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def _lines(text: str) -> list[str]:
    text = _RUN_ID_OR_DAY.sub("N", text)
    lines = [re.sub(r"[ ─-╿━]+", " ", line).strip() for line in text.strip().splitlines()]
    return [line for line in lines if line]
