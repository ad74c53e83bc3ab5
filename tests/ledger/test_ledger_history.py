"""What owners changed, declared groups, and what a ledger shows and exports."""

import getpass
import json
from types import SimpleNamespace

import polars as pl
import pytest

from dphh import Corpus
from dphh.errors import BudgetRefused, LedgerError, UsageError
from dphh.ledger import Ledger, Request
from dphh.ledger import schema as ledger_schema
from dphh.ledger import tables as ledger_tables
from dphh.ledger.asked import asked_in_words
from dphh.ledger.budget import Booking
from dphh.ledger.spending import guarantee_and_usage
from dphh.reader.corpus import as_recorded, replace_corpus
from dphh.report.statement import statement_as_json, statement_of
from tests.ledger.asked import DATA, ask, asked

ME = getpass.getuser()


def test_every_change_is_noted_with_who_and_from_what_to_what(book, reviews):
    book.add("reviews", reviews, 1.0, 1e-6)
    book.set_cap("reviews", 2.0, 1e-6, "sums")
    book.set_share("reviews", "alice", 0.5, 1e-7)
    book.set_share("reviews", "alice", 0.25, 1e-7)
    book.give_token("alice")
    book.give_token("alice")
    book.withdraw_token("alice")
    book.declare_groups("reviews", "country", "DE, US")
    book.declare_groups("reviews", "country", ())
    moved = Corpus("/elsewhere/a.parquet", user="who", text="body")
    book.add("reviews", moved, 2.0, 1e-6, replace=True)
    one, other = "epsilon 0.5, delta 1e-07", "epsilon 0.25, delta 1e-07"
    there = f"{reviews.where[0]}, users by the column 'author'"
    found = [(each.what, each.analyst, each.was, each.now) for each in book.history()]
    assert found == [
        ("account", None, None, f"a cap of epsilon 1, delta 1e-06, for {there}"),
        ("cap", None, "epsilon 1, delta 1e-06", "epsilon 2, delta 1e-06, rule sums"),
        ("share", "alice", None, one),
        ("share", "alice", one, other),
        ("token", "alice", None, "a new one"),
        ("token", "alice", "an earlier one", "a new one"),
        ("token", "alice", "an earlier one", None),
        ("groups", None, None, "country: DE, US"),
        ("groups", None, "country: DE, US", None),
        ("corpus", None, there, "/elsewhere/a.parquet, users by the column 'who'"),
    ]
    assert {(change.who, change.when.timestamp() % 86_400) for change in book.history()} == {
        (ME, 0)
    }
    assert book.history("reviews") == book.history()
    assert [str(each).split(": ", 1)[1] for each in book.history()[1:7:2]] == [
        f"cap changed from epsilon 1, delta 1e-06 to epsilon 2, delta 1e-06, rule sums; by {ME}",
        f"share of the analyst alice changed from {one} to {other}; by {ME}",
        f"token of the analyst alice changed from an earlier one to a new one; by {ME}",
    ]
    book.add("others", Corpus("/others", user="who", text="body"), 1.0, 0.0)
    assert [each.what for each in book.history("others")] == ["account"]


def test_a_change_says_after_how_many_of_its_runs_it_was_made(book, reviews, tmp_path):
    """Days alone would not tell what was changed in the light of a release."""
    ask(book, "elsewhere", replace_corpus(reviews, where=("/else/where",)))
    book.add("before", Corpus("/nowhere/yet", user="author", text="body"), 1.0, 0.0)
    ask(book, "first", reviews)
    book.add("reviews", reviews, 1.0, 0.0)
    ask(book, "second", reviews)
    book.set_cap("reviews", 2.0, 0.0)
    told = [(each.after, each.runs) for each in book.history()]
    assert told == [(1, 0), (2, 1), (3, 2)]
    first, made, changed = map(str, book.history())
    assert ", before any run: account made: a cap of epsilon 1, delta 0, for /nowhere" in first
    assert ", after 1 run: account made: " in made
    assert "; counted as spent: 1 earlier run on its data; by " in made
    assert ", after 2 runs: cap changed from epsilon 1, delta 0 to epsilon 2, delta 0" in changed


def test_a_link_that_leads_elsewhere_is_no_silent_change(book, reviews, tmp_path):
    """The account's path stays as it is, and begins to pay for runs on other files."""
    link = tmp_path / "data"
    (tmp_path / "old").mkdir()
    link.symlink_to(tmp_path / "old")
    account = replace_corpus(reviews, where=(str(link),))
    book.add("reviews", account, 1.0, 0.0)
    ask(book, "seen", replace_corpus(reviews, where=(str(tmp_path / "new"),)))
    link.unlink()
    link.symlink_to(tmp_path / "new")
    book.add("reviews", account, 1.0, 0.0, replace=True)
    assert book.status("reviews").runs == 1
    _, change = book.history()
    assert (change.what, change.runs) == ("corpus", 1)
    assert change.now == f"{link}; counted as spent: 1 earlier run on its data"
    link.unlink()
    link.symlink_to(tmp_path / "old")
    assert book.edited() is None  # although it pays for a run, and not for what it now leads to


