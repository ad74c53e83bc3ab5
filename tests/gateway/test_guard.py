"""The guard: one SELECT over macros passes, as its own tree writes it; all else is refused."""

from __future__ import annotations

import duckdb
import pytest

from dphh.errors import UsageError
from dphh.gateway.grammar import BARE_FUNCTIONS, FUNCTIONS
from dphh.gateway.guard import EMPTY, LONGEST_STATEMENT, Guard

pytestmark = pytest.mark.skipif(
    not duckdb.__version__.startswith("1.5."), reason="the gateway runs on DuckDB 1.5"
)
TABLES = frozenset({"dphh_ledger", "dphh_items", "dphh_releases", "dphh_release"})


@pytest.fixture(scope="module")
def guard() -> Guard:
    return Guard(TABLES)


PASS = [
    "FROM dphh_ledger()",
    "FROM dphh_items('reviews', epsilon := 0.5, delta := 1e-8, max_items := [1, 2]) -- a comment",
    "SELECT item, score FROM dphh_items('reviews') WHERE score > 3 AND item LIKE 'a%' ORDER BY 2",
    "WITH r AS (FROM dphh_releases()), s AS (FROM r) SELECT * FROM s JOIN r USING (run_id)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) FROM r",
    "SELECT list_transform(tokens, lambda t: upper(t)), [x for x in tokens] FROM dphh_items('r')",
    "SELECT count(*) FILTER (level > 1), max(score) OVER (ORDER BY item) FROM dphh_items('r')",
    "SELECT r.item FROM dphh_releases() l, LATERAL (FROM dphh_release(l.run_id)) r LIMIT 3",
    "VALUES (1, 'a'), (2, 'b')",
    "(SELECT 1 UNION SELECT 2) EXCEPT SELECT 3",
    "SELECT CASE WHEN true THEN 1 END, x::INTEGER, CAST(x AS DECIMAL(10, 2)), {'a': [1]} "
    "FROM range(3) t(x)",
    "SELECT * EXCLUDE (score) REPLACE (level + 1 AS level), COLUMNS('it.*') FROM dphh_items('r')",
    "SELECT (SELECT max(n) FROM range(3) t(n)), EXISTS (FROM dphh_ledger()), 1 IN (SELECT 2)",
    'SELECT t.user FROM (SELECT 1) t("user")',
    "SELECT 123456789012345678901234567890, 'it''s', 0.1, INTERVAL 3 DAY, DATE '2026-01-01'",
]

REFUSE = [
    "",
    "SELECT localtime",
    'SELECT "Current_Role" FROM dphh_ledger()',
    "SELECT upper(user), session_user, current_schema",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE x",
    "INSERT INTO main.x VALUES (NULL)",
    "WITH x AS (SELECT 1) INSERT INTO t FROM x",
    "CREATE TABLE t AS SELECT 1",
    "CREATE OR REPLACE MACRO dphh_ledger() AS TABLE SELECT 1",
    "COPY (SELECT 1) TO '/tmp/x'",
    "ATTACH 'x' AS y",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '1TB'",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "EXPLAIN ANALYZE SELECT 1",
    "DESCRIBE SELECT 1",
    "SHOW TABLES",
    "PREPARE p AS SELECT 1",
    "BEGIN",
    "FROM read_parquet('x.parquet')",
    "FROM read_text('/etc/passwd')",
    "FROM 'x.parquet'",
    'FROM "/etc/passwd"',
    "FROM glob('/*')",
    "FROM query('SELECT 1')",
    "FROM query_table('x')",
    "FROM duckdb_settings()",
    "FROM duckdb_tables",
    "FROM information_schema.tables",
    "FROM pg_catalog.pg_class",
    "FROM sqlite_master",
    "SELECT current_setting('memory_limit')",
    "SELECT getvariable('x')",
    "SELECT nextval('x')",
    "SELECT json_execute_serialized_sql('x')",
    "FROM json_execute_serialized_sql('x')",
    "SELECT dphh_answer_items('{}', '1')",
    "SELECT repeat('a', 1000000000)",
    "SELECT system.main.lower('x')",
    "SELECT other.lower('x')",
    "WITH r AS (FROM later), later AS (SELECT 1) FROM r",
    "SELECT (WITH inner_one AS (SELECT 1) FROM inner_one), * FROM inner_one",
    "WITH duckdb_settings AS (SELECT 1) FROM duckdb_settings",
    "WITH RECURSIVE r AS (FROM r UNION ALL SELECT 1) FROM r",
    "WITH r AS (SELECT 1) FROM main.r",
    "WITH r AS (SELECT 1) FROM memory.main.r",
    "SELECT $1",
    "SELECT ?",
    "SELECT x COLLATE nocase FROM range(3) t(x)",
    "SELECT 'x'::regclass",
    "SELECT 'x'::mood",
    "FROM range(3) TABLESAMPLE 10%",
    "PIVOT dphh_ledger() ON corpus",
    "FROM dphh_ledger() AT (VERSION => 1)",
    "SELECT 1 /* unfinished",
    "SELECT '" + "x" * LONGEST_STATEMENT + "'",
    "SELECT " + "abs(" * 3000 + "1" + ")" * 3000,
    # DuckDB writes the name before a star without its quotes.
    """SELECT "1 FROM read_text('/etc/passwd') --".* FROM range(1)""",
    """SELECT "current_setting('memory_limit') --".* FROM range(1)""",
    """SELECT "1; SELECT 2 --".* FROM range(1)""",
]  # fmt: skip


@pytest.mark.parametrize("statement", PASS)
def test_a_select_over_macros_passes_and_says_the_same(guard: Guard, statement: str) -> None:
    written = guard.checked(statement)
    guard.checked(written)
    if "dphh_" not in statement:
        plain = duckdb.connect(config={**EMPTY})
        plain.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")
        assert sorted(plain.execute(written).fetchall(), key=repr) == sorted(
            plain.execute(statement).fetchall(), key=repr
        )


@pytest.mark.parametrize("statement", REFUSE, ids=lambda text: str(text)[:40])
def test_all_else_is_refused(guard: Guard, statement: str) -> None:
    with pytest.raises(UsageError, match="Not authorised"):
        guard.checked(statement)


def test_what_runs_is_written_from_the_tree_not_the_text(guard: Guard) -> None:
    assert guard.checked("select/**/1--x\n;") == "SELECT 1"
    assert guard.checked("SELECT\u00a01") == "SELECT 1"


def test_no_bare_name_calls_a_function_that_is_not_on_the_list(guard: Guard) -> None:
    """Tried with all the names that this DuckDB has."""
    con = duckdb.connect(config=EMPTY)
    names = "SELECT DISTINCT function_name FROM duckdb_functions() UNION FROM "
    names += "(SELECT keyword_name FROM duckdb_keywords())"
    found = set()
    known = {name for (name,) in con.execute(names).fetchall()}
    for name in known | BARE_FUNCTIONS:
        try:
            con.execute(f"SELECT {name}")
        except duckdb.Error:
            continue
        tree = con.execute("SELECT json_serialize_sql(?)", [f"SELECT {name}"]).fetchall()[0][0]
        if "COLUMN_REF" in tree and name not in FUNCTIONS:
            with pytest.raises(UsageError, match="may also be a function"):
                guard.checked(f"SELECT {name}")
            found.add(name)
    assert found == BARE_FUNCTIONS - FUNCTIONS
