"""A copy of a ledger: what it has when it is put back, what it forgets, and what it replaces."""

import multiprocessing
import shutil
import sqlite3
import stat
from contextlib import closing

import pyarrow as pa
import pytest

from dphh import Corpus
from dphh.columns import as_parquet, stored_table
from dphh.errors import LedgerError, UnknownRunError, UsageError
from dphh.ledger import Ledger
from dphh.reader.corpus import replace_corpus
from tests.ledger.asked import ask, resealed, settled, tampered


@pytest.fixture
def spent(book, reviews):
    """A ledger with one settled run, one that goes on, a share and a token."""
    book.add("reviews", reviews, 1.0, 0.0)
    settled(book, "done", reviews, 0.25)
    book.set_share("reviews", "alice", 0.5, 0.0)
    book.give_token("alice")
    book.keep_drawn(ask(book, "going on", reviews, 0.25), "level 1", b"words that were drawn")
    return book


def sound(path):
    with closing(sqlite3.connect(path)) as con:
        assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_copy_is_its_owners_alone_and_has_what_was_spent(spent, tmp_path):
    copy = tmp_path / "copy.sqlite"
    assert spent.backup(copy) == 2
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob("*copy*")] == ["copy.sqlite"]
    sound(copy)
    back = Ledger(shutil.copy(copy, tmp_path / "back.sqlite"))
    assert back.accounts() == spent.accounts()
    assert back.accounts()[0].used == 0.5
    assert back.release("done") == spent.release("done")
    assert back.history() == spent.history()
    assert (back.shares(), back.analysts()) == (spent.shares(), ["alice"])


def test_a_run_that_was_not_finished_does_not_go_on_from_a_copy(spent, reviews, tmp_path):
    """It may have gone on and shown what it drew: to draw again would cost more than was paid."""
    ((key,),) = tampered(spent, "SELECT key FROM runs WHERE run_id = 'going on'")
    spent.backup(tmp_path / "copy.sqlite")
    data = (tmp_path / "copy.sqlite").read_bytes()
    for secret in (key, b"words that were drawn", b"duckdb 2.0.0"):
        assert secret in spent.path.read_bytes() and secret not in data
    back = Ledger(tmp_path / "copy.sqlite")
    for run_id in ("going on", None):
        with pytest.raises(UsageError, match=r"not finished when the copy was made .* stays spent"):
            ask(back, run_id, reviews, 0.25)
    assert back.accounts()[0].used == 0.5
    assert ask(back, "new", reviews, 0.25).new
    assert ask(spent, "going on", reviews, 0.25).attempt == 2  # the ledger itself goes on


def test_a_process_does_not_store_in_a_ledger_that_was_put_back(spent, reviews, tmp_path):
    booked = ask(spent, "going on", reviews, 0.25)
    spent.backup(tmp_path / "copy.sqlite")
    shutil.copy(tmp_path / "copy.sqlite", spent.path)
    with pytest.raises(UnknownRunError, match="the ledger was replaced"):
        spent.keep_drawn(booked, "level 2", b"rows")
    with pytest.raises(UnknownRunError, match="the ledger was replaced"):
        spent.settle(booked, {}, b"rows")


