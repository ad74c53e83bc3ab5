"""Which account pays: the named one, and each whose folder or pattern holds a file."""

import os
import shutil
import warnings
from collections.abc import Sequence

import duckdb
import polars as pl
import pytest

from dphh import Corpus, items
from dphh.errors import BudgetRefused, Notice, UsageError
from dphh.ledger import Ledger
from dphh.ledger.paying import holds, places_of
from dphh.reader.identity import state_of_files
from dphh.reader.paths import absolute_place
from tests.ledger.asked import ask


@pytest.fixture
def data(tmp_path, monkeypatch):
    """reviews/year=2024/{a,b[1]}.parquet, reviews/.h.parquet, other/c.parquet, and ways around."""
    root = tmp_path / "data"
    for name in ("reviews/year=2024/a", "reviews/year=2024/b[1]", "reviews/.h", "other/c"):
        path = root / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        duckdb.sql(f"COPY (SELECT 1 AS who, 'x' AS what) TO '{path}'")
    (root / "link.parquet").symlink_to(root / "reviews/year=2024/a.parquet")
    (root / "folder-link").symlink_to(root / "reviews")
    (root / "around").mkdir()
    (root / "around/circle").symlink_to(root / "around")
    (root / "around/deep").symlink_to(root / "reviews/year=2024")
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOME", str(root))
    return root


def paths(*where: str, user: str | Sequence[str] = "who") -> Corpus:
    return Corpus(where, user=user, text="what")


def pays(book: Ledger, *where: str) -> list[str]:
    """The accounts of these paths."""
    return [account.name for account in book.accounts_of(paths(*where))]


#: The first `..` follows a link.
SAME = """
around/deep/../year=2024/a.parquet other/../reviews/year=2024/a.parquet
reviews/year=2024/a.parquet ./reviews//year=2024/./a.parquet ~/reviews/year=2024/a.parquet
/proc/self/cwd/reviews/year=2024/a.parquet link.parquet l*.parquet
reviews reviews/ reviews/** reviews/*/*.parquet reviews/**/*.parquet **/a.parquet
*/*/a.parquet reviews/year=202?/a.parquet reviews/year=[0-9]*/[a-b].parquet
reviews/year=2024/[!x].parquet folder-link folder-link/year=2024/a.parquet folder-link/*/a.parquet
around around/**/*.parquet
""".split()  # noqa: SIM905 - one a line is longer


@pytest.mark.parametrize("where", SAME)
def test_an_account_of_one_file_pays_however_the_file_is_named(book, data, where):
    book.add("reviews", paths("reviews/year=2024/a.parquet"), 1.0, 0.0)
    assert pays(book, where) == ["reviews"]
    with pytest.raises(BudgetRefused):
        ask(book, "a", paths(where), 1.5)


@pytest.mark.parametrize("where", SAME)
def test_the_ledger_sees_every_file_that_duckdb_would_read(data, where):
    (data / "reviews/.h.parquet").unlink()  # what a folder and a glob skip
    where = absolute_place(where)
    try:
        read = duckdb.execute("SELECT DISTINCT filename FROM read_parquet(?)", [where]).fetchall()
    except duckdb.Error:
        return  # this engine does not read it so
    assert {os.path.realpath(name) for (name,) in read} <= places_of(paths(where))


@pytest.mark.parametrize(
    ("own", "where", "same"),
    [
        ("reviews/**", "reviews/.h.parquet", True),
        ("reviews/*.parquet", "reviews/.h.parquet", True),
        ("reviews/year=*", "reviews/year=2025/new.parquet", True),  # a folder that matches
        ("reviews/**/*.parquet", "reviews/year=2025/month=1/new.parquet", True),
        ("reviews/year=2024/b[1].parquet", "reviews/year=2024/b[1].parquet", True),
        ("reviews/year=2024/b[[]1].parquet", "reviews/year=2024/b[1].parquet", True),
        ("reviews/year=2024/b[1].parquet", "reviews/year=2024/*1*.parquet", True),
        ("reviews/year=2024/a.parquet", "other/c.parquet", False),
        ("reviews/year=2024/a.parquet", "other", False),
        ("reviews/year=2024/a.parquet", "reviews/year=2023", False),
        ("reviews/year=2024/a.parquet", "reviews/year=2024/b*", False),
        ("reviews/*.parquet", "reviews/year=2024/a.parquet", False),
        ("reviews/.h.parquet", "reviews/*.parquet", False),  # skipped
        ("reviews/.h.parquet", "reviews/.*.parquet", True),
        ("other", "other/../reviews/year=2024/a.parquet", False),
        ("reviews/year=202[!4]/*", "reviews/year=2024/a.parquet", False),
        ("reviews/year=202[!4]/*", "reviews/year=2025/a.parquet", True),
        ("review", "reviews/year=2024/a.parquet", False),  # a name that begins alike
        ("reviews/year=2024/a.parquet", "reviews/year=2024/a.parquet.bak", False),
        ("reviews/year=2024/?.parquet", "reviews/year=2024/ab.parquet", False),
    ],
)
def test_a_folder_or_a_pattern_holds_what_is_in_it(book, data, own, where, same):
    book.add("reviews", paths(own), 1.0, 0.0)
    assert pays(book, where) == ["reviews"] * same


