"""The gateway: analysts ask about private corpora by HTTP, and get releases as tables.

A request is a verb, the name of a corpus, and options; no text of an analyst's is ever run.
`connections.py`: what a client may take of the server; `ledger_view.py`: all that an analyst may
see; `worker.py`: the processes that price and run plans. Programs for analysts are written by
`asking/clients.py`. May import: asking and all below. Begin at `server.py`.
"""