def test_a_copy_is_repeated_and_replaces_only_an_earlier_one(spent, reviews, tmp_path):
    copy, elsewhere = tmp_path / "copy.sqlite", tmp_path / "elsewhere.sqlite"
    spent.backup(copy)
    spent.backup(elsewhere)
    ask(spent, "later", reviews, 0.1)
    spent.set_cap("reviews", 2.0, 0.0)
    assert spent.backup(copy) == 3
    assert Ledger(copy).status("reviews").cap.epsilon == 2.0
    # The ledger is put back from the older copy: it must not replace the newer one.
    before = copy.read_bytes()
    with pytest.raises(UsageError, match="has runs or changes that this ledger does not have"):
        Ledger(elsewhere).backup(copy)
    other = Ledger(tmp_path / "other.sqlite", create=True)
    other.add("others", Corpus("/others", user="who", text="body"), 1.0, 0.0)
    with pytest.raises(UsageError, match="another ledger's copy"):
        spent.backup(other.path)
    assert copy.read_bytes() == before and other.names() == ["others"]


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE runs SET epsilon = 0.01", "DELETE FROM charges", "DELETE FROM history",
        "INSERT INTO charges SELECT 1, id FROM accounts WHERE name = 'others'",
        """UPDATE runs SET manifest = '{"said":2}' WHERE state = 'settled'""",
        "UPDATE drawn SET data = 'other' WHERE name = 'the release'",
        *(f"UPDATE history SET {column} = 'other'"
          for column in ("account", "analyst", "what", "who")),
        "UPDATE history SET state = '[]'", "UPDATE history SET earlier = 1",
        "UPDATE history SET after = 7", "UPDATE history SET recorded = 7",
        *(f"UPDATE runs SET {column} = 'other'"
          for column in ("analyst", "who", "verb", "parameters", "source", "data", "files")),
        "UPDATE runs SET id_given = 0", "UPDATE runs SET recorded = 7",
        "UPDATE accounts SET epsilon = 9", "UPDATE accounts SET delta = 0.5",
        "UPDATE accounts SET rule = 'divergence'",
        "UPDATE accounts SET source = replace(source, 'user', 'usr')",
        """UPDATE accounts SET "groups" = '{"land":["x"]}'""",
    ],
)  # fmt: skip
def test_a_copy_of_an_officers_own_shows_that_the_ledger_was_edited(spent, tmp_path, edit):
    spent.add("others", Corpus("/others", user="who", text="body"), 1.0, 0.0)
    spent.backup(tmp_path / "copy.sqlite")
    spent.backup(tmp_path / "copy.sqlite")
    tampered(spent, edit)
    with pytest.raises(UsageError, match=r"edited.* Stop: keep your copy, and ask who owns"):
        spent.backup(tmp_path / "copy.sqlite")


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ("CREATE TABLE notes (said TEXT)", "a table, trigger"),
        ("CREATE VIEW notes AS SELECT * FROM runs", "a table, trigger"),
        ("CREATE INDEX notes ON runs (who)", "a table, trigger"),
        ("CREATE TRIGGER less AFTER INSERT ON charges BEGIN DELETE FROM charges; END", "a table"),
        ("ALTER TABLE runs ADD COLUMN said TEXT", "a table, trigger"),
        ("INSERT INTO shares VALUES (1, 'Erika', 0.1, 0.0)", "share of the analyst 'Erika' is not"),
        ("INSERT INTO shares VALUES (7, 'alice', 0.5, 0.0)", "do not belong together"),
        ("UPDATE shares SET epsilon = 0.6", "share of the analyst 'alice' is not"),
        ("DELETE FROM shares", "the share of the analyst 'alice' is not the one"),
        ("DELETE FROM tokens", "the token of the analyst 'alice' is not the one"),
        ("INSERT INTO drawn VALUES (1, 'Erika', x'00')", "something else beside the release"),
        (
            "UPDATE runs SET setting = 'Erika' WHERE sequence = 1",
            "the ledger's row of the run 'done' is not as dphh wrote it",
        ),
        ("DELETE FROM drawn WHERE run = 1", "something else beside the release of the run 'done'"),
        ("UPDATE drawn SET data = 'Erika'", "table drawn has a value in data of another kind"),
        ("INSERT INTO data_key VALUES (randomblob(32))", "has 2 keys of its digests"),
        ("UPDATE sqlite_sequence SET seq = 0", "counts its runs otherwise than dphh"),
        ("DELETE FROM sqlite_sequence", "counts its runs otherwise than dphh"),
        ("DELETE FROM runs WHERE sequence = 1", "counts its runs otherwise than dphh"),
        (
            "UPDATE runs SET manifest = NULL WHERE sequence = 1",
            "row of the run 'done' is not as dphh",
        ),
        ("INSERT INTO tokens VALUES ('Erika', 'hash')", "token of the analyst 'Erika' is not"),
        ("UPDATE tokens SET sha256 = 'other'", "the token of the analyst 'alice' is not"),
        ("UPDATE accounts SET source = 'Erika'", "the account 'reviews': its cap, data"),
        ("UPDATE history SET what = 'Erika' WHERE id = 2", "change of number 2 is not as dphh"),
        ("UPDATE history SET recorded = 9e999", "cannot read"),
        ("UPDATE history SET state = replace(state, '1.0', '0.5') WHERE id = 1", "of number 1 is"),
        ("UPDATE history SET recorded = recorded - 864000 WHERE id = 2", "of number 2 is"),
        ("DELETE FROM history WHERE id = 3", "a change that was recorded is missing"),
        (
            "UPDATE history SET recorded = 'Erika'",
            "history has a value in recorded of another kind",
        ),
        ("UPDATE history SET after = 'Erika'", "history has a value in after of another kind"),
        ("UPDATE history SET who = x'00'", "history has a value in who of another kind"),
        ("DELETE FROM charges WHERE run = 1", "charge of the run 'done' to the account 'reviews'"),
        ("INSERT INTO charges VALUES (77, 1)", "the charge of the run 77 to the account 'reviews'"),
        ("UPDATE shares SET delta = 'Erika'", "table shares has a value in delta"),
    ],
)
def test_a_first_copy_finds_what_somebody_added_to_the_file(spent, tmp_path, edit, why):
    spent.set_share("reviews", "alice", 0.4, 0.0)
    spent.set_share("reviews", "alice", 0.5, 0.0)
    for statement in edit.split(";" if "UPDATE" in edit else "\n"):
        tampered(spent, statement)
    with pytest.raises(UsageError, match=f"{why}.*edited.*Stop: keep your copy"):
        spent.backup(tmp_path / "copy.sqlite")
    assert not (tmp_path / "copy.sqlite").exists()


