"""How Polars' errors are classified and explained."""

from __future__ import annotations

import re

from polars.exceptions import PanicException

from dphh.engines.failures import Failures

engine_errors = Failures(
    "Polars",
    # The owner's lazy frame may raise any exception when it is collected.
    errors=(Exception, PanicException),
    is_out_of_memory=lambda problem: isinstance(problem, MemoryError),
    ran_out_of="memory",
    more_memory="give the process more memory, lower max_text_length or max_items, or use "
    "engine='duckdb', which spills to disk",
    look=lambda _: "If the corpus is a lazy frame, see that it computes on its own",
    not_utf8=re.compile("utf-?8", re.IGNORECASE),
)