def test_what_differs_between_two_corpora_of_an_account_is_noted_and_nothing_else(book, reviews):
    book.add("reviews", reviews, 1.0, 1e-6)
    where = reviews.where[0]
    few = Corpus(where, user="author", text="body", where="stars < 3", since="day=2026-11-01")
    kept = Corpus(where, user="author", text="body", null_users="drop", lower=False)
    for corpus in (reviews, few, few, kept):
        book.add("reviews", corpus, 1.0, 1e-6, replace=True)
    rows = "rows where (stars < 3) AND (day from 2026-11-01)"
    assert [(each.was, each.now) for each in book.history("reviews")[1:]] == [
        ("all rows", rows),
        (
            f"lower True, null_users 'refuse', {rows}",
            "lower False, null_users 'drop', all rows",
        ),
    ]


TOKENS = [["see"], ["see", "you"], ["a"], ["b"]]
#: What a run is asked for: its verb, its parameters, how its corpus is read, and that in words.
ASKED = [
    ("items", {}, {"text": "body"}, "words of the column 'body' that people share; all rows"),
    ("topics", {}, {"item": "body"}, "values of the column 'body' that people share; all rows"),
    (
        "ngrams",
        {
            "max_n": 3,
            "counts": 0.3,
            "min_users": 50,
            "prior": "0123456789abcdef",
            "shares": [0.2, 0.7512345678],
        },
        {"text": "body", "where": "stars = 1 OR stars = 2"},
        "runs of up to 3 words of the column 'body' that people share; how many people "
        "hold each, for 30% of its budget; only what 50 people or more hold, as far as intervals "
        "show; with a public prior, hash 0123456789ab; rows where stars = 1 OR stars = 2",
    ),
    (
        "counts",
        {"of": TOKENS, "by": "country", "groups": ["DE", "FR"]},
        {"text": "body", "since": "day=2026-11-01", "until": "day=2026-12-01"},
        "how many people hold each of 4 given items ('see', 'see you', 'a', ...) in the column "
        "'body'; people are counted by country: DE, FR, and all others; rows where (day from "
        "2026-11-01) AND (day before 2026-12-01)",
    ),
    (
        "items",
        {"domain": TOKENS[:1], "by": None},
        {"item": "body", "until": "o'clock=it''s"},
        "which people share of 1 given item ('see') in the column 'body'; rows where (o'clock "
        "before it''s)",
    ),
    (
        "ldp_trie",
        {"max_length": 5},
        {"text": "body", "as_": "characters"},
        "sequences of up to 5 characters of the column 'body', from randomised reports; all rows",
    ),
]


@pytest.mark.parametrize("verb, asked, how, words", ASKED)
def test_a_statement_says_what_was_asked(book, reviews, verb, asked, how, words):
    corpus = Corpus(reviews.where[0], user="author", **how)
    request = Request(corpus, verb, asked, Booking((), 0.25, 0.0))
    book.add("reviews", reviews, 1.0, 0.0)
    book.book(request, {}, DATA)
    (run,) = book.runs()
    assert asked_in_words(run, reviews) == words
    assert asked_in_words(run).endswith(f"; of {reviews.where[0]}; of users by the column 'author'")
    page = " ".join(statement_of(book, "reviews").split())
    assert f"running; took 25% of the cap Asked for: {words}." in page
    numbers = "In numbers: counts 0.3, max_n 3, min_users 50, shares 0.2, shares 0.7512345678. Run"
    assert (numbers in page) == (verb == "ngrams")
    elsewhere = replace_corpus(reviews, where=("/else",), user=("who",))
    assert asked_in_words(run, elsewhere) == asked_in_words(run)


def test_a_statement_says_of_how_many_runs_no_account_paid_for(book, reviews):
    book.add("reviews", reviews, 1.0, 0.0)
    assert "no account" not in statement_of(book, "reviews")
    ask(book, "elsewhere", replace_corpus(reviews, where=("/else/where",)))
    page = " ".join(statement_of(book, "reviews").split())
    assert "Of no account, so that no cap holds: 1 run (`dphh ledger show`)." in page


