"""Public knowledge: texts, tables and releases as priors, and the lists that are counted.

Here belongs what reads public data and counts it; the prior itself, as prices take it, is
`dphh/prior.py`. May import: run, release, engines. Begin at `asked.py`.
"""
