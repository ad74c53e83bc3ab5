"""`dphh.rehearse`: runs a plan on stand-in data to see what it would find. No ledger is charged.

The data must be public, since nothing limits how often a rehearsal is run. Data that the ledger
knows, by a name or from a run, are refused, and so is the plan's own corpus.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from dphh.corpus import Corpus
from dphh.engines import engine_of, open_session
from dphh.errors import UsageError
from dphh.ledger import Ledger, source_of
from dphh.ledger.known import is_known, places_read_by, share_data
from dphh.plan import Plan
from dphh.private_priors import refuse_prior
from dphh.registry import VERBS
from dphh.release import Release
from dphh.run import released
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import RunRandomness, SystemRandomness
from dphh.wording.options import named_and_withholding

#: Shown wherever the release is shown.
STAND_IN = (
    "a rehearsal on stand-in data, NOT paid for: whoever's data these are, nothing is promised"
)


@named_and_withholding
def rehearse(
    plan: Plan,
    corpus: Corpus,
    *,
    ledger: Ledger | str | Path | None = None,
    engine: str | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Release:
    """What a plan would find, tried on public stand-in data. Free: no private data are read.

    corpus: public data like the private: as many users, who hold about as much. Not the text that
    the plan has as its prior: with that it would find more than with any other.
    """
    if not isinstance(plan, Plan):
        raise UsageError(f"plan: found a {type(plan).__name__}; give a plan, as dphh.items returns")
    if not isinstance(corpus, Corpus):
        raise UsageError(f"corpus: found a {type(corpus).__name__}; give a dphh.Corpus")
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    _refuse_private(plan, corpus, book)
    read = VERBS[plan.verb].read(corpus, plan.price)
    refuse_prior(plan.price.prior, read, book)
    randomness = RunRandomness(SystemRandomness())
    randomness.draw_once_by(SystemRandomness().words(4, "the key of a run").tobytes())
    limits = Limits(memory_limit, threads)
    session = open_session(engine or engine_of(read), read, randomness, limits)
    try:
        run_id = f"rehearsal-{uuid.uuid4().hex}"
        found = released(plan.price, read, session, run_id, randomness, _show_nothing)
    finally:
        session.close()
    return Release(found.table, {**found.manifest, "randomness": STAND_IN, "is_test": True})


def _refuse_private(plan: Plan, corpus: Corpus, book: Ledger) -> None:
    here = source_of(corpus)
    if plan.corpus is not None:
        same = corpus.kind != "path" and plan.corpus.source is corpus.source
        if same or share_data(places_read_by(source_of(plan.corpus)), places_read_by(here)):
            raise UsageError("corpus: found the plan's own data; rehearse on public data instead")
    if corpus.name is not None or is_known(book, here):
        raise UsageError(
            "corpus: the ledger knows these data, so they may be private. A rehearsal pays nothing "
            "and protects no one. Nothing was read; give public data instead"
        )


def _show_nothing(_: str) -> None:
    """Shows no progress."""
