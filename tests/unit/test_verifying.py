"""The gate: a folder passes if it is what a ledger has stored of a paid run, and nothing else."""

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import polars as pl
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, Ledger, Release, UsageError, counts, items, ngrams, verify
from dphh.columns import DIGEST_FIELD, digest_of
from dphh.gate.own_words import _is_period, lines_on_columns, lines_on_run_ids, own_words
from dphh.ledger.tables import login_name
from dphh.price import parameters_asked
from dphh.reader.corpus import replace_corpus
from dphh.release import MANIFEST, TABLE
from dphh.testing import SeededRandomness
from tests.ledger.asked import resealed
from tests.unit.test_consistency import TEXTS, each_verb, with_row

COST = {"epsilon": 0.5, "delta": 1e-7}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A corpus; a ledger `before` and `after` a run that its account `notes` paid for; and the
    run's folder."""
    folder = tmp_path_factory.mktemp("made")
    texts = [*TEXTS, *((who, "good morning") for who in range(900))]
    texts += [(who, "thank you") for who in range(900, 1_800)]
    rows = pl.DataFrame(texts, schema=["who", "what"], orient="row")
    rows.write_parquet(folder / "corpus.parquet")
    corpus = Corpus(str(folder / "corpus.parquet"), user="who", text="what")
    Ledger(folder / "before", create=True).add("notes", corpus, 1.0, 1e-6)
    shutil.copy(folder / "before", folder / "after")
    asked = {"ledger": Ledger(folder / "after"), "engine": "polars"}
    ngrams(corpus, max_n=2, **COST).run(**asked, out=folder / "out")
    paid = dict(verify(folder / "out", ledger=asked["ledger"]))["account"]
    assert paid.startswith("'notes' paid for this run, within")
    return folder


@pytest.fixture
def corpus(made):
    return Corpus(str(made / "corpus.parquet"), user="who", text="what")


@pytest.fixture
def book(ledger, made, request):
    ledger.path.parent.mkdir(parents=True)
    shutil.copy(made / ("after" if "out" in request.fixturenames else "before"), ledger.path)
    return ledger


@pytest.fixture
def out(made, tmp_path):
    """A folder that passes, of the run that `notes` paid for."""
    return shutil.copytree(made / "out", tmp_path / "out")


def with_metadata(out):
    table = pq.read_table(out / TABLE)
    said = {**table.schema.metadata, b"phone": b"0151 2345678"}
    pq.write_table(table.replace_schema_metadata(said), out / TABLE, compression="zstd")


def with_bytes_before_the_footer(out):
    """No offset in the file changes: a reader does not see them."""
    data = (out / TABLE).read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    (out / TABLE).write_bytes(data[:-footer] + b"0151 2345678" + data[-footer:])


def edit_text(out, old, new):
    text = (out / MANIFEST).read_text()
    assert old in text
    (out / MANIFEST).write_text(text.replace(old, new, 1))


def linked(path, out):
    path.symlink_to(path.rename(out.parent / "real"))


def fifo(out):
    (out / MANIFEST).unlink()
    os.mkfifo(out / MANIFEST)


#: What a folder may carry besides its release, whoever made it, and the words that refuse it.
PASSENGERS = {
    "a table beside it": (lambda out: (out / "rows.csv").write_text("a,b"), "'rows.csv'"),
    "a look-alike": (lambda out: (out / "rel\u0435ase.json").touch(), r"'rel\\u0435ase\.json'"),
    "two": (lambda out: [(out / name).touch() for name in "ab"], "has 'a' and 1 other"),
    "a hidden folder": (lambda out: (out / ".hidden").mkdir(), "'.hidden'"),
    "metadata": (with_metadata, "carries something besides"),
    "bytes that no reader sees": (with_bytes_before_the_footer, "carries something besides"),
    "a key twice": (
        lambda out: edit_text(out, '"verb":', '"verb": "0151 2345678", "verb":'),
        "carries something besides",
    ),
    "bytes at the end": (
        lambda out: (out / TABLE).write_bytes((out / TABLE).read_bytes() + b"0151"),
        "bytes of it are missing, changed or added",
    ),
    "a line at the end": (lambda out: edit_text(out, "\n}\n", "\n}\n\n"), "carries something"),
    "escapes": (lambda out: edit_text(out, '"verb"', '"\\u0076erb"'), "carries something"),
    "a mark before the text": (lambda out: edit_text(out, "{", "\ufeff{"), "is not JSON"),
    "a linked manifest": (lambda out: linked(out / MANIFEST, out), "release.json is a link"),
    "a linked table": (lambda out: linked(out / TABLE, out), "release.parquet is a link"),
    "a file with another name": (
        lambda out: (out.parent / "mine").hardlink_to(out / MANIFEST),
        "release.json has a second name .a hard link.",
    ),
    "a linked folder": (lambda out: linked(out, out), "is a link or a file"),
    "no file": (fifo, "is a link, or no file"),
    "nothing": (lambda out: (out / TABLE).unlink(), "could not be read"),
}  # fmt: skip


@pytest.mark.parametrize("without_ledger", [False, True])
@pytest.mark.parametrize("what", PASSENGERS)
def test_nothing_leaves_with_a_release(out, book, what, without_ledger):
    make, why = PASSENGERS[what]
    make(out)
    asked = {"without_ledger": True} if without_ledger else {"ledger": book}
    with pytest.raises(UsageError, match=why):
        verify(f"{out}/", **asked)


