"""`dphh.check` and `dphh.compare` say what a run would meet and cost, and spend nothing."""

import json

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import dphh
from dphh import Corpus, UsageError
from tests.ledger.asked import tampered

ROWS = {"who": [1, 2, 3], "what": ["sentinel hello", "b", "c"]}


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "corpus"
    path.mkdir()
    pl.DataFrame(ROWS).write_parquet(path / "a.parquet")
    return path


def corpus_of(folder, **more):
    return Corpus(str(folder / "*.parquet"), **{"user": "who", "text": "what", **more})


def verdicts(checked):
    return {(each.what, each.verdict) for each in checked.findings}


def test_what_is_well_is_well_and_nothing_is_written(folder, ledger):
    corpus = corpus_of(folder)
    checked = dphh.check(corpus, ledger=ledger)
    assert checked.ok
    assert verdicts(checked) == {
        ("columns", "good"), ("files", "good"), ("users", "good"), ("ledger", "mind"),
    }  # fmt: skip
    assert "no account holds this corpus" in repr(checked)
    assert not ledger.path.exists()
    ledger.add("survey", corpus, 1.0, 1e-6)
    assert ("ledger", "good") in verdicts(dphh.check(corpus, ledger=ledger))
    assert ledger.runs() == []


def test_rows_of_nobody_are_looked_for_in_a_lazy_frame(ledger):
    lazy = Corpus(pl.LazyFrame({"who": [1, None], "what": "x"}), user="who", text="what")
    assert ("users", "stops") in verdicts(dphh.check(lazy, ledger=ledger))


def test_a_file_without_a_user_column_is_told_with_what_is_done_about_it(folder, ledger):
    other = folder / "it's b.parquet"
    pl.DataFrame({"what": ["x"]}).write_parquet(other)
    files = [str(folder / "a.parquet"), str(other)]
    for null_users, goes in (("refuse", False), ("drop", True)):
        corpus = Corpus(files, user="who", text="what", null_users=null_users)
        checked = dphh.check(corpus, ledger=ledger)
        assert checked.ok == goes
        (found,) = (each for each in checked.findings if each.what == "files")
        assert (found.verdict, found.found) == ("mind", "some have no column 'who'")
        names = duckdb.sql(found.costs.partition(". ")[2].removesuffix(" says which.")).fetchall()
        assert (files[0], "who") in names and (files[1], "who") not in names


def test_an_account_that_would_refuse_is_told(folder, ledger):
    ledger.add("survey", corpus_of(folder, user="what", text="who"), 1.0, 1e-6)
    checked = dphh.check(corpus_of(folder), ledger=ledger)
    assert ("ledger", "stops") in verdicts(checked)
    assert "protects users by the column 'what'" in " ".join(repr(checked).split())


def test_nothing_is_told_of_the_accounts_of_a_ledger_that_was_edited(folder, ledger):
    ledger.add("survey", corpus_of(folder), 1.0, 1e-6)
    tampered(ledger, "UPDATE accounts SET epsilon = 40")
    told = repr(dphh.check(corpus_of(folder), ledger=ledger))
    assert "edited the ledger's file" in told and "40" not in told


def test_it_tells_no_row_and_no_number_of_them(folder, ledger):
    corpus = corpus_of(folder)
    one = dphh.check(corpus, ledger=ledger)
    pl.DataFrame({"who": [9] * 50, "what": ["sentinel"] * 50}).write_parquet(folder / "b.parquet")
    assert dphh.check(corpus, ledger=ledger) == one
    assert "sentinel" not in repr(one) + one._repr_html_() + json.dumps(one.to_json())


def test_notebooks_show_tables_in_which_nothing_is_markup(folder, ledger):
    corpus = corpus_of(folder, where="what <> '<b>\u202e'")
    account = ledger.add("notes", corpus, 1.0, 1e-6)
    release = dphh.items(corpus, epsilon=0.5, delta=1e-7).run(ledger=ledger)
    for shown, said in (
        (corpus, "what &lt;&gt; &#x27;&lt;b&gt;⟨U+202E⟩"),
        (account, "a first run may have epsilon 1"),
        (ledger, "of it is used, by 1 run"),
        (dphh.check(corpus, ledger=ledger), "&#x27;notes&#x27; pays"),
        (dphh.check(corpus_of(folder, text="body"), ledger=ledger), ". No run begins"),
        (dphh.Ledger(folder / "none.sqlite"), "There is no ledger at"),
        (
            dphh.Ledger(folder / "new.sqlite", create=True),
            "`dphh ledger add NAME CORPUS ...` makes",
        ),
        (release.why("<b>"), "stayed below the threshold"),
    ):
        page = shown._repr_html_()
        assert page.startswith("<table><tr><td ") and said in page
        assert not [markup for markup in ("<b>", "\u202e") if markup in page]


