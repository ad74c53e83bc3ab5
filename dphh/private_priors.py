"""Refuses priors that were not declared public, or that have other tokens."""

from __future__ import annotations

from dphh.errors import UsageError
from dphh.priors.given_prior import GivenPrior
from dphh.rows.content import Content

#: What does not make tokens others.
_OPTIONS_WITHOUT_EFFECT_ON_TOKENS = ("column", "unit", "max_text_length", "where")


def refuse_undeclared(declared: bool, what: str = "a text or a table of your own") -> None:
    if not declared:
        raise UsageError(
            f"prior_is_public: the prior is {what}, and nothing protects who is in it. If nobody "
            "in the data contributed to it, or all of it is published anyway, say "
            "prior_is_public=True (--prior-is-public); if not, leave prior out"
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
