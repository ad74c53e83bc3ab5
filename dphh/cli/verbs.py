"""One command a verb."""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dphh.cli.options import (
    CONTENT_NAMES,
    budget_options,
    corpus_of,
    corpus_options,
    corpus_options_beside_keep,
    finish,
    run_options,
)
from dphh.devices.reports.round import Sampling
from dphh.errors import UsageError
from dphh.given import given_items
from dphh.ledger import Ledger
from dphh.levels import Choice, Mode, Pruning
from dphh.mechanisms.items import METHODS
from dphh.mechanisms.ngrams import METHODS as NGRAM_METHODS
from dphh.mechanisms.trie import Accounting
from dphh.verbs import counts as counts_plan
from dphh.verbs import items as items_plan
from dphh.verbs import ldp_trie as ldp_trie_plan
from dphh.verbs import ngrams as ngrams_plan
from dphh.verbs import trie as trie_plan


def _content(options: dict[str, Any]) -> dict[str, Any]:
    return {key: options.pop(key) for key in CONTENT_NAMES}


@click.command()
@click.argument("corpus")
@corpus_options
@budget_options
@click.option(
    "--max-items",
    default=100,
    show_default=True,
    help="How many different items one user may count for.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="gaussian",
    show_default=True,
    help="gaussian: one round; sips: three, each freeing users of what is found already.",
)
@run_options
def items(
    corpus: str, epsilon: float, delta: float, max_items: int, method: str, **options: Any
) -> None:
    """Find single items that many users hold.

    CORPUS is a Parquet path, a glob, a folder, or a name in the ledger.

    \b
    dphh items 'reviews/*.parquet' --user author --text body --epsilon 1 --delta 1e-8 --plan
    """
    book = Ledger(options["ledger_file"])
    read = corpus_of(corpus, book, _content(options))
    plan = items_plan(read, epsilon=epsilon, delta=delta, max_items=max_items, method=method)
    finish(plan, book, options)


def _numbers(kind: type[int] | type[float]) -> Callable[[Any, Any, str | None], Any]:
    """Read one number, or several with commas between them."""

    def read(_: Any, option: Any, given: str | None) -> Any:
        if given is None:
            return None
        try:
            numbers = tuple(kind(part) for part in given.split(","))
        except ValueError:
            raise click.BadParameter(
                f"found {given!r}; give a number, or one a length with commas between"
            ) from None
        return numbers[0] if len(numbers) == 1 and option.name == "max_items" else numbers

    return read


@click.command()
@click.argument("corpus")
@corpus_options
@budget_options
@click.option("--max-n", type=int, required=True, help="The longest n-gram, in tokens.")
@click.option(
    "--max-items",
    default="100",
    show_default=True,
    callback=_numbers(int),
    metavar="N[,N...]",
    help="N-grams of one length that a user may count for; one number, or one a length.",
)
@click.option("--spurious", default=0.01, show_default=True, help="Share that nobody need hold.")
@click.option(
    "--pruning",
    type=click.Choice(["both", "single"]),
    default="both",
    show_default=True,
    help="What must be released below: all but its first and all but its last word, or the latter.",
)
@click.option(
    "--decay", default=1.0, show_default=True, help="Each length's noise over the one below's."
)
@click.option(
    "--shares",
    callback=_numbers(float),
    metavar="S[,S...]",
    help="Each length's share of the budget, instead of --decay.",
)
@click.option(
    "--method",
    type=click.Choice(NGRAM_METHODS),
    default="dpne",
    show_default=True,
    help="dpne: length by length; the others: set union over whole n-grams.",
)
@run_options
def ngrams(
    corpus: str,
    epsilon: float,
    delta: float,
    max_n: int,
    max_items: int | tuple[int, ...],
    spurious: float,
    pruning: Pruning,
    decay: float,
    shares: tuple[float, ...] | None,
    method: str,
    **options: Any,
) -> None:
    """Find runs of up to N tokens that many users hold.

    CORPUS is a Parquet path, a glob, a folder, or a name in the ledger.
    """
    book = Ledger(options["ledger_file"])
    read = corpus_of(corpus, book, _content(options))
    plan = ngrams_plan(
        read,
        max_n=max_n,
        epsilon=epsilon,
        delta=delta,
        max_items=max_items,
        spurious=spurious,
        pruning=pruning,
        decay=decay,
        shares=shares,
        method=method,
    )
    finish(plan, book, options)


def _texts(_: Any, __: Any, given: str | None) -> tuple[str, ...]:
    return () if given is None else tuple(given.split(","))


