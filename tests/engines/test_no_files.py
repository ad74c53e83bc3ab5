"""What is named like a file and is none, or has no end: refused before anything waits for it."""

from __future__ import annotations

import gzip
import os
import socket

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, CorpusError, Ledger, check, items
from tests.engines.levels import histogram

SAID = "it is a pipe, a socket or a device"
#: Where one of these is opened after all, the test ends nevertheless.
pytestmark = pytest.mark.timeout(60)


def refused(source, ledger: Ledger, said: str, engine: str = "duckdb") -> None:
    corpus = Corpus(source, user="who", text="what")
    with pytest.raises(CorpusError, match=said):
        items(corpus, epsilon=1.0, delta=1e-6).run(engine=engine, ledger=ledger)
    assert ledger.runs() == []


def test_a_pipe_among_the_files_is_refused_and_costs_nothing(engine, tmp_path, ledger):
    pq.write_table(pa.table({"who": [1], "what": ["a"]}), tmp_path / "a.parquet")
    os.mkfifo(tmp_path / ".b.parquet")
    for source in (tmp_path, tmp_path / ".b.parquet", tmp_path / ".*.parquet"):
        refused(source, ledger, rf"\.b\.parquet: {SAID}", engine)
    refused(f"file://{tmp_path}/.b.parquet", ledger, SAID, engine)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.jsonl", "a.duckdb", "pipe"])
def test_a_pipe_of_any_name_is_refused(name, tmp_path, ledger):
    os.mkfifo(tmp_path / name)
    refused(tmp_path / name, ledger, SAID)


def test_sockets_and_devices_are_refused(tmp_path, monkeypatch, ledger):
    monkeypatch.chdir(tmp_path)  # a socket's name is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("a.parquet")
        refused("a.parquet", ledger, SAID)
    (tmp_path / "zeros.csv").symlink_to("/dev/zero")
    refused("zeros.csv", ledger, SAID)


def test_naming_a_corpus_and_checking_it_do_not_wait(tmp_path, ledger):
    os.mkfifo(tmp_path / "a.parquet")
    corpus = Corpus(tmp_path / "a.parquet", user="who", text="what")
    ledger.add("mine", corpus, epsilon=1.0, delta=1e-6)
    assert not check(corpus, ledger=ledger).ok


def test_a_folder_with_a_files_name_is_a_folder(engine, tmp_path, no_noise):
    (tmp_path / "a.parquet").mkdir()
    rows = pa.table({"who": range(90), "what": ["shared"] * 90})
    pq.write_table(rows, tmp_path / "a.parquet" / "b.parquet")
    corpus = Corpus(tmp_path, user="who", text="what")
    assert histogram(engine, corpus, no_noise, 10) == {"shared": 90 * 1024}


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl"])
def test_a_first_line_without_an_end_is_not_read_whole(name, tmp_path, ledger):
    opened = gzip.open if name.endswith("gz") else open
    with opened(tmp_path / name, "wb") as file:
        file.write(b"a" * 20_000_000)
    refused(tmp_path / name, ledger, "the first line of .* cannot be read")


def test_a_first_line_of_very_many_brackets_is_no_object(tmp_path, ledger):
    (tmp_path / "a.jsonl").write_text("[" * 1_000_000)
    refused(tmp_path / "a.jsonl", ledger, "the first line is not a JSON object")
