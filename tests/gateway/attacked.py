"""A corpus with planted secrets, a gateway over it, and what an attempt on it came to."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl

from dphh import Corpus, Ledger
from dphh.gateway.analysts import Analysts
from dphh.gateway.server import Gateway
from dphh.gateway.service import Terms
from dphh.ledger import source_of
from tests.gateway.attacks import Attempt
from tests.gateway.conftest import Client, free_port

#: In every planted thing: one user's words, users, columns, files, corpora and runs of others.
PLANTED = re.compile("canary|root:x:0", re.IGNORECASE)


@dataclass(frozen=True)
class Outcome:
    attempt: Attempt
    said: str
    answered: bool

    @property
    def leaked(self) -> bool:
        # What the attacker wrote, and an error quotes, is no leak.
        said = self.said
        for quoted in set(re.findall(r"[\w./]*canary[\w./]*", self.attempt.statement)):
            said = said.replace(quoted, "")
        return PLANTED.search(said) is not None


class Attacked:
    """`alice` has a share of `reviews`; `canary_letters` and its release are for bob."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "out").mkdir()
        (folder / "secret.txt").write_text("canary in a file")
        corpus = _planted(folder / "canary_reviews.parquet", folder / "raw.parquet")
        letters = _planted(folder / "canary_letters.parquet")
        self.ledger = Ledger(folder / "ledger.sqlite")
        self.ledger.add("reviews", source_of(corpus), 4.0, 1e-5)
        self.ledger.add("canary_letters", source_of(letters), 4.0, 1e-5)
        self.ledger.add("letters", source_of(_planted(folder / "l.parquet")), 1.0, 1e-5)
        analysts = Analysts.of(self.ledger)
        self.tokens = {name: analysts.add(name) for name in ("alice", "bob")}
        self.ledger.set_share("reviews", "alice", 1.5, 1e-5)
        self.ledger.set_share("reviews", "bob", 4.0, 1e-5)
        self.ledger.set_share("canary_letters", "bob", 1.0, 1e-5)
        self.analysts = analysts

    def places(self, *, really: bool) -> dict[str, str]:
        """Where attempts are aimed: what they may overwrite where nothing stops them is a copy."""
        copy = shutil.copy(self.folder / "raw.parquet", self.folder / "copy.parquet")
        target = self.folder / "raw.parquet" if really else copy
        names = {"raw": "raw.parquet", "ledger": "ledger.sqlite", "secret": "secret.txt"}
        found = {name: str(self.folder / file) for name, file in names.items()}
        return {**found, "out": str(self.folder / "out"), "target": str(target)}

    @contextlib.contextmanager
    def served(self) -> Iterator[str]:
        """`dphh serve` as an owner runs it; what it prints goes to a file."""
        port = free_port()
        with (self.folder / "printed").open("w") as printed:
            server = subprocess.Popen(
                [sys.executable, "-m", "dphh", "serve", "--port", str(port)],
                env={
                    **os.environ,
                    "DPHH_LEDGER": str(self.ledger.path),
                    "DPHH_SECRET": "canary in the environment",
                },
                stdout=printed,
                stderr=subprocess.STDOUT,
            )
        try:
            uri = f"quack:localhost:{port}"
            self._wait(uri)
            yield uri
            assert server.poll() is None, self.printed()
        finally:
            server.terminate()
            server.wait(250)

    def printed(self) -> str:
        return (self.folder / "printed").read_text()

    def unguarded(self) -> Gateway:
        return Gateway(self.ledger, self.analysts, port=free_port(), terms=Terms(), guarded=False)

    def client(self, uri: str, name: str = "alice") -> Client:
        return Client(uri, self.tokens[name])

    def in_budget(self) -> bool:
        """Every share and every corpus; how runs compose is for the ledger's own tests."""
        budgets = [*self.ledger.shares(), *self.ledger.accounts()]
        return all(
            budget.cap is not None
            and budget.spent.epsilon <= budget.cap.epsilon
            and budget.spent.delta <= budget.cap.delta
            for budget in budgets
        )

    def _wait(self, uri: str) -> None:
        for _ in range(600):
            with contextlib.suppress(duckdb.Error):
                self.client(uri)
                return
            time.sleep(0.1)
        raise AssertionError(self.printed())


def attempt_on(client: Client, attempt: Attempt, places: dict[str, str]) -> Outcome:
    try:
        found = client.con.execute("FROM quack_query_by_name('srv', ?)", [attempt.aimed(places)])
        columns = [column[0] for column in found.description or ()]
        return Outcome(attempt, f"{columns} {found.fetchall()!r}", answered=True)
    except duckdb.Error as problem:
        return Outcome(attempt, str(problem), answered=False)


def _planted(path: Path, called: Path | None = None) -> Corpus:
    """Words that many say, and one of each user's own, in columns that have telling names."""
    rows = pl.DataFrame({"n": range(400)}).select(
        canary_author=pl.format("canaryuser{}", pl.col("n")),
        canary_body=pl.format("the cat sat canary{}", pl.col("n")),
        canary_note=pl.lit("canary note"),
    )
    rows.write_parquet(path)
    if called is not None:
        called.symlink_to(path)
    return Corpus(str(path), user="canary_author", text="canary_body")
