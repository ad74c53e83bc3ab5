"""Ways into an engine, to see what a release never shows."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isqrt
from typing import Any

import polars as pl
import pyarrow as pa
from hypothesis import HealthCheck, settings

from dphh import Corpus
from dphh.engines import open_host
from dphh.engines.host import Draw, Host
from dphh.mechanisms.running import as_array
from dphh.mechanisms.set_union.draws import draw_in_order, draw_words
from dphh.mechanisms.set_union.levels import SetUnionLevel
from dphh.reader.rows import Limits
from dphh.udfs.kernel.gathering import ReadWords


def few(examples: int) -> settings:
    """For tests with pytest's fixtures, each example of which opens an engine."""
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


def unstored(_: str, draw: Draw) -> Any:
    """Draws a step and stores nothing of it."""
    return draw()


@contextmanager
def host_on(engine: str, corpus: Corpus, randomness: Any) -> Iterator[Host]:
    # Few threads for many small queries, where an engine can be told.
    host = open_host(engine, corpus, randomness, Limits(threads=2 if engine == "duckdb" else None))
    try:
        yield host
    finally:
        host.close()


def bare_level(max_items: int, *, bits: int = 10, threshold: int = -(10**12)) -> SetUnionLevel:
    """A level whose threshold hides nothing: for looking at the histogram."""
    return SetUnionLevel(
        level=1, max_items=max_items, grid_bits=bits, sigma_grid=16, threshold_grid=threshold
    )


def histogram(engine: str, corpus: Corpus, randomness: Any, max_items: int) -> dict[str, int]:
    """The integer weights of all items, before any noise (randomness: no_noise)."""
    with host_on(engine, corpus, randomness) as host:
        host.gather("users", ReadWords())
        passed = draw_words(host, bare_level(max_items), "test")
    return weights_in(passed)


def weights_in(passed: Any) -> dict[str, int]:
    columns = (passed.column(name).to_pylist() for name in ("key", "noisy"))
    return dict(zip(*columns, strict=True))


def expected(rows: Any, tokens: Any = str.split) -> dict[str, int]:
    """The same by plain Python, of rows (user, content): what `tokens` makes of each."""
    held: dict[Any, set[str]] = defaultdict(set)
    for user, content in rows:
        held[user] |= {token for token in tokens(content) if token}
    weights: dict[str, int] = defaultdict(int)
    for words in held.values():
        for word in words:
            weights[word] += isqrt(4**10 // len(words))
    return dict(weights)


def frame(rows: Any) -> pl.DataFrame:
    return pl.DataFrame(
        {"who": [row[0] for row in rows], "what": [row[1] for row in rows]}, strict=False
    )


def in_rounds(
    engine: str, corpus: Corpus, randomness: Any, levels: Sequence[SetUnionLevel]
) -> list[dict[tuple[str, ...], int]]:
    """What each round of set union releases, without what those before it did."""
    found: list[dict[tuple[str, ...], int]] = []
    released = pa.array([], pa.string())
    with host_on(engine, corpus, randomness) as host:
        host.gather("users", ReadWords())
        for level in levels:
            passed = draw_words(host, level, f"round {level.round}", released)
            released = pa.concat_arrays([released, as_array(passed.column("key"), pa.string())])
            found.append({(key,): weight for key, weight in weights_in(passed).items()})
    return found


def in_adaptive_rounds(
    engine: str, corpus: Corpus, randomness: Any, levels: Sequence[SetUnionLevel]
) -> list[dict[tuple[str, ...], int]]:
    """The same of rounds whose weights follow one another."""
    found: list[dict[tuple[str, ...], int]] = []
    with host_on(engine, corpus, randomness) as host:
        host.gather("users", ReadWords())
        for _, passed in draw_in_order(levels, host, unstored):
            found.append({(key,): weight for key, weight in weights_in(passed).items()})
    return found
