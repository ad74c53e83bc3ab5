"""Regular expressions of a corpus are RE2's, on every engine."""

from __future__ import annotations

import duckdb
import pytest

from dphh import UsageError
from dphh.rows.conditions import check_patterns


@pytest.mark.parametrize("pattern", ["a)|(b", "(?=a)", "a{1001}", r"(?P<a", "["])
def test_what_is_not_re2_is_refused(pattern: str) -> None:
    with duckdb.connect() as con, pytest.raises(UsageError, match=r"^drop: .*not a valid regular"):
        check_patterns(con, {"drop": pattern})


@pytest.mark.parametrize(
    "pattern",
    [r"\w+", r"\bword", r"[a-z_@#\-;()*:.'/]{3,}", r"(?:http|www).*|.*[?!.;,]", r"\p{Greek}{2,}"],
)
def test_what_is_re2_is_taken(pattern: str) -> None:
    with duckdb.connect() as con:
        check_patterns(con, {"keep": pattern})
