"""The ledger: accounts with caps, runs with their prices, and the releases that were made.

Read `book` first: how a run is booked, continued and settled, in one transaction each. Then
`accounts` (a corpus by name, its cap, and which runs it paid for), `analysts` (shares and tokens at
the gateway), `budget` (whether one more run fits under a cap, and what is left) over `exact` (the
rule "divergence"), `source` (whether a path is an account's), `schema` (the SQLite file),
`entries` (requests and answers) and `sentences` (words and cards) and
`export` (tables).

A ledger stops mistakes among people who may read the data anyway (docs/threats.md).
"""

from dphh.ledger.book import Ledger
from dphh.ledger.entries import Account, Booked, Entry, Outlook, Request, Share
from dphh.ledger.source import Source, source_of

__all__ = [
    "Account",
    "Booked",
    "Entry",
    "Ledger",
    "Outlook",
    "Request",
    "Share",
    "Source",
    "source_of",
]
