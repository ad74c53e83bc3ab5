"""What breaks under a run, beyond its process (docs/faults.md)."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dphh import Corpus, Plan, items, ngrams, trie
from dphh.testing import SeededRandomness

ASKED = {
    "items": lambda corpus: items(corpus, epsilon=4.0, delta=1e-5, max_items=10),
    "ngrams": lambda corpus: ngrams(corpus, max_n=3, epsilon=8.0, delta=1e-5, max_items=10),
    "trie": lambda corpus: trie(corpus, epsilon=8.0, delta=1e-3, max_length=3),
}


def written(folder: Path) -> Corpus:
    rows = [(user, f"w{user % n} w{user % (n + 1)} w0") for n in range(1, 9) for user in range(400)]
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(folder / "c.parquet")
    return Corpus(folder / "c.parquet", user="who", text="what")


@pytest.mark.parametrize("verb", ASKED)
def test_a_corpus_that_goes_once_it_was_read_is_not_missed(
    engine: str, verb: str, tmp_path: Path
) -> None:
    """Rows are read once: whatever becomes of the files later changes nothing in a run."""
    corpus = written(tmp_path)

    def run(plan: Plan, name: str, gone: bool) -> object:
        def remove(line: str) -> None:
            if gone and line.startswith("level"):
                (tmp_path / "c.parquet").unlink(missing_ok=True)

        release = plan.run(
            engine=engine, ledger=tmp_path / f"{name}.sqlite", run_id="one", progress=remove,
            randomness=SeededRandomness(5),
        )  # fmt: skip
        return release.to_arrow()

    plan = ASKED[verb](corpus)
    stayed = run(plan, "stayed", gone=False)
    went = run(plan, "went", gone=True)
    assert not (tmp_path / "c.parquet").exists()
    assert went == stayed
