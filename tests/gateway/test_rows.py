"""How an answer goes to what serves it: measured, and in batches with others' turns between."""

from __future__ import annotations

import os
import signal
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("h11")

from dphh.errors import UsageError
from dphh.gateway import answer_rows as rows
from dphh.gateway import child, served, wire
from dphh.gateway.answer_rows import Rows, in_batches, of_table
from dphh.gateway.sandbox import Sandbox
from dphh.gateway.served import Served
from dphh.udfs.text.arrow_bytes import packed
from tests.gateway.conftest import Place, in_thread, needs_quack, until


def cut(table: pa.Table) -> tuple[list[pa.Table], int]:
    return in_batches(table.to_batches(), table.schema)


def test_batches_are_small_and_hold_all_rows_in_order() -> None:
    table = pa.table({"n": range(1_000_000), "t": [f"text {n % 7}" for n in range(1_000_000)]})
    batches, size = cut(table)
    assert len(batches) > 5 and size >= table.nbytes
    assert all(batch.nbytes <= rows.BATCH_BYTES for batch in batches)
    assert pa.concat_tables(batches).equals(table.rename_columns(["c0", "c1"]))


def test_an_answer_without_rows_is_one_batch_with_its_columns() -> None:
    (only,), _ = cut(pa.table({"a": pa.array([], pa.int8()), "b": pa.array([], pa.string())}))
    assert only.num_rows == 0 and only.column_names == ["c0", "c1"]


def test_columns_of_one_name_stay_apart() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    (only,), _ = cut(table)
    assert only.to_pylist() == [{"c0": 1, "c1": 2}]
    assert rows.reading("answers.x", of_table(table).names) == (
        'SELECT c0 AS "a", c1 AS "a" FROM answers.x'
    )