@pytest.mark.parametrize("name", ["", TABLE, MANIFEST])
@pytest.mark.parametrize("attribute", ["user.phone", "trusted.phone", "security.phone"])
def test_no_attribute_of_a_file_leaves(out, book, monkeypatch, name, attribute):
    """Copies such as `tar --xattrs` carry them. Not every file system has them."""
    named = {str(out / name): [attribute]}
    monkeypatch.setattr(
        os, "listxattr", lambda path, **_: ["security.selinux", *named.get(str(path), [])],
        raising=False,
    )  # fmt: skip
    with pytest.raises(UsageError, match="has extended attributes"):
        verify(out, ledger=book)


def test_where_attributes_are_not_shown_the_gate_says_so(out, book, monkeypatch):
    def unsupported(path, **_):
        raise OSError(errno.ENOTSUP, "no attributes on this disk")

    monkeypatch.setattr(os, "listxattr", unsupported, raising=False)
    assert not warnings_in(verify(out, ledger=book))
    monkeypatch.setattr("dphh.gate.verifying._SHOWS_ATTRIBUTES", False)
    (told,) = warnings_in(verify(out, ledger=book))
    assert told == "whether the files have attributes, this system does not show"


def test_no_attribute_of_a_page_leaves(out, book, monkeypatch, tmp_path):
    page = Release.load(out).report(tmp_path / "Erika.html")
    assert dict(verify(out, ledger=book, page=page))["page"].endswith(
        "the file's name, 'Erika.html', leaves too"
    )
    named = {str(page): ["user.phone"]}
    monkeypatch.setattr(os, "listxattr", lambda path, **_: named.get(str(path), []), raising=False)
    with pytest.raises(UsageError, match=r"page: .* has extended attributes"):
        verify(out, ledger=book, page=page)


def more_rows(release):
    added = with_row(release, ["see", "my"])
    for level in added.manifest["levels"]:
        level["released"] += level["level"] == 2
    return added


def test_a_forgery_that_agrees_with_itself_needs_the_ledger(out, book, tmp_path):
    forged = more_rows(Release.load(out)).save(tmp_path / "forged")
    (told,) = warnings_in(verify(forged, without_ledger=True))
    assert told.startswith("no ledger was asked")
    with pytest.raises(UsageError, match="is not what dphh wrote for this run"):
        verify(forged, ledger=book)


def test_the_first_items_alone_are_no_release_of_the_ledgers(out, book, tmp_path):
    whole = Release.load(out)
    table = whole.table.slice(0, 1)
    few = Release(table, {**whole.manifest, DIGEST_FIELD: digest_of(table)}).save(tmp_path / "few")
    with pytest.raises(UsageError, match=r"release.parquet is not what dphh wrote for this"):
        verify(few, ledger=book)
    with pytest.raises(UsageError, match="level"):
        verify(few, without_ledger=True)


def test_a_run_of_another_ledger_is_unknown(out, book, corpus, tmp_path):
    """The forger has paid, from an account of that name, in a ledger of their own."""
    other = Ledger(tmp_path / "other.sqlite", create=True)
    other.add("notes", corpus, 1.0, 1e-6)
    with pytest.raises(UsageError, match=r"does not know its run .* another ledger, if at all"):
        verify(out, ledger=other)
    assert str(book.path) in dict(verify(out, ledger=book))["ledger"]


def test_without_a_ledger_nothing_passes_unless_that_is_enough(out, monkeypatch, tmp_path):
    monkeypatch.setenv("DPHH_LEDGER", str(tmp_path / "none.sqlite"))
    with pytest.raises(UsageError, match="does not show who made it, nor that anybody paid"):
        verify(out)
    assert not (tmp_path / "none.sqlite").exists()
    assert "account" not in dict(verify(out, without_ledger=True))
    with pytest.raises(UsageError, match="a ledger or an account is given too"):
        verify(out, without_ledger=True, ledger=tmp_path / "none.sqlite")


def test_a_run_that_no_account_paid_for_is_refused(ledger, corpus, tmp_path):
    ngrams(corpus, max_n=2, **COST).run(ledger=ledger, engine="polars", out=tmp_path / "out")
    with pytest.raises(UsageError, match="no account paid for its run, so no cap holds"):
        verify(tmp_path / "out", ledger=ledger)


def test_what_an_officer_must_answer_for_is_a_warning_and_passes(out, book, corpus, tmp_path):
    """A cap that was raised or is weak, and a table that whoever asked has made."""
    lines = verify(out, ledger=book)
    assert "warning" not in dict(lines)
    asked = dict(lines)["asked"]
    assert asked.startswith(
        "runs of up to 2 words of the column 'what' that people share; how many people "
        "hold each, for 30% of its budget; all rows"
    )
    assert f"; of {corpus.where[0]}; of users by the column 'who'; by {login_name()}, 2" in asked
    book.set_cap("notes", 60.0, 1e-6)
    frame = pl.DataFrame({"who": range(900), "what": ["made up"] * 900})
    table = Corpus(frame, user="who", text="what", account="notes")
    items(table, **COST).run(ledger=book, engine="polars", out=tmp_path / "table")
    told = [said for what, said in verify(tmp_path / "table", ledger=book) if what == "warning"]
    table_in_memory, weak, changed = told
    assert "believed whoever made the table" in table_in_memory
    assert weak.startswith("the cap of 'notes': epsilon 60")
    assert changed.startswith("'notes', after earlier runs: ")
    assert "after 1 run: cap changed from epsilon 1, delta 1e-06 to epsilon 60" in changed
    for answered, waiting in ((1, told), (2, told[:2])):
        lines = verify(tmp_path / "table", ledger=book, account="notes", answered=answered)
        assert warnings_in(lines) == waiting
    assert any(said.startswith("'notes', answered: 2") for _, said in lines)
    with pytest.raises(UsageError, match=r"answered: 'notes' has 2 changes, and nobody has ans"):
        verify(tmp_path / "table", ledger=book, account="notes", answered=3)
    book.set_cap("notes", 60.0, 1e-6)  # as it is
    assert len(book.history("notes")) == 2