@pytest.mark.parametrize(
    "edit",
    [
        "events = '[]', epsilon = 0.01", "events = '[]'", "epsilon = 0.01", "delta = 0.5",
        "events = replace(events, '0.25', '0.01'), epsilon = 0.01", "verb = 'trie'",
        "parameters = json_set(parameters, '$.min_users', 99)", "recorded = 0", "recorded = 1e15",
        "changed = 9e999", "recorded = recorded - 40 * 86400",
        "changed = changed + 9 * 86400", "data = NULL", "run_id = 'other'", "manifest = '{}'",
        "parameters = 'Erika'",
        "source = replace(source, 'user', 'usr')", "digest = 'other'",
    ],
)  # fmt: skip
def test_a_row_of_a_run_that_no_copy_has_is_what_its_release_says(spent, reviews, tmp_path, edit):
    """A run within its cap, and one after it that is beyond, if the first cost what it did."""
    spent.backup(tmp_path / "copy.sqlite")
    settled(spent, "new", reviews, 0.25)
    spent.backup(tmp_path / "before.sqlite")
    tampered(spent, f"UPDATE runs SET {edit} WHERE run_id = 'new'")
    name = "other" if "run_id" in edit else "new"
    with pytest.raises(UsageError, match=f"row of the run '{name}' is not as dphh wrote it"):
        spent.backup(tmp_path / "copy.sqlite")
    if edit.split(" = ")[0] not in ("recorded", "changed", "source", "digest"):
        resealed(spent)
        assert f"row of the run '{name}' is not as dphh wrote it" in spent.edited()


@pytest.mark.parametrize("forged", [True, False])
def test_a_row_that_was_booked_anew_for_less_is_not_what_its_release_says(
    spent, reviews, tmp_path, forged
):
    """With the digest that the smaller request has."""
    settled(spent, "new", reviews, 0.25)
    ask(spent, "less", reviews, 0.01)
    columns = ("events", "epsilon", "digest")
    taken = ", ".join(f"(SELECT {each} FROM runs WHERE run_id = 'less')" for each in columns)
    if forged:
        tampered(spent, f"UPDATE runs SET ({', '.join(columns)}) = ({taken}) WHERE run_id = 'new'")
        with pytest.raises(UsageError, match="row of the run 'new'"):
            spent.backup(tmp_path / "copy.sqlite")
    else:
        assert spent.backup(tmp_path / "copy.sqlite") == 4


