"""A prior: listed words and counts of n-grams, fixed before any private row is read, and where
they are from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from dphh.errors import UsageError
from dphh.reader.content import Content
from dphh.udfs.arrays import Integers

#: What `prior=` takes: a file, the run id of a release, a release, or a table.
PriorOption = str | Path | object
PRIOR_HELP = {
    "prior": "A public text, table or release to start from.",
    "prior_text": "If the prior is raw text: its column of texts.",
    "prior_is_public": "Declare that the prior's text or table is public.",
}
#: Options of reading that may differ between a public text and the corpus, as tokens do not depend
#: on them.
_OPTIONS_THAT_MAY_DIFFER = ("column", "unit", "max_text_length", "where", "null_users")


@dataclass(frozen=True, eq=False)
class Prior:
    """The public counts of words and n-grams, and where they are from."""

    #: The listed words, each once: an Arrow array of strings, sorted by their bytes.
    vocabulary: Any
    #: For each length 1, 2, ...: an array with a row for each n-gram and a column for each token.
    #: It has the places of the tokens in `vocabulary`. No n-gram is there twice; rows are sorted.
    grams: tuple[Integers, ...]
    #: For each length, how often each of its n-grams occurs: once or more.
    counts: tuple[Integers, ...]
    #: How many words the public text has in all, listed or not.
    total: int
    #: How texts became tokens, as `Content.to_json` writes it.
    reading: dict[str, Any] = field(default_factory=dict)
    #: The run id, if the prior is an earlier release; None if it is a text or a table.
    run_id: str | None = None

    @classmethod
    def described(cls, said: dict[str, Any]) -> Prior:
        """A prior of which only this is known, as `to_json` says it: it has a price, and cannot
        run."""
        prior = cls(range(said["words"]), (), (), 0, run_id=said.get("run_id"))
        vars(prior)["digest"] = said["digest"]
        return prior

    def __len__(self) -> int:
        return len(self.vocabulary)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all counts, in hexadecimal, by which the ledger tells priors apart."""
        said = [self.total, self.vocabulary.to_pylist(), [len(each) for each in self.counts]]
        digest = hashlib.sha256(json.dumps(said).encode())
        for array in chain.from_iterable(zip(self.grams, self.counts, strict=True)):
            digest.update(np.ascontiguousarray(array, "<i8").data)
        return digest.hexdigest()

    @property
    def caveat(self) -> str:
        """The caveat that every privacy statement of a run with this prior shows."""
        has = f"the prior has {len(self):,} listed words (SHA-256 {self.digest})"
        if self.run_id is not None:
            return f"{has}, of run {self.run_id}: what that run cost is on its own account"
        return f"{has}, declared public by the caller: the promise does not cover the prior's text"

    def to_json(self) -> dict[str, Any]:
        return {
            "words": len(self),
            "digest": self.digest,
            "caveat": self.caveat,
            **({} if self.run_id is None else {"run_id": self.run_id}),
        }


def check_same_tokens(option: str, reading: dict[str, Any], content: Content) -> None:
    """Refuse public words that were not split into tokens as the corpus is. `option`: the option
    that gave them."""
    differ = ", ".join(
        f"{name}={reading.get(name)!r}"
        for name, value in content.to_json().items()
        if name not in _OPTIONS_THAT_MAY_DIFFER and reading.get(name) != value
    )
    if differ:
        raise UsageError(
            f"{option}: its words were read with {differ}, the corpus's were not, so their tokens "
            "would differ; give both the same options"
        )