def test_what_an_answer_takes_is_what_duckdb_takes() -> None:
    """A boolean is a bit to Arrow, and NULLs may be nothing at all."""
    bits = pa.array([True, False] * 500_000)
    deep: Any = bits
    for _ in range(9):
        deep = pa.StructArray.from_arrays([deep], names=["a"])
    assert cut(pa.table({"a": bits}))[1] > 1_000_000
    assert cut(pa.table({"a": deep}))[1] > 10_000_000
    assert cut(pa.table({"a": pa.nulls(1_000_000)}))[1] > 1_000_000


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (pa.table({"a": pa.nulls(60_000_000)}), "larger than"),
        (pa.table({f"a{n}": [1] for n in range(2_100)}), "larger than"),
        (pa.table({"a": ["x" * (9 << 20)]}), "rows are too long"),
        (pa.table({"a": ["x" * 9_000] * 2_000}), "rows are too long"),
    ],
    ids=["rows of nothing", "columns", "a long row", "many long rows"],
)
def test_too_much_is_refused(table: pa.Table, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        cut(table)


# Where the answers lie


@pytest.fixture(scope="module")
def alone() -> Iterator[Served]:
    alone = Served()
    yield alone
    alone.close()


def numbers(*batches: int) -> Rows:
    tables = [packed(pa.table({"c0": range(count)})) for count in batches]
    return Rows(["n"], 1, len(tables), tables.__getitem__)


def count(served: Served, name: str) -> bytes:
    return served.send(wire.Prepare(served.connect(), f"SELECT count(*) FROM answers.{name}"))


@needs_quack
def test_between_two_batches_of_one_others_have_their_turn(alone: Served) -> None:
    go, begun, whole = threading.Event(), threading.Event(), numbers(10, 10, 10)

    def slow(number: int) -> bytes:
        if number == 1:
            begun.set()
            assert go.wait(250)
        return whole.batch(number)

    large = Rows(["n"], 1, 3, slow)
    keeping, _ = in_thread(lambda: alone.keep("large", large, lambda: True))
    assert begun.wait(250)
    try:
        alone.keep("small", numbers(5), lambda: True)  # not before its turn, but before the end
        assert b"Error" not in count(alone, "small")
        assert keeping.is_alive()
    finally:
        go.set()
    keeping.join(250)
    assert b"Error" not in count(alone, "large")


@needs_quack
def test_what_is_no_longer_wanted_is_not_kept(alone: Served) -> None:
    for wanted in ([False], [True, False], [True, True, True, False]):
        answers = iter(wanted)
        with pytest.raises(UsageError, match="no room"):
            alone.keep("unwanted", numbers(3, 3, 3), lambda answers=answers: next(answers))  # type: ignore[misc]
        assert b"does not exist" in count(alone, "unwanted")


@needs_quack
def test_what_goes_wrong_with_one_message_ends_nothing_of_others(
    alone: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone.keep("others", numbers(3), lambda: True)
    posted = Served._post

    def fails(self: Served, message: wire.Message, seconds: float) -> bytes | None:
        return None if isinstance(message, wire.Fetch) else posted(self, message, seconds)

    monkeypatch.setattr(Served, "_post", fails)
    with pytest.raises(UsageError, match="cannot be served"):
        alone.send(wire.Fetch("A" * 32, (0, 0)))
    assert alone.alive()
    assert b"Error" not in count(alone, "others")


@needs_quack
def test_what_takes_nothing_it_is_sent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is more than lies in a pipe: who sends one to a process that hangs waits, not for
    ever."""
    monkeypatch.setattr(child, "_SEND_TIMEOUT", struct.pack("@ll", 1, 0))
    hung = Served()
    os.kill(hung._child._process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(child.Gone):
            hung.keep("answer", numbers(1_000_000), lambda: True)
        assert not hung.alive()
    finally:
        hung.close()


# Through the gateway


@needs_quack
def test_a_large_answer_of_one_analyst_holds_up_nobody(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = place.gateway()
    alice, bob = place.client("alice"), place.client("bob")
    go, begun, batch = threading.Event(), threading.Event(), Sandbox._fetch_batch

    def slow(self: Sandbox, number: int) -> bytes:
        if number == 2:
            begun.set()
            assert go.wait(250)
        return batch(self, number)

    monkeypatch.setattr(Sandbox, "_fetch_batch", slow)
    first = gateway._served
    running, found = in_thread(lambda: alice.ask("SELECT n, n + 1 FROM range(1000000) t(n)"))
    try:
        assert begun.wait(250)
        assert bob.ask("SELECT n FROM range(2500) t(n)")[-1] == (2499,)
        assert running.is_alive()
    finally:
        go.set()
    running.join(250)
    assert len(found[0]) == 1_000_000 and len({n for n, _ in found[0]}) == 1_000_000
    assert gateway._served is first


@needs_quack
def test_a_statement_stopped_on_its_way_leaves_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = place.gateway()
    alice, other = place.client("alice"), place.client("alice")
    batch = Sandbox._fetch_batch
    begun = threading.Event()

    def stopped(self: Sandbox, number: int) -> bytes:
        if number == 2:
            begun.set()
            until(lambda: self.stopped)
        return batch(self, number)

    monkeypatch.setattr(Sandbox, "_fetch_batch", stopped)
    running, _ = in_thread(lambda: alice.refused("SELECT n, n + 1 FROM range(1000000) t(n)"))
    assert begun.wait(250)
    assert other.ask("FROM dphh_stop()") == [(True,)]
    running.join(250)
    monkeypatch.undo()
    until(lambda: len(gateway._answers) == 1)  # of the one that stopped it
    assert alice.ask("SELECT 1") == [(1,)]


@needs_quack
def test_what_a_client_fetches_at_once_is_bounded(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.gateway()
    sizes, send = [], Served.send

    def measured(self: Served, message: wire.Message) -> bytes:
        answer = send(self, message)
        sizes.append(len(answer))
        return answer

    monkeypatch.setattr(Served, "send", measured)
    wide = "SELECT l FROM (SELECT list(m) AS l FROM range(450) r(m)), range(20000)"
    con = place.client("alice").con
    found = con.execute("SELECT count(*), sum(len(l)) FROM quack_query_by_name('srv', ?)", [wide])
    assert found.fetchall() == [(20_000, 20_000 * 450)]
    at_once = served.VECTORS_AT_ONCE * rows.VECTOR_BYTES
    assert at_once / 4 < max(sizes) <= at_once
