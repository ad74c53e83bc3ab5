"""The privacy guarantee in words that need no theorem. Each sentence is exact."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, exp, log
from typing import Any


def in_words(privacy: Mapping[str, Any]) -> str:
    """What epsilon means."""
    epsilon = promised(privacy)
    what, their = {
        "user": ("one person's rows", "a given person's rows are"),
        "contribution": ("one contribution", "one given contribution is"),
    }.get(privacy["protects"], ("one of what is protected", "one given of these is"))
    factor = (
        f"Whatever came out, it was at most {_odds_factor(epsilon)} times as likely with {what} in "
        "the data as without"
    )
    if not privacy["both_directions"]:
        return f"{factor}. The other way round nothing is proved."
    return f"{factor}, and the other way round. {guessing(epsilon, float(privacy['delta']), their)}"


def in_full(privacy: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All else of the guarantee as (term, sentence) pairs."""
    beyond = _one_in_many(float(privacy["delta"]))
    said = [
        ("delta", f"Beyond that factor, the probability of any outcome may differ by {beyond}."),
        ("with and without", f"The two cases that are compared: {privacy['adjacency']}."),
    ]
    if "provided" in privacy:
        said.append(("provided", f"All of this holds provided that {privacy['provided']}."))
    if "user_epsilon" in privacy:
        said += [
            ("each report", f"Randomised on its device, with epsilon {privacy['epsilon']:g}."),
            ("all of a user", f"Everything that one user contributed, together: epsilon "
             f"{privacy['user_epsilon']:.4g} at the same delta."),
        ]  # fmt: skip
    return [
        *said,
        ("other releases", "Releases from the same people add up; the promise is of this alone."),
        ("theorem", privacy.get("theorem", "")),
        *(("delta", f"{share:.4g} for {what}") for what, share in privacy["delta_shares"].items()),
        *(("note", caveat) for caveat in privacy.get("caveats", ())),
    ]


def promised(privacy: Mapping[str, Any]) -> float:
    """The epsilon of what is published, for the unit that the privacy statement names."""
    return float(privacy.get("central_epsilon", privacy["epsilon"]))


def guessing(epsilon: float, delta: float, their: str) -> str:
    """The success probability of the best guess: (1 + TV)/2, where (epsilon, delta) in both
    directions bounds the total variation by (e^epsilon - 1 + 2 delta)/(e^epsilon + 1)."""
    right = min(1.0, (1 + delta * exp(-epsilon)) / (1 + exp(-epsilon)))
    return (
        f"Somebody who knows everything else and has to guess, at even odds, whether {their} in "
        f"it, is right with probability {_percent_rounded_up(right)} at most. A coin is right "
        "with 50%."
    )


def _odds_factor(epsilon: float) -> str:
    """e^epsilon to four digits, rounded up."""
    if epsilon > 20:
        return f"e^{epsilon:.4g}"
    digits = max(0, 3 - int(epsilon / log(10)))
    return f"{ceil(exp(epsilon) * 10**digits) / 10**digits:,.{digits}f}"


def _one_in_many(delta: float) -> str:
    if delta == 0:
        return "nothing more"
    one_in = round(1 / delta)
    return f"{delta:g} at most, about 1 in {round(one_in, 2 - len(str(one_in))):,}"


def _percent_rounded_up(probability: float) -> str:
    """A probability in percent, rounded up but below 100% if it is."""
    for digits in (1, 2, 4, 8):
        tenths = 10.0**digits
        up = -(-probability * 100 * tenths // 1) / tenths
        if up < 100:
            return f"{up:.{digits}f}%"
    return "100%"
