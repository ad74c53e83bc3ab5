"""The ledger: accounts with caps, runs with their bookings, and the releases that were made.

Here belongs all that reads or writes its SQLite file (`schema.py`, `tables.py`): who pays
(`paying.py`), whether a run fits under a cap (`budget.py`), and the same for readers
(`spending.py`). It stops mistakes among people who may read the data anyway (docs/threats.md).
May import: price, reader, privacy. Begin at `book.py`: a run is booked, continued and settled.
"""

from dphh.ledger.book import Ledger
from dphh.ledger.entries import BookedRun, Data, Entry, Request
from dphh.ledger.spending import Account, Outlook

__all__ = ["Account", "BookedRun", "Data", "Entry", "Ledger", "Outlook", "Request"]