def test_a_ledger_shows_that_there_are_runs_of_no_account(folder, ledger):
    plan = dphh.items(corpus_of(folder), epsilon=0.5, delta=1e-7)
    plan.run(ledger=ledger)
    for shown in (repr(ledger), ledger._repr_html_()):
        assert "of no account, so that no cap holds: 1 run" in shown
    ledger.add("notes", corpus_of(folder), 1.0, 1e-6)  # from now on it pays for that run
    assert "of no account" not in repr(ledger) + ledger._repr_html_()


def test_completion_leaves_out_what_dphh_alone_calls(folder, ledger):
    corpus = corpus_of(folder)
    release = dphh.items(corpus, epsilon=0.5, delta=1e-7).run(ledger=ledger)
    for value, asked in ((corpus, "where"), (ledger, "status"), (release, "why")):
        internal = value._INTERNAL.split()
        assert all(hasattr(value, name) for name in internal)
        assert asked in dir(value) and not {*internal} & {*dir(value)}


HALF = "half \ud83d of a pair"
REPORTS = {
    "local_epsilon": 4.0, "users_per_level": 9, "contributions": 1, "max_length": 1, "keep": 1,
}  # fmt: skip
#: What a caller may say, each with a text that no engine can be given.
NOT_UTF8 = {
    "of": lambda c: dphh.counts(c(), of=[HALF], epsilon=1.0, delta=1e-6),
    "of, as tokens": lambda c: dphh.counts(c(), of=[["a", HALF]], epsilon=1.0, delta=1e-6),
    "domain": lambda c: dphh.items(c(), domain=(("a",), (HALF,)), epsilon=1.0, delta=1e-6),
    "groups": lambda c: dphh.counts(
        c(), of=[["a"]], by="what", groups=[HALF], epsilon=1.0, delta=1e-6
    ),
    "by": lambda c: dphh.items(c(), domain=[["a"]], by=HALF, epsilon=1.0, delta=1e-6),
    "character_set": lambda c: dphh.ldp_trie(c(), character_set=HALF, delta=1e-6, **REPORTS),
    "known": lambda c: dphh.ldp_trie(c(), known={"a": 1, HALF: 2}.keys(), delta=1e-6, **REPORTS),
    **{
        option: lambda c, option=option: c(**{option: HALF})
        for option in ("user", "text", "split", "strip", "keep", "drop", "where", "account")
    },
    "since": lambda c: c(since=f"what={HALF}"),
    "source": lambda c: Corpus([f"{HALF}.parquet"], user="who", text="what"),
    "plan": lambda c: dphh.plan_from_json(
        dphh.items(c(), domain=[["a"]], epsilon=1.0, delta=1e-6).dumps().replace('"a"', '"\\ud83d"')
    ),
}


@pytest.mark.parametrize("said", NOT_UTF8)
def test_a_text_that_is_not_utf8_is_refused_when_it_is_said(folder, said):
    with pytest.raises(UsageError, match="is not UTF-8: it has half of a surrogate pair") as caught:
        NOT_UTF8[said](lambda **more: corpus_of(folder, **more))
    str(caught.value).encode()  # so that it can be printed
    assert str(caught.value).startswith(said.split(",")[0])


def test_both_spellings_of_white_space_are_the_keyword(folder):
    one, other = (corpus_of(folder, split=split) for split in ("whitespace", "white space"))
    assert one == other


@pytest.mark.parametrize("rows", [[], [("ann", "a")]])
@pytest.mark.parametrize("where", [None, "what = 'b'"])
@pytest.mark.parametrize("in_memory", [False, True])
def test_whether_there_is_any_row_decides_nothing_before_payment(
    rows, where, in_memory, tmp_path, ledger
):
    """No user and one user are neighbours: what tells them apart must be paid for, and noised."""
    frame = pl.DataFrame(rows, schema={"who": pl.String, "what": pl.String}, orient="row")
    frame.write_parquet(tmp_path / "c.parquet")
    source = frame if in_memory else tmp_path / "c.parquet"
    corpus = Corpus(source, user="who", text="what", where=where)
    checked = dphh.check(corpus, ledger=ledger)
    assert checked.ok
    assert "row" not in " ".join(x.found for x in checked.findings if x.what == "files")
    assert len(dphh.items(corpus, epsilon=1.0, delta=1e-9).run(ledger=ledger)) == 0
    assert [run.state for run in ledger.runs()] == ["settled"]


