"""Pictures of what was measured: the numbers are those of the page, whose commands made them."""

from __future__ import annotations

from building.lines import Line, lines_svg

#: `examples/gboard_experiments.py --only users`: coverage by what sums tell of a whole user.
BY_USER_EPSILON = {
    "at the paper's numbers": ((1, 93.9), (2, 98.8), (4, 99.9)),
    "as this population is promised it": ((1, 84.7), (2, 92.5), (4, 98.3)),
    "the paper, at local epsilon 10": ((1, 92.1), (2, 92.1), (4, 92.1)),
}
#: `examples/public_text.py`: n-grams found that somebody holds, means of three runs.
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


def coverage_and_user_epsilon() -> str:
    return lines_svg(
        "Coverage in percent, by what sums tell of a whole user",
        "user-level epsilon",
        [
            Line(name, points, dashed=name.startswith("the paper"))
            for name, points in BY_USER_EPSILON.items()
        ],
        logs=(True, False),
        top=100,
    )
