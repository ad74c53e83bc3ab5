"""All mutants, kind by kind. Add one to the list of its kind, or a list for a new mechanism."""

from __future__ import annotations

from tests.mutants import (
    adaptive,
    bookkeeping,
    corpora,
    forecasts,
    levels,
    local_reports,
    prices,
    priors,
    randomness,
    rounds,
    spending,
    workers,
)

MUTANTS = (
    *randomness.MUTANTS,
    *levels.MUTANTS,
    *local_reports.MUTANTS,
    *adaptive.MUTANTS,
    *prices.MUTANTS,
    *bookkeeping.MUTANTS,
    *rounds.MUTANTS,
    *forecasts.MUTANTS,
    *spending.MUTANTS,
    *workers.MUTANTS,
    *corpora.MUTANTS,
    *priors.MUTANTS,
)
