"""Kind: extensions."""

#: Not tried with the guard off: they go to the network.
GUESSES = [
    "INSTALL sqlite",
    "INSTALL httpfs FROM community",
    "INSTALL 'http://h/x'",
    "FORCE INSTALL json",
    "LOAD sqlite",
    "LOAD '{out}/x.duckdb_extension'",
    "LOAD httpfs",
    "UPDATE EXTENSIONS",
    "CALL quack_serve('quack:localhost:1', token := 'x')",
    "FROM quack_serve('quack:localhost:1', token := 'x')",
    "CALL quack_stop()",
    "FROM quack_query('quack:localhost:1','SELECT 1')",
    "FROM duckdb_extensions()",
    "FROM shellfs('ls')",
    "FROM read_csv('ls |')",
    "FROM http_get('http://h')",
    "FROM sqlite_query('{ledger}','SELECT 1')",
    "FROM postgres_query('a','b')",
]
