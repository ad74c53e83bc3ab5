"""Data are known again by what is read of them, whatever holds them; and by nothing else."""

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import (
    BudgetRefused,
    Corpus,
    DphhError,
    Ledger,
    Plan,
    Release,
    UsageError,
    counts,
    items,
)
from dphh.engines import ENGINES
from dphh.errors import Notice
from dphh.reader.corpus import replace_corpus
from dphh.reader.files import LEAST_MANY_FILES
from dphh.udfs.noise.randomness import SystemRandomness
from tests.engines.levels import frame, host_on

pytestmark = pytest.mark.filterwarnings("ignore::dphh.errors.Notice")
KEY = bytes(range(32))
ROWS = [(user, f"the same words {user % 7}") for user in range(300)]


def plan(source: Any, **options: Any) -> Plan:
    return items(Corpus(source, user="who", text="what", **options), epsilon=1.0, delta=1e-7)


def digest(source: Any, engine: str = "duckdb", by: str | None = None, **options: Any) -> str:
    corpus = Corpus(source, user="who", **({"text": "what"} | options))
    with host_on(engine, replace_corpus(corpus, by=by), SystemRandomness()) as host:
        return host.digest(KEY)


def spelled(value: Any) -> bytes:
    if value is None:
        return b":"
    if isinstance(value, list):
        return str(len(value)).encode() + b"[" + b"".join(map(spelled, value))
    if isinstance(value, bytes):
        return str(len(value)).encode() + b":" + value.hex().upper().encode()
    text = str(value).encode()
    return str(len(text)).encode() + b":" + text


def plain(rows: Any) -> str:
    """The digest by plain Python, of rows (user, content, group)."""
    total = 0
    for row in rows:
        said = KEY.hex().encode() + b"".join(map(spelled, row))
        total += int.from_bytes(hashlib.md5(said).digest(), "little")
    total %= 2**128
    return hashlib.blake2b(total.to_bytes(16), key=KEY, digest_size=16).hexdigest()


CONTENTS: dict[str, tuple[list[Any], pl.DataType, dict[str, Any]]] = {
    "texts": (["a", "", "ü\0:é", "a" * 300, None], pl.String(), {}),
    "bytes": ([b"a", b"\xff", b"", None], pl.Binary(), {}),
    "lists": ([["a", None], [], ["a b"], ["a", "b"], None], pl.List(pl.String), {"as_": "list"}),
    "lists of bytes": ([[b"\xff", None], [], None], pl.List(pl.Binary), {"as_": "list"}),
    "numbers": ([1, -2, None], pl.Int64(), {"text": None, "item": "what"}),
}


@pytest.mark.on_spark
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", CONTENTS)
def test_the_digest_is_the_plain_one_on_every_engine(kind, engine, tmp_path):
    contents, of, options = CONTENTS[kind]
    groups = ["de", None, "", "DE", "at"][: len(contents)] * 2
    rows = {"who": [*range(len(contents))] * 2, "what": contents * 2, "land": groups}
    held = pl.DataFrame(rows, schema_overrides={"what": of})
    held.write_parquet(tmp_path / "a.parquet")
    counting = [row for row in zip(*rows.values(), strict=True) if row[1] is not None]
    for source in (tmp_path / "a.parquet", held):
        assert digest(source, engine, by="land", **options) == plain(counting)


def test_the_largest_hashes_are_summed_without_a_loss():
    """DuckDB's own sum of integers of 128 bits is a float."""
    rows = [(user, "a", None) for user in range(20_000)]
    assert digest(frame([row[:2] for row in rows])) == plain(rows)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ([(1, "a")], [(1, "a"), (1, "a")]),
        ([(1, "a"), (2, "b")], [(1, "b"), (2, "a")]),
        ([(1, "a")], [(2, "a")]),
        ([(1, "")], []),
        ([("1", "1:a")], [("11:", "a")]),
        ([(1, ["a", "b"])], [(1, ["a b"])]),
        ([(1, ["a", "b"])], [(1, ["b", "a"])]),
        ([(1, [None, "a"])], [(1, ["", "a"])]),
        ([(1, []), (1, ["a"])], [(1, ["a"])]),
    ],
)
def test_other_rows_have_another_digest(one, two):
    options = {"as_": "list"} if isinstance(one[0][1], list) else {}
    schema = {"who": type(one[0][0]), "what": pl.List(pl.String) if options else pl.String}
    both = (pl.DataFrame(rows, schema, orient="row") for rows in (one, two))
    assert len({digest(each, **options) for each in both}) == 2


def test_rows_that_do_not_count_are_no_part_of_it():
    held = frame([*ROWS, (1, "left out")])
    assert digest(held, where="what <> 'left out'") == digest(frame(ROWS))
    assert digest(held, max_text_length=3) != digest(held)
    nobody = pl.concat([held, pl.DataFrame({"who": [None], "what": ["a"]}, held.schema)])
    assert digest(nobody, null_users="drop") == digest(held)


