"""What is stored of a level: values alone, in an order that says nothing of how they came."""

import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus
from dphh.ledger import BookedRun, Ledger
from dphh.run import once_for_run, rows_as_parquet
from tests.ledger.asked import ask

ROWS = [("b", 7), ("a", 9), ("ç", -1), ("a\x1fb", 2**40)]


def table(rows: list[tuple[str, int]], text: pa.DataType) -> pa.Table:
    return pa.table(
        {"key": pa.array([key for key, _ in rows], text), "noisy": [noisy for _, noisy in rows]}
    )


class Drawn:
    """Draws numbers, each once."""

    def __init__(self) -> None:
        self.last = 0

    def draw(self) -> pa.Table:
        self.last += 1
        return table([("number", self.last)], pa.string())


def begun(ledger: Ledger, run: str) -> BookedRun:
    corpus = Corpus("/not/there", user="who", text="what")
    return ask(ledger, run, corpus, 1.0, run=run)


def number(drawn: Any) -> int:
    return int(drawn.column("noisy")[0].as_py())


def test_what_stands_is_handed_out_and_not_drawn_again(ledger):
    run, session = begun(ledger, "one"), Drawn()
    for attempt in range(3):
        once = once_for_run(ledger, run)
        assert number(once("round 1", session.draw)) == 1
        assert number(once("counts", session.draw)) == 2
        assert session.last == 2, f"attempt {attempt} drew again"


def test_each_name_stands_for_itself_and_within_its_run(ledger):
    """Not for one that begins alike, and not for another run's of the same name."""
    steps = ["level 1", "level 10", "level 1/", "level", "LEVEL 1", "level 2", "level_1", "level %"]
    for session in (Drawn(), Drawn()):
        for run in ("one", "two"):
            session.last = 100 * (run == "two")
            once = once_for_run(ledger, begun(ledger, run))
            drawn = [number(once(step, session.draw)) for step in steps]
            assert drawn == [100 * (run == "two") + 1 + place for place in range(len(steps))]
    once = once_for_run(ledger, begun(ledger, "one"))
    backwards = [number(once(step, Drawn().draw)) for step in steps[::-1]]
    assert backwards == list(range(len(steps), 0, -1))


def test_what_another_process_stored_first_is_what_both_go_by(ledger):
    run, other = begun(ledger, "one"), Drawn()
    other.last = 41

    def slower() -> pa.Table:
        assert number(once_for_run(ledger, run)("round 1", other.draw)) == 42
        return table([("number", 1)], pa.string())

    assert number(once_for_run(ledger, run)("round 1", slower)) == 42
    assert number(once_for_run(ledger, run)("round 1", Drawn().draw)) == 42


def test_no_two_draws_of_a_run_have_one_name(ledger):
    once = once_for_run(ledger, begun(ledger, "one"))
    once("round 1", Drawn().draw)
    with pytest.raises(AssertionError, match="two draws of one run are called 'round 1'"):
        once("round 1", Drawn().draw)


def test_the_same_rows_are_stored_alike_however_an_engine_gave_them():
    stored = set()
    for seed, text in enumerate((pa.string(), pa.large_string(), pa.string_view())):
        rows = random.Random(seed).sample(ROWS, len(ROWS))
        whole = table(rows, text)
        stored |= set(map(rows_as_parquet, (whole, pa.concat_tables([whole[:1], whole[1:]]))))
    assert len(stored) == 1
    found = pq.read_table(io.BytesIO(stored.pop()))
    assert list(zip(*found.to_pydict().values(), strict=True)) == sorted(ROWS)


def test_what_lies_under_a_null_or_beside_the_rows_is_not_stored():
    hidden = pa.StringArray.from_buffers(
        3,
        pa.py_buffer(b"\0\0\0\0\x06\0\0\0\x07\0\0\0\x0d\0\0\0"),
        pa.py_buffer(b"secretasecret"),
        pa.py_buffer(b"\x02"),  # the middle row alone is there
    )
    grown = pa.table({"node": [0, 0, 1], "token": hidden, "ended": [True, False, True]})
    grown = grown.replace_schema_metadata({"note": "secret"})
    beside = pa.table({"node": [5], "token": ["secret"], "ended": [False]}, schema=grown.schema)
    grown = pa.concat_tables([grown, beside])
    stored = rows_as_parquet(grown.slice(0, 3))
    assert b"secret" not in stored
    found = pq.read_table(io.BytesIO(stored)).to_pydict()
    assert found == {"node": [0, 0, 1], "token": ["a", None, None], "ended": [False, True, True]}