@pytest.mark.parametrize("link", ["linked.parquet", "year=2024/linked.parquet", "folder/c.parquet"])
@pytest.mark.parametrize("own", ["reviews", "reviews/**/*.parquet", "folder-link"])
@pytest.mark.parametrize("way", ["reviews", "folder-link"])
def test_a_link_in_an_accounts_folder_is_the_accounts(book, data, own, link, way):
    """As in a cache whose files are links to a store of its own."""
    (data / "reviews/linked.parquet").symlink_to(data / "other/c.parquet")
    (data / "reviews/year=2024/linked.parquet").symlink_to(data / "other/c.parquet")
    (data / "reviews/folder").symlink_to(data / "other")
    book.add("reviews", paths(own), 1.0, 0.0)
    assert pays(book, f"{way}/{link}") == ["reviews"]


def test_a_file_of_an_account_among_many_is_enough(book, data):
    book.add("reviews", paths("reviews"), 1.0, 0.0)
    book.add("others", paths("other"), 1.0, 0.0)
    both = ("nowhere.parquet", "other/c.parquet", "link.parquet")
    assert ask(book, "a", paths(*both)).accounts == ("reviews", "others")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("s3://bucket/a/*.parquet", "s3://bucket/a/b.parquet", True),
        ("s3://bucket/a/b.parquet", "s3://bucket/a/*.parquet", True),
        ("s3://bucket/a", "s3://bucket/a/b.parquet", True),
        ("s3://bucket/a/b.parquet", "s3://bucket/a/", True),
        ("s3://bucket/a/b.parquet", "s3://bucket/a/c.parquet", False),
        ("s3://bucket/a", "s3://bucket/ab", False),
        ("s3://bucket/a/b.parquet", "gs://bucket/a/b.parquet", False),
        ("s3://bucket/a", "/bucket/a", False),
        ("https://host/a/b.parquet", "https://host/a/b.parquet", True),
    ],
)
def test_addresses_are_compared_as_they_are_written(book, one, other, same):
    book.add("remote", paths(one), 1.0, 0.0)
    assert pays(book, other) == ["remote"] * same


@pytest.mark.parametrize("own", ["app.duckdb/reviews", "app.duckdb"])
def test_all_tables_of_a_database_are_one_place(book, data, own):
    """A table may hold what another one holds."""
    duckdb.connect(str(data / "app.duckdb")).execute("CREATE TABLE reviews (who INTEGER)").close()
    (data / "link.duckdb").symlink_to(data / "app.duckdb")
    account = book.add("reviews", paths(own), 1.0, 0.0).corpus
    same = "app.duckdb/reviews app.duckdb/users app.duckdb/main.reviews app.duckdb *.duckdb"
    for where in f"{same} link.duckdb/reviews".split():
        assert holds(account, places_of(paths(where))), where
    for where in ["other.duckdb/reviews", "other", "app.duckdb2"]:
        assert not holds(account, places_of(paths(where))), where


def test_data_that_were_brought_elsewhere_are_another_corpus(book, data):
    """Not looked for (docs/threats.md). The owner says where an account's data went."""
    book.add("reviews", paths("reviews"), 1.0, 0.0)
    ask(book, "before", paths("reviews"), 0.4)
    shutil.copy2(data / "reviews/year=2024/a.parquet", data / "elsewhere.parquet")
    assert pays(book, "elsewhere.parquet") == []
    ask(book, "there", paths("elsewhere.parquet"), 0.5)
    account = book.add("reviews", paths("elsewhere.parquet"), 9.0, 0.0, replace=True)
    assert (account.used, account.runs) == (0.9, 2)  # what ran there before counts
    assert account.cap.epsilon == 1.0
    assert pays(book, "elsewhere.parquet") == ["reviews"]
    assert pays(book, "reviews") == []


