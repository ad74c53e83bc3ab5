"""Ways to look at a plan and at a release: a summary, a page, a chart, lists, and why a phrase is
missing. All of it reads plans, releases and the ledger only, so it costs nothing."""
