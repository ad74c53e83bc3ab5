"""Promises that are none to rely on say so in words, in plans, releases' manifests and caps."""

from __future__ import annotations

import pytest

from dphh.privacy.weak import warnings


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (1.0, 1e-8, []),
        (10.0, 1e-5, []),
        (10.5, 1e-5, ["epsilon 10.5"]),
        (1.0, 2e-5, ["of every 100,000 users"]),
        (1.0, 0.5, ["about 500 of every 1,000"]),
        (1000.0, 0.01, ["e^1000 times as likely", "about 10 of every 1,000"]),
    ],
)
def test_each_of_the_two_that_is_large_is_said(epsilon, delta, said):
    found = warnings(epsilon, delta)
    assert len(found) == len(said)
    assert all(words in warning for words, warning in zip(said, found, strict=True))
