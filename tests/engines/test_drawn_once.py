"""A run that was cut short draws what is left, each step once, and pays for all of it."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dphh import Ledger
from dphh.udfs.noise.randomness import PURPOSES_FIXED_IN_RUN
from tests.engines.recorded_runs import CASES, Draw, Listening, corpus_of, is_of, ran, recorded


class CutShortError(Exception):
    pass


#: Of each step that is stored, after each that it may follow.
SEVERAL = (
    "sips", "adaptive, counted", "auto, rounds", "auto of nothing, one round",
    "forecast, three rounds of words", "forecast, words in one round, counted",
    "forecast with a prior, counted", "forecast of nothing", "dpne, by shares",
    "dpne that ends at pairs", "trie", "trie that stops growing, counted",
)  # fmt: skip


@pytest.mark.parametrize("case", SEVERAL)
def test_a_run_that_goes_on_draws_each_step_once_and_books_the_same(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one engine: what is drawn again is the journal's to say. Cut after every level and
    before it settles, it comes to what it comes to in one go."""
    whole = ran("polars", CASES[case], tmp_path, is_test=True)
    corpus = corpus_of(tmp_path, CASES[case].rows)
    book = Ledger(tmp_path / "again.sqlite")
    book.add("corpus", corpus, 1_000.0, 0.5)
    plan = CASES[case].plan(corpus)
    seen: set[str] = set()
    asked, release = [], None
    settle = Ledger.settle

    def stops_once(*arguments: Any) -> None:
        monkeypatch.setattr(Ledger, "settle", settle)
        raise CutShortError

    monkeypatch.setattr(Ledger, "settle", stops_once)
    while release is None:

        def stop(line: str) -> None:
            if line.startswith("level") and len(steps := asked[-1].steps) and steps[-1] not in seen:
                seen.add(steps[-1])
                raise CutShortError

        with recorded("polars") as found, suppress(CutShortError):
            asked.append(found)
            release = plan.run(
                engine="polars",
                ledger=book,
                run_id="one",
                randomness=Listening(found, 1, is_test=True),
                progress=stop,
            )
    steps = [step for each in asked for step in each.steps]
    assert steps == whole.asked.steps
    # Cut after each level, and once more.
    assert len(asked) > 1 + len([step for step in steps if step != "counts"])
    for each in asked:
        purposes = [purpose for purpose in each.words if purpose not in PURPOSES_FIXED_IN_RUN]
        assert all(any(is_of(purpose, step) for step in each.steps) for purpose in purposes)
    for step in steps:
        draws = [draw for each in asked for draw in each.of(step)]
        assert told_of(draws) == told_of(whole.asked.of(step))
    assert release.manifest == whole.release.manifest
    assert release.to_arrow() == whole.release.to_arrow()
    (entry,) = book.runs()
    assert entry.events == whole.booked


def told_of(draws: Sequence[Draw]) -> list[tuple[str, str, str]]:
    return sorted(
        (draw.name, draw.purpose, str(draw.asked.get("sigma", draw.asked.get("numerator"))))
        for draw in draws
    )
