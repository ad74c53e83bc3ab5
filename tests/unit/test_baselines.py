"""What figures of examples compare dphh with must itself be right."""

from __future__ import annotations

import pytest
from baselines.sfp import (
    LETTERS,
    sfp,
)

from dphh.testing import SeededRandomness

WORDS = ["the", "hello", "watermelon", "a", "don't", "watermelons", "été", "friday"]


@pytest.mark.slow
def test_noiseless_messages_give_back_the_words():
    """At epsilon 200 hardly a bit flips: all is found, cut to ten, but for what Omega lacks."""
    words = WORDS * 2000
    for seed, extra in enumerate([{}, {"word_share": 0.5}, {"check_hash": True}]):
        found = sfp(
            words,
            epsilon=200.0,
            threshold=7,
            alphabet=LETTERS + "'",
            randomness=SeededRandomness(seed),
            **extra,
        )
        assert set(found.words) == {"the", "hello", "watermelon", "a", "don't", "friday"}
        assert found.local_epsilon == 200.0
        if "word_share" in extra:
            counted = dict(zip(found.words, found.estimates, strict=True))
            assert counted["watermelon"] == pytest.approx(4000, rel=0.05)
            assert counted["a"] == pytest.approx(2000, rel=0.05)
        else:
            assert found.estimates is None
