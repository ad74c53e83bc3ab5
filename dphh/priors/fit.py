"""Measures how well a prior fits a release. This is free, because both are public by then."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from dphh.priors.prior import Prior

#: Of the released words at least this part should be listed.
GOOD = 0.2


def poor_fit(manifest: dict[str, Any]) -> str | None:
    """A warning if few of the released words are in the prior's list, else None."""
    fit = manifest.get("prior", {})
    words, listed = fit.get("released_words", 0), fit.get("released_listed", 0)
    if listed >= GOOD * words:
        return None
    return (
        f"the prior fits badly: {listed:,} of {words:,} released words are in its list. Is it read "
        "as the data are (lower case, signs, language)? Another text may find more"
    )


def fit_numbers(prior: Prior, table: Any) -> dict[str, int]:
    """The numbers of released words and of listed ones among them, for the manifest."""
    words = table.filter(pc.equal(table.column("level"), 1)).column("item")
    listed = pc.is_in(words, value_set=prior.vocabulary.cast(words.type))
    return {"released_words": len(words), "released_listed": int(pc.sum(listed).as_py() or 0)}
