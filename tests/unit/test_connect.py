"""`dphh.connect()`: the verbs as table macros, and that a request is drawn, and paid, once."""

import subprocess
import sys
import threading
from typing import Any

import duckdb
import pytest

import dphh
from dphh import Corpus
from dphh.asking.connect import _option_in_sql
from dphh.asking.macros import corpus_options_by_sql_name, macros
from dphh.asking.parsed import typed_options
from dphh.engines.duckdb.host import DuckDBHost
from dphh.errors import Notice
from dphh.reader.corpus import CORPUS_OPTIONS
from dphh.reader.rows import Limits
from dphh.registry import VERBS

ITEMS = "dphh_items('reviews', epsilon := 1.0, delta := 1e-6)"


@pytest.fixture
def texts(written):
    rows = [(f"u{n}", "the cat sat" if n % 3 else "the dog ran") for n in range(600)]
    return written(rows).where[0]


@pytest.fixture
def con(texts, ledger):
    ledger.add("reviews", Corpus(texts, user="who", text="what"), 10.0, 1e-4)
    return dphh.connect(ledger=ledger)


@pytest.mark.parametrize(
    ("runs", "query"),
    [
        (1, "SELECT count(*) FROM {0} a, {0} b"),
        (1, "WITH r AS (FROM {0}) FROM r a, r b"),
        (1, "SELECT (SELECT max(score) FROM {0}) - (SELECT max(score) FROM {0})"),
        (1, "SELECT count(*) FROM range(40) t(i), LATERAL (FROM {0})"),
        (1, "EXPLAIN ANALYZE FROM {0}"),
        (1, "SUMMARIZE FROM {0}"),
        (0, "EXPLAIN FROM {0}"),
        (0, "DESCRIBE FROM {0}"),
        (0, "FROM {0} LIMIT 0"),
        (0, "PREPARE asked AS FROM {0}"),
        (0, "CREATE VIEW later AS FROM {0}"),
        (0, "SELECT count(*) FROM {0} WHERE false"),
        (0, "SELECT json_serialize_sql('FROM {1}')"),
    ],
)
def test_a_query_draws_once_however_often_it_mentions_it_and_not_where_it_asks_for_no_row(
    con, ledger, runs, query
):
    con.execute(query.format(ITEMS, ITEMS.replace("'", "''"))).fetchall()
    assert len(ledger.runs()) == runs


@pytest.mark.parametrize(
    "query",
    [
        "FROM {}",
        "FROM {} WHERE score > 1000",
        "FROM {} WHERE item LIKE 'D%' LIMIT 1",
        "SELECT count(*) FROM {} WHERE level >= 1",
        "SELECT any_value(item) FILTER (score > 3) FROM {}",
        "FROM {} QUALIFY row_number() OVER (ORDER BY score) > 9",
        "SELECT item FROM {} GROUP BY item HAVING sum(score) > 5",
        "WITH found AS (FROM {}) FROM found WHERE score > 1",
        "WITH found AS MATERIALIZED (FROM {}) FROM found WHERE score > 1",
        "FROM mine LEFT JOIN {} found USING (item) WHERE found.score > 10",
        "FROM mine JOIN {} found USING (item) WHERE found.score > 10",
        "FROM mine WHERE EXISTS (FROM {} found WHERE found.item = mine.item AND score > 1)",
        "FROM mine WHERE NOT EXISTS (FROM {} WHERE score > 1)",
        "FROM mine WHERE item IN (SELECT item FROM {} WHERE score > 1)",
        "SELECT (SELECT max(score) FROM {} WHERE score > 1)",
        "COPY (FROM {} WHERE score > 1) TO 'written.csv'",
        "CREATE TABLE kept AS FROM {} WHERE score > 1",
        "INSERT INTO mine SELECT item FROM {} WHERE score > 1",
        "DELETE FROM mine WHERE item NOT IN (SELECT item FROM {} WHERE score > 1)",
    ],
)
def test_a_refusal_fails_the_statement_whatever_else_it_asks(
    con, ledger, query, tmp_path, monkeypatch
):
    """The row that brings a refusal is NULL in all other columns: a condition must not drop it."""
    monkeypatch.chdir(tmp_path)
    con.execute("CREATE TABLE mine AS SELECT 'cat' AS item")
    with pytest.raises(duckdb.InvalidInputException) as told:
        con.execute(query.format(ITEMS.replace("1.0", "50")))
    assert str(told.value).startswith("Invalid Input Error: Refused: epsilon 50, delta 1e-06 would")
    assert str(told.value).count("Nothing was spent") == 1
    assert con.execute("FROM mine").fetchall() == [("cat",)] and not ledger.runs()


