"""The ledger: the budget that survives the process.

`book` is the ledger itself, and `accounts` that part of it which names corpora and caps them;
`nouns` what it is asked and hands out, `paying` who pays for a run and who refuses it, `export` its
runs in a file. `schema` is its file, `records` its rows, `unfinished` what a run needs to go on,
`sources` which corpora share data, `marks` what their files are known by wherever they lie, `moved`
what became of those that lie elsewhere now, `corpora` what it says of one, `budget` what fits
under a cap, and `shares` what each analyst may spend of it.
"""

from dphh.ledger.book import Ledger
from dphh.ledger.corpora import source_of
from dphh.ledger.entries import Account, Entry, Hold, Request, Reservation
from dphh.ledger.shares import Share
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
