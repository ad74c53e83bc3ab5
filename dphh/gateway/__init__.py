"""The gateway: analysts ask about private corpora by HTTP, and get releases as tables.

A request is a verb, the name of a corpus, and options; no text of an analyst's is ever run.
`server`: requests in, tables out. `connections`: what a client may take of the server.
`ledger_view`: all that an analyst may see. `worker`: the processes that price and run plans. What
analysts put into their own programs is made by `dphh.asking.clients`.
"""