def warnings_in(lines):
    return [said for what, said in lines if what == "warning"]


def test_an_account_that_was_made_after_the_run_is_told(ledger, corpus, tmp_path):
    """Its cap is cut to fit the run; and that of a later run stood when this one was asked for."""
    first, later = tmp_path / "first", tmp_path / "later"
    ngrams(corpus, max_n=2, **COST).run(ledger=ledger, engine="polars", out=first)
    ledger.add("notes", corpus, **COST)
    (told,) = warnings_in(verify(first, ledger=ledger))
    assert told.startswith("'notes', AFTER this run was asked for: ")
    assert "after 1 run: account made: a cap of epsilon 0.5, delta 1e-07, for " in told
    told = dict(verify(first, ledger=ledger))["account"]
    assert told.startswith("'notes' counts this run as spent, within its cap")
    ledger.set_cap("notes", 2.0, 1e-6)
    items(corpus, **COST).run(ledger=ledger, engine="polars", out=later)
    assert [told.split(": ")[0] for told in warnings_in(verify(later, ledger=ledger))] == [
        "'notes', after earlier runs"
    ] * 2
    assert [told.split(": ")[0] for told in warnings_in(verify(first, ledger=ledger))] == [
        "'notes', AFTER this run was asked for"
    ] * 2


def test_groups_that_were_declared_after_runs_need_an_answer(out, book, corpus, tmp_path):
    """Whoever declares them may have seen the releases; those of other columns are not of the run.
    The run `out` came first."""
    book.declare_groups("notes", "what", "Erika Mustermann")
    book.declare_groups("notes", "other", "z")
    asked = {"ledger": book, "engine": "polars"}
    items(corpus, by="what", groups="Erika Mustermann", **COST).run(**asked, out=tmp_path / "by")
    (told,) = warnings_in(verify(tmp_path / "by", ledger=book))
    assert told.startswith("'notes', after earlier runs: ")
    assert told.split("groups ")[1].startswith("given: what: Erika Mustermann; by")
    assert not warnings_in(verify(out, ledger=book))


def test_groups_leave_as_the_officer_named_them(dphh, book, corpus, tmp_path):
    """That the team declared them public tells nobody whom they name."""
    book.declare_groups("notes", "what", "DE, Erika Mustermann, 2026-W47")
    asked = {"ledger": book, "engine": "polars", "out": tmp_path / "by"}
    items(corpus, by="what", groups="DE, Erika Mustermann, 2026-W47", **COST).run(**asked)
    lines = verify(tmp_path / "by", ledger=book)
    assert ("groups", "'2026-W47' leave too: they were named, or name periods") in lines
    assert dict(lines)["own words"].endswith("release.json: groups 'DE', 'Erika Mustermann'")
    lines = verify(tmp_path / "by", ledger=book, groups="DE")
    assert dict(lines)["own words"].endswith("release.json: groups 'Erika Mustermann'")
    gate = ("verify", tmp_path / "by", "--ledger", book.path, "--groups")
    assert [dphh(*gate, of)[0] for of in ("FR, DE", "Erika Mustermann, DE")] == [4, 0]
    assert "before any run: public groups given: what: 2026-W47, DE, Erika Mus" in f"{lines}"


def test_a_release_that_protects_one_item_says_so(written, ledger, tmp_path):
    *_, reports = each_verb(written(TEXTS))
    ledger.add("notes", written(TEXTS), 100.0, 1e-4, "sums")
    reports.run(ledger=ledger, engine="polars", out=tmp_path / "out")
    told = warnings_in(verify(tmp_path / "out", ledger=ledger))
    assert any("protects one contributed item, and not all that a person" in said for said in told)


@pytest.mark.parametrize("name", [TABLE, MANIFEST])
def test_a_file_larger_than_any_release_is_not_read(out, book, name):
    os.truncate(out / name, 60 << 30)
    with pytest.raises(UsageError, match=f"{name} is larger than any that dphh writes"):
        verify(out, ledger=book)


def test_changes_before_the_first_run_and_shares_need_no_answer(book, corpus, tmp_path):
    book.set_cap("notes", 2.0, 1e-6, "sums")
    book.declare_groups("notes", "what", "x")
    asked = {"ledger": book, "engine": "polars"}
    items(corpus, **COST).run(**asked, out=tmp_path / "out")
    items(corpus, by="what", groups="x", **COST).run(**asked, out=tmp_path / "groups")
    book.set_share("notes", "alice", 0.1, 1e-8)
    book.give_token("alice")
    assert not warnings_in(verify(tmp_path / "groups", ledger=book))
    book.declare_groups("notes", "what", "y")
    assert not warnings_in(verify(tmp_path / "out", ledger=book))
    (told,) = warnings_in(verify(tmp_path / "groups", ledger=book))
    assert "AFTER this run" in told and "groups changed from what: x to what: y" in told