def test_macros_that_are_free_fail_whatever_condition_stands_behind_them(tmp_path):
    con = dphh.connect(ledger=tmp_path / "missing.sqlite")
    for macro, condition, words in (
        ("dphh_ledger()", "used > 0.9", "no ledger at"),
        ("dphh_verify('missing')", "waits", "missing could not be read"),
        ("dphh_check('missing')", "verdict <> 'good'", "no ledger at"),
    ):
        with pytest.raises(duckdb.InvalidInputException, match=words):
            con.sql(f"FROM {macro}").filter(condition).fetchall()


def test_a_relation_that_runs_again_and_a_prepared_statement_cost_once(con, ledger):
    relation = con.sql(f"FROM {ITEMS}")
    assert relation.fetchall() == relation.fetchall()
    repr(relation)
    con.execute(f"PREPARE asked AS FROM {ITEMS}")
    con.execute("EXECUTE asked")
    con.execute("EXECUTE asked")
    dphh.connect(ledger=ledger).execute(f"FROM {ITEMS}")
    assert len(ledger.runs()) == 1
    con.execute(f"FROM {ITEMS.replace('1.0', '0.5')}")
    assert len(ledger.runs()) == 2


def test_what_is_used_of_a_cap_is_a_share_and_one_more_run_may_have_what_is_shown(con, ledger):
    """The promise to an account is at its cap's delta, also where a run has used little of it."""
    asked = "SELECT * EXCLUDE (corpus) FROM dphh_ledger()"
    assert con.execute(asked).fetchall() == [(10.0, 1e-4, 0.0, 10.0, 1e-4, 0)]
    con.execute(f"FROM {ITEMS}")
    ((_, _, used, epsilon, delta, runs),) = con.execute(asked).fetchall()
    told = ledger.status("reviews").to_json()
    assert (used, {"epsilon": epsilon, "delta": delta}) == (told["used"], told["one_more"])
    assert runs == 1 and 0.01 < used < 0.1 and 0.9e-4 < delta < 1e-4
    said = " ".join(repr(ledger).split())
    assert f"{used:.0%} of it is used, by 1 run; one more of items, ngrams or counts may" in said
    more = f"dphh_items('reviews', epsilon := {epsilon * (1 - 1e-5)}, delta := {delta})"
    con.execute(f"FROM {more}")
    assert ledger.status("reviews").runs == 2


def test_a_run_obeys_the_limits_that_were_set_on_its_connection(con, monkeypatch):
    obeyed, opened = [], DuckDBHost.__init__
    monkeypatch.setattr(
        DuckDBHost, "__init__", lambda *given: obeyed.append(given[-1]) or opened(*given)
    )
    con.execute("SET threads = 1")
    con.execute(f"FROM {ITEMS}")
    con.execute("SET memory_limit = '800MB'")
    con.execute(f"FROM {ITEMS.replace('1.0', '0.5')}")
    assert [*filter(Limits().__ne__, obeyed)] == [Limits(None, 1), Limits("762.9 MiB", 1)]


COLUMNS = "user_column := 'who', text_column := 'what', epsilon := 1.0, delta := 1e-6"


def add_birds(con: Any, table: str) -> None:
    con.execute(f"INSERT INTO {table} SELECT 'v' || i, 'birds fly' FROM range(600) t(i)")