@click.command()
@click.argument("corpus")
@corpus_options
@budget_options
@click.option(
    "--of",
    required=True,
    metavar="RUN_ID|DIR|FILE",
    help="What to count: a release, by its run id or folder; or a text file, one item a line.",
)
@click.option(
    "--top", type=int, metavar="N", help="Of a release the first N: of each level in turn."
)
@click.option("--min-length", default=1, show_default=True, help="Items of so many tokens or more.")
@click.option(
    "--max-items",
    default=100,
    show_default=True,
    help="How many of them one user counts for as one whole user each.",
)
@click.option("--by", metavar="COLUMN", help="Count within groups that this column names.")
@click.option(
    "--groups",
    callback=_texts,
    metavar="A[,B...]",
    help="Its values to count within; all others are counted together as 'other'.",
)
@click.option("--confidence", default=0.95, show_default=True, help="Of each interval.")
@click.option("--simultaneous", is_flag=True, help="Of all intervals at once.")
@run_options
def counts(
    corpus: str,
    of: str,
    epsilon: float,
    delta: float,
    top: int | None,
    min_length: int,
    max_items: int,
    by: str | None,
    groups: tuple[str, ...],
    confidence: float,
    simultaneous: bool,
    **options: Any,
) -> None:
    """Count how many users hold given items, with intervals that hold the truth.

    CORPUS is a Parquet path, a glob, a folder, or a name in the ledger.

    \b
    dphh counts 'reviews/*.parquet' --user author --text body --of found/ --epsilon 0.5 --delta 1e-8
    """
    book = Ledger(options["ledger_file"])
    read = corpus_of(corpus, book, _content(options))
    plan = counts_plan(
        read,
        of=given_items(of, read, top=top, min_length=min_length, ledger=book),
        epsilon=epsilon,
        delta=delta,
        max_items=max_items,
        by=by,
        groups=groups,
        confidence=confidence,
        simultaneous=simultaneous,
    )
    finish(plan, book, options)


@click.command()
@click.argument("corpus")
@corpus_options
@budget_options
@click.option(
    "--max-length", type=int, required=True, help="Levels; the end of a sequence counts as one."
)
@click.option("--unit", default=1, show_default=True, help="Characters a token, of whole items.")
@click.option(
    "--choice",
    type=click.Choice(["drawn", "most-frequent"]),
    default="drawn",
    show_default=True,
    help="How a user of several rows comes to one sequence.",
)
@click.option(
    "--accounting",
    type=click.Choice(["path", "paper"]),
    default="path",
    show_default=True,
    help="The path accountant, tight in both directions; or the paper's theorem.",
)
@click.option("--theta", type=int, help="Votes that are enough; with --p, instead of the best.")
@click.option("--p", type=float, help="Probability that a user votes at a level; with --theta.")
@click.option("--users", type=int, help="For --accounting paper: how many users there are.")
@run_options
def trie(
    corpus: str,
    epsilon: float,
    delta: float,
    max_length: int,
    unit: int,
    choice: Choice,
    accounting: Accounting,
    theta: int | None,
    p: float | None,
    users: int | None,
    **options: Any,
) -> None:
    """Find sequences, grown level by level from sampled votes.

    CORPUS is a Parquet path, a glob, a folder, or a name in the ledger.
    """
    book = Ledger(options["ledger_file"])
    read = corpus_of(corpus, book, _content(options))
    plan = trie_plan(
        read,
        epsilon=epsilon,
        delta=delta,
        max_length=max_length,
        unit=unit,
        choice=choice,
        accounting=accounting,
        theta=theta,
        p=p,
        users=users,
    )
    finish(plan, book, options)


def _lines(_: Any, option: Any, given: str | None) -> tuple[str, ...]:
    """A file of one word a line."""
    if given is None:
        return ()
    try:
        return tuple(Path(given).read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as problem:
        raise UsageError(
            f"{option.name}: {given} cannot be read ({type(problem).__name__}); give a text file "
            "with one word a line"
        ) from None


@click.command("ldp-trie")
@click.argument("corpus")
@corpus_options_beside_keep
@click.option("--local-epsilon", type=float, required=True, help="What one report may tell.")
@click.option(
    "--delta", type=float, required=True, help="Of the central promise, once reports are counted."
)
@click.option("--users-per-level", type=int, required=True, help="Asked at a level, none twice.")
@click.option("--contributions", type=int, required=True, help="Reports that each of them sends.")
@click.option(
    "--max-length", type=int, required=True, help="Levels, and characters of the longest sequence."
)
@click.option("--keep", type=int, required=True, help="Prefixes that go on from a level, at most.")
@click.option(
    "--sampling",
    type=click.Choice(["random", "greedy"]),
    default="random",
    show_default=True,
    help="Which prefixes a user of too many reports: any, or those of most of their rows.",
)
@click.option("--passes", default=1, show_default=True, help="Tries, each without earlier words.")
@click.option(
    "--character-set",
    default=string.printable,
    show_default="printable ASCII",
    metavar="CHARS",
    help="All that words are made of; a word with any other is left out.",
)
@click.option("--known", callback=_lines, metavar="FILE", help="Words not asked for, one a line.")
@click.option(
    "--mode",
    type=click.Choice(["messages", "aggregate"]),
    default="messages",
    show_default=True,
    help="Draw every report, or only how many reports hold each value.",
)
@click.option("--pad", is_flag=True, help="Users of nothing sit in for those who are wanting.")
@run_options
def ldp_trie(
    corpus: str,
    local_epsilon: float,
    delta: float,
    users_per_level: int,
    contributions: int,
    max_length: int,
    keep: int,
    sampling: Sampling,
    passes: int,
    character_set: str,
    known: tuple[str, ...],
    mode: Mode,
    pad: bool,
    **options: Any,
) -> None:
    """Find sequences, grown level by level from locally randomised votes.

    CORPUS is a Parquet path, a glob, a folder, or a name in the ledger.
    """
    book = Ledger(options["ledger_file"])
    options["keep"] = options.pop("keep_tokens")
    read = corpus_of(corpus, book, _content(options))
    plan = ldp_trie_plan(
        read,
        local_epsilon=local_epsilon,
        delta=delta,
        users_per_level=users_per_level,
        contributions=contributions,
        max_length=max_length,
        keep=keep,
        sampling=sampling,
        passes=passes,
        character_set=character_set,
        known=known,
        mode=mode,
        pad=pad,
    )
    finish(plan, book, options)