def test_an_account_pays_for_no_run_of_other_files(spent, reviews, tmp_path):
    """It would seem to be within the account's cap, of which nobody approved these data."""
    spent.backup(tmp_path / "copy.sqlite")
    settled(spent, "own", reviews, 0.01)
    settled(spent, "other", Corpus("/others", user="who", text="body"), 0.01)
    assert spent.backup(tmp_path / "copy.sqlite") == 4
    settled(spent, "more", Corpus("/others", user="who", text="body"), 0.01)
    tampered(spent, "INSERT INTO charges SELECT max(sequence), 1 FROM runs")
    with pytest.raises(UsageError, match="charge of the run 'more' to the account 'reviews' is mi"):
        spent.backup(tmp_path / "copy.sqlite")


@pytest.mark.parametrize(
    "older",
    ["after = 0", "id = 0", "recorded = recorded - 86400", "id = -1, after = 0", "after = -1"],
)
def test_a_change_is_not_put_in_before_those_that_a_copy_has(spent, reviews, tmp_path, older):
    """As a larger cap, as if it had been there before the runs."""
    spent.backup(tmp_path / "copy.sqlite")
    settled(spent, "new", reviews, 0.01)
    spent.set_cap("reviews", 50.0, 0.0)
    tampered(spent, f"UPDATE history SET {older} WHERE id = (SELECT max(id) FROM history)")
    with pytest.raises(UsageError, match="edited"):
        spent.backup(tmp_path / "copy.sqlite")


@pytest.mark.parametrize("edit", ["a cell", "what no reader of it shows", "cut", "empty"])
def test_a_release_in_the_ledger_is_the_one_whose_hash_its_manifest_has(spent, tmp_path, edit):
    """Else its file would pass in a folder, and what it carries; or the folder would be blamed."""
    table = stored_table(spent.release("done").parquet)
    rows, said = table.to_pylist(), table.schema.metadata
    if edit == "a cell":
        rows[0]["score"] = 2.5
    else:
        said = {**said, b"phone": b"0151 2345678"}
    file = as_parquet(pa.Table.from_pylist(rows, table.schema).replace_schema_metadata(said))
    with closing(sqlite3.connect(spent.path)) as con, con:
        con.execute(
            "UPDATE drawn SET data = ? WHERE run = 1", [file[: {"cut": -8, "empty": 0}.get(edit)]]
        )
    with pytest.raises(UsageError, match="release that the ledger has of the run 'done' is not"):
        spent.backup(tmp_path / "copy.sqlite")


def test_the_last_runs_are_not_taken_away_from_under_a_change(spent):
    for each in ("charges", "drawn", "runs", "sqlite_sequence"):
        tampered(spent, f"DELETE FROM {each}")
    assert "a run is missing that was there before a change" in spent.edited()


def test_what_an_edit_says_is_how_to_go_on(spent):
    tampered(spent, "DELETE FROM charges WHERE run = 1")
    assert f"puts it back: `rm -f {spent.path}-journal && cp COPY {spent.path}`" in spent.edited()


def test_runs_of_an_account_stay_charged_wherever_its_data_are_now(spent, reviews):
    elsewhere = replace_corpus(reviews, where=("/else/where/*.parquet",))
    spent.add("reviews", elsewhere, 1.0, 0.0, replace=True)
    ask(spent, "of none", reviews, 0.25)
    ask(spent, "beside it", replace_corpus(reviews, where=("/else/where/../a.parquet",)), 0.25)
    ask(spent, "of both", replace_corpus(reviews, where=("/else/where/a.parquet",)), 0.25)
    assert [run.run_id for run in spent.runs() if not run.accounts] == ["of none", "beside it"]
    assert spent.edited() is None
    for run, name in ((1, "done"), (5, "of both")):
        tampered(spent, f"DELETE FROM charges WHERE run = {run}")
        assert f"charge of the run {name!r} to the account 'reviews' is missing" in spent.edited()
        tampered(spent, f"INSERT INTO charges VALUES ({run}, 1)")


