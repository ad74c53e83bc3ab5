"""The ledger: the budget that survives the process.

`book` is the ledger itself. `accounts` is the part of it that names corpora and caps them.
`entries`: its requests and answers. `paying`: which accounts pay for a run, and which refuse it.
`export`: its runs as a file. `schema`: its SQLite file. `records`: its rows. `unfinished`: what a
run needs to continue. `sources`: which corpora share data. `marks`: hashes that recognise moved
files. `moved`: what was spent on moved files. `corpora`: what it knows of a corpus. `budget`: what
fits under a cap. `analyst_shares`: what each analyst may spend of a cap.
"""

from dphh.ledger.analyst_shares import Share
from dphh.ledger.book import Ledger
from dphh.ledger.entries import Account, Entry, Hold, Request, Reservation
from dphh.ledger.origins import source_of
from dphh.ledger.sources import Source

__all__ = [
    "Account",
    "Entry",
    "Hold",
    "Ledger",
    "Request",
    "Reservation",
    "Share",
    "Source",
    "source_of",
]
