"""`dphh sql --prices`: a table of what runs of many sizes would cost and find, for a shell.

A shell cannot price a run itself, so each number here is taken from a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.errors import UsageError
from dphh.files.whole_files import refuse_other_table, write_whole
from dphh.price import Price
from dphh.registry import VERBS

#: The defaults of `dphh sql --prices`: which runs the table prices.
EPSILONS = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0)
DELTAS = (1e-6, 1e-7, 1e-8)
MAX_ITEMS = (10, 100)
LENGTHS = (4, 10)
MOST_PRICES = 5_000

PRICES = pa.schema(
    [
        ("verb", pa.string()),
        ("method", pa.string()),
        ("epsilon", pa.float64()),
        ("delta", pa.float64()),
        ("max_items", pa.int64()),
        #: max_n of `ngrams`, max_length of `trie`.
        ("max_length", pa.int64()),
        ("level", pa.int64()),
        ("round", pa.int64()),
        ("grid_bits", pa.int64()),
        ("sigma_grid", pa.int64()),
        ("threshold_grid", pa.int64()),
        ("sigma", pa.float64()),
        ("threshold", pa.float64()),
        ("theta", pa.int64()),
        ("p", pa.float64()),
        ("users_needed", pa.int64()),
        ("users_needed_if_full", pa.int64()),
    ]
)


def price_table(
    epsilons: Sequence[float] = EPSILONS,
    deltas: Sequence[float] = DELTAS,
    max_items: Sequence[int] = MAX_ITEMS,
    lengths: Sequence[int] = LENGTHS,
) -> pa.Table:
    """One row for each level and round of each priced run of `items`, `ngrams` and `trie`."""
    asked = list(_requests(max_items, lengths))
    budgets = list(product(epsilons, deltas))
    if len(asked) * len(budgets) > MOST_PRICES:
        raise UsageError(
            f"prices: these options make {len(asked) * len(budgets):,} prices; give fewer values, "
            f"for at most {MOST_PRICES:,} prices"
        )
    rows = [
        row
        for (verb, options), (epsilon, delta) in product(asked, budgets)
        for row in _rows_of_price(VERBS[verb].price(epsilon=epsilon, delta=delta, **options))
    ]
    return pa.Table.from_pylist(rows, schema=PRICES)


def write_prices(table: pa.Table, file: Path) -> None:
    refuse_other_table("--prices", file, table.column_names)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    write_whole(file, sink.getvalue().to_pybytes())


def _requests(
    max_items: Sequence[int], lengths: Sequence[int]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for most, method in product(max_items, ("gaussian", "sips")):
        yield "items", {"max_items": most, "method": method}
    for most, method, length in product(max_items, ("forecast", "dpne"), lengths):
        yield "ngrams", {"max_items": most, "method": method, "max_n": length}
    for length in lengths:
        yield "trie", {"max_length": length}


def _rows_of_price(price: Price) -> Iterator[dict[str, Any]]:
    """The rows of a price; NULL where a value is known only during a run."""
    of_all = {"verb": price.verb, "method": price.method, **dict(price.parameters)}
    of_all["max_length"] = of_all.get("max_n", of_all.get("max_length"))
    by_length = dict(price.finds.users_by_length)
    by_held: dict[Any, int] = dict(price.finds.users_by_held)
    for level in price.levels:
        users = by_length.get(level.level) if by_length else price.finds.users
        found = {"users_needed": users, "users_needed_if_full": by_held.get(of_all["max_items"])}
        named = {**of_all, **level.to_json(), **found}
        yield {name: named.get(name) for name in PRICES.names}