@pytest.mark.parametrize("name", ["held", "seen"])
def test_a_later_statement_gets_the_release_of_a_table_until_its_rows_change(ledger, texts, name):
    con: Any = dphh.connect(ledger=ledger)
    con.execute(f"CREATE TABLE held AS FROM '{texts}'; CREATE VIEW seen AS FROM held")
    query = f"SELECT item, score FROM dphh_items('{name}', {COLUMNS}) ORDER BY ALL"
    first = con.execute(query).fetchall()
    with pytest.warns(Notice, match="nothing is spent.*; run_id := 'a new name' spends again"):
        assert con.cursor().execute(query).fetchall() == first
    add_birds(con, "held")
    with pytest.warns(Notice, match="spends anew. run_id := '.*' returns"):
        assert "birds" in {item for item, _ in con.execute(query).fetchall()}
    assert len(ledger.runs()) == 2
    of = con.execute("SELECT corpus FROM dphh_releases()").fetchall()  # no account's: its place
    assert of == [(f"duckdb:{name}(who, what)",)] * 2


def test_what_one_statement_mentions_twice_is_paid_once(con, ledger):
    twice = (
        f"SELECT count(*), count(DISTINCT item) FROM {ITEMS} AS a JOIN {ITEMS} AS b USING (item)"
    )
    ((rows, items),) = con.execute(twice).fetchall()
    assert rows == items > 0 and len(ledger.runs()) == 1


def test_cursors_asking_at_once_pay_once(con, ledger):
    found: list[Any] = []

    def ask() -> None:
        found.append(con.cursor().execute(f"FROM {ITEMS} ORDER BY ALL").fetchall())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert len(ledger.runs()) == 1
    assert all(rows == found[0] for rows in found) and len(found) == 4


def test_of_a_named_corpus_it_may_be_said_which_rows_count(con, ledger):
    said = "where_rows := 'contains(what, ''cat'')', since := 'who=u1'"
    asked = f"FROM dphh_items('reviews', {said}, epsilon := 1.0, delta := 1e-6)"
    assert {row[1] for row in con.execute(asked).fetchall()} == {"the", "cat", "sat"}
    (run,) = ledger.runs("reviews")
    kept = run.parameters["content"]["where"]
    assert kept == "(contains(what, 'cat')\n) AND (\"who\" >= 'u1'\n)"


@pytest.mark.parametrize("verb", VERBS)
def test_a_default_that_is_shown_is_one_that_may_be_given(con, verb):
    shown = con.execute(f"SELECT option, default_value FROM dphh_options('{verb}')").fetchall()
    given = {option: default for option, default in shown if default not in (None, "needed")}
    options = {**CORPUS_OPTIONS, **VERBS[verb].options}
    python_names = corpus_options_by_sql_name() if verb != "ldp_trie" else {}
    given = {python_names.get(option, option): default for option, default in given.items()}
    assert typed_options(options, given, verb) == {name: options[name].default for name in given}


def test_an_option_that_macros_lack_is_said_as_one_that_they_have(con, ledger):
    con.execute(f"FROM {ITEMS}")
    (run,) = ledger.runs("reviews")
    other = ITEMS.replace("1.0", "0.9").replace(")", f", run_id := '{run.run_id}')")
    with pytest.raises(duckdb.InvalidInputException) as refused:
        con.execute(f"FROM {other}")
    assert "again" not in str(refused.value).replace("spends again", "")
    assert _option_in_sql("again", "True") == "run_id := 'a new name'"


def test_no_column_of_a_macro_is_a_reserved_word_of_sql(con):
    reserved = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
    words = {word for (word,) in con.execute(reserved).fetchall()}
    assert "group" in words
    assert not words & {name for macro in macros().values() for name in macro.columns.names}


def test_a_corpus_and_its_groups_are_declared_in_sql(con, ledger, texts):
    con.execute(f"CREATE TABLE held AS FROM '{texts}'")
    add = "FROM dphh_add_corpus('birds', 'held', user_column := 'who', text_column := 'what'{})"
    with pytest.raises(duckdb.InvalidInputException, match="epsilon, delta: dphh_add_corpus need"):
        con.execute(add.format(""))
    whole = add.format(", epsilon := 2, delta := 1e-7, rule := 'sums'")
    ((name, *cap, used, _, _, runs),) = con.execute(whole).fetchall()
    assert (name, *cap, used, runs) == ("birds", 2.0, 1e-7, 0.0, 0)
    assert ledger.status("birds").cap.rule == "sums"
    con.execute(whole)  # an account that is there for this corpus stays as it is
    declared = "FROM dphh_declare_groups('birds', 'what', ['the cat sat'])"
    assert con.execute(declared).fetchall()[0][3] == '{"what": ["the cat sat"]}'
    with pytest.raises(duckdb.InvalidInputException, match="source: is missing; give it, as in"):
        con.execute("FROM dphh_add_corpus('birds')")


