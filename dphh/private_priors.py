"""Refuses priors that were not declared public, that are private, or that have other tokens.

No code can prove that a text is public. What can be told is refused: the run's own data, and any
that the ledger knows.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dphh.corpora.content import Content
from dphh.corpora.tables import is_in_memory, rows_in_memory
from dphh.corpus import Corpus
from dphh.errors import DphhError, UsageError
from dphh.ledger import Ledger, source_of
from dphh.ledger.known import is_known, places_read_by, share_data
from dphh.priors.given_prior import GivenPrior

#: What does not make tokens others.
_OPTIONS_WITHOUT_EFFECT_ON_TOKENS = ("column", "unit", "max_text_length", "where")


def refuse_undeclared(declared: bool, what: str = "a text or a table of your own") -> None:
    if not declared:
        raise UsageError(
            f"prior_is_public: the prior is {what}, and nothing protects who is in it. If nobody "
            "in the data contributed to it, or all of it is published anyway, say "
            "prior_is_public=True (--prior-is-public); if not, leave prior out"
        )


def refuse_private(prior: Corpus, corpus: Corpus | None, ledger: Ledger) -> None:
    """Refuse a private prior before it is read. `corpus`: the run's own corpus, if it is known
    yet."""
    source = source_of(prior)
    if corpus is not None and (
        (prior.source is not None and prior.source is corpus.source)
        or share_data(places_read_by(source_of(corpus)), places_read_by(source))
        or _have_same_rows(prior, corpus)
    ):
        raise UsageError(
            "prior: these are the run's own data, or some of them: a list made of them would tell "
            "who holds what. Give a text that nobody in the data contributed to"
        )
    if prior.account is not None or is_known(ledger, source):
        raise UsageError(
            "prior: the ledger knows these data, so they are private: a list made of them would "
            "tell who holds what. Give a public text, or a release that was made of them"
        )


def check_same_tokens(given: GivenPrior, content: Content) -> None:
    if given.reading is None:
        return
    differ = [
        name
        for name, value in content.to_json().items()
        if name not in _OPTIONS_WITHOUT_EFFECT_ON_TOKENS and given.reading.get(name) != value
    ]
    if differ:
        said = ", ".join(f"{name}={given.reading.get(name)!r}" for name in differ)
        raise UsageError(
            f"prior: it is read with {said}, and the corpus otherwise, so its words would not be "
            "the corpus's; read both alike"
        )


def refuse_prior(given: GivenPrior | None, corpus: Corpus, ledger: Ledger) -> None:
    """Refuse a private or unsuitable prior when a plan is run, with its final corpus and ledger."""
    if given is None:
        return
    if given.corpus is not None:
        refuse_private(given.corpus, corpus, ledger)
    check_same_tokens(given, corpus.content)


def _have_same_rows(prior: Corpus, corpus: Corpus) -> bool:
    """Whether two tables in memory have the same texts."""
    if not (is_in_memory(prior) and is_in_memory(corpus)):
        return False
    try:
        one, other = (_content_column(each) for each in (prior, corpus))
        return bool(len(one) and one.equals(other))
    except (DphhError, pa.ArrowException):
        return False  # whoever reads them says what is wrong


def _content_column(corpus: Corpus) -> Any:
    texts = rows_in_memory(corpus).column(corpus.content.column)
    return texts.cast(pa.large_string()).combine_chunks()
