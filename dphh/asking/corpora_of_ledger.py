"""The corpora that a ledger names, as whoever asks may name them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dphh.corpus import WHICH_ROWS, Corpus, narrowed
from dphh.errors import UsageError
from dphh.ledger import Ledger


def corpus_of_account(
    ledger: Ledger,
    name: str,
    content: dict[str, Any],
    called: Callable[[str], str],
    files: Sequence[str] = (),
) -> Corpus | None:
    """The corpus of an account, of which whoever asks says which rows count and no more; None if
    the ledger has no such account. `called`: the name of an option where it was given."""
    if name not in ledger.names():
        return None
    rows = {option: content[option] for option in WHICH_ROWS & content.keys()}
    if said := sorted(map(called, content.keys() - rows)):
        raise UsageError(
            f"{', '.join(said)}: the ledger has the corpus {name!r}, whose owner has declared how "
            "it is read; leave these out"
        )
    return narrowed(ledger.corpus(name, files=files), **rows)