def test_a_statement_says_on_what_its_promise_depends(book, reviews):
    book.add("reviews", reviews, 1.0, 1e-6)

    def page() -> str:
        return " ".join(statement_of(book, "reviews").split())

    assert "only if no outcome" not in page() and "less than the sum" not in page()
    book.book(asked(reviews, 0.25, prior="texts"), {}, DATA)
    assert "It does not cover the texts of priors" in page()
    assert "is less than the sum of their epsilons" in page() and "only if no out" not in page()
    book.set_cap("reviews", 2.0, 1e-6)
    assert "its cap changed, after runs (1 time; below). The promise is as said only if" in page()


def test_a_ledger_that_a_login_may_not_read_is_not_taken_for_damaged(book, reviews, monkeypatch):
    book.add("reviews", reviews, 1.0, 0.0)
    book.path.write_bytes(b"no ledger" * 99)
    with pytest.raises(LedgerError, match="restore a backup"):
        book.names()
    monkeypatch.setattr("os.access", lambda path, mode: False)  # tests may run as root
    with pytest.raises(LedgerError, match=r"this login has no permission to\..*ledger backup"):
        book.names()
    with pytest.raises(LedgerError, match=r"File exists.*name another file"):
        Ledger(book.path / "in-a-file.sqlite", create=True)


def test_a_tests_run_is_nowhere_spoken_of_as_private(book, reviews):
    """The ledger knows of no data that it read, as its noise is known to whoever has the seed."""
    book.add("reviews", reviews, 1.0, 0.0)
    ask(book, "private", reviews, 0.25)
    book.book(asked(reviews, 0.5), {}, None, run_id="seeded")
    page = " ".join(statement_of(book, "reviews").split())
    assert "if nothing has left of 1 run made with a seed, which is NOT private; 75% of it" in page
    assert "It does not cover tests' runs" in page
    assert "agree that these runs, but for the tests', leave" in page
    private, seeded = page.split("## Runs")[1].split("## What the owner")[0].split(" 2. ")
    assert "1.285 times as likely" in private and "NOT private" not in private
    assert "A test's run, made with a seed: NOT private, and its release must not leave" in seeded
    assert "as likely" not in seeded
    told = [run["promises_nothing"] for run in statement_as_json(book, "reviews")["runs"]]
    assert told[0] is None and "NOT private" in told[1]


def test_a_wrong_user_column_is_no_dead_end(book, reviews):
    by_row = replace_corpus(reviews, user=("row",))
    book.add("reviews", by_row, 1.0, 0.0)
    ask(book, "by rows", by_row, 0.5)
    with pytest.raises(UsageError, match="protects users by the column 'row'"):
        ask(book, "a", reviews, 0.1)
    # The run was of rows, so the account promises nothing to authors: another one does.
    with pytest.raises(UsageError, match=r"^user: the 1 run of 'reviews' .* Nothing was changed"):
        book.add("reviews", reviews, 1.0, 0.0, replace=True)
    book.add("reviews", replace_corpus(by_row, where=("/given/up",)), 1.0, 0.0, replace=True)
    book.add("authors", reviews, 1.0, 0.0)
    with pytest.raises(BudgetRefused, match="the cap of the account 'authors'"):
        ask(book, "a", reviews, 0.6)  # what was spent stays spent
    ask(book, "a", reviews, 0.5)
    # The earlier run is no promise to authors, so there is none for all runs together.
    found = book.status("authors")
    assert (found.runs, found.runs_of_others) == (2, 1)
    said = guarantee_and_usage(found)
    assert "promises each user nothing for all runs together: 1 of 2 runs counted others" in said
    page = " ".join(statement_of(book, "authors").split())
    assert "It promises nothing to users by the column 'author'. Asked for" in page
    promise, runs = page.split("## Runs")
    assert "promised to" not in page.lower() and "times as likely" not in promise
    assert runs.count("times as likely") == 1  # of the run that counted authors, by itself
    assert book.status("reviews").runs_of_others == 0


def test_a_user_column_may_be_corrected_until_there_is_a_run(book, reviews):
    book.add("reviews", replace_corpus(reviews, user=("row",)), 1.0, 0.0)
    assert book.add("reviews", reviews, 1.0, 0.0, replace=True).corpus.user == ("author",)


def test_only_an_account_without_runs_is_removed(book, reviews):
    """Else to remove an account and to add it again would give its data a fresh cap."""
    book.add("typo", reviews, 1.0, 0.0)
    book.set_share("typo", "alice", 0.5, 0.0)
    book.remove("typo")
    assert book.names() == book.shares() == []
    assert book.history()[-1].now is None
    book.add("reviews", reviews, 1.0, 0.0)
    assert book.shares() == []
    book.failed(ask(book, "a", reviews, 0.6))
    with pytest.raises(UsageError, match="'reviews' has paid for 1 run"):
        book.remove("reviews")
    assert book.status("reviews").runs == 1