def test_data_that_were_moved_after_a_run_are_told(out, book, corpus, tmp_path):
    elsewhere = replace_corpus(corpus, where=(str(tmp_path / "else.parquet"),))
    book.add("notes", elsewhere, 1.0, 1e-6, replace=True)
    (told,) = warnings_in(verify(out, ledger=book))
    assert f"data and columns changed from {corpus.where[0]} to {elsewhere.where[0]}" in told


def test_texts_that_somebody_wrote_are_shown_before_they_leave(book, corpus, tmp_path):
    book.declare_groups("notes", "what", "x, y")
    where = "what <> 'Erika Mustermann'"
    narrowed = Corpus(corpus.where[0], user="who", text="what", where=where, drop="0151.*")
    asked = {"by": "what", "counts": 0.3, **COST}
    items(narrowed, groups=["x", "z"], **asked).run(
        ledger=book, engine="polars", out=tmp_path / "out", run_id="Erika 0151"
    )
    told = [said for what, said in verify(tmp_path / "out", ledger=book) if what == "own words"]
    assert [said.split("release.json: ")[1] for said in told] == [
        "run_id 'Erika 0151'", "groups 'x', 'z'", "drop '0151.*'", f"where '{where}'"
    ]  # fmt: skip
    page = Release.load(tmp_path / "out").report(tmp_path / "page.html", title="For Erika")
    *_, title = verify(tmp_path / "out", ledger=book, page=page, title="For Erika")
    assert title == ("page", "its title, 'For Erika', is the one that was named")
    for asked, why in (
        ({"title": "Erika"}, "there is no page"),
        ({"groups": "x, , y"}, "groups: "),
        ({"answered": 1}, "answered: name the account"),
    ):
        with pytest.raises(UsageError, match=why):
            verify(tmp_path / "out", ledger=book, **asked)


@pytest.mark.parametrize(
    ("run_id", "is_period"),
    [("week-47", True), ("week-2026-W47", True), ("2026-W47", True), ("2026-11-28", True),
     ("2026-11", True), ("2026-Q4", True), ("month-11", True), ("1984-05-06", False),
     ("year-61", False), ("2026-61-04", False), ("week-٤٧", False), ("day-99", False),
     ("week-00", False), ("2026-W99", False), ("2026-Q9", False), ("２０２６-１１", False),
     ("week-1984-W05", False),
     ("2029-01-01", False), ("week-47 Erika", False), ("01512345678", False), ("47", False),
     ("9f1c2b7e5d3a4c86b0a1e2f394857d6c", False)],
)  # fmt: skip
def test_a_run_id_that_names_a_period_of_these_years_needs_no_answer(run_id, is_period):
    assert _is_period(run_id, datetime(2026, 11, 28, tzinfo=UTC)) is is_period


def test_a_job_that_names_its_run_and_lowers_its_cap_needs_no_answer(dphh, book, corpus, tmp_path):
    """As every night, so that exit code 4 stays for what a person has to read."""
    items(corpus, **COST).run(ledger=book, engine="polars", run_id="big", out=tmp_path / "big")
    asked = ("verify", tmp_path / "big", "--ledger", book.path, "--json")
    code, out, _ = dphh(*asked)
    waiting = [each["found"] for each in json.loads(out)["lines"] if each["waits"]]
    assert (code, json.loads(out)["exit_code"]) == (4, 4)
    assert waiting == ["leaves as somebody wrote it, in release.json: run_id 'big'"]
    book.set_cap("notes", 0.8, 1e-6)
    code, out, _ = dphh(*asked, "--run-id", "big")
    told = json.loads(out)
    assert (code, told["exit_code"]) == (0, 0)
    assert not any(each["waits"] for each in told["lines"])
    assert "from epsilon 1, delta 1e-06 to epsilon 0.8, delta 1e-06" in out
    code, out, _ = dphh(*asked, "--run-id", "small")
    assert code == 2 and "it is of the run 'big', and not 'small'" in out
    book.set_cap("notes", 0.9, 5e-7)
    book.set_cap("notes", 0.8, 6e-7)  # a part of each is raised
    assert dphh(*asked, "--run-id", "big")[0] == 4
    raised = warnings_in(verify(tmp_path / "big", ledger=book, run_id="big"))
    assert ["AFTER this run" in said for said in raised] == [True, True]


def test_an_id_that_looks_drawn_and_was_given_is_somebodys_words(book, corpus, out, tmp_path):
    """`out` has an id that the ledger drew. Without the ledger nobody can tell."""
    drawn = Release.load(out).run_id
    assert dict(verify(out, ledger=book))["run_id"] == f"{drawn}, drawn by dphh"
    looks_drawn = "000c2b7e5d3a4c86b0a1015123456789"
    items(corpus, **COST).run(
        ledger=book, engine="polars", run_id=looks_drawn, out=tmp_path / "given"
    )
    lines = dict(verify(tmp_path / "given", ledger=book))
    assert lines["own words"].endswith(f"release.json: run_id '{looks_drawn}'")
    alone = dict(verify(tmp_path / "given", without_ledger=True))
    assert alone["run_id"].endswith("only the ledger that paid for it tells")


