"""Whatever a table's log names, no file outside its folder is read: its account would not pay.

The readers are the oracle: a spelling by which a reader comes to another table's rows is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, CorpusError, Ledger, items
from dphh.sources.finding import StreamedTable
from dphh.sources.formats import opened

ROWS = pa.table({"who": ["1"], "what": ["theirs"]})
FIELDS = [
    {"name": name, "type": "string", "nullable": True, "metadata": {}} for name in ROWS.schema.names
]

DOTS = [
    "..", "%2e%2e", ".%2E", ".\t.", ".\n.", "..\r", "%2e\t%2e", ".%09.", "%252e%252e", ".. ",
    "\uff0e\uff0e",
]  # fmt: skip
SLASHES = ["/", "\\", "%2f", "%5c", "//", "/\t", "/./", "\uff0f", "%252f"]
SCHEMES = [
    "", "/", "//", "\\", "\t", " ", "file:", "file:/", "file://", "FILE://", "fi\tle:",
    "fi\nle://", "file\t:", "file:\\", "file://localhost", "file://host", "\x1ffile://",
    "fi%6Ce:", "%2f", "%09/",
]  # fmt: skip


def spellings_of(theirs: Path, folder: Path) -> Iterator[str]:
    """Ways to name a file of the folder beside this one, most of which no reader takes."""
    for dots, slash in product(DOTS, SLASHES):
        yield slash.join([dots, theirs.parent.name, theirs.name])
        yield slash.join(["in", dots, dots, theirs.parent.name, theirs.name])
    for scheme in SCHEMES:
        yield scheme + str(theirs)
        yield scheme + str(theirs).replace("/", "\\")
        yield f"{scheme}{folder}/../{theirs.parent.name}/{theirs.name}"
        yield f"{scheme}{folder}/..\t/{theirs.parent.name}/{theirs.name}"
        yield f"{scheme}{theirs}?/../{folder.name}/own.parquet"


def delta_table(folder: Path, named: str, size: int) -> Path:
    """A table whose log names one file, so spelled."""
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "0",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": FIELDS}),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 0,
            }
        },
        {
            "add": {
                "path": named,
                "partitionValues": {},
                "size": size,
                "modificationTime": 0,
                "dataChange": True,
            }
        },
    ]
    (folder / "_delta_log").mkdir(parents=True)
    log = folder / "_delta_log" / f"{0:020}.json"
    log.write_text("\n".join(map(json.dumps, actions)))
    return folder


@pytest.fixture
def theirs(tmp_path: Path, ledger: Ledger) -> Path:
    """A file whose account allows next to nothing."""
    file = tmp_path / "theirs" / "x.parquet"
    file.parent.mkdir()
    pq.write_table(ROWS, file)
    ledger.add("theirs", Corpus(file.parent, user="who", text="what"), 0.01, 1e-9)
    return file


def what_the_product_reads(folder: Path) -> list[str] | None:
    """The texts of a table; None where it is refused."""
    try:
        table = opened(Corpus(folder, user="who", text="what")).source
        assert isinstance(table, StreamedTable)
        return pa.table(table.read(["what"])).column("what").to_pylist()
    except CorpusError:
        return None
    except Exception:  # the reader does not find such a file
        return []


def test_no_spelling_in_a_delta_log_leads_out_of_the_folder(tmp_path: Path, theirs: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="needs dphh[delta]")
    read = 0
    for number, named in enumerate(spellings_of(theirs, tmp_path / "mine")):
        folder = delta_table(tmp_path / f"{number}", named, theirs.stat().st_size)
        try:
            table = deltalake.DeltaTable(str(folder))
            theirs_read = pa.table(table.scan(columns=["what"])).num_rows > 0
        except Exception:
            continue
        read += theirs_read
        assert not theirs_read or what_the_product_reads(folder) is None, named
    assert read > 20  # so many do lead there


@pytest.mark.parametrize(
    "named",
    [
        "../theirs/x.parquet",
        "%2e%2e/theirs/x.parquet",
        "..\\theirs\\x.parquet",
        "..\t/theirs/x.parquet",
        ".\n./theirs/x.parquet",
        " ../theirs/x.parquet",
        "in\\..\\..\\theirs\\x.parquet",
        "{theirs}",
        "\\{theirs}",
        "fi\tle:{theirs}",
        "file\t:{theirs}",
        "FILE://{theirs}",
    ],
)
def test_a_delta_log_that_names_a_capped_file_is_refused_and_costs_nothing(
    named: str, tmp_path: Path, theirs: Path, ledger: Ledger
) -> None:
    pytest.importorskip("deltalake", reason="needs dphh[delta]")
    spelled = named.replace("{theirs}", str(theirs))
    folder = delta_table(tmp_path / "mine", spelled, theirs.stat().st_size)
    with pytest.raises(CorpusError, match="outside its folder"):
        items(Corpus(folder, user="who", text="what"), epsilon=5, delta=1e-6).run(ledger=ledger)
    assert [account.runs for account in ledger.accounts()] == [0]


@pytest.mark.parametrize("name", ["%2e%2e/theirs", "..\\theirs", "a\tb"])
def test_a_delta_tables_folder_is_not_taken_for_anothers(
    name: str, tmp_path: Path, theirs: Path
) -> None:
    pytest.importorskip("deltalake", reason="needs dphh[delta]")
    delta_table(theirs.parent, theirs.name, theirs.stat().st_size)
    folder = delta_table(tmp_path / "mine" / name, "own.parquet", theirs.stat().st_size)
    pq.write_table(ROWS.slice(0, 0), folder / "own.parquet")
    with pytest.raises(CorpusError, match="Delta's reader would change"):
        opened(Corpus(folder, user="who", text="what"))


def test_values_that_a_writer_spells_otherwise_are_read(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="needs dphh[delta]")
    texts = ["a\\b", "a\nb", "a\tb", "12:30", "file:/x", "../x", "..", "%2e%2e", "a?b#c", "a b"]
    rows = pa.table({"who": texts, "what": texts})
    deltalake.write_deltalake(tmp_path / "parts", rows, partition_by=["what"])
    assert sorted(what_the_product_reads(tmp_path / "parts") or ()) == sorted(texts)


class Warehouse:
    """Iceberg tables, one of which names a file as it is told."""

    def __init__(self, folder: Path) -> None:
        catalogs = pytest.importorskip("pyiceberg.catalog.sql", reason="needs dphh[iceberg]")
        self.folder = folder
        self.catalog = catalogs.SqlCatalog(
            "c", uri="sqlite:///:memory:", warehouse=f"file://{folder}"
        )
        self.catalog.create_namespace("db")
        made = self.catalog.create_table("db.theirs", schema=ROWS.schema)
        made.append(ROWS)
        (self.theirs,) = (folder / "db/theirs/data").glob("*.parquet")

    def naming(self, table: str, named: str) -> Path:
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        made = self.catalog.create_table(f"db.{table}", schema=ROWS.schema)
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=named,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=1,
            file_size_in_bytes=self.theirs.stat().st_size,
            sort_order_id=None,
            spec_id=0,
            equality_ids=None,
            key_metadata=None,
        )
        with made.transaction() as change, change.update_snapshot().fast_append() as files:
            files.append_data_file(file)
        return self.folder / "db" / table


def test_no_spelling_in_an_iceberg_manifest_leads_out_of_the_folder(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    tables = pytest.importorskip("pyiceberg.table")
    read = 0
    data = f"{warehouse.theirs.parent.name}/{warehouse.theirs.name}"
    led = [(scheme, "") for scheme in SCHEMES] + [("file://", dots) for dots in DOTS]
    for number, (scheme, dots) in enumerate(led):
        folder = f"{tmp_path}/db/t{number}"
        named = f"{folder}/{dots}/theirs/{data}" if dots else str(warehouse.theirs)
        made = warehouse.naming(f"t{number}", scheme + named)
        newest = max((made / "metadata").glob("*.metadata.json"))
        try:
            table = tables.StaticTable.from_metadata(str(newest))
            theirs_read = table.scan().to_arrow().num_rows > 0
        except Exception:
            continue
        read += theirs_read
        assert not theirs_read or what_the_product_reads(made) is None, scheme + named
    assert read > 10


def test_where_a_link_stands_in_an_iceberg_manifest_its_reader_decides(tmp_path: Path) -> None:
    """Of a plain path it takes `..` for the folder that holds the link."""
    warehouse = Warehouse(tmp_path)
    mine = tmp_path / "db" / "mine"
    data = f"{warehouse.theirs.parent.name}/{warehouse.theirs.name}"
    made = warehouse.naming("mine", f"{mine}/link/../../theirs/{data}")
    (mine / "deep" / "er").mkdir(parents=True)
    (mine / "link").symlink_to(mine / "deep" / "er")
    assert what_the_product_reads(made) is None


def test_a_table_does_not_say_by_what_its_files_are_opened(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    (tmp_path / "db/mine/data").mkdir(parents=True)
    own = tmp_path / "db/mine/data/own.parquet"
    own.write_bytes(warehouse.theirs.read_bytes())
    made = warehouse.naming("mine", f"file://{own}")
    newest = max((made / "metadata").glob("*.metadata.json"))
    metadata = json.loads(newest.read_text())
    metadata["properties"]["py-io-impl"] = "no.such.Opener"
    newest.write_text(json.dumps(metadata))
    assert what_the_product_reads(made) == ["theirs"]