def test_an_account_that_is_added_later_may_pay_for_earlier_runs(spent, reviews, tmp_path):
    spent.backup(tmp_path / "copy.sqlite")
    spent.add("again", reviews, 1.0, 0.0)
    assert spent.status("again").runs == 2
    spent.backup(tmp_path / "copy.sqlite")


def test_what_dphh_cannot_read_is_an_edit_under_any_seal(spent):
    for edit in ("what = 'Erika'", "state = '[]'", "state = NULL", "earlier = '7'"):
        tampered(spent, f"UPDATE history SET {edit} WHERE id = 1")
        resealed(spent)
        assert "edited the ledger's file" in spent.edited()


def test_no_change_covers_an_edit(spent, reviews, tmp_path):
    """As a cap that was raised in the file: a smaller one after it would seem to lower it."""
    assert spent.edited() is None and "edited" not in repr(spent)
    tampered(spent, "UPDATE accounts SET epsilon = 9")
    for change in (
        lambda: spent.set_cap("reviews", 5.0, 0.0),
        lambda: spent.declare_groups("reviews", "country", "DE"),
        lambda: spent.set_share("reviews", "alice", 0.2, 0.0),
        lambda: spent.add("reviews", reviews, 1.0, 0.0, replace=True),
        lambda: spent.add("others", Corpus("/others", user="who", text="body"), 1.0, 0.0),
        lambda: spent.remove("reviews"),
    ):
        with pytest.raises(LedgerError, match=r"'reviews': its cap, .*edited.* Nothing was ch"):
            change()
    assert "'reviews': its cap, data or groups are not those" in repr(spent)


def test_a_copy_is_written_over_nothing_else(spent, tmp_path):
    (tmp_path / "data.parquet").write_bytes(b"PAR1 rows PAR1")
    (tmp_path / "link.sqlite").symlink_to(spent.path)
    (tmp_path / "hard.sqlite").hardlink_to(spent.path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for name, why in (
        ("data.parquet", "is no copy of a ledger, and would be lost"),
        (spent.path.name, "the ledger itself"),
        ("link.sqlite", "the ledger itself"),
        ("hard.sqlite", "the ledger itself"),
        ("missing/copy.sqlite", "could not be written"),
    ):
        with pytest.raises(UsageError, match=why):
            spent.backup(tmp_path / name)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    with pytest.raises(UsageError, match="There is no ledger"):
        Ledger(tmp_path / "none.sqlite").backup(tmp_path / "copy.sqlite")


def settle_on(path, reviews, enough):
    book = Ledger(path)
    for run in range(1_000):
        if enough.is_set():
            return
        settled(book, f"run {run}", reviews, 0.001)


def test_copies_are_whole_while_another_process_writes(book, reviews, tmp_path):
    book.add("reviews", reviews, 1.0, 0.0)
    spawned = multiprocessing.get_context("spawn")
    enough = spawned.Event()
    writer = spawned.Process(target=settle_on, args=(book.path, reviews, enough))
    writer.start()
    seen = []
    while len({*seen}) < 4 and (writer.is_alive() or not seen):
        seen.append(book.backup(tmp_path / "copy.sqlite"))
        sound(tmp_path / "copy.sqlite")
        copy = Ledger(tmp_path / "copy.sqlite")
        whole = [run.run_id for run in copy.runs() if run.state == "settled"]
        assert len(copy.runs()) == seen[-1] == copy.status("reviews").runs
        assert all(copy.release(run).parquet[-4:] == b"PAR1" for run in whole)
    enough.set()
    writer.join()
    assert writer.exitcode == 0 and len({*seen}) == 4 and seen == sorted(seen)
    assert book.backup(tmp_path / "copy.sqlite") == len(book.runs()) >= seen[-1]
