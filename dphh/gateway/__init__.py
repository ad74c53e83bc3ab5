"""The gateway: analysts ask in SQL from any DuckDB shell, and see nothing but releases.

Four processes separate a statement from the data; each separation would suffice alone. `server`
speaks DuckDB's client-server protocol (quack) and runs no analyst's SQL: it serves answers that
other processes made. `sandbox` is a child process that has macros and no data. `guard` checks a
statement's parsed tree node by node against a list, and passes on only what DuckDB writes from that
tree. `service` answers the macros for one analyst: ledger, releases, plans and runs. `job` is the
only process that opens private data, for one run at a time; it takes no SQL, only a verb and its
options.
"""