@pytest.mark.parametrize("run_id", ["Erika", "9F1C2B7E5D3A4C86B0A1E2F394857D6C", "0151" * 9])
def test_an_id_of_a_ledger_that_was_edited_does_not_pass_for_drawn(book, corpus, run_id):
    """Whoever may write the file may say of any id that dphh drew it."""
    items(corpus, **COST).run(ledger=book, engine="polars")
    runs = {run_id: replace(book.runs()[-1], run_id=run_id, id_given=False)}
    assert [what for what, _ in lines_on_run_ids({"run_id": run_id}, runs, None)] == ["own words"]


@pytest.mark.parametrize("edit", ["epsilon = 0.01, events = '[]'", "recorded = 1e15"])
def test_a_run_that_was_made_cheaper_in_the_file_is_refused(out, book, corpus, edit):
    """Another run of the account, so that this one stays within the cap."""
    items(corpus, **COST).run(ledger=book, engine="polars", run_id="other")
    with closing(sqlite3.connect(book.path)) as con, con:
        con.execute(f"UPDATE runs SET {edit} WHERE run_id = 'other'")
    with pytest.raises(UsageError, match="row of the run 'other' is not as dphh"):
        verify(out, ledger=book)


@pytest.mark.parametrize("edit", ["epsilon = 0.01", "epsilon = 9e999", "recorded = 9e999"])
def test_nothing_is_said_of_a_ledger_that_was_edited(dphh, out, book, edit):
    show = ("ledger", "show", "--ledger", book.path)
    assert [dphh(*show, *which)[0] for which in ((), ("notes",), ("--json",))] == [0, 0, 0]
    with closing(sqlite3.connect(book.path)) as con, con:
        con.execute(f"UPDATE runs SET {edit}")
    export = ("ledger", "export", out.parent / "runs.csv", "--ledger", book.path)
    release = ("ledger", "release", Release.load(out).run_id, "--ledger", book.path)
    for asked in (show, (*show, "notes"), (*show, "notes", "--json"), export, release):
        code, said, why = dphh(*asked)
        assert code == 1 and "likely" not in said
        assert "is not as dphh wrote it. Somebody edited the ledger's file" in why


def test_an_account_that_was_written_in_as_the_payer_of_other_files_is_told(out, book, tmp_path):
    with closing(sqlite3.connect(book.path)) as con, con:
        for table, at in (("accounts", ""), ("history", "$[1]")):
            column = "state" if at else "source"
            con.execute(f"UPDATE {table} SET {column} = replace({column}, 'corpus.p', 'others.p')")
    resealed(book)
    (told,) = warnings_in(verify(out, ledger=book))
    assert told.startswith("the run read /") and told.endswith("not in the data of 'notes'")


def test_an_account_that_was_edited_in_the_file_is_refused(out, book):
    with closing(sqlite3.connect(book.path)) as con, con:
        con.execute("UPDATE accounts SET epsilon = 7")
    with pytest.raises(UsageError, match="'notes': its cap, data or groups are not those"):
        verify(out, ledger=book)


@pytest.mark.parametrize(
    ("asked", "days", "waits"),
    [({"since": "day=2026-11-09", "until": "day=2026-11-16"}, "day", False),
     ({"since": "day=2026-W49"}, "day", False), ({"since": "day=2026-11-09"}, None, True),
     ({"since": "born=1961-03-04", "until": "born=1961-03-05"}, "day", True),
     ({"since": "born=1961-03-04", "until": "day=2026-11-16"}, "day", True),
     ({"since": 'a"b=2026-11'}, 'a"b', False), ({"since": "day=0151 2345"}, "day", True),
     ({"where": "day <> 'Erika'", "since": "day=2026-11-09"}, "day", True),
     ({"where": "born = 'day'", "since": "day=2026-11-09"}, "day", True),
     ({"since": "day=2026-11-09"}, "", True),
     ({"since": "born=1961-03-04"}, "born", True),
     ({"since": "day=2026-11-09", "until": "day=2030-01-01"}, "day", True),
     ({"since": "day=2026-99"}, "day", True),
     ({"since": "day=2026-11", "where": "day > '2026-01-01'"}, "day", False),
     *(({"where": where}, "week", False) for where in (
         "week='2026-W47'", '"week" = \'2026-W47\'', "week IN ('2026-W46', '2026-W47')",
         "week BETWEEN DATE '2026-11-09' AND DATE '2026-11-15'", "week = '2026-Q4'",
         "week >= '2026-11-09' and week < date '2026-11-16'")),
     *(({"where": where}, "week", True) for where in (
         "week = '1961-W05'", "week IN ('2026-W46', '1961-W05')", "week = '2026-W47' OR true",
         "week = '2026-W47' AND born = '2026-11-09'", "week = '2026-W47 '", "week = 'Erika'",
         "week = 2026", "week  = '2026-W47'", "week -- 0151\n = '2026-W47'", "WEEK = '2026-W47'")),
     ({"where": "week = '2026-W47'"}, None, True), ({"where": "week = '2026-W47'"}, "day", True),
     ({"where": '"a b" = \'2026-W47\''}, "a b", False),
     ({"where": "\"day\" >=  '2026-11-09'"}, "day", True),
     ({"where": "\"day\" >= '2026-11-09' AND who = 'Erika'"}, "day", True)],
)  # fmt: skip
def test_a_range_of_days_needs_no_answer_of_the_named_column_alone(asked, days, waits):
    where = Corpus("x", user="who", text="what", **asked).content.where
    run = datetime(2026, 11, 16, tzinfo=UTC)
    lines = [*own_words({"parameters": {"content": {"where": where}}}, (), days, run)]
    assert [what for what, _ in lines] == ["numbers"] + ["own words"] * waits
    assert lines[-1][1].endswith("near the run's") is (waits and days is not None)


