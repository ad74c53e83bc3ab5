"""Plans and releases for people: terminal, page, card, chart, phrases, and why one is missing.

Here belongs what shows; every surface takes one table (`bar_tables.tables_of`) and the same
sentences (`sentences.py`). May import: mechanisms' levels and prices, never an engine. Begin at
`bar_tables.py`.
"""
