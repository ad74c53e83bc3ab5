"""A picture of what was measured: the numbers are those of the page, whose command made them."""

from __future__ import annotations

from building.lines import Line, lines_svg

#: `examples/public_text.py`: n-grams found that a user holds, means of three runs.
BY_PRIOR = {
    "with a public text as prior": ((0.5, 1233), (1, 2531), (2, 4950), (4, 9372)),
    "without": ((0.5, 341), (1, 828), (2, 1946), (4, 4138)),
}


def prior_and_epsilon() -> str:
    return lines_svg(
        "n-grams found, by epsilon",
        "epsilon",
        [Line(name, points, dashed=name == "without") for name, points in BY_PRIOR.items()],
        logs=(True, False),
        top=10_000,
    )
