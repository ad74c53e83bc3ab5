"""How well a prior fits, told by what was released: free, since both are known by then."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from dphh.priors.prior import Prior

#: Of the released words at least this part should be listed.
GOOD = 0.2


def poor_fit(manifest: dict[str, Any]) -> str | None:
    """What to say of a prior that few of the released words are listed in."""
    fit = manifest.get("prior", {})
    words, listed = fit.get("released_words", 0), fit.get("released_listed", 0)
    if listed >= GOOD * words:
        return None
    return (
        f"the prior fits badly: {listed:,} of {words:,} released words are in its list. Is it read "
        "as the data are (lower case, signs, language)? Another text may find more"
    )


def how_it_fits(prior: Prior, table: Any) -> dict[str, int]:
    """For a manifest: how many words were released, and how many of them are listed."""
    words = table.filter(pc.equal(table.column("level"), 1)).column("item")
    listed = pc.is_in(words, value_set=prior.vocabulary.cast(words.type))
    return {"released_words": len(words), "released_listed": int(pc.sum(listed).as_py() or 0)}
