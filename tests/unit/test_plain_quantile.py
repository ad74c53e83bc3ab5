"""The normal distribution of `sql/plain/noise_quantile.sql`, against many digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import mpmath
import pytest

from dphh.sql import query

DIGITS = 60


@pytest.fixture(scope="module")
def value() -> Iterator[Callable[..., Any]]:
    """The value of one expression, in which `?` stands for the arguments."""
    with duckdb.connect() as con:
        con.execute(query("plain/noise_quantile"))

        def evaluate(expression: str, *arguments: Any) -> Any:
            ((found,),) = con.execute(f"SELECT {expression}", list(arguments)).fetchall()
            return found

        yield evaluate


def tail(x: float) -> Any:
    return mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2


@pytest.mark.parametrize("u", [-37.0, -13.0, -12.5, -3.0, 0.0, 1e-7, 1.0, 9.0, 12.57, 100.0, 1e6])
def test_the_mills_ratio_is_right_on_both_sides_of_its_pole(value: Any, u: float) -> None:
    with mpmath.workdps(DIGITS):
        exact = tail(u) / mpmath.npdf(mpmath.mpf(u))
        assert abs(value("dphh_mills(?)", u) / exact - 1) < 1e-14 + (u * u * 2e-16 if u < 0 else 0)


@pytest.mark.parametrize("q", [0.999, 0.9, 0.5000001, 0.5, 0.3, 1e-3, 1e-10, 1e-100, 1e-300])
def test_the_inverse_tail_comes_back(value: Any, q: float) -> None:
    with mpmath.workdps(DIGITS):
        x = value("dphh_normal_tail_inverse(?)", q)
        assert abs(tail(x) / q - 1) < 1e-12 if x == 0 or q < 0.4 else abs(tail(x) - q) < 1e-14
