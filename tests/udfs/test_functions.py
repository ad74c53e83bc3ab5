"""The one table of functions, and the queries that call them."""

import re
from pathlib import Path

from dphh.testing import SeededRandomness
from dphh.udfs.functions import functions

SQL = Path(__file__).parents[2] / "sql"
#: What a host registers by itself: they depend on what it holds of a corpus, or on its parts.
OF_A_HOST = {"gathered", "spelled", "part"}


def test_queries_call_what_the_table_has_and_nothing_of_it_is_left_uncalled() -> None:
    called = set()
    for path in SQL.rglob("*.sql"):
        text = re.sub("--.*", "", path.read_text(encoding="utf-8"))
        called |= set(re.findall(r"\bdphh_(\w+)\(", text))
    assert called - OF_A_HOST == functions(SeededRandomness(1)).keys()
