"""A prior with its origin: the public counts, and what they were read from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dphh.errors import UsageError
from dphh.priors.prior import Prior

#: What `prior=` takes: files, a run id, a release, a corpus, a table; what it means is told later.
PriorAsked = str | Path | object
#: A public text, a table of public items and their counts, or an earlier release.
Kind = Literal["text", "table", "release"]
PRIOR_HELP = {
    "prior": "A public text or table, or a release, by its files, folder or run id: its words need "
    "no threshold.",
    "prior_text": "Of a prior that is raw text, the column that holds it.",
    "prior_is_public": "You declare that nobody in the data contributed to the prior, or that all "
    "of it is published anyway.",
}
_DESCRIPTION_OF_KIND = {
    "text": "a text that whoever asked declared public",
    "table": "a table that whoever asked declared public",
    "release": "an earlier release, run {run_id}",
}


@dataclass(frozen=True, eq=False)
class GivenPrior:
    """A prior, what it was read from, and how."""

    prior: Prior
    kind: Kind
    #: How texts became tokens, as `Content.to_json` says it; None where its tokens came as lists.
    reading: dict[str, Any] | None = None
    #: Of a text or a table the corpus that it was read as, which the ledger must not know.
    corpus: Any = None
    #: Of a release its run.
    run_id: str | None = None

    @property
    def source(self) -> str:
        return _DESCRIPTION_OF_KIND[self.kind].format(run_id=self.run_id)

    @property
    def caveat(self) -> str:
        """The caveat that every privacy statement of a run with this prior shows."""
        uncovered = (
            "what that run cost is on its own account"
            if self.kind == "release"
            else "the promise does not cover the prior's text"
        )
        return (
            f"the prior is {self.source}, with {len(self.prior):,} listed words (SHA-256 "
            f"{self.prior.digest}): {uncovered}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "words": len(self.prior),
            "total": self.prior.total,
            "grams": [len(grams) for grams in self.prior.grams],
            "digest": self.prior.digest,
            "caveat": self.caveat,
            **({} if self.run_id is None else {"run_id": self.run_id}),
        }


def checked_prior(prior: PriorAsked | None, text: str | None, is_public: bool) -> GivenPrior | None:
    """Check the options of a verb about a prior, which was read before."""
    if prior is None:
        if text is not None or is_public:
            raise UsageError("prior_text, prior_is_public: go with prior=, which they speak of")
        return None
    if not isinstance(prior, GivenPrior):
        raise UsageError(
            f"prior: found a {type(prior).__name__}, which a plan that was written down names by "
            "its digest: its words do not travel with it, so make the plan anew"
        )
    return prior
