"""`ngrams`: runs the levels of its method. Level 1 is words; each further level sees valid grams
alone."""

from __future__ import annotations

from collections.abc import Iterator

from dphh.engines.host import DrawOnce, Host
from dphh.mechanisms.ngrams.dpne import dpne_draws, dpne_levels
from dphh.mechanisms.ngrams.forecast.run import forecast_draws, forecast_levels
from dphh.mechanisms.running import Draws, LevelDone
from dphh.price import Price


def ngrams_levels(price: Price, host: Host, once: DrawOnce) -> Iterator[LevelDone]:
    levels = forecast_levels if price.method == "forecast" else dpne_levels
    return levels(price, host, once)


def ngrams_draws(price: Price) -> Draws:
    """What `ngrams_levels` asks."""
    return forecast_draws(price) if price.method == "forecast" else dpne_draws(price)
