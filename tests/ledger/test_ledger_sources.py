"""Whoever names the same files in another way pays the same account."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from dphh.errors import BudgetRefused, LedgerError, UsageError
from dphh.ledger import Ledger, Request, Source
from dphh.ledger.sources import files_check, files_state, places


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """data/reviews/year=2024/{a,b[1]}.parquet, data/other/c.parquet, and ways around."""
    root = tmp_path / "data"
    for name in ("reviews/year=2024/a", "reviews/year=2024/b[1]", "reviews/.h", "other/c"):
        path = root / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        duckdb.sql(f"COPY (SELECT 1 AS x) TO '{path}'")
    (root / "link.parquet").symlink_to(root / "reviews/year=2024/a.parquet")
    (root / "folder-link").symlink_to(root / "reviews")
    (root / "hard.parquet").hardlink_to(root / "reviews/year=2024/a.parquet")
    (root / "around").mkdir()
    (root / "around/circle").symlink_to(root / "around")
    (root / "around/deep").symlink_to(root / "reviews/year=2024")
    (root / "side").mkdir()
    (root / "side/up").symlink_to(root / "other")
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOME", str(root))
    return root


def paths(*where: str) -> Source:
    return Source("path", where, "who")


SAME = [
    "reviews/year=2024/a.parquet",
    "./reviews//year=2024/./a.parquet",
    "other/../reviews/year=2024/a.parquet",
    "around/deep/../year=2024/a.parquet",  # `..` follows the link
    "side/up/../../reviews/year=2024/*.parquet",  # or does not, in DuckDB's globs
    "reviews",
    "reviews/",
    "reviews/*/*.parquet",
    "reviews/**",
    "reviews/**/*.parquet",
    "**/a.parquet",
    "*/*/a.parquet",
    "reviews/year=202?/a.parquet",
    "reviews/year=[0-9]*/[a-b].parquet",
    "reviews/year=2024/[!x].parquet",
    "reviews/*",
    "reviews/year=2024/{a,z}.parquet",
    "reviews\\*\\a.parquet",  # DuckDB takes both slashes
    "link.parquet",
    "l*.parquet",
    "folder-link",
    "folder-link/year=2024/a.parquet",
    "folder-link/*/a.parquet",
    "hard.parquet",
    "around",
    "around/**/*.parquet",
    "~/reviews/year=2024/a.parquet",
    "file:{root}/reviews/year=2024/a.parquet",
    "file://{root}/reviews/*/a.parquet",
    "file://localhost{root}/link.parquet",
    "reviews/year%3D2024/a.parquet",
    "/proc/self/cwd/reviews/year=2024/a.parquet",
]


def spelled(where: str, root: Path) -> str:
    return where.replace("{root}", str(root))


@pytest.mark.parametrize("where", SAME)
def test_a_cap_on_one_file_holds_whatever_it_is_called(
    book: Ledger, data: Path, where: str
) -> None:
    book.add("reviews", paths(str(data / "reviews/year=2024/a.parquet")), 1.0, 0.0)
    source = paths(spelled(where, data))
    assert book.accounts_touched(source) == ("reviews",)
    with pytest.raises(BudgetRefused):
        book.reserve("a", Request(source, "items", {}, [], 1.5, 0.0))


@pytest.mark.parametrize("where", SAME)
def test_a_cap_set_under_any_spelling_holds_for_the_plain_file(
    book: Ledger, data: Path, where: str
) -> None:
    book.add("reviews", paths(spelled(where, data)), 1.0, 0.0)
    assert book.accounts_touched(paths("reviews/year=2024/a.parquet")) == ("reviews",)


@pytest.mark.parametrize(
    "where",
    ["other/c.parquet", "other", "other/*.parquet", "reviews/year=2023", "reviews/year=2024/b*"],
)
def test_other_files_are_not_charged(book: Ledger, data: Path, where: str) -> None:
    book.add("reviews", paths(str(data / "reviews/year=2024/a.parquet")), 1.0, 0.0)
    assert book.accounts_touched(paths(where)) == ()


def test_one_path_among_many_is_enough(book: Ledger, data: Path) -> None:
    book.add("reviews", paths("reviews"), 1.0, 0.0)
    book.add("others", paths("other"), 1.0, 0.0)
    both = paths("nowhere.parquet", "other/c.parquet", "link.parquet")
    assert book.accounts_touched(both) == ("reviews", "others")
    reserved = book.reserve("a", Request(both, "items", {}, [], 0.6, 0.0))
    assert reserved.accounts == ("reviews", "others")
    for one in ("reviews", "others"):
        with pytest.raises(BudgetRefused, match=one):
            book.reserve(one, Request(book.status(one).source, "items", {}, [], 0.6, 0.0))


def test_files_that_come_later_belong_to_the_glob(book: Ledger, data: Path) -> None:
    book.add("reviews", paths("reviews/**/*.parquet"), 1.0, 0.0)
    new = data / "reviews/year=2025/new.parquet"
    assert book.accounts_touched(paths(str(new))) == ("reviews",)
    new.parent.mkdir()
    new.touch()
    assert book.accounts_touched(paths(str(new))) == ("reviews",)


@pytest.mark.parametrize("where", SAME)
def test_the_ledger_sees_every_file_that_duckdb_would_read(data: Path, where: str) -> None:
    where = spelled(where, data)
    try:
        read = duckdb.execute("SELECT DISTINCT filename FROM read_parquet(?)", [where]).fetchall()
    except duckdb.Error:
        return  # this engine does not read it so
    seen = places(paths(where)).paths
    assert {os.path.realpath(name) for (name,) in read} <= seen


def test_a_link_turned_after_the_reservation_is_caught_before_reading(
    book: Ledger, data: Path
) -> None:
    book.add("reviews", paths("reviews"), 1.0, 0.0)
    link = data / "mine.parquet"
    link.symlink_to(data / "other/c.parquet")
    hold = book.reserve("a", Request(paths(str(link)), "items", {}, [], 5.0, 0.0)).hold
    link.unlink()
    link.symlink_to(data / "reviews/year=2024/a.parquet")
    with pytest.raises(LedgerError, match="did not pay"):
        book.begin(hold)
    book.cancel(hold)


def test_another_user_column_is_refused(book: Ledger, data: Path) -> None:
    book.add("reviews", paths("reviews"), 1.0, 0.0)
    by_row = Source("path", ("reviews",), "row_number")
    with pytest.raises(BudgetRefused, match=r"protects users by the column 'who'.*'row_number'"):
        book.reserve("a", Request(by_row, "items", {}, [], 0.1, 0.0))


def test_an_account_named_beside_a_source_pays_too_and_replaces_none(
    book: Ledger, data: Path
) -> None:
    book.add("reviews", paths("reviews"), 1.0, 0.0)
    book.add("cheap", paths("other"), 100.0, 0.0)
    reads = paths("link.parquet")
    with pytest.raises(BudgetRefused, match="reviews"):
        book.reserve("a", Request(reads, "items", {}, [], 5.0, 0.0, account="cheap"))
    paid = book.reserve("b", Request(reads, "items", {}, [], 0.5, 0.0, account="cheap"))
    assert paid.accounts == ("reviews", "cheap")


def test_a_frame_is_known_by_its_label_and_charged_by_name(book: Ledger, data: Path) -> None:
    frame = Source("frame", ("polars:DataFrame",), "who")
    book.add("reviews", paths("reviews"), 1.0, 0.0)
    assert not book.reserve("a", Request(frame, "items", {}, [], 5.0, 0.0)).capped
    with pytest.raises(BudgetRefused):
        book.reserve("b", Request(frame, "items", {}, [], 5.0, 0.0, account="reviews"))
    other = Source("frame", ("polars:DataFrame",), "someone else")
    book.add("frames", frame, 10.0, 0.0)
    assert book.accounts_touched(frame) == ("frames",)
    assert book.accounts_touched(other) == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("s3://bucket/a/*.parquet", "s3://bucket/a/b.parquet", True),
        ("s3://bucket/a", "s3a://Bucket//a/./b.parquet?region=x", True),
        ("s3://bucket/a/b.parquet", "https://bucket.s3.eu-west-1.amazonaws.com/a/b.parquet", True),
        ("s3://bucket/a/b.parquet", "http://s3.dualstack.us-east-2.amazonaws.com/bucket/a/*", True),
        ("s3://bucket/a/b.parquet", "https://other.s3.amazonaws.com/a/b.parquet", False),
        ("gs://bucket/a/b.parquet", "https://storage.googleapis.com/bucket/a/b.parquet", True),
        ("gcs://bucket/a/b.parquet", "https://bucket.storage.googleapis.com/a/b.parquet", True),
        ("s3://bucket/a/b.parquet", "s3://bucket/a/c.parquet", False),
        ("s3://bucket/a/b.parquet", "gs://bucket/a/b.parquet", False),
        ("s3://bucket/a/b.parquet", "s3://key@bucket:443/a/b.parquet", True),
        ("s3://bucket/a/b.parquet", "s3://bucket/x/../a/b.parquet", True),
        ("https://host/a/b.parquet", "http://me:word@host:80/a/%2e%2e/a/b.parquet", True),
        ("https://host/a/b.parquet", "https://host:8443/a/b.parquet", False),
        ("abfss://one@host/a.parquet", "abfss://other@host/a.parquet", False),
        ("dbfs:/reviews/a.parquet", "DBFS:///reviews/*.parquet", True),
        ("hdfs:/reviews", "hdfs:/other", False),
    ],
)
def test_remote_addresses_are_compared_as_text(
    book: Ledger, one: str, other: str, same: bool
) -> None:
    book.add("remote", paths(one), 1.0, 0.0)
    assert (book.accounts_touched(paths(other)) == ("remote",)) is same


def test_where_an_account_lives_does_not_move_with_the_working_folder(
    book: Ledger, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = book.add("reviews", paths("reviews"), 1.0, 0.0)
    assert account.source.where == (str(data / "reviews"),)
    monkeypatch.chdir("/")
    assert book.accounts_touched(paths(str(data / "folder-link"))) == ("reviews",)


def test_an_address_with_one_slash_does_not_move_with_the_working_folder(
    book: Ledger, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.add("lake", paths("dbfs:/reviews"), 1.0, 0.0)
    monkeypatch.chdir("/")
    assert book.accounts_touched(paths("dbfs:/reviews/a.parquet")) == ("lake",)
    assert files_check(paths("dbfs:/reviews"), str(book.path)) == ""


def test_a_fingerprint_tells_place_and_user_and_nothing_else(data: Path) -> None:
    plain = paths("reviews/year=2024/a.parquet").fingerprint()
    assert paths("link.parquet").fingerprint() == plain
    assert paths(f"file://{data}/link.parquet").fingerprint() == plain
    assert Source("path", ("link.parquet",), "who", {"column": "x"}).fingerprint() == plain
    assert Source("path", ("link.parquet",), "other").fingerprint() != plain
    assert paths("other/c.parquet").fingerprint() != plain


def test_names_that_are_not_utf_8_are_kept(book: Ledger, data: Path) -> None:
    odd = os.fsdecode(b"odd-\xff.parquet")
    (data / odd).touch()
    book.add("odd", paths(odd), 1.0, 0.0)
    book.reserve("a", Request(paths("odd*"), "items", {}, [], 0.5, 0.0))
    assert book.status("odd").runs == 1


@pytest.mark.parametrize(
    "where",
    ["[", "[]", "[]]", "[z-a]", "[[]", "a[", "[!]", "[^", "{", "{}", "{,}", "**", "a\\b", "("],
)
def test_odd_globs_do_no_harm(data: Path, where: str) -> None:
    assert places(paths(where)).overlap(places(paths(where)))


def test_too_many_braces_are_refused(data: Path) -> None:
    with pytest.raises(UsageError, match="braces"):
        places(paths("{a,b}" * 20))


def test_a_source_that_cannot_be() -> None:
    for kind, where in (("file", ("a",)), ("path", ()), ("path", ("",)), ("path", ("a\0b",))):
        with pytest.raises(UsageError):
            Source(kind, where, "who")


@pytest.mark.parametrize(
    "where",
    [
        "app.duckdb/users",  # a table may hold what another holds
        "app.duckdb/main.reviews",
        "app.duckdb",
        "link.duckdb/reviews",
        "hard.db/reviews",
        "./around/../app.duckdb/reviews",
        "*.duckdb",
        "app%2Educkdb/reviews",
        "file:{root}/app.duckdb/reviews",
    ],
)
def test_all_tables_of_a_database_file_are_one_place(book: Ledger, data: Path, where: str) -> None:
    duckdb.connect(str(data / "app.duckdb")).execute("CREATE TABLE reviews (who INTEGER)").close()
    (data / "link.duckdb").symlink_to(data / "app.duckdb")
    (data / "hard.db").hardlink_to(data / "app.duckdb")
    book.add("reviews", paths(str(data / "app.duckdb/reviews")), 1.0, 0.0)
    assert book.accounts_touched(paths(spelled(where, data))) == ("reviews",)
    assert book.accounts_touched(paths("other")) == ()


def test_what_a_database_has_not_written_to_its_file_yet_belongs_to_its_state(data: Path) -> None:
    file = data / "app.duckdb"
    con = duckdb.connect(str(file))
    con.execute("CREATE TABLE reviews (who INTEGER)")
    con.execute("CHECKPOINT")
    before = files_state(paths(f"{file}/reviews"), "")
    con.execute("SET wal_autocheckpoint = '1GB'")
    con.execute("INSERT INTO reviews VALUES (1)")
    assert files_state(paths(f"{file}/reviews"), "") != before
    con.close()
