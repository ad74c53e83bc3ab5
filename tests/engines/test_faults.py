"""What breaks under a run, beyond its process (tests/engines/faults.md)."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dphh import Corpus, Ledger, Plan, items, ngrams, trie
from dphh.errors import DphhError
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


@pytest.mark.parametrize("verb", ASKED)
@pytest.mark.parametrize("how", ["cut short", "another's rows"])
def test_a_corpus_that_is_written_while_it_is_read_ends_in_one_of_two_ways(
    engine: str, verb: str, how: str, tmp_path: Path
) -> None:
    """A release of the rows that were read, or an error of ours that quotes none; paid once."""
    corpus, ledger = written(tmp_path), Ledger(tmp_path / "ledger.sqlite")
    other = pl.DataFrame({"who": ["x"] * 9, "what": ["secret nine"] * 9})
    changed = []

    def change(line: str) -> None:
        if not line.startswith("reading"):
            return
        changed.append(line)
        path = tmp_path / "c.parquet"
        if how == "cut short":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        else:
            other.write_parquet(path)

    plan = ASKED[verb](corpus)
    try:
        release = plan.run(engine=engine, ledger=ledger, progress=change)
    except DphhError as problem:
        assert "secret" not in str(problem) and problem.__context__ is None
    else:
        assert "secret" not in str(release.to_arrow())  # of one user: below every threshold
    (run,) = ledger.runs()
    assert changed and run.state in ("settled", "failed")
