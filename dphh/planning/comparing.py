"""`dphh.compare`: plans side by side, before any of them is paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from itertools import product
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from dphh.corpus import Corpus
from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.ledger.corpora import mixed
from dphh.ledger.origins import origin_of
from dphh.ledger.remaining import MOST_RUNS, Ahead
from dphh.plan import Plan, verb_function
from dphh.planning.rehearsing import rehearse
from dphh.registry import VERBS
from dphh.release import Release
from dphh.report.plan_lines import outlook_of
from dphh.wording.lines import wrapped
from dphh.wording.options import check_known

MOST_PLANS = 400
_OF_PRIORS = ("prior", "prior_text", "prior_is_public")


@dataclass(frozen=True)
class Compared:
    """One of the compared plans, or the reason why it cannot be made."""

    #: The varied options: (option, value).
    options: tuple[tuple[str, Any], ...]
    plan: Plan | None
    problem: str | None
    #: The effect on the corpus's account; None if the corpus has no cap.
    ahead: Ahead | None
    refused: str | None
    #: How many n-grams of each length a rehearsal released, where there was one.
    found: tuple[tuple[int, int], ...] = ()

    @property
    def users(self) -> int | None:
        """The smallest number of users that an item needs to be found with probability 0.9."""
        return None if self.plan is None else self.plan.finds.users

    @property
    def users_by_length(self) -> dict[int, int]:
        return {} if self.plan is None else dict(self.plan.finds.users_by_length)

    def row(self) -> dict[str, Any]:
        """A row for a table: the varied options and the results."""
        return {
            **dict(self.options),
            "users": self.users,
            **{f"users of {n}": users for n, users in self.users_by_length.items()},
            **{f"found of {n}": found for n, found in self.found},
            "share": None if self.ahead is None else self.ahead.share,
            "runs_left": None if self.ahead is None else self.ahead.runs_left,
            "refused": self.refused or self.problem,
        }


@dataclass(frozen=True)
class Comparison:
    """Plans that differ in a few options. Free; nothing private was read."""

    verb: str
    varied: tuple[str, ...]
    plans: tuple[Compared, ...]

    def __iter__(self) -> Iterator[Compared]:
        return iter(self.plans)

    def __len__(self) -> int:
        return len(self.plans)

    def to_polars(self) -> Any:
        import polars as pl

        return pl.DataFrame(
            [
                {k: list(v) if isinstance(v, tuple) else v for k, v in each.row().items()}
                for each in self.plans
            ],
            infer_schema_length=None,
        )

    def __repr__(self) -> str:
        lengths = sorted({n for each in self.plans for n in each.users_by_length})
        users = [f"length {n}" for n in lengths] or ["users"]
        rehearsed = sorted({n for each in self.plans for n, _ in each.found})
        found = [f"found of {n}" for n in rehearsed]
        head = [*self.varied, *users, *found, "of the cap", "runs left"]
        table = [head, *(self._line_of_plan(each, lengths, rehearsed) for each in self.plans)]
        widths = [max(len(line[i]) for line in table) for i in range(len(head))]
        lines = [f"compare: {self.verb}; users that an item needs to be found with probability 0.9"]
        for line in table:
            cells = (f"{cell:>{width}}" for cell, width in zip(line, widths, strict=False))
            lines.append(f"  {'  '.join(cells)}{''.join(line[len(head) :])}")
        said = {each.refused or each.problem for each in self.plans} - {None}
        for why in sorted(map(str, said)):
            lines += wrapped(why, "  ", "    ")
        return "\n".join(lines)

    def _line_of_plan(self, each: Compared, lengths: list[int], rehearsed: list[int]) -> list[str]:
        found = each.users_by_length
        users = [f"{found[n]:,}" if n in found else "-" for n in lengths]
        if not lengths:
            users = ["-" if each.users is None else f"{each.users:,}"]
        by_length = dict(each.found)
        users += [f"{by_length[n]:,}" if n in by_length else "-" for n in rehearsed]
        share, runs = _account_and_share(each)
        note = "  refused" if each.refused else "  cannot be" if each.problem else ""
        return [*(f"{value}" for _, value in each.options), *users, share, runs, note]

    def _repr_html_(self) -> str:
        return str(self.to_polars()._repr_html_())


def compare(
    verb: Callable[..., Plan] | str,
    corpus: Corpus | None = None,
    *,
    ledger: Ledger | str | Path | None = None,
    rehearse: Corpus | None = None,
    **options: Any,
) -> Comparison:
    """Plans of a verb side by side: an option given as a list takes each value in turn.

        dphh.compare(dphh.items, corpus, delta=1e-7, epsilon=[0.5, 1, 2], max_items=[10, 50])

    Of each: from how many users an item is found, which part of the corpus's cap it takes, how many
    such runs are left, and whether the ledger would refuse it now. Nothing is read, nothing spent.

    rehearse: public data like the private, on which each plan is rehearsed: the table has what it
    found of each length. So `prior=[None, "news.parquet"]` shows what a public text would buy.
    """
    name = verb if isinstance(verb, str) else getattr(verb, "__name__", "")
    if name not in VERBS:
        raise UsageError(f"verb: found {verb!r}; give one of {', '.join(VERBS)}")
    plan = verb_function(VERBS[name])
    known = signature(plan).parameters
    check_known(options, [option for option in known if option != "corpus"], name)
    varied = [
        option
        for option, value in options.items()
        if isinstance(value, list)
        and option in known
        and (option == "prior" or _takes_single_value(known[option].annotation))
    ]
    values = [options[option] for option in varied]
    if any(not each for each in values):
        raise UsageError(f"{varied[values.index([])]}: found an empty list; give one value or more")
    choices = list(product(*values))
    if len(choices) > MOST_PLANS:
        raise UsageError(
            f"{', '.join(varied)}: these values make {len(choices):,} plans; give fewer values, "
            f"for at most {MOST_PLANS} plans"
        )
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    return Comparison(
        name,
        tuple(varied),
        tuple(
            _compare_one(
                plan, corpus, book, tuple(zip(varied, choice, strict=True)), options, rehearse
            )
            for choice in choices
        ),
    )


def _compare_one(
    plan: Callable[..., Plan],
    corpus: Corpus | None,
    book: Ledger,
    chosen: tuple[tuple[str, Any], ...],
    options: dict[str, Any],
    stand_in: Corpus | None,
) -> Compared:
    asked = {**options, **dict(chosen)}
    if asked.get("prior") is None:  # beside plans that have one
        asked = {name: value for name, value in asked.items() if name not in _OF_PRIORS}
    chosen = tuple((name, _label(value)) for name, value in chosen)
    try:
        made = plan(corpus, **asked)
    except UsageError as problem:
        if not chosen:
            raise
        return Compared(chosen, None, str(problem), None, None)
    found = () if stand_in is None else _found_by_length(rehearse(made, stand_in, ledger=book))
    if made.corpus is None:
        return Compared(chosen, made, None, None, None, found)
    origin = origin_of(made.corpus)
    outlook = outlook_of(made.price, made.corpus, book, origin)
    refusal = mixed(made.corpus, origin) or outlook.refusal
    return Compared(chosen, made, None, outlook.ahead, refusal, found)


def _found_by_length(release: Release) -> tuple[tuple[int, int], ...]:
    levels = dict.fromkeys((level["level"] for level in release.manifest["levels"]), 0)
    for level in release.table.column("level").to_pylist():
        levels[level] += 1
    return tuple(levels.items())


def _label(value: Any) -> Any:
    """The label of a prior in a table; other values are their own label."""
    if isinstance(value, Corpus):
        return value.where[0].rpartition("/")[2]
    if isinstance(value, Release):
        return f"run {value.run_id}"
    if isinstance(value, Path):
        return value.name
    return type(value).__name__ if hasattr(value, "__arrow_c_stream__") else value


def _takes_single_value(annotation: Any) -> bool:
    """Whether an option takes a single number or choice, so that a list means several plans."""
    parts = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return any(part in (int, float, bool) or get_origin(part) is Literal for part in parts)


def _account_and_share(each: Compared) -> tuple[str, str]:
    if each.ahead is None:
        return "no cap", "-"
    runs = each.ahead.runs_left
    return f"{each.ahead.share:.1%}", f"{runs:,}" if runs < MOST_RUNS else f"{MOST_RUNS:,} or more"
