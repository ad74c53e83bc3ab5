"""What leaves the building: whole or not at all, the same through every door, and harmless."""

import json
import os
from importlib.metadata import version

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, Release, UsageError, items
from dphh.columns import DIGEST_FIELD, SCORED_SCHEMA, digest_of
from dphh.errors import UnreachableError
from dphh.files.whole_files import write_whole
from dphh.price import manifest_before_run
from dphh.release import MANIFEST, TABLE
from dphh.testing import SeededRandomness
from tests.report.made import HOSTILE

CORPUS = Corpus("no.parquet", user="who", item="what")
PRICE = items(CORPUS, epsilon=1.0, delta=1e-8, counts=0).price


def release(items=("b", "a"), run_id="run-1", level=1, randomness="operating system"):
    table = pa.table(
        [
            pa.array([level] * len(items), pa.int32()),
            pa.array(items, pa.string()),
            pa.array([[item] for item in items], pa.list_(pa.string())),
            pa.array([10.0 - i for i in range(len(items))], pa.float64()),
        ],
        schema=SCORED_SCHEMA,
    )
    first = {**PRICE.levels[0].to_json(), "level": level, "released": len(items)}
    manifest = {
        **manifest_before_run(PRICE, CORPUS, table.column_names, is_test=False),
        "run_id": run_id,
        "day": "2026-11-28",
        "randomness": randomness,
        "levels": [first],
        "engine": {"name": "duckdb", "version": "2.0.0"},
        "versions": {"dphh": version("dphh"), "python": "3.11.7", "pyarrow": pa.__version__},
        DIGEST_FIELD: digest_of(table),
    }
    manifest = json.loads(json.dumps(manifest))
    return Release(table, manifest)


@pytest.mark.parametrize("items", [HOSTILE, []])
def test_a_release_is_the_same_through_every_door(tmp_path, items):
    made = release(items)
    back = Release.load(made.save(tmp_path / "deep" / "out"))
    assert back.manifest == made.manifest
    assert back.to_arrow() == made.to_arrow()
    assert back.to_arrow().schema == SCORED_SCHEMA
    assert back.to_polars()["item"].to_list() == items
    assert Release.from_parquet(made.parquet(), made.manifest).to_arrow() == made.to_arrow()
    assert pl.read_parquet(tmp_path / "deep" / "out" / TABLE).equals(made.to_polars())
    assert json.loads((tmp_path / "deep" / "out" / MANIFEST).read_text()) == made.manifest


def test_a_folder_has_one_release_which_may_be_saved_again(tmp_path):
    release().save(tmp_path)
    release().save(tmp_path)
    with pytest.raises(UsageError, match="already contains another release, which was paid for"):
        release(run_id="run-2").save(tmp_path)
    (tmp_path / MANIFEST).unlink()  # as of a save that was cut short
    with pytest.raises(UsageError, match=r"release.json could not be read"):
        Release.load(tmp_path)
    with pytest.raises(UsageError, match="contains another release"):
        release(run_id="run-2").save(tmp_path)
    assert Release.load(release().save(tmp_path)).run_id == "run-1"


def test_files_of_different_runs_are_not_one_release(tmp_path):
    release().save(tmp_path / "one")
    release(run_id="run-2").save(tmp_path / "two")
    (tmp_path / "two" / TABLE).replace(tmp_path / "one" / TABLE)
    with pytest.raises(UsageError, match=r"is of the run 'run-2', and .* of 'run-1': two rel"):
        Release.load(tmp_path / "one")


def test_damaged_files_are_named(tmp_path):
    release().save(tmp_path)
    table, manifest = (tmp_path / TABLE).read_bytes(), (tmp_path / MANIFEST).read_bytes()
    other = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), other)
    damaged = [(manifest, each) for each in (b"", table[:-10], other.getvalue().to_pybytes())]
    for bare, rows in (("{}", table), (manifest.decode(), _without_metadata(table))):
        (tmp_path / MANIFEST).write_text(bare)
        (tmp_path / TABLE).write_bytes(rows)
        with pytest.raises(UsageError, match="does not say of which run it is"):
            Release.load(tmp_path)
    damaged += [(each, table) for each in (b"", b"{", b"[]", b"1", b"null", b"{}", b"\xff")]
    for said, rows in damaged:
        (tmp_path / MANIFEST).write_bytes(said)
        (tmp_path / TABLE).write_bytes(rows)
        with pytest.raises(UsageError, match=r"^release: "):
            Release.load(tmp_path)


def _without_metadata(table: bytes) -> bytes:
    bare = pa.BufferOutputStream()
    pq.write_table(pq.read_table(pa.BufferReader(table)).replace_schema_metadata(None), bare)
    return bare.getvalue().to_pybytes()


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "file", b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"
    # No mistake of the caller: once there is room, the same call succeeds.
    with pytest.raises(UnreachableError, match=r"could not be written .No space left on device."):
        release().save(tmp_path / "out")


def test_a_releases_schema_file_and_manifest_say_what_a_score_is(tmp_path):
    frame = pl.DataFrame({"who": range(300), "what": ["a", "b", "a"] * 100})
    found = items(Corpus(frame, user="who", text="what"), epsilon=1.0, delta=1e-6).run(
        engine="polars", randomness=SeededRandomness(1), out=tmp_path / "out"
    )
    again = Release.load(tmp_path / "out")
    file = tmp_path / "out" / "release.parquet"
    for table in (found.to_arrow(), again.to_arrow(), pq.read_table(file)):
        said = table.schema.field("score").metadata[b"description"].decode()
        assert "no number of people" in said
    assert found.manifest["columns"]["score"] == said
    assert pq.read_schema(file).metadata[b"dphh.score"].decode() == said
