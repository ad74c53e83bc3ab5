"""Public counts of words and n-grams, as the forecast ladder reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PublicGrams:
    """The public n-grams of one length, each once."""

    #: One row an n-gram, one column a token: numbers of words in the prior's vocabulary.
    #: Rows ascend, first column first.
    words: Integers
    #: How often each occurs in the public text, at least 1.
    counts: Integers

    def __len__(self) -> int:
        return len(self.counts)


@dataclass(frozen=True, eq=False)
class Prior:
    """The public counts of words and n-grams. They are fixed before any private row is read."""

    #: The listed words: an Arrow array of strings, ascending by bytes, each once.
    vocabulary: Any
    #: Lengths 1, 2, ...: `grams[0]` has every listed word; a longer n-gram has listed words alone.
    grams: tuple[PublicGrams, ...]
    #: How many words the public text has in all, listed or not.
    total: int
    #: SHA-256 of all of the above, in hexadecimal.
    digest: str

    def __len__(self) -> int:
        return len(self.vocabulary)