@pytest.mark.parametrize("begins", ["file:", "file://", "file://localhost"])
def test_the_address_of_a_local_file_is_its_path(book, data, begins):
    book.add("reviews", paths("reviews"), 1.0, 0.0)
    file = data / "reviews/year=2024/a.parquet"
    assert pays(book, f"{begins}{file}") == ["reviews"]
    before = state_of_files(paths(f"{begins}{file}"), b"")
    os.utime(file, (1, 1))
    assert state_of_files(paths(f"{begins}{file}"), b"") != before


# The account that a request names


def test_an_account_made_after_runs_on_tables_does_not_seem_to_hold_all(tmp_path):
    """In a notebook the account comes last: of a table the ledger does not know whose it was."""
    book = Ledger(tmp_path / "other.sqlite", create=True)
    rows = pl.DataFrame({"who": range(300), "what": ["a"] * 300})
    table = Corpus(rows, user="who", text="what")
    items(table, epsilon=1.0, delta=1e-7).run(ledger=book)
    with pytest.warns(Notice, match="^1 earlier run on tables in memory that no account paid"):
        assert book.add("late", table, 3.0, 1e-6).runs == 0
    with warnings.catch_warnings(action="error"):
        book.add("late", table, 3.0, 1e-6, if_missing=True)


def test_a_table_in_memory_names_the_account_that_pays(book, data):
    frame = pl.DataFrame({"who": [1], "what": ["x"]})
    unnamed = Corpus(frame, user="who", text="what")
    assert ask(book, "nothing is capped", unnamed, 5.0).accounts == ()
    book.add("reviews", paths("reviews"), 1.0, 0.0)
    book.add("frames", unnamed, 10.0, 0.0)
    for table in (unnamed, Corpus(duckdb.sql("FROM frame"), user="who", text="what")):
        with pytest.raises(BudgetRefused, match=r"which account pays\?.*account='reviews'"):
            ask(book, "a", table, 0.1)
    for name in ("reviews", "frames"):
        assert ask(book, name, unnamed, 0.5, account=name).accounts == (name,)


def test_the_corpus_of_an_account_reads_what_its_owner_said(book, data):
    added = Corpus("reviews/**/*.parquet", user="who", text="what")
    book.add("reviews", added, 1.0, 0.0)
    corpus = book.corpus("reviews")
    assert (corpus.where, corpus.user, corpus.account) == (added.where, ("who",), "reviews")
    some = book.corpus("reviews", files="reviews/year=2024/a.parquet")
    assert some.where == (str(data / "reviews/year=2024/a.parquet"),)
    for other in ("other/c.parquet", ["reviews/year=2024/a.parquet", "other"]):
        with pytest.raises(UsageError, match="'reviews' is for"):
            book.corpus("reviews", files=other)
    frame = Corpus(pl.DataFrame({"who": [1], "what": ["x"]}), user="who", text="what")
    book.add("frames", frame, 1.0, 0.0)
    with pytest.raises(UsageError, match="pass that table with account='frames'"):
        book.corpus("frames")


# What recognises files


def test_the_state_of_files_changes_with_their_names_sizes_and_times(data):
    def state(*where: str, key: bytes = b"") -> str | None:
        return state_of_files(paths(*where or ("reviews/**",)), key)

    file = data / "reviews/year=2024/a.parquet"
    seen = {state()}
    for change in (
        lambda: os.utime(file, (1, 1)),
        lambda: (file.write_bytes(b"other"), os.utime(file, (1, 1))),
        (data / "reviews/new.parquet").touch,
        lambda: file.rename(file.with_name("renamed.parquet")),
    ):
        change()
        seen.add(state())
    assert len(seen) == 5
    assert state() != state(key=b"another ledger's")
    title = Corpus("reviews/**", user="who", text="title")  # others of its rows may count
    assert state() != state_of_files(title, b"")
    assert state("reviews", "s3://bucket/a") is None
    assert state_of_files(Corpus(pl.DataFrame(), user="who", text="what"), b"") is None
    stores = paths("s3://bucket/a"), paths("s3://bucket/b")
    assert len({state_of_files(each, b"", stores_too=True) for each in stores} - {None}) == 2


def test_what_a_database_has_not_written_to_its_file_yet_belongs_to_its_state(data):
    file = data / "app.duckdb"
    con = duckdb.connect(str(file))
    con.execute("CREATE TABLE reviews (who INTEGER)")
    con.execute("CHECKPOINT")
    before = state_of_files(paths(f"{file}/reviews"), b"")
    con.execute("SET wal_autocheckpoint = '1GB'")
    con.execute("INSERT INTO reviews VALUES (1)")
    assert state_of_files(paths(f"{file}/reviews"), b"") != before
    con.close()
