"""`items`: runs the levels of the mechanism that its price chose."""

from __future__ import annotations

from collections.abc import Iterator

from dphh.engines.host import DrawOnce, Host
from dphh.mechanisms.counts.run import count_listed_items, counts_draws
from dphh.mechanisms.ngrams.forecast.run import forecast_draws, words_with_prior
from dphh.mechanisms.running import Draws, LevelDone, words_of_texts
from dphh.mechanisms.set_union.run import set_union_draws, set_union_levels
from dphh.price import Price


def items_levels(price: Price, host: Host, once: DrawOnce, joiner: str) -> Iterator[LevelDone]:
    if price.method == "domain":
        yield from count_listed_items(price["domain"], price, host, once, joiner)
    elif price.prior is not None:
        host.gather("users", words_of_texts(price))
        yield from words_with_prior(price, host, once, 1)
    else:
        yield from set_union_levels(price, host, once, joiner)


def items_draws(price: Price) -> Draws:
    """What `items_levels` asks."""
    if price.method == "domain":
        return counts_draws(price)
    return set_union_draws(price) if price.prior is None else forecast_draws(price)
