"""The privacy guarantee in words that need no theorem. Each sentence is exact."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, exp, log
from typing import Any


def in_words(privacy: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The guarantee as (term, sentence) pairs."""
    epsilon, delta = promised(privacy), float(privacy["delta"])
    what, their = {
        "user": ("one person's rows", "a given person's rows are"),
        "contribution": ("one contribution", "one given contribution is"),
    }.get(privacy["protects"], ("one of what is protected", "one given of these is"))
    factor = (
        f"Whatever came out, it was at most {_odds_factor(epsilon)} times as likely with {what} in "
        "the data as without"
    )
    if privacy["both_directions"]:
        factor += f", and the other way round. {guessing(epsilon, delta, their)}"
    else:
        factor += ". The other way round nothing is proved."
    beyond = f"the probability of any outcome may differ by {_one_in_many(delta)}"
    said = [
        (f"epsilon = {epsilon:.4g}", factor),
        (f"delta = {delta:g}", f"Beyond that factor, {beyond}."),
        ("whose data", f"What is protected is {privacy['unit']}."),
        ("with and without", f"The two cases that are compared: {privacy['adjacency']}."),
    ]
    if "provided" in privacy:
        said.append(("provided", f"All of this holds provided that {privacy['provided']}."))
    if "central_epsilon" in privacy:
        of_each = f"with epsilon {privacy['epsilon']:g} for whoever received it"
        said.append(
            ("each report", f"Every report was randomised before it left its device, {of_each}.")
        )
    if "user_epsilon" in privacy:
        of_all = f"epsilon {privacy['user_epsilon']:.4g} at the same delta"
        said.append(
            ("all of a user", f"For everything that one user contributed, together: {of_all}.")
        )
    if "shuffled_user_epsilon" in privacy:
        of_all = f"{privacy['shuffled_user_epsilon']:.4g} for all of a user's"
        said.append(
            (
                "mixed messages",
                "That holds where only sums of reports are seen. To who sees the messages "
                f"themselves, without senders, it is epsilon {privacy['shuffled_epsilon']:.4g} for "
                f"one contribution, and {of_all}.",
            )
        )
    alone = "The promise is of this release alone. Releases from the same people add up."
    return [*said, ("other releases", alone)]


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
