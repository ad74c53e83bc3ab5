"""Kind: macros and writes."""

GUARD = [
    "CREATE MACRO dphh_allowed(a, b) AS true",
    "CREATE MACRO lower(x) AS x",
    "CREATE OR REPLACE MACRO dphh_ledger() AS TABLE SELECT 1",
    "CREATE OR REPLACE MACRO dphh_allowed(a, b) AS true",
    "CREATE OR REPLACE MACRO lower(x) AS x",
    "CREATE OR REPLACE MACRO dphh_items(c) AS TABLE FROM reviews",
    "CREATE TEMP MACRO dphh_ledger() AS TABLE SELECT 1",
    "CREATE TEMP MACRO dphh_allowed(a, b) AS true",
    "CREATE TEMP MACRO lower(x) AS x",
    "CREATE TEMP MACRO dphh_items(c) AS TABLE FROM reviews",
    "CREATE OR REPLACE TEMP MACRO dphh_ledger() AS TABLE SELECT 1",
    "CREATE OR REPLACE TEMP MACRO dphh_allowed(a, b) AS true",
    "CREATE OR REPLACE TEMP MACRO lower(x) AS x",
    "CREATE OR REPLACE TEMP MACRO dphh_items(c) AS TABLE FROM reviews",
    "DROP MACRO dphh_items",
    "DROP MACRO TABLE dphh_ledger",
    "DROP FUNCTION dphh_items",
    "CREATE FUNCTION f() AS 1",
    "CREATE TYPE t AS INT",
    "CREATE SEQUENCE another",
    "CREATE SCHEMA x",
    "CREATE VIEW v AS FROM reviews",
    "CREATE TEMP TABLE t(a INT)",
    "CREATE INDEX i ON releases(run_id)",
    "UPDATE releases SET item = 'x'",
    "DELETE FROM releases",
    "TRUNCATE releases",
    "MERGE INTO releases USING releases r ON true WHEN MATCHED THEN DELETE",
    "ALTER TABLE releases RENAME TO x",
    "DROP TABLE releases",
    "SELECT nextval('s')",
    "SELECT write_log('x')",
    "SELECT setseed(0.5)",
    "/**/ INSERT INTO releases VALUES ('a', 'b')",
    "/**/ INSERT INTO t SELECT body FROM reviews RETURNING *",
    "CREATE TABLE u AS FROM dphh_ledger()",
    "CREATE OR REPLACE TABLE t AS FROM reviews",
]

#: Refused as well, though this DuckDB would not do them.
GUESSES = [
    "CREATE MACRO dphh_ledger() AS TABLE SELECT 1",
    "CREATE MACRO dphh_items(c) AS TABLE FROM reviews",
    "CREATE TABLE t AS FROM dphh_releases()",
    "DROP SCHEMA main CASCADE",
    "WITH t AS (INSERT INTO releases VALUES (1) RETURNING *) FROM t",
    "WITH t AS (DELETE FROM releases RETURNING *) FROM t",
    "WITH t AS (UPDATE releases SET item='x' RETURNING *) FROM t",
    "WITH t AS (COPY releases TO '{out}/x') FROM t",
    "SELECT set_config('lock_configuration','false',false)",
    "SELECT add_parquet_key('k','0123456789112345')",
]

#: What begins like the rows that a client would append is refused before anybody reads it.
PASSES = [
    ("INSERT INTO releases VALUES ('a', 'b')", "Authorization failed"),
    ("INSERT INTO t SELECT body FROM reviews RETURNING *", "Authorization failed"),
    (" insert into releases values (1)", "Authorization failed"),
]