def test_white_space_that_a_file_carries_is_shown(book, corpus, tmp_path):
    """Spaces and tabs may spell a name."""
    read = Corpus(corpus.where[0], user="who", text="what", where="what <> 'a' \t  \t AND true")
    items(read, **COST).run(ledger=book, engine="polars", out=tmp_path / "out")
    lines = dict(verify(tmp_path / "out", ledger=book))
    assert lines["own words"].endswith("where 'what <> 'a' \\t␣␣\\t AND true'")


def test_numbers_are_shown_and_long_ones_need_an_answer(book, corpus, tmp_path):
    plan = ngrams(corpus, max_n=2, spurious=0.014915112345, **COST)
    plan.run(ledger=book, engine="polars", out=tmp_path / "out")
    lines = dict(verify(tmp_path / "out", ledger=book))
    assert lines["numbers"].startswith("counts 0.3, delta 1e-07, epsilon 0.5, max_items 100, max_n")
    assert "release.json: spurious 0.014915112345, which" in lines["own words"]


#: A parameter of each verb that a release has, a list and a content's among them; and what it says
#: of somebody.
NAME, PHONE = "Erika Mustermann", 1512345678
VERBS = ("ngrams forecast", "ngrams dpne", "items", "counts", "trie", "ldp_trie")
CHOICES = {"method", "choice", "sampling", "reading", "too_long", "null_users", "prior"}


@cache
def asked_of():
    corpus = Corpus("x", user="who", text="what")
    return {
        plan.verb + f" {plan.price.method}" * (plan.verb == "ngrams"): parameters_asked(
            plan.price, corpus
        )
        for plan in each_verb(corpus)
    }


@pytest.mark.parametrize("mark", [NAME, [NAME], PHONE, 0.1512345678, [0.5, PHONE]])
@pytest.mark.parametrize("verb", VERBS)
def test_whatever_a_parameter_says_waits_for_an_answer(verb, mark):
    """In each parameter that a verb has, whatever it takes now: those that are choices hold none,
    as a release with another is refused."""
    assert {*asked_of()} == {*VERBS}
    asked = asked_of()[verb]
    assert "character_set" in asked_of()["ldp_trie"] and "keep" in asked["content"]
    for name in {**asked, "shares": None}.keys() - CHOICES - {"content"}:
        assert shown_in({**asked, name: mark}, mark), name
    for name in asked["content"].keys() - CHOICES:
        assert shown_in({**asked, "content": {**asked["content"], name: mark}}, mark), name


def shown_in(asked, mark):
    manifest = {"parameters": asked}
    lines = [*lines_on_columns(asked), *own_words(manifest, (), None, datetime.now(UTC))]
    told = mark[-1] if isinstance(mark, list) else mark
    return any(what == "own words" and str(told) in said for what, said in lines)


def test_short_numbers_of_lists_and_of_one_name_are_shown():
    asked = {**asked_of()["ldp_trie"], "keep": 41, "shares": [0.25, 0.75]}
    (numbers, *more) = own_words({"parameters": asked}, (), None, datetime.now(UTC))
    assert "keep 41" in numbers[1] and "shares 0.25, shares 0.75" in numbers[1] and not more


def test_names_of_columns_are_shown_and_odd_ones_need_an_answer():
    asked = {"user": ["who", "week_2.a-b"], "content": {"column": "Erika Müller"}, "by": "a\u200b"}
    assert [*lines_on_columns(asked)] == [
        ("columns", "who, week_2.a-b leave too"),
        *(("own words", f"leaves as somebody wrote it, in release.json: the name of a column {at}")
          for at in ("'Erika Müller'", "'a\\u200b'")),
    ]  # fmt: skip


def test_a_job_names_the_column_of_its_days(dphh, book, made, tmp_path):
    chosen = Corpus(made / "corpus.parquet", user="who", text="what", since="what=2026-11-01")
    items(chosen, **COST).run(ledger=book, engine="polars", out=tmp_path / "week")
    asked = ("verify", tmp_path / "week", "--ledger", book.path)
    code, told, _ = dphh(*asked)
    assert code == 4 and """where '"what" >= '2026-11-01''""" in " ".join(told.split())
    assert dphh(*asked, "--days", "who")[0] == 4
    assert dphh(*asked, "--days", "what")[0] == 0