# The release that there is


def forms(folder: Path) -> dict[str, Any]:
    """The same rows in many forms and places."""
    rows = frame(ROWS)
    shuffled = rows.sample(fraction=1, shuffle=True)
    rows.write_parquet(folder / "a.parquet")
    shutil.copy2(folder / "a.parquet", folder / "copy.parquet")
    shuffled.write_parquet(folder / "shuffled.parquet", compression="snappy", row_group_size=50)
    rows.write_csv(folder / "a.csv")
    rows.write_ndjson(folder / "a.jsonl")
    for part, of in enumerate((rows[:100], rows[100:])):
        (folder / f"parts/part={part}").mkdir(parents=True)
        of.write_parquet(folder / f"parts/part={part}/a.parquet")
    (folder / "lake").mkdir()
    for part in range(LEAST_MANY_FILES):
        rows[part * 6 : part * 6 + 6].write_parquet(folder / f"lake/{part}.parquet")
    return {
        "file": folder / "a.parquet",
        "copy": folder / "copy.parquet",
        "other order and compression": folder / "shuffled.parquet",
        "folder": folder / "parts",
        "lake of small files": folder / "lake",
        "csv": folder / "a.csv",
        "json lines": folder / "a.jsonl",
        "frame": rows,
        "lazy": rows.lazy(),
        "scan": pl.scan_parquet(folder / "a.parquet"),
        "the same scan": pl.scan_parquet(folder / "a.parquet"),
        "arrow": rows.to_arrow(),
        "pandas": rows.to_pandas(),
        "relation": duckdb.connect().from_arrow(rows.to_arrow()),
        "relation of a file": duckdb.read_parquet(str(folder / "shuffled.parquet")),
    }


def test_wherever_the_rows_are_their_release_comes_back_for_nothing(ledger, tmp_path):
    pytest.importorskip("pandas")
    sources = forms(tmp_path)
    first = plan(sources.pop("file")).run(ledger=ledger)
    for name, source in sources.items():
        with pytest.warns(Notice, match=f"nothing is spent.*{first.run_id}"):
            again = plan(source).run(ledger=ledger, engine="polars" if "scan" in name else "duckdb")
        assert again.run_id == first.run_id, name
    assert len(ledger.runs()) == 1


def test_another_row_is_paid_for_and_told_of(ledger, tmp_path):
    first = plan(frame(ROWS)).run(ledger=ledger)
    with pytest.warns(Notice, match=f"data are not those of run {first.run_id} of 20.*spends anew"):
        second = plan(frame(ROWS[:-1])).run(ledger=ledger)
    assert second.run_id != first.run_id
    assert plan(frame(ROWS)).run(ledger=ledger).run_id == first.run_id  # back to what it was
    assert plan(frame(ROWS)).run(ledger=ledger, again=True).run_id != first.run_id


def test_a_frame_that_is_changed_in_place_is_other_data(ledger):
    pandas = pytest.importorskip("pandas")
    held = pandas.DataFrame({"who": range(300), "what": ["before"] * 300})
    asked = plan(held)
    assert asked.run(ledger=ledger).to_polars()["item"].to_list() == ["before"]
    held["what"] = "after"
    assert asked.run(ledger=ledger).to_polars()["item"].to_list() == ["after"]
    assert len(ledger.runs()) == 2


def test_a_scan_whose_file_is_written_again_is_what_the_file_holds(ledger, tmp_path):
    path = tmp_path / "a.parquet"
    frame(ROWS).write_parquet(path)
    scan = pl.scan_parquet(path)
    first = plan(scan).run(ledger=ledger)
    frame(ROWS).write_parquet(path)  # as a notebook's first cell does, each time that it runs
    for source in (scan, path):
        assert plan(source).run(ledger=ledger).run_id == first.run_id
    frame([(user, "other") for user in range(300)]).write_parquet(path)
    for source in (scan, path):
        assert plan(source).run(ledger=ledger).to_polars()["item"].to_list() == ["other"]
    assert len(ledger.runs()) == 2


def test_a_cap_that_is_used_up_gives_back_what_it_paid_for(ledger):
    held = frame(ROWS)
    asked = plan(held, account="reviews")
    ledger.add("reviews", asked.corpus, 1.0, 1e-7)
    first = asked.run(ledger=ledger)
    assert plan(held.clone(), account="reviews").run(ledger=ledger).table == first.table
    with pytest.raises(BudgetRefused, match="'reviews'"):
        plan(frame(ROWS[:-1]), account="reviews").run(ledger=ledger)
    with pytest.raises(BudgetRefused, match="which account pays"):
        plan(held).run(ledger=ledger)
    assert len(ledger.runs()) == 1


