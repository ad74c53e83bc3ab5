"""The privacy guarantee in words that need no theorem. Each sentence is exact."""

from __future__ import annotations

from math import ceil, exp, log
from typing import Any

#: Of the other direction, where it is not proved, or where the statement does not say.
_ONE_DIRECTION = {
    False: "The other way round nothing is proved.",
    None: "Whether that holds the other way round, this release's manifest does not say.",
}


def in_words(privacy: dict[str, Any]) -> list[tuple[str, str]]:
    """The guarantee as (term, sentence) pairs. Statements of earlier versions have no `protects`
    and no `both_directions`; of these it says the less."""
    epsilon, delta = promised(privacy), float(privacy["delta"])
    what, their = _who_is_protected(privacy)
    both_directions: bool | None = privacy.get("both_directions")
    said = [
        (
            f"epsilon = {epsilon:.4g}",
            f"Whatever came out, it was at most {_odds_factor(epsilon)} times as likely with "
            f"{what} in "
            "the data as without"
            + (", and the other way round. " + guessing(epsilon, delta, their)
               if both_directions else f". {_ONE_DIRECTION[both_directions]}"),
        ),
        (
            f"delta = {delta:g}",
            "Beyond that factor, the probability of any outcome may differ by "
            f"{_one_in_many(delta)}.",
        ),
        ("whose data", f"What is protected is {privacy['unit']}."),
    ]  # fmt: skip
    if "provided" in privacy:
        said.append(("provided", f"All of this holds provided that {privacy['provided']}."))
    if "adjacency" in privacy:
        said.append(
            ("with and without", f"The two cases that are compared: {privacy['adjacency']}.")
        )
    if "central_epsilon" in privacy:
        said.append(
            (
                "each report",
                f"Every report was randomised before it left its device, with epsilon "
                f"{privacy['epsilon']:g} for whoever received it.",
            )
        )
    if "user_epsilon" in privacy:
        said.append(
            (
                "all of a user",
                f"For everything that one user contributed, together: epsilon "
                f"{privacy['user_epsilon']:.4g} at the same delta.",
            )
        )
    if "shuffled_user_epsilon" in privacy:
        said.append(
            (
                "mixed messages",
                "That holds where only sums of reports are seen. Who sees the messages themselves, "
                f"without senders, is told epsilon {privacy['shuffled_epsilon']:.4g} of one "
                f"contribution, and {privacy['shuffled_user_epsilon']:.4g} of all of a user's.",
            )
        )
    said.append(
        (
            "other releases",
            "The promise is of this release alone. Releases from the same people add up.",
        )
    )
    return said


def promised(privacy: dict[str, Any]) -> float:
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


def _who_is_protected(privacy: dict[str, Any]) -> tuple[str, str]:
    protects = privacy.get("protects")
    if protects == "user":
        return "one person's rows", "a given person's rows are"
    return "one of what is protected", "one given contribution is"


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
