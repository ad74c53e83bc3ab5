"""A gateway over small private corpora, two analysts, and a client that writes its own requests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import polars as pl
import pytest

from dphh import Corpus, Ledger
from tests.unit.conftest import dphh  # noqa: F401 - the fixture

DPHH = [sys.executable, "-m", "dphh"]
#: `dphh` with other times, of a module of the gateway.
IMPATIENT = """
import sys
from importlib import import_module
from dphh.cli import main
module, name, seconds = sys.argv.pop(1).split()
setattr(import_module(f"dphh.gateway.{module}"), name, float(seconds))
main()
"""
#: In one user's rows alone: must never come back.
SECRET = "hunter2 lives at elm street"

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


def until(so: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait for what a slow machine may take long to do."""
    late = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < late, "it has not come"
        time.sleep(0.02)


def write_texts(path: Path) -> Corpus:
    # So many users that noise drops none of their words: at (0.5, 1e-8) with probability 1e-25.
    rows = [(f"u{n}", "the cat sat" if n % 3 else "the dog ran") for n in range(900)]
    frame = pl.DataFrame([*rows, ("u0", SECRET)], schema=["who", "what"], orient="row")
    frame.write_parquet(path)
    return Corpus(str(path), user="who", text="what")


class Place:
    """A ledger with analysts, and the server that a test talks to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.servers: list[Served] = []
        self.ledger = Ledger(folder / "ledger.sqlite")
        self.corpus = write_texts(folder / "reviews.parquet")
        self.ledger.add("reviews", self.corpus, 4.0, 1e-5)
        self.ledger.add("letters", write_texts(folder / "letters.parquet"), 4.0, 1e-5)
        self.ledger.set_share("reviews", "alice", 3.5, 1e-5)
        self.ledger.set_share("reviews", "bob", 4.0, 1e-5)
        self.ledger.set_share("letters", "bob", 1.0, 1e-5)
        self.tokens = {name: self.ledger.give_token(name) for name in ("alice", "bob")}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, *more: str, time: str | None = None, files: int | None = None) -> Served:
        self.servers.append(Served(self, *more, time=time, files=files))
        return self.servers[-1]

    def end(self) -> None:
        for server in self.servers:
            server.end(signal.SIGKILL)

    def ask(self, path: str, who: str = "alice", verb: str = "GET", **options: Any) -> Answered:
        """The answer to a request, in JSON unless the option `headers` says another thing."""
        said = {"Authorization": f"Bearer {self.tokens[who]}", "Accept": "application/json"}
        said |= options.pop("headers", {})
        con = HTTPConnection("127.0.0.1", self.port, timeout=240)
        con.request(verb, f"/v1/{path}{'?' * bool(options)}{urlencode(options)}", headers=said)
        with con.getresponse() as answer:
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Answered(answer.status, headers, answer.read())

    def items(self, who: str = "alice", epsilon: float = 0.5, **more: Any) -> Answered:
        asked = {"corpus": "reviews", "epsilon": epsilon, "delta": 1e-8}
        return self.ask("items", who, **asked | more)

    def later(self, path: str, who: str = "alice", **options: Any) -> Future[Answered]:
        """The answer to a request that is sent now, without waiting for it."""
        return ThreadPoolExecutor(1).submit(lambda: self.ask(path, who, **options))

    def open(self, text: str) -> socket.socket:
        """A connection on which `text` was sent."""
        client = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        client.sendall(text.replace("TOKEN", self.tokens["alice"]).encode("latin-1"))
        return client

    def raw(self, text: str) -> bytes:
        """All that comes back for this text, until the server closes."""
        answer = b""
        # What was sent and is not read ends a connection while it is sent, or later.
        with suppress(ConnectionError), self.open(text) as client:
            while piece := client.recv(65536):
                answer += piece
        return answer

    def long_request(self) -> dict[str, Any]:
        """The options of `ngrams` for a run that takes seconds, on a corpus of alice's."""
        rows = pl.DataFrame({"n": range(600_000)}).select(
            who=pl.format("u{}", pl.col("n") // 2),
            what=pl.concat_str(
                [pl.format("w{}", pl.col("n").hash(k) % 400) for k in range(24)], separator=" "
            ),
        )
        rows.write_parquet(self.folder / "long.parquet")
        corpus = Corpus(str(self.folder / "long.parquet"), user="who", text="what")
        self.ledger.add("long", corpus, 4.0, 1e-5)
        self.ledger.set_share("long", "alice", 4.0, 1e-5)
        return {"corpus": "long", "max_n": 6, "epsilon": 1.0, "delta": 1e-8}

    def hold_up(self) -> None:
        """Make the file of `reviews` a pipe: a run of it waits until somebody writes to that."""
        (self.folder / "reviews.parquet").unlink()
        os.mkfifo(self.folder / "reviews.parquet")

    def states(self) -> list[str]:
        return [run.state for run in self.ledger.runs()]

    def spent(self, who: str = "alice") -> dict[str, int]:
        return {share.name: share.runs for share in self.ledger.shares(who)}


class Served:
    """`dphh serve`, as an owner starts it; or with another `time`, as in "server NAME SECONDS", or
    with at most so many open `files`."""

    def __init__(
        self, place: Place, *more: str, time: str | None = None, files: int | None = None
    ) -> None:
        ledger = ("--ledger", str(place.ledger.path))
        program = DPHH if time is None else [sys.executable, "-c", IMPATIENT, time]
        limit = [] if files is None else ["prlimit", f"--nofile={files}"]
        asked = [*limit, *program, "serve", "--port", str(place.port), *ledger, *more]
        self.place = place
        self.process = subprocess.Popen(asked, stderr=subprocess.PIPE, text=True, process_group=0)
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        assert said.startswith("serving http"), said + self.process.stderr.read()
        place.port = int(said.split()[1].rpartition(":")[2])

    def workers(self) -> list[int]:
        ps = ["ps", "-o", "pid=", "--ppid", str(self.process.pid)]
        return [int(pid) for pid in subprocess.run(ps, capture_output=True).stdout.split()]  # noqa: PLW1510

    def end(self, number: int = signal.SIGTERM) -> str:
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        # A run that was held up fails now, and its process ends with the server.
        with suppress(OSError):
            os.close(os.open(self.place.folder / "reviews.parquet", os.O_WRONLY | os.O_NONBLOCK))
        _, said = self.process.communicate(timeout=60)
        return said


@pytest.fixture
def _shell() -> None:
    """DuckDB's shell and httpfs, which `make test-duckdb15` installs."""
    for name in ("duckdb_cli", "duckdb_extension_httpfs"):
        pytest.importorskip(name)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server that tests of one module share: what they spend, they spend of one share."""
    place = Place(tmp_path_factory.mktemp("gateway"))
    place.serve()
    yield place
    place.end()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Place]:
    """A place for one test, which starts its servers."""
    place = Place(tmp_path)
    yield place
    place.end()
