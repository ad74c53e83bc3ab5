"""The ledger: accounts with caps, runs with their bookings, and the releases that were made.

Read `book` first: how a run is booked, continued and settled, in one transaction each. Then
`accounts` (a corpus by name, its cap, which runs it paid for, and analysts' shares), `budget`
(whether one more run fits under a cap), `paying` (whose files they are, who pays, and whether that
is allowed), `schema` (the SQLite file), `tables` (what it has), `entries` (requests, answers),
`spending` and `asked` (what is left, and what was asked, for readers), `changes` (what owners
changed), `edits` (what dphh did not write) and `backups`.

A ledger stops mistakes among people who may read the data anyway (docs/threats.md).
"""

from dphh.ledger.book import Ledger
from dphh.ledger.entries import BookedRun, Data, Entry, Request
from dphh.ledger.spending import Account, Outlook

__all__ = ["Account", "BookedRun", "Data", "Entry", "Ledger", "Outlook", "Request"]