def test_given_items_are_shown_and_days_are_not(book, corpus, tmp_path):
    days = replace_corpus(corpus, content=Corpus(
        "x", user="who", text="what", since="what=2026-11-01", until="what=2026-W49"
    ).content)  # fmt: skip
    for name, read, words, end in (
        ("days", days, ["a", "0151"], "release.json: of '0151', 'a'"),
        ("many", corpus, [*map(str, range(30))], "'26' and 10 others, in release.json"),
    ):
        plan = counts(read, of=[[word] for word in words], **COST)
        plan.run(ledger=book, engine="polars", out=tmp_path / name)
        lines = verify(tmp_path / name, ledger=book, days="what" if read is days else None)
        (told,) = (said for what, said in lines if "own" in what)
        assert told.endswith(end)
        (declared,) = (said for said in warnings_in(lines) if said.startswith("declared public"))
        assert declared == (
            f"declared public: a list of {len(words)} items, by {login_name()}; "
            "nothing protects the people in it"
        )
    named = {"where": "what <> 'Erika'", "since": "what=2026-11-01"}
    chosen = Corpus(corpus.where[0], user="who", text="what", **named)
    items(chosen, **COST).run(ledger=book, engine="polars", out=tmp_path / "chosen")
    assert "Erika" in dict(verify(tmp_path / "chosen", ledger=book))["own words"]


def test_items_of_a_paid_release_are_not_declared_public(book, corpus, out, tmp_path):
    """Those of a release that was given its items are: the first of a chain declared them."""
    asked = {"ledger": book, "engine": "polars"}
    found = Release.load(out)

    def told(name, of):
        counts(corpus, of=of, epsilon=0.05, delta=1e-9).run(**asked, out=tmp_path / name)
        return dict(verify(tmp_path / name, ledger=book))

    assert told("all", found)["items"].endswith(
        f"of the release {found.run_id}, which its account paid for"
    )
    assert (
        not {"own words", "warning"} & told("few", found.to_polars()["tokens"][:2].to_list()).keys()
    )
    others = told("others", [["good"], ["erika"]])
    assert "items" not in others and "'erika'" in others["own words"]
    given = Release.load(tmp_path / "others")
    (tmp_path / "list.txt").write_text("Good\n\nErika\nmore\n")
    for folder, said in (("others", "all are in the list that"), ("out", "was given none, so the")):
        lines = dict(verify(tmp_path / folder, ledger=book, of=tmp_path / "list.txt"))
        assert said in lines["items"] and not {"own words", "warning"} & lines.keys()
    (tmp_path / "list.txt").write_text("good\n")
    assert "items" not in dict(verify(tmp_path / "others", ledger=book, of=tmp_path / "list.txt"))
    with pytest.raises(UsageError, match=r"^of: .* is no text file"):
        verify(tmp_path / "others", ledger=book, of=tmp_path / "none.txt")
    frame = pl.DataFrame({"who": range(900), "what": ["erika"] * 900})
    table = Corpus(frame, user="who", text="what", account="notes")
    items(table, **COST).run(**asked)
    assert "items" not in told("made up", [["erika"]])
    assert "items" not in told("again", given) and "items" not in told("self", [["erika"]])


def test_another_account_than_the_one_that_was_approved_is_refused(out, book, dphh):
    """As one with a cap of its own, on a copy of the data."""
    assert verify(out, ledger=book, account="notes")
    with pytest.raises(
        UsageError, match="paid for its run, and not 'approved', which the ledger does not"
    ):
        verify(out, ledger=book, account="approved")
    with pytest.raises(UsageError, match="a ledger or an account is given too"):
        verify(out, without_ledger=True, account="notes")
    for asked in ({"days": "day"}, {"groups": "DE"}):  # of a run that has neither
        assert "not needed" in dict(verify(out, ledger=book, **asked))[min(asked)]
    assert dphh("verify", out, "--ledger", book.path, "--account", "approved")[0] == 2


def test_an_account_beyond_its_cap_promises_nothing(out, book):
    book.set_cap("notes", 0.1, 1e-6)
    with pytest.raises(UsageError, match=r"'notes': the cap of \(0.1, 1e-06\) is broken"):
        verify(out, ledger=book)


def test_an_account_of_other_users_promises_nothing_to_these(ledger, corpus, tmp_path):
    """The run came before the account, and counts as spent for it."""
    by_text = replace_corpus(corpus, user=("what",), content=corpus.content)
    items(corpus, **COST).run(ledger=ledger, engine="polars", out=tmp_path / "out")
    Ledger(ledger.path).add("notes", by_text, 1.0, 1e-6)
    with pytest.raises(UsageError, match="protects users by the column 'what', and this run"):
        verify(tmp_path / "out", ledger=ledger)


def test_a_tests_release_is_refused_although_an_account_paid(book, corpus, tmp_path):
    plan = items(corpus, **COST)
    plan.run(
        ledger=book, engine="polars", run_id="t", randomness=SeededRandomness(1), out=tmp_path / "t"
    )
    for asked in ({"ledger": book}, {"without_ledger": True}):
        with pytest.raises(UsageError, match="NOT private"):
            verify(tmp_path / "t", **asked)


def test_what_a_ledger_was_made_to_store_must_promise_what_it_booked(book, corpus, monkeypatch):
    """Somebody settles a run with a manifest of a smaller price."""
    made = items(corpus, epsilon=0.2, delta=1e-8).run(ledger=book, engine="polars")
    settle = Ledger.settle

    def settle_less(self, run, manifest, parquet):
        said = {**made.manifest, "run_id": run.run_id}
        return settle(self, run, said, Release(made.table, said).parquet())

    monkeypatch.setattr(Ledger, "settle", settle_less)
    forged = items(corpus, **COST).run(ledger=book, engine="polars")
    out = forged.save(book.path.parent / "less")
    with pytest.raises(UsageError, match=r"row of the run .* is not as dphh"):
        verify(out, ledger=book)