def test_a_release_is_saved_explained_and_verified_in_sql(con, ledger, tmp_path):
    con.execute(f"FROM {ITEMS}")
    (run,) = ledger.runs("reviews")
    asked = f"SELECT reason FROM dphh_why('{run.run_id}', {{}})"
    assert con.execute(asked.format("'cat'")).fetchone() == ("released",)
    assert con.execute(asked.format("['the', 'cat']")).fetchone() == ("not of this length",)
    assert con.execute(asked.format("'[deleted]'")).fetchone() == ("below",)
    saved = con.execute(f"FROM dphh_save('{run.run_id}', '{tmp_path / 'out'}')").fetchall()
    assert len(saved) == 2 and dphh.Release.load(tmp_path / "out").run_id == run.run_id
    asked = f"FROM dphh_verify('{tmp_path / 'out'}', account := 'reviews', run_id := {{}})"
    told = con.execute(f"SELECT what, waits {asked.format(repr(run.run_id))}").fetchall()
    assert ("account", False) in told
    with pytest.raises(duckdb.InvalidInputException, match="and not 'another'"):
        con.execute(asked.format("'another'"))
    (tmp_path / "out" / "note.txt").touch()
    with pytest.raises(duckdb.InvalidInputException, match=r"note\.txt"):
        con.execute(f"FROM dphh_verify('{tmp_path / 'out'}')")


def test_a_corpus_is_checked_in_sql_in_words_of_sql_for_nothing(con, ledger, tmp_path):
    asked = "SELECT what, verdict, found FROM dphh_check('{}'{})"
    told = con.execute(asked.format("reviews", "")).fetchall()
    assert {verdict for _, verdict, _ in told} == {"good"}
    assert {"columns", "users", "ledger"} <= {what for what, *_ in told}
    path = tmp_path / "x.csv"
    path.write_text("who;what\n1;a\n;SENTINEL\n", encoding="utf-8")
    columns = COLUMNS.partition(", epsilon")[0]
    told = con.execute(asked.format(path, f", {columns}")).fetchall()
    (said,) = [found for what, verdict, found in told if verdict == "stops"]
    assert said.startswith("user_column: ") and "null_users := 'drop'" in said
    assert "SENTINEL" not in str(told) and not ledger.runs()
    with pytest.raises(duckdb.InvalidInputException, match=r"text_column or item_column: .*'no'"):
        con.execute(f"FROM dphh_items('{path}', {COLUMNS.replace('what', 'no')})")


def test_any_connection_gets_the_macros_and_a_cursor_of_a_file_too(tmp_path, ledger, texts):
    ledger.add("reviews", Corpus(texts, user="who", text="what"), 10.0, 1e-4)
    theirs: Any = duckdb.connect(str(tmp_path / "own.duckdb"))
    assert dphh.register(theirs, ledger) is theirs
    asked = f"SELECT count(*) FROM dphh_items('held', {COLUMNS}, account := 'reviews')"
    for epsilon in ("1.0", "0.9"):
        cursor = dphh.register(theirs.cursor(), ledger)
        rows = "SELECT i AS who, 'a b' AS what FROM range(600) t(i)"
        cursor.execute(f"CREATE OR REPLACE TABLE held AS {rows}")
        assert cursor.execute(asked.replace("1.0", epsilon)).fetchone() == (2,)
        cursor.close()
    with pytest.raises(dphh.UsageError, match="con: found a str; give a DuckDB connection"):
        dphh.register("own.duckdb")  # type: ignore[arg-type]
    other: Any = duckdb.connect()
    dphh.register(other, ledger)
    dphh.register(other, tmp_path / "another.sqlite")
    with pytest.raises(duckdb.InvalidInputException, match=r"no ledger at .*another\.sqlite"):
        other.cursor().execute(f"FROM {ITEMS}")


