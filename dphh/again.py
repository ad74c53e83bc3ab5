"""Nothing is spent by accident: the same request comes to the release that it came to before.

What is the same is decided by what may be compared in public. A request is its verb, options,
corpus, account and price. Files are the same if none was changed since the earlier run was
reserved: their times are looked at, not their rows, and nothing is stored for it. A file that went
away leaves no time behind, so its loss is not seen. A table in memory, or files elsewhere, cannot
be compared at all: then nobody's release is handed out for another's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress

from dphh.corpus import Corpus
from dphh.errors import Notice, UsageError
from dphh.ledger import Entry, Ledger
from dphh.ledger.corpora import source_of
from dphh.ledger.sources import changed_since
from dphh.price import Price

Say = Callable[[str], None]


def asked_before(price: Price, corpus: Corpus, book: Ledger, say: Say) -> str | None:
    """The run that this request came to before, if its data are the same for all that is public."""
    source = source_of(corpus)
    earlier = book.asked_before(
        source,
        price.verb,
        request(price, corpus),
        price.events,
        price.privacy.booked_epsilon,
        price.privacy.delta,
        account=corpus.name,
    )
    if earlier is None:
        return None
    changed = changed_since(source, earlier.when.timestamp(), str(book.path))
    if changed is None:
        _not_compared(corpus, earlier, say)
    if changed is not False:
        return None
    if earlier.state == "settled":
        say(
            f"note: nothing was spent: this is the release of run {earlier.run_id}, made "
            f"{earlier.when:%Y-%m-%d %H:%M} UTC by the same request, and no file was changed "
            "since; again=True (--again) spends again"
        )
    return earlier.run_id


def _not_compared(corpus: Corpus, earlier: Entry, say: Say) -> None:
    said = (
        f"run {earlier.run_id} of {earlier.when:%Y-%m-%d %H:%M} UTC asked the same of a "
        f"{', '.join(corpus.where)}, and whether this is the same data cannot be compared in public"
    )
    if corpus.name is not None:
        raise UsageError(
            f"run: {said}. Nothing was spent. Pass run_id={earlier.run_id!r} for that release, "
            "which is free, or again=True to spend again"
        )
    say(f"note: {said}; this run spends anew, and run_id={earlier.run_id!r} would not")


def request(price: Price, corpus: Corpus) -> dict[str, object]:
    """What is asked, as the ledger and the manifest record it."""
    return {
        **dict(price.parameters),
        "user": corpus.user,
        "content": corpus.content.to_json(),
    }


def notice(said: str) -> None:
    """For whoever gave no `progress`: what bears on the budget is said all the same."""
    if said.startswith("note:"):
        # Where warnings are errors, none may end a run that has been paid for.
        with suppress(Notice):
            warnings.warn(said.removeprefix("note: "), Notice, stacklevel=5)