def test_added_if_missing(book, reviews):
    for epsilon in (1.0, 1.0, 9.0):
        account = book.add("reviews", reviews, epsilon, 1e-6, if_missing=True)
        assert account.cap.epsilon == 1.0
    assert [each.what for each in book.history()] == ["account"]
    other = replace_corpus(reviews, user=("another column",))
    with pytest.raises(UsageError, match="exists"):
        book.add("reviews", other, 1.0, 1e-6, if_missing=True)
    with pytest.raises(UsageError, match="exists"):
        book.add("reviews", reviews, 1.0, 1e-6)


def test_groups_are_declared_per_account_and_column(book, reviews):
    book.add("reviews", reviews, 1.0, 1e-6)
    book.declare_groups("reviews", "country", ["DE", "US"])
    book.declare_groups("reviews", "country", "FR, DE")
    book.declare_groups("reviews", "device", ["phone"])
    assert book.status("reviews").groups == {"country": ("DE", "FR"), "device": ("phone",)}
    with pytest.raises(UsageError, match="identifies the users of 'reviews'"):
        book.declare_groups("reviews", "author", ["a"])
    with pytest.raises(UsageError, match="has no declared groups of"):
        book.declare_groups("reviews", "body", ())


# What is shown and exported


def test_days_are_recorded_and_no_hours(book, reviews, monkeypatch):
    day = 86_400.0
    for run, clock in (("a", 2.5 * day), ("b", 3.9 * day)):
        monkeypatch.setattr(ledger_tables, "time", SimpleNamespace(time=lambda now=clock: now))
        book.settle(ask(book, run, reviews), {}, b"rows")
    for which in ("when", "changed"):
        days = [getattr(entry, which).timestamp() for entry in book.runs()]
        assert days == [2 * day, 3 * day]


#: Run ids, and what a spreadsheet must see of them: no formula.
RUNS = {'b, "quoted"': 'b, "quoted"', 'a;"=1': "a;\"'=1"}
RUNS |= {run: f"'{run}" for run in ("=1+1", "+49", "-x", "@a", "＝1")}


@pytest.mark.parametrize("read", [pl.read_parquet, pl.read_csv])
def test_export_writes_every_run(book, reviews, tmp_path, read):
    suffix, texts = (".csv", RUNS.values()) if read is pl.read_csv else (".parquet", RUNS)
    ask(book, "before", reviews, 0.25)
    book.add("reviews", reviews, 1.0, 1e-6)
    for run in RUNS:
        ask(book, run, reviews, 0.0)
    book.export(tmp_path / f"out{suffix}")
    first, *others = read(tmp_path / f"out{suffix}").to_dicts()
    assert (first["run_id"], first["epsilon"]) == ("before", 0.25)
    assert json.loads(first["source"]) == as_recorded(reviews)
    assert [row["run_id"] for row in others] == [*texts]
    assert {row["accounts"] for row in others} == {'["reviews"]'}


def test_a_list_or_a_statement_takes_as_many_queries_for_many_runs_and_reads_no_release(
    book, reviews, monkeypatch
):
    book.add("reviews", reviews, 1.0, 0.0)
    queries, connect = [], ledger_schema._connect

    def traced(path):
        con = connect(path)
        con.set_trace_callback(queries.append)
        return con

    manifest = {"versions": {"dphh": "9.9"}, "engine": {"name": "polars"}}
    asked = []
    for runs in ("ab", "cdefgh"):
        for run in runs:
            book.settle(ask(book, run, reviews, 0.01), manifest, b"PAR1")
        with monkeypatch.context() as context:
            context.setattr(ledger_schema, "_connect", traced)
            book.runs()
            page = statement_of(book, "reviews")
        assert page.count(", settled; took ") == page.count(", made with dphh 9.9 on polars")
        asked.append(len(queries))
        assert not any("drawn" in query for query in queries)
        queries.clear()
    assert page.count("9.9") == 8 and asked[0] == asked[1]


def test_an_export_is_written_over_no_other_file(book, reviews, tmp_path):
    ask(book, "a", reviews)
    pl.DataFrame({"who": [1]}).write_parquet(tmp_path / "data.parquet")
    (tmp_path / "link.csv").symlink_to(book.path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("data.parquet", "link.csv"):
        with pytest.raises(UsageError, match=r"export: .* would be lost"):
            book.export(tmp_path / name)
    with pytest.raises(UsageError, match="could not be written"):
        book.export(tmp_path / "missing" / "out.csv")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_nightly_export_writes_its_file_anew(book, reviews, tmp_path):
    for night in (1, 2):
        ask(book, str(night), reviews)
        assert book.export(tmp_path / "runs.csv", replace=True) == night
        assert len(pl.read_csv(tmp_path / "runs.csv")) == night