def test_a_database_is_no_ledger_and_a_ledger_no_database(tmp_path, ledger, texts):
    ledger.add("reviews", Corpus(texts, user="who", text="what"), 10.0, 1e-4)
    path = tmp_path / "app.duckdb"
    with dphh.connect(path, ledger=ledger) as con:
        con.execute("CREATE TABLE mine AS SELECT 1")
    assert duckdb.connect(str(path)).execute("SHOW TABLES").fetchall() == [("mine",)]
    whole = ledger.path.read_bytes(), path.read_bytes()
    for wrong in (ledger, ledger.path, str(ledger.path)):
        with pytest.raises(dphh.UsageError, match="is no DuckDB database"):
            dphh.connect(wrong)
    for query in ("FROM dphh_ledger()", f"FROM {ITEMS}", "FROM dphh_check('reviews')"):
        with pytest.raises(duckdb.InvalidInputException, match="is a DuckDB database, and no led"):
            dphh.connect(ledger=path).execute(query)
    with pytest.raises(dphh.errors.LedgerError, match=r"app\.duckdb is a DuckDB database"):
        dphh.Ledger(path).add("a", Corpus(texts, user="who", text="what"), 1.0, 1e-6)
    assert (ledger.path.read_bytes(), path.read_bytes()) == whole


def test_a_database_file_keeps_no_macro(tmp_path, ledger):
    path = tmp_path / "analysis.duckdb"
    with dphh.connect(path, ledger=ledger) as con:
        con.execute("FROM dphh_ledger()")
    with duckdb.connect(str(path)) as plain:
        found = plain.execute(
            "SELECT count(*) FROM duckdb_functions() WHERE function_name LIKE 'dphh_%'"
        ).fetchone()
    assert found == (0,)


def test_cursors_ask_about_a_file_that_is_attached(tmp_path, ledger):
    """As the docstring says; of a file that is the connection's own they lack the macros."""
    with duckdb.connect(str(tmp_path / "app.duckdb")) as app:
        app.execute("CREATE TABLE held AS SELECT i AS who, 'a b' AS what FROM range(600) t(i)")
    con: Any = dphh.connect(ledger=ledger)
    con.execute(f"ATTACH '{tmp_path / 'app.duckdb'}'")
    asked = f"SELECT list_sort(list(item)) FROM dphh_items('app.held', {COLUMNS})"
    assert con.cursor().execute(asked).fetchone() == (["a", "b"],)
    own = dphh.connect(tmp_path / "own.duckdb", ledger=ledger)
    with pytest.raises(duckdb.CatalogException, match="dphh_ledger does not exist"):
        own.cursor().execute("FROM dphh_ledger()")


LATE_MACROS = """
import os, sys, dphh
con = dphh.connect(ledger=sys.argv[1], config={"threads": 4})
con.execute("CREATE TABLE rows AS SELECT CAST(i AS VARCHAR) AS name FROM range(200_000) t(i)")
macro = "SELECT CAST(cap_delta AS VARCHAR) FROM dphh_ledger()"
asked = f"SELECT name FROM rows WHERE name <> $1 UNION ALL {macro}"
rows = con.sql(f"{asked} UNION ALL {asked} UNION ALL {asked}", params=["no row"])
print(rows.aggregate("count(*)").fetchall()[0][0], flush=True)
os._exit(0)
"""


def test_a_macro_that_runs_after_many_results_keeps_nobody_waiting(ledger):
    """In a process of its own: who waits there for Python's lock waits for good."""
    said = subprocess.run(
        [sys.executable, "-c", LATE_MACROS, str(ledger.path)],
        timeout=250, check=True, capture_output=True, text=True,
    )  # fmt: skip
    # DuckDB shows a bar of its own before it, where the machine is so busy that it takes seconds.
    assert said.stdout.splitlines()[-1] == "600000"
