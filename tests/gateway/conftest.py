"""A gateway over a small private corpus, two analysts, and clients that speak quack to it."""

from __future__ import annotations

import importlib.util
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest

from dphh import Corpus, Ledger
from dphh.gateway.analysts import Analysts
from dphh.gateway.extensions import load
from dphh.gateway.service import Terms
from dphh.ledger import source_of

if TYPE_CHECKING:
    from dphh.gateway.server import Gateway

#: In one user's rows alone: must never come back.
SECRET = "hunter2 lives at elm street"
#: So many that noise drops none of their words: at (0.5, 1e-8) with probability 1e-25.
USERS = 900


def no_quack() -> str | None:
    """Why the gateway cannot run here."""
    for name in ("duckdb_cli", "duckdb_extension_httpfs", "duckdb_extension_quack"):
        if importlib.util.find_spec(name) is None:
            return f"needs the package {name}, built for DuckDB 1.5.5 (dphh[shell])"
    if duckdb.__version__ != "1.5.5":
        return f"the extensions are for DuckDB 1.5.5, this is {duckdb.__version__}"
    return None


needs_quack = pytest.mark.skipif(no_quack() is not None, reason=str(no_quack()))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(so: Callable[[], object], seconds: float = 250.0) -> None:
    """Wait for what a slow machine may take long to do."""
    late = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < late, "it has not come"
        time.sleep(0.01)


def write_texts(path: Path, users: int) -> Corpus:
    rows = [(f"u{n}", "the cat sat" if n % 3 else "the dog ran") for n in range(users)]
    frame = pl.DataFrame([*rows, ("u0", SECRET)], schema=["who", "what"], orient="row")
    frame.write_parquet(path)
    return Corpus(str(path), user="who", text="what")


#: What a test has open. Left to the collector of garbage it would be closed by whatever thread
#: that runs in: were it the one in which a gateway of this process listens, the goodbye would
#: wait for itself, for good.
_OPEN: list[duckdb.DuckDBPyConnection] = []


@pytest.fixture(autouse=True)
def clients_say_goodbye() -> Iterator[None]:
    yield
    close_clients()


def close_clients() -> None:
    while _OPEN:
        _OPEN.pop().close()


class Client:
    """One connection of one analyst."""

    def __init__(self, uri: str, token: str) -> None:
        self.con = duckdb.connect()
        _OPEN.append(self.con)
        load(self.con)
        self.con.execute(f"CREATE SECRET (TYPE quack, TOKEN '{token}')")
        self.con.execute(f"ATTACH '{uri}' AS srv")

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        return self.con.execute("FROM quack_query_by_name('srv', ?)", [statement]).fetchall()

    def refused(self, statement: str) -> str:
        with pytest.raises(duckdb.Error) as refused:
            self.ask(statement)
        return str(refused.value)


class Place:
    """A ledger, its analysts' tokens, and the gateways that a test starts over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = Ledger(folder / "ledger.sqlite")
        self.corpus = write_texts(folder / "reviews.parquet", USERS)
        # Other users, since a file of the same bytes and the same time counts as a copy.
        self.other = write_texts(folder / "letters.parquet", USERS + 3)
        self.ledger.add("reviews", source_of(self.corpus), 4.0, 1e-5)
        self.ledger.add("letters", source_of(self.other), 4.0, 1e-5)
        self.analysts = Analysts.of(self.ledger)
        self.tokens = {name: self.analysts.add(name) for name in ("alice", "bob")}
        self.ledger.set_share("reviews", "alice", 1.5, 1e-5)
        self.ledger.set_share("reviews", "bob", 4.0, 1e-5)
        self.ledger.set_share("letters", "bob", 1.0, 1e-5)
        self.gateways: list[Gateway] = []

    def gateway(self, *, guarded: bool = True, **terms: Any) -> Gateway:
        from dphh.gateway.server import Gateway

        gateway = Gateway(
            self.ledger, self.analysts, port=free_port(), terms=Terms(**terms), guarded=guarded
        )
        self.gateways.append(gateway)
        return gateway

    def client(self, name: str, gateway: Gateway | None = None) -> Client:
        return Client((gateway or self.gateways[-1]).uri, self.tokens[name])

    def long_request(self) -> str:
        """A request whose run takes seconds, on a corpus of alice's own."""
        rows = pl.DataFrame({"n": range(1_200_000)}).select(
            who=pl.format("u{}", pl.col("n") // 2),
            what=pl.concat_str(
                [pl.format("w{}", pl.col("n").hash(k) % 400) for k in range(24)], separator=" "
            ),
        )
        rows.write_parquet(self.folder / "long.parquet")
        corpus = Corpus(str(self.folder / "long.parquet"), user="who", text="what")
        self.ledger.add("long", source_of(corpus), 4.0, 1e-5)
        self.ledger.set_share("long", "alice", 4.0, 1e-5)
        return "FROM dphh_ngrams('long', max_n := 6, epsilon := 1.0, delta := 1e-8)"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    close_clients()
    for gateway in place.gateways:
        gateway.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One gateway for the tests of a file that do not spend what others count on."""
    place = Place(tmp_path_factory.mktemp("gateway"))
    place.gateway()
    yield place
    for gateway in place.gateways:
        gateway.close()


def in_thread(what: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Run it meanwhile; what it gave, or raised, is in the list when the thread is done."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(what())
        except duckdb.Error as problem:
            found.append(problem)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found
