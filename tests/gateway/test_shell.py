"""`dphh shell` and `dphh serve`: the stock DuckDB shell, from a terminal, a pipe and afar."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.conftest import Place, free_port, needs_quack

pytestmark = needs_quack

DPHH = [sys.executable, "-m", "dphh"]
ANALYSTS = Path(__file__).parents[2] / "docs" / "analysts.md"


def run(place: Place, *arguments: str, typed: str = "", **environment: str) -> Any:
    return subprocess.run(
        [*DPHH, *arguments],
        input=typed,
        capture_output=True,
        text=True,
        timeout=250,
        env={**os.environ, "DPHH_LEDGER": str(place.ledger.path), **environment},
        check=False,
    )


def test_statements_come_through_a_pipe(place: Place) -> None:
    done = run(place, "shell", "--", "-csv", typed="SELECT corpus, runs FROM dphh_ledger();")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "corpus,runs\nreviews,0\nletters,0\n"
    again = run(
        place,
        *("shell", "--", "-csv"),
        typed="FROM dphh_items('it''s not', epsilon := 1, delta := 1e-8);",
    )
    assert again.returncode == 1
    assert 'no corpus "it\'s not"' in again.stderr


def test_macros_work_as_typed_with_all_kinds_of_options(place: Place) -> None:
    typed = """
        SELECT count(*) FROM dphh_ngrams('reviews', max_n := 2, max_items := [9, 9],
            epsilon := 1.0, delta := 1e-8, pruning := 'single', method := 'dpne');
        SELECT count(*) FROM dphh_ngrams('reviews', max_n := 2, max_items := [9, 9],
            epsilon := 1.0, delta := 1e-8, pruning := 'single', method := 'dpne') a,
            dphh_releases() b;
        SELECT fact FROM dphh_plan_items('reviews', epsilon := 1, delta := 1e-8) LIMIT 1;
        SELECT r.item FROM dphh_release('owner/mine') r;
    """
    done = run(place, "shell", "--", "-csv", "-noheader", typed=typed)
    first, second, what = done.stdout.split()
    assert first == second and int(first) >= 5 and what == "promise"
    assert "no such release" in done.stderr
    assert len(place.ledger.runs()) == 1


@contextmanager
def serving(place: Place) -> Iterator[str]:
    """`dphh serve`, as an owner starts it."""
    port = free_port()
    server = subprocess.Popen(
        [*DPHH, "serve", "--port", str(port), "--ledger", str(place.ledger.path)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        assert server.stderr.readline() == f"serving quack:localhost:{port} to 2 analysts\n"
        yield f"quack:localhost:{port}"
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(250) == 0


def test_a_shell_connects_to_a_gateway_elsewhere(place: Place) -> None:
    with serving(place) as uri:
        asked = "SELECT corpus, cap_epsilon FROM dphh_ledger();"
        connect = ("shell", "--connect", uri, "--", "-csv", "-noheader")
        done = run(place, *connect, typed=asked, DPHH_TOKEN=place.tokens["bob"])
        assert done.stdout == "reviews,4.0\nletters,1.0\n"
        wrong = run(place, *connect, typed=asked, DPHH_TOKEN="wrong")
        assert wrong.returncode == 2 and "MACRO" not in wrong.stderr
        assert f"{uri} does not know this token" in wrong.stderr
        assert "$DPHH_TOKEN" in run(place, *connect, typed=asked).stderr
        file = place.folder / "token"
        file.write_text(place.tokens["alice"] + "\n")
        done = run(place, *connect[:3], "--token-file", str(file), *connect[3:], typed=asked)
        assert done.stdout == "reviews,1.5\n"


def test_a_gateway_that_does_not_answer_is_to_be_tried_again(place: Place) -> None:
    nobody = f"quack:localhost:{free_port()}"
    done = run(place, "shell", "--connect", nobody, typed="FROM dphh_ledger();", DPHH_TOKEN="x")
    assert done.returncode == 1 and "MACRO" not in done.stderr
    assert f"no gateway answers at {nobody}" in done.stderr and "port" in done.stderr


def test_the_shell_has_help_on_the_options_of_a_verb(place: Place) -> None:
    typed = "SELECT option FROM dphh_options('ngrams') WHERE option LIKE '%max_n';"
    assert run(place, "shell", "--", "-csv", "-noheader", typed=typed).stdout == "max_n\n"


def test_the_shells_help_names_verbs(place: Place) -> None:
    typed = "SELECT kind, call FROM dphh_help() WHERE call LIKE '%ngrams%';"
    said = run(place, "shell", "--", "-csv", "-noheader", typed=typed).stdout
    assert "spends,FROM dphh_ngrams(" in said.replace('"', "")


@pytest.mark.parametrize("option", ["--token-file", "--ca-cert"])
def test_what_only_a_gateway_elsewhere_takes_is_refused_without_one(place: Place, option) -> None:
    done = run(place, "shell", option, "some.file", typed="FROM dphh_ledger();")
    assert done.returncode != 0
    assert f"{option}: applies only to a gateway on another machine" in done.stderr


def test_owners_add_and_remove_analysts_on_the_command_line(place: Place) -> None:
    share = ("--corpus", "letters", "--epsilon", "0.5", "--delta", "1e-6")
    added = run(place, "serve", "add-analyst", "carol", *share)
    token = added.stdout.strip()
    assert place.analysts.who(token) == "carol" and token not in added.stderr
    assert run(place, "serve", "add-analyst", "carol", *share).stdout == ""
    shares = json.loads(run(place, "serve", "analysts", "--json").stdout)["shares"]
    assert [(s["analyst"], s["account"], s["token"]) for s in shares][-1] == (
        "carol",
        "letters",
        True,
    )
    more = ("--corpus", "letters", "--epsilon", "0.75", "--delta", "1e-6")
    asked = run(place, "serve", "add-analyst", "carol", *more)
    assert asked.returncode == 2
    assert "raise the share of carol from (0.5, 1e-06) to (0.75, 1e-06)?" in asked.stderr
    assert "Nothing was changed; --yes says yes" in asked.stderr
    assert run(place, "serve", "add-analyst", "carol", *more, "--yes").returncode == 0
    assert run(place, "serve", "add-analyst", "carol", *share).returncode == 0  # a lower one
    removed = run(place, "serve", "remove-analyst", "carol")
    assert removed.returncode == 0 and "carol's token is no longer accepted" in removed.stderr
    assert place.analysts.who(token) is None
    for name in ("owner", "a/b", "", "a b"):
        refused = run(place, "serve", "add-analyst", name, *share)
        assert refused.returncode == 2 and "name" in refused.stderr
    beyond = run(place, "serve", "--host", "0.0.0.0")
    assert beyond.returncode == 2 and "TLS" in beyond.stderr


class Terminal:
    """The shell at a terminal of its own: type, and wait for what is shown."""

    def __init__(self, place: Place) -> None:
        self.child, self.file = pty.fork()
        if self.child == 0:
            os.environ.update(DPHH_LEDGER=str(place.ledger.path), TERM="xterm")
            os.execv(sys.executable, [*DPHH, "shell", "--", "-dark-mode"])
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self.shown = ""

    def type(self, text: str) -> None:
        for character in text:  # as fingers do: a line editor drops what comes in one rush
            os.write(self.file, character.encode())
            self.read()

    def read(self) -> None:
        if select.select([self.file], [], [], 0.01)[0]:
            text = os.read(self.file, 65536).decode(errors="replace")
            if "\x1b[6n" in text:
                os.write(self.file, b"\x1b[1;1R")
            self.shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*\x07", "", text)

    def wait_for(self, pattern: str, seconds: float = 250.0) -> str:
        until = time.monotonic() + seconds
        while not (found := re.search(pattern, self.shown, re.DOTALL)):
            assert time.monotonic() < until, self.shown[-2000:]
            self.read()
        said, self.shown = self.shown[: found.end()], self.shown[found.end() :]
        return said

    def ended(self, seconds: float = 250.0) -> int:
        """How it ended, waiting no longer than that for it."""
        until = time.monotonic() + seconds
        while (waited := os.waitpid(self.child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > until:
                self.close()
                raise AssertionError(f"it has not ended: {self.shown[-2000:]}")
            with suppress(OSError):  # the other end of the terminal may be closed already
                self.read()
        return waited[1]

    def close(self) -> None:
        with suppress(ChildProcessError, ProcessLookupError):
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)


def test_ctrl_c_stops_the_run_and_the_ledger_is_right(place: Place) -> None:
    request = place.long_request()
    terminal = Terminal(place)
    banner = terminal.wait_for("Enter.*D ")
    assert "reviews: 0% of (4, 1e-05) is used" in banner and "long: 0% of (4, 1e-05)" in banner
    time.sleep(0.5)
    terminal.type(f"{request};\r")
    until = time.monotonic() + 250
    while not any(run.state == "running" for run in place.ledger.runs()):
        assert time.monotonic() < until, terminal.shown
        terminal.read()
    terminal.type("\x03")
    terminal.wait_for(r"\^C.*D ")
    terminal.type("SELECT 'runs', sum(runs) FROM dphh_ledger();\r")
    terminal.wait_for(r"│ runs +│ +1 │.*D ")
    (entry,) = place.ledger.runs()
    assert entry.state in ("running", "failed")
    terminal.type(".exit\r")
    assert os.WIFEXITED(terminal.ended())


def test_the_documented_transcript_is_what_the_shell_says(place: Place) -> None:
    typed, shown = [], []
    text = ANALYSTS.read_text(encoding="utf-8")
    block = text.partition("<!-- transcript: tests/gateway/test_shell.py -->\n")[2]
    for line in block.partition("```\n")[2].partition("\n```")[0].splitlines():
        (typed if line.startswith("D ") else shown).append(line.removeprefix("D "))
    done = run(place, "shell", typed="\n".join(typed))
    said = [_shape(line) for line in (done.stdout + done.stderr).splitlines()]
    assert len(typed) >= 4
    for line in shown:
        # The page is the analysts'; to the owner, errors also say how to go on.
        there = any(each.startswith(_shape(line)) for each in said)
        assert line.startswith("dphh") or line.startswith("  ") or there, line


def _shape(line: str) -> str:
    """A line without what the noise, the clock and the width of columns make of it."""
    return re.sub(r"[\s─]+", " ", re.sub(r"\d+\.\d+", "#", line)).strip()
