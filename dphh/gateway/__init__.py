"""The gateway: analysts ask in SQL, from any DuckDB shell, and can see nothing but releases.

A statement passes four processes' worth of walls, each of which would do alone. `server` speaks
DuckDB's client-server protocol (quack) and runs no analyst's SQL: it serves answers that others
made. `desk` is a child process that holds macros and nothing else; `guard` lets a statement into
it only as what the parsed tree, checked node by node against a list, writes itself as. `office`
answers the macros for one analyst: ledger, releases, plans and runs. `job` is the process that
opens private data, alone, for one run; no SQL reaches it, only a verb and its options.
"""
