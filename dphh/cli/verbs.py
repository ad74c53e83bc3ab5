"""One command a verb."""

from __future__ import annotations

from typing import Any

import click

from dphh.cli.options import (
    CONTENT_NAMES,
    budget_options,
    corpus_of,
    corpus_options,
    finish,
    run_options,
)
from dphh.mechanisms.items import METHODS
from dphh.privacy.ledger import Ledger
from dphh.verbs import items as items_plan


def _content(options: dict[str, Any]) -> dict[str, Any]:
    return {key: options.pop(key) for key in CONTENT_NAMES}


@click.command()
@click.argument("corpus")
@corpus_options
@budget_options
@click.option("--max-items", default=100, show_default=True, help="Items a user may count for.")
@click.option("--method", type=click.Choice(METHODS), default="gaussian", show_default=True)
@run_options
def items(
    corpus: str, epsilon: float, delta: float, max_items: int, method: str, **options: Any
) -> None:
    """Find single items that many users hold.

    CORPUS is a Parquet path, a glob, a folder, or a name in the ledger.
    """
    book = Ledger(options["ledger_file"])
    read = corpus_of(corpus, book, _content(options))
    plan = items_plan(read, epsilon=epsilon, delta=delta, max_items=max_items, method=method)
    finish(plan, book, options)