def test_files_that_are_as_they_were_are_not_read_for_another_request(
    ledger, tmp_path, monkeypatch
):
    frame(ROWS).write_parquet(tmp_path / "a.parquet")
    corpus = Corpus(tmp_path / "a.parquet", user="who", text="what")
    plan(corpus.where[0]).run(ledger=ledger)
    monkeypatch.setattr("dphh.reader.rows.sum_of_hashes", None)  # a second pass would fail
    found = counts(corpus, of=["same"], epsilon=0.1, delta=1e-9).run(ledger=ledger)
    monkeypatch.undo()
    again = counts(
        Corpus(frame(ROWS), user="who", text="what"), of=["same"], epsilon=0.1, delta=1e-9
    )
    assert again.run(ledger=ledger).run_id == found.run_id


def test_an_analyst_does_not_see_whether_rows_are_those_of_before(ledger, tmp_path):
    """That nobody did anything since would be known for certain. Only the files are looked at."""
    path = tmp_path / "a.parquet"
    frame(ROWS).write_parquet(path)
    ledger.add("reviews", Corpus(path, user="who", text="what"), 9.0, 1e-4)
    ledger.set_share("reviews", "alice", 9.0, 1e-4)
    theirs = Ledger(ledger.path, "alice")
    asked = items(ledger.corpus("reviews"), epsilon=1.0, delta=1e-7)
    first = asked.run(ledger=theirs)
    assert asked.run(ledger=theirs).run_id == first.run_id
    frame(ROWS).write_parquet(path)
    with pytest.warns(Notice, match="spends anew"):
        assert asked.run(ledger=theirs).run_id != first.run_id
    assert len(theirs.runs()) == 2


# What cannot be read


def fails(_: Any) -> str:
    raise ValueError("SECRET")


def cut_off(path: Path) -> Path:
    """A file whose schema can be read and whose rows cannot."""
    pq.write_table(pa.table(frame(ROWS)), path, compression="zstd")
    data = bytearray(path.read_bytes())
    at = pq.read_metadata(path).row_group(0).column(1).data_page_offset
    data[at + 30 : at + 90] = bytes(60)
    path.write_bytes(data)
    return path


def relation_that_fails() -> Any:
    con = duckdb.connect()
    con.create_function("fails", fails, ["VARCHAR"], "VARCHAR")
    return con.from_arrow(frame(ROWS).to_arrow()).project("who, fails(what) AS what")


UNREADABLE: dict[str, Callable[[Path], Any]] = {
    "file": cut_off,
    "lazy frame": lambda _: frame(ROWS).lazy().with_columns(
        pl.col("what").map_elements(fails, pl.String)
    ),
    "relation": lambda _: relation_that_fails(),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_cannot_be_read_fails_for_nothing(kind, ledger, tmp_path):
    with pytest.raises(DphhError, match="Nothing was spent") as caught:
        plan(UNREADABLE[kind](tmp_path / "a.parquet")).run(ledger=ledger)
    assert "SECRET" not in str(caught.value)
    assert ledger.runs() == []


# Where the digest is


def test_the_digest_is_in_the_ledgers_file_and_nowhere_else(ledger, tmp_path, capsys):
    frame(ROWS).write_parquet(tmp_path / "a.parquet")
    release: Release = plan(tmp_path / "a.parquet").run(ledger=ledger, out=tmp_path / "out")
    with sqlite3.connect(ledger.path) as con:
        ((data, files),) = con.execute("SELECT data, files FROM runs").fetchall()
    assert (
        data
        == hashlib.blake2b(  # not the sum, whose differences would tell single rows
            plain_sum(ledger.data_key()).to_bytes(16), key=ledger.data_key(), digest_size=16
        ).hexdigest()
    )
    shown = release.dumps() + repr(ledger) + repr(ledger.runs()) + capsys.readouterr().err
    shown += "".join(map(repr, map(Path.read_bytes, (tmp_path / "out").iterdir())))
    key = ledger.data_key().hex()
    assert not [each for each in (data, files, key) if each in shown]


def plain_sum(key: bytes) -> int:
    rows = [key.hex().encode() + b"".join(map(spelled, (*row, None))) for row in ROWS]
    return sum(int.from_bytes(hashlib.md5(row).digest(), "little") for row in rows) % 2**128


def test_two_neighbours_digests_are_unlike_in_every_way():
    """A row more moves the whole digest, by no amount that is the row's."""
    both = [int(digest(frame(rows)), 16) for rows in (ROWS, [*ROWS, (7, "one more")])]
    alone = int(digest(frame([(7, "one more")])), 16)
    assert (both[1] - both[0]) % 2**128 != alone
    assert 30 < (both[0] ^ both[1]).bit_count() < 98


def test_a_run_id_with_another_request_is_refused_whatever_the_data(ledger):
    first = plan(frame(ROWS)).run(ledger=ledger)
    with pytest.raises(UsageError, match="with another request"):
        plan(frame(ROWS), strip="x").run(ledger=ledger, run_id=first.run_id)