HELLO = [(person, "hello there") for person in range(50)]


@pytest.fixture
def corpus(written, ledger):
    corpus = written(HELLO)
    ledger.add("survey", corpus, 1.0, 1e-6)
    return corpus


def test_options_given_as_lists_are_crossed(corpus, ledger):
    found = dphh.compare(
        dphh.items, corpus, ledger=ledger, delta=1e-8, epsilon=[0.1, 0.5], max_items=[5, 50]
    )
    asked = found.select("epsilon", "max_items").rows()
    assert asked == [(0.1, 5), (0.1, 50), (0.5, 5), (0.5, 50)]
    alone = [dphh.items(corpus, delta=1e-8, epsilon=e, max_items=m).finds.users for e, m in asked]
    assert found["users"].to_list() == alone
    assert ledger.runs() == []


def test_more_for_counts_narrows_intervals_and_takes_more_users_to_be_found():
    found = dphh.compare(dphh.items, delta=1e-8, epsilon=1.0, counts=[0, 0.1, 0.4])
    none, some, more = found["interval"].to_list()
    assert none is None and more * 1.9 < some
    assert found["users"].is_sorted() and found["users"].n_unique() == 3
    default = dphh.compare(dphh.items, delta=1e-8, epsilon=1.0)
    assert default["interval"].to_list() == [some]


def test_one_column_has_the_users_of_one_word():
    found = dphh.compare(dphh.ngrams, max_n=3, delta=1e-8, epsilon=1.0, method="dpne")
    assert [name for name in found.columns if "users" in name] == ["users", "users_2", "users_3"]


def test_a_run_that_fits_alone_takes_all_and_one_that_never_fits_takes_more(corpus, ledger):
    whole, never = dphh.compare(
        "items", corpus, ledger=ledger, delta=1e-6, epsilon=[1.0, 2.0]
    ).iter_rows(named=True)
    assert (whole["share"], whole["runs_left"], whole["refused"]) == (1.0, 1, None)
    assert never["share"] > 1
    assert never["runs_left"] == 0


def test_what_cannot_be_is_said_beside_what_can(corpus, ledger):
    found = dphh.compare("items", corpus, ledger=ledger, delta=1e-8, epsilon=[0.5, -1])
    can, cannot = found.iter_rows(named=True)
    assert can["users"] and not can["refused"]
    assert cannot["users"] is None and "epsilon: found -1" in cannot["refused"]
    with pytest.raises(UsageError, match="epsilon: found -1"):
        dphh.compare("items", corpus, ledger=ledger, delta=1e-8, epsilon=-1)
    with pytest.raises(UsageError, match="found a list; make it a corpus"):
        dphh.compare("items", [1, 2], ledger=ledger, delta=1e-8, epsilon=[0.5, 1])


def test_a_run_is_looked_up_in_the_ledger_that_is_given(corpus, tmp_path):
    other = dphh.Ledger(tmp_path / "another.sqlite", create=True)
    run = dphh.items(corpus, delta=1e-7, epsilon=8.0).run(ledger=other).run_id
    found = dphh.compare("items", corpus, ledger=other, delta=1e-8, epsilon=0.5, domain=run)
    assert found["refused"].to_list() == [None]


def test_a_run_that_found_nothing_names_no_items(ledger):
    table = pa.table({"who": [1, 2], "what": ["a", "b"]})
    corpus = dphh.Corpus(table, user="who", item="what")
    run = dphh.items(corpus, delta=1e-7, epsilon=0.1).run(ledger=ledger).run_id
    with pytest.raises(UsageError, match=r"^domain: found no items"):
        dphh.compare("items", corpus, ledger=ledger, delta=1e-7, epsilon=0.5, domain=run)


def test_without_a_corpus_prices_alone_are_compared():
    found = dphh.compare(dphh.items, delta=1e-8, epsilon=[0.5, 1])
    assert found["share"].to_list() == found["refused"].to_list() == [None, None]
