"""Plans and releases for people: terminal, page, card, chart, phrases, and why one is missing.

Here belongs what is shown of a plan or a release. Every surface shows the same tables
(`bar_tables.tables_of`) and sentences (`sentences.py`). May import: mechanisms' levels and prices,
never an engine. Begin at `bar_tables.py`.
"""
