"""A run that takes some of its draws from a journal comes to the release of a run that draws all.

A journal may hold any of a run's draws: those before a process was killed, or those that another
process with the same run id stored first. So a host must find for itself all that a stored draw
would have left behind in it: what users hold, without what earlier rounds released, and positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from dphh import Corpus, Plan, Release, counts, items, ldp_trie, ngrams
from dphh.engines import open_host
from dphh.engines.duckdb import rows as duckdb_rows
from dphh.engines.host import Limits
from dphh.journal import once_by
from dphh.registry import VERBS as REGISTRY
from dphh.registry import found_by
from dphh.run import release_of
from dphh.testing import SeededRandomness
from dphh.udfs.draws.randomness import RunRandomness
from dphh.udfs.kernel import contributions, gathering, positions, spilled_texts
from dphh.udfs.text import vocabulary
from tests.engines import cut_short
from tests.engines.levels import limits_of

FEW: dict[str, Any] = {"epsilon": 8, "delta": 1e-4, "max_items": 10}
MUCH = {"epsilon": 30, "delta": 1e-2}
LISTED = {
    "prior": pl.DataFrame({"item": ["w0", "w1", "w2", "w0 w1"], "count": [90, 50, 9, 20]}),
    "prior_is_public": True,
}
#: Of one draw; a test's of its own; and what another of these has.
NOT_HERE = ("items", "trie-all", "ngrams-single")
#: All verbs and methods that draw more than once, and what else goes on from a stored draw.
ASKED: dict[str, Callable[[Corpus], Plan]] = {
    **{name: ask for name, ask in cut_short.VERBS.items() if name not in NOT_HERE},
    "items-counts": lambda corpus: items(corpus, **FEW, method="sips", counts=0.3),
    "items-auto-rounds": lambda corpus: items(corpus, **FEW | MUCH, method="auto"),
    "items-listed": lambda corpus: items(corpus, **FEW, **LISTED, counts=0.3),
    "ngrams-listed": lambda corpus: ngrams(corpus, **FEW, max_n=3, **LISTED),
    "counts": lambda corpus: counts(
        corpus, of=["w0", "w1 w0"], max_held=10, epsilon=8, delta=1e-4
    ),
    "ldp-trie": lambda corpus: ldp_trie(
        corpus, local_epsilon=8, delta=1e-4, users_per_level=400, contributions=2, max_length=3,
        keep=10, character_set="abcdefg", passes=1,
    ),
}  # fmt: skip

#: Where what a first draw found decides what else is drawn: each way once.
DRAWN = {
    "items-auto": ["items/choice", "items/round 2"],
    "items-auto-rounds": ["items/choice", "items"],
}


@dataclass
class Book:
    """A ledger that keeps the draws of one run."""

    stored: dict[str, bytes] = field(default_factory=dict)

    def level(self, _: object, step: str) -> bytes | None:
        return self.stored.get(step)

    def keep_level(self, _: object, step: str, drawn: bytes) -> bytes:
        self.stored[step] = drawn
        return drawn


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Corpus]:
    folder = tmp_path_factory.mktemp("corpora")
    words = [(user, f"w{user % n} w{user % (n + 1)} w0") for n in (1, 3, 7) for user in range(400)]
    # Some hold more than they count for, in long texts; some have texts of no word.
    for user in range(0, 400, 5):
        words += [(user, " ".join(f"v{user * step % 97}" for step in range(user % 83))), (user, "")]
    letters = "abcdefg"
    spelled = [
        (user, letters[user % n] + letters[user % 3] + letters[user % (n + 1)])
        for n in (2, 4, 6)
        for user in range(2000)
    ]
    found = {}
    for name, rows, content in (("text", words, "text"), ("item", spelled, "item")):
        path = folder / f"{name}.parquet"
        pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(path)
        found[name] = Corpus(path, user="who", **{content: "what"})  # type: ignore[arg-type]
    return found


def run(plan: Plan, engine: str, book: Book, limits: Limits | None = None) -> Release:
    assert plan.corpus is not None
    corpus = REGISTRY[plan.verb].read(plan.corpus, plan.price)
    source = RunRandomness(SeededRandomness(7))
    source.draw_once_by(bytes(32))
    host = open_host(engine, corpus, source, limits or limits_of(engine))
    try:
        once = once_by(cast(Any, book), cast(Any, None))
        found = found_by(plan.price, host, once, corpus.content.joiner, lambda _: None)
        return release_of(found, plan.price, corpus, host, "a run", source)
    finally:
        host.close()


def some_of(steps: list[str]) -> Iterator[list[str]]:
    """The first draws, as a run that was cut short leaves them; and each one alone."""
    yield from (steps[: number + 1] for number in range(len(steps)))
    yield from ([step] for step in steps[1:])


@pytest.mark.parametrize("asked", ASKED)
def test_whichever_draws_are_stored_the_release_is_the_same(
    engine: str, asked: str, corpora: dict[str, Corpus]
) -> None:
    of = "item" if "trie" in asked else "text"
    plan = ASKED[asked](corpora[of])
    whole = Book()
    release = run(plan, engine, whole)
    assert len(release)
    assert list(whole.stored) == DRAWN.get(asked, list(whole.stored))
    for some in some_of(list(whole.stored)):
        book = Book({step: whole.stored[step] for step in some})
        again = run(plan, engine, book)
        assert again.to_arrow() == release.to_arrow(), some
        assert again.manifest == release.manifest, some
        assert book.stored == whole.stored, some


#: One of each way in which users are worked through.
WORKED = ("items-adaptive", "items-counts", "ngrams", "ngrams-forecast", "ngrams-listed", "counts")


@pytest.mark.parametrize("asked", WORKED)
def test_pieces_rows_and_threads_change_no_release(
    asked: str, corpora: dict[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users are worked through some at a time. Here few are, some users are longer than a piece,
    and rows come in another order, so that words are numbered in another."""
    whole = run(ASKED[asked](corpora["text"]), "duckdb", Book())
    for module, name, few in (
        (contributions, "PIECE", 16), (positions, "PIECE", 16), (vocabulary, "NUMBERED", 32),
        (gathering, "ROW", 8), (gathering, "STRETCH", 16), (gathering, "BYTES", 64),
        (spilled_texts, "POSITIONS", 64),
    ):  # fmt: skip
        assert getattr(module, name) > few
        monkeypatch.setattr(module, name, few)
    monkeypatch.setattr(duckdb_rows, "SHARE", 2**62)  # all texts go to files
    rows = pl.read_parquet(corpora["text"].where[0])
    rows.sample(fraction=1, shuffle=True, seed=5).write_parquet(tmp_path / "rows.parquet")
    corpus = Corpus(tmp_path / "rows.parquet", user="who", text="what")
    for threads in (1, 4):
        release = run(ASKED[asked](corpus), "duckdb", Book(), Limits(threads=threads))
        assert release.to_arrow() == whole.to_arrow()
