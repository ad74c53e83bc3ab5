"""The gate before a release leaves the building, or after one came in: `dphh.verify`.

`verifying.py`: is a folder what a ledger has stored, and who paid for it? `own_words.py`: which
words of people leave with it? Whether a release agrees with itself, `dphh/consistency.py` says.
May import: release, ledger, report. Begin at `verify`.
"""