def test_every_verbs_release_passes_and_comes_back_from_the_ledger(written, ledger, tmp_path):
    corpus = written(TEXTS)
    ledger.add("notes", corpus, 100.0, 1e-4, "sums")
    for number, plan in enumerate(each_verb(corpus)):
        release = plan.run(ledger=ledger, engine="polars", out=tmp_path / str(number))
        lines = verify(tmp_path / str(number), ledger=ledger)
        assert not [said for _, said in lines if "more digits" in said]
        verify(tmp_path / str(number), without_ledger=True)
        Release.load(tmp_path / str(number)).save(tmp_path / f"again-{number}")
        verify(tmp_path / f"again-{number}", ledger=ledger)
        assert release.stored is not None


def test_what_another_pyarrow_wrote_is_compared_with_what_the_ledger_stored(
    out, book, monkeypatch, tmp_path
):
    monkeypatch.setattr("dphh.release.release_file", lambda *_: b"by another version")
    monkeypatch.setattr("dphh.gate.verifying.pa.__version__", "99.0")
    verify(out, ledger=book)
    with pytest.raises(UsageError, match=r"written by pyarrow .* could not be checked"):
        verify(out, without_ledger=True)


def test_a_page_is_what_would_be_written_now(out, book, tmp_path):
    release = Release.load(out)
    page = release.report(tmp_path / "page.html", title="Notes", top=1, ledger=book)
    how = {"ledger": book, "page": page, "title": "Notes", "top": 1}
    *_, page_line, title, name = verify(out, **how)
    assert "with the names of the accounts that paid" in page_line[1]
    assert name == ("own words", "leaves as somebody wrote it, on the page: 'notes'")
    assert verify(out, **how, account="notes")[-1] == title
    release.report(page, title="Notes", top=1)
    assert "names of the accounts" not in dict(verify(out, **how))["page"]
    verify(out, **{**how, "ledger": None}, without_ledger=True)
    for other in ({"title": None}, {"top": 2}, {"page": tmp_path / "none.html"}):
        with pytest.raises(UsageError, match="page: "):
            verify(out, **how | other)
    shown = page.read_text()
    page.write_text(shown + "<!-- 0151 2345678 -->")
    with pytest.raises(UsageError, match="is not what this dphh writes of this release"):
        verify(out, **how)
    page.write_text(shown)
    page.rename(tmp_path / "real.html")
    page.symlink_to(tmp_path / "real.html")
    with pytest.raises(UsageError, match="is a link"):
        verify(out, **how)


@pytest.mark.slow
def test_another_process_writes_the_same_page(book, corpus, tmp_path):
    """Whatever the order in which its sets and threads go."""
    asked = {"by": "what", "groups": ["see you later my friend"], "counts": 0.3}
    ngrams(corpus, max_n=3, **asked, **COST).run(ledger=book, engine="polars", out=tmp_path / "by")
    page = tmp_path / "page.html"
    for seed in ("1", "2"):
        report = [sys.executable, "-m", "dphh", "report", str(tmp_path / "by"), "-o", str(page)]
        how = {"PYTHONHASHSEED": seed, "POLARS_MAX_THREADS": seed}
        subprocess.run(report, check=True, env=os.environ | how, timeout=100)
        verify(tmp_path / "by", ledger=book, page=page)


def test_the_command_names_account_and_cap_and_has_exit_codes(dphh, out, book, tmp_path):
    asked = ("verify", out, "--ledger", book.path)
    code, said, _ = dphh(*asked)
    assert (code, said.endswith("\npassed (exit code 0)\n")) == (0, True)
    joined = " ".join(said.split())
    assert "+ account 'notes' paid for this run, within its cap of epsilon 1, delta 1e-06" in joined
    book.set_cap("notes", 2.0, 1e-6)
    code, said, _ = dphh(*asked)
    assert code == 4 and "\n  ! warning " in said
    assert said.endswith("\n1 line with ! waits for a person's answer (exit code 4)\n")
    (out / "rows.csv").touch()
    code, said, err = dphh(*asked)
    assert (code, said) == (2, "") and "'rows.csv'" in err
    (out / "rows.csv").unlink()
    code, said, _ = dphh("verify", out, "--without-ledger")
    assert code == 4 and "! warning  no ledger was asked" in said and "passed" not in said
    assert dphh("verify", out, "--ledger", tmp_path / "none.sqlite")[0] == 2
    assert dphh(*asked, "--page", tmp_path / "none.html")[0] == 2
    (tmp_path / "broken.sqlite").write_text("no ledger")
    assert dphh("verify", out, "--ledger", tmp_path / "broken.sqlite")[0] == 1


def test_a_digest_alone_is_no_seal(out, book):
    """The row is gone, hash and levels are computed anew."""
    release = Release.load(out)
    fewer = release.table.slice(1)
    said = {**release.manifest, DIGEST_FIELD: digest_of(fewer)}
    (out / TABLE).write_bytes(Release(fewer, said).parquet())
    (out / MANIFEST).write_text(json.dumps(said, indent=2, sort_keys=True) + "\n")
    with pytest.raises(UsageError):
        verify(out, ledger=book)
