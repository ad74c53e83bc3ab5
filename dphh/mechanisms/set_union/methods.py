"""The methods of a set union: each is a file with its theorem, its price and its run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dphh.engines.host import DrawOnce, Host
from dphh.mechanisms.running import Draws
from dphh.mechanisms.set_union import adaptive, auto, gaussian, single, sips
from dphh.mechanisms.set_union.draws import draw_in_order, draws_in_order
from dphh.mechanisms.set_union.levels import DrawnRound, SetUnionLevel
from dphh.mechanisms.terms import Priced

Method = Literal["auto", "gaussian", "sips", "adaptive", "single"]


@dataclass(frozen=True)
class SetUnionMethod:
    theorem: str
    #: A function of epsilon, delta, max_items, what counting takes of them (`CountsOptions`), and
    #: what is given by hand.
    price: Callable[..., Priced]
    #: Yields each round of these levels as it was run. It gets the host, on which the table `users`
    #: is gathered, and draws what is released through `once`.
    run: Callable[[Sequence[SetUnionLevel], Host, DrawOnce], Iterator[DrawnRound]]
    #: What `run` asks, for `plan.sql()`.
    draws: Callable[[Sequence[SetUnionLevel]], Draws]


METHODS: dict[str, SetUnionMethod] = {
    "auto": SetUnionMethod(auto.THEOREM, auto.price, auto.run, auto.draws),
    "gaussian": SetUnionMethod(gaussian.THEOREM, gaussian.price, draw_in_order, draws_in_order),
    "sips": SetUnionMethod(sips.THEOREM, sips.price, draw_in_order, draws_in_order),
    "adaptive": SetUnionMethod(adaptive.THEOREM, adaptive.price, draw_in_order, draws_in_order),
    "single": SetUnionMethod(single.THEOREM, single.price, single.run, single.draws),
}
