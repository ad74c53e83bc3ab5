"""The sequential Policy Gaussian: a reference that must itself be right."""

from __future__ import annotations

from math import isclose, sqrt

from baselines.policy_gaussian import policy_weights


def test_weights_by_hand():
    # One item: straight up by 1, until the gap is less.
    assert policy_weights([["a"]] * 2, 2.5, 10) == {"a": 2.0}
    assert policy_weights([["a"]] * 9, 2.5, 10) == {"a": 2.5}
    # Gaps of 3 and 3: by 1/sqrt(2) each.
    first = policy_weights([["a", "b"]], 3.0, 10)
    assert all(isclose(w, 1 / sqrt(2)) for w in first.values())
    # Then gaps of 3 and 4, of norm 5: by 3/5 and 4/5.
    second = policy_weights([["a"], ["a", "b"]], 4.0, 10)
    assert isclose(second["a"], 1 + 3 / 5)
    assert isclose(second["b"], 4 / 5)
    # An item at Gamma takes nothing: all goes to the other.
    third = policy_weights([["a"], ["a", "b"]], 1.0, 10)
    assert third == {"a": 1.0, "b": 1.0}
