"""The statement on an account, for those who check it: its promise in words, who asked for what in
each run, and what its owner changed. It is Markdown that reads well as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from dphh.ledger import Account, Entry, Ledger
from dphh.ledger.asked import asked_in_words
from dphh.ledger.budget import part_of, parts_used, share_used
from dphh.ledger.changes import Change
from dphh.ledger.paying import label_of
from dphh.ledger.spending import account_lines
from dphh.privacy.events import costs_of
from dphh.reader.corpus import unit_and_columns
from dphh.report.sentences import belief_afterwards, odds_in_words, plus_delta, times_as_likely
from dphh.wording.lines import numbers_in, visible_text, with_noun, wrapped


def statement_of(book: Ledger, name: str) -> str:
    account, runs = book.status(name), book.runs(name)
    changes = book.history(name)
    promise = [
        f"By dphh {version('dphh')}, from the ledger {book.path}, as of "
        f"{datetime.now(UTC):%Y-%m-%d}, after {with_noun(len(runs), 'run')}.",
        f"Data: {label_of(account.corpus)}; "
        f"what is protected: {unit_and_columns(account.corpus.user)}.",
        *(f"{text[0].upper()}{text[1:]}." for text in account_lines(account)),
        f"In words: {_promise_in_words(account)}",
        "How many people are in the data was not released, so no ledger may say it. On whose "
        "authority something was released is not recorded either: below are who asked for each "
        "run, who decided on the account, and whoever signs.",
        *_conditions(account, runs, changes),
        *(f"{line[0].upper()}{line[1:]}." for line in book.uncapped_runs()),
    ]
    no_sum = (
        "; the ledger combines them by a sharper rule than addition, so what each took of the cap "
        "does not add up either"
    ) * (account.cap.rule == "divergence")
    on_runs = (
        f"Each has an epsilon and a delta of its own{no_sum}. A run that is 'running' or 'failed' "
        "did not finish; its price is spent. Names are those of analysts or of logins on the "
        "machine: notes, not proofs. 'By itself' is how much likelier at most a run alone made "
        f"what came out with, or without, {_one_users_rows(account.corpus.user)} in the data."
    )
    lines = [f"# Statement on the account {account.name}", *_wrapped(*promise)]
    lines += ["", "## What the owner changed"]
    for number, change in enumerate(changes, start=1):
        lines += _wrapped(f"{change}.", first=f"{number}. ")
    lines += ["", "## Runs", *_wrapped(on_runs), *lines_on_runs(runs, account)]
    lines += ["", "## Who has read it", ""]
    exception = ", but for the tests'," if account.test_runs else ""
    agreement = f"agree / do not agree that these runs{exception} leave:"
    lines += _wrapped(f"I have read this, and {agreement}")
    lines += [f"{'_' * 70}", "", f"Name: {'_' * 40}", ""]
    lines += [f"Date: {'_' * 14}  Signature: {'_' * 30}"]
    return "\n".join(lines)


def _conditions(
    account: Account, runs: Sequence[Entry], changes: Sequence[Change]
) -> Iterator[str]:
    """Sentences: what the promise depends on, and why what is left may look like too much."""
    if account.used > 1 or account.runs_of_others:
        return  # there is no promise
    if late := sum(change.runs > 0 and change.what in ("account", "cap") for change in changes):
        yield (
            f"The account was made, or its cap changed, after runs ({with_noun(late, 'time')}; "
            "below). The promise is as said only if no outcome of those runs moved that choice."
        )
    if account.test_runs:
        yield "It does not cover tests' runs, made with a seed, which are NOT private."
    if any(run.parameters.get("prior") for run in runs):
        yield "It does not cover the texts of priors, which somebody declared public."
    if account.cap.rule == "divergence" and account.bookings:
        noise, rare = map(part_of, parts_used(account.bookings, account.cap))
        more = account.one_more
        may = f"one more run of items {more.may_have}" if more.epsilon else "no run may follow"
        yield (
            f"Of the cap's two parts, {noise} of what noise must hide is used, and {rare} of how "
            f"rarely a rare item may appear; so {may}. "
            "What several runs with noise disclose together is less than the sum of their "
            "epsilons. So what one more run may have can be more than the cap less that sum."
        )


def _wrapped(*texts: str, first: str = "") -> Iterator[str]:
    """Each text in lines that fit the terminal; `first` begins its first line and indents all."""
    for text in texts:
        yield from wrapped(visible_text(text, 10_000), first, " " * len(first))


def lines_on_runs(runs: Sequence[Entry], payer: Account | None = None) -> Iterator[str]:
    """A numbered paragraph on each run, with the share of the payer's cap that it took."""
    for number, run in enumerate(runs, start=1):
        for place, text in enumerate(_paragraphs(run, payer)):
            mark = f"{number}. "
            yield from _wrapped(text, first=mark if place == 0 else " " * len(mark))


def _paragraphs(run: Entry, payer: Account | None) -> Iterator[str]:
    took = ""
    if payer is not None:
        took = f"; took {part_of(share_used([run.booking], payer.cap), 'the cap')}"
    yield (
        f"{run.when:%Y-%m-%d}, by {run.analyst or run.who}: {run.verb} ({run.epsilon:g}, "
        f"{run.delta:g}), {run.state}{took}"
    )
    if why := run.promises_nothing(payer.corpus.user if payer else None):
        yield f"{why[0].upper()}{why[1:]}."
    yield f"Asked for: {asked_in_words(run, None if payer is None else payer.corpus)}."
    parameters = run.parameters.items()
    numbers = [f"{name} {number!r}" for name, value in parameters for number in numbers_in(value)]
    if numbers:
        yield f"In numbers: {', '.join(numbers)}."
    if (local_epsilon := _local_epsilon(run)) is not None:
        yield f"To those who get the reports: local epsilon {local_epsilon:g} a user."
    yield f"Run {run.run_id}" + (f", made with {run.made_with}" if run.made_with else "")
    if run.table_sha256:
        yield f"Its release.json has table_sha256 {run.table_sha256}"
    if payer is not None and why is None:
        yield f"By itself: {times_as_likely(run.epsilon)}{plus_delta(run.delta)}."


def statement_as_json(book: Ledger, account: str | None) -> dict[str, Any]:
    """One account with its runs and changes; else all accounts, and the runs that none paid for."""
    payer = None if account is None else book.status(account)
    runs = [
        {"run_id": run.run_id, "verb": run.verb, "state": run.state, "epsilon": run.epsilon,
         "delta": run.delta, "when": run.when.isoformat(), "who": run.analyst or run.who,
         "since": run.changed.isoformat(), "local_epsilon": _local_epsilon(run),
         "promises_nothing": run.promises_nothing(payer.corpus.user if payer else None),
         "asked": asked_in_words(run), "used": payer and share_used([run.booking], payer.cap)}
        for run in book.runs(account)
        if payer or not run.accounts
    ]  # fmt: skip
    if payer is None:
        accounts = [listed.to_json() for listed in book.accounts()]
        return {"accounts": accounts, "runs_of_no_account": runs}
    history = [change.to_json() for change in book.history(payer.name)]
    return {**payer.to_json(), "runs": runs, "history": history}


def _promise_in_words(account: Account) -> str:
    alone = "What a run promises, below, it promises for itself alone."
    if account.runs_of_others:
        return (
            "runs that counted others than this account protects may show anything of those whom "
            f"it protects, so no promise holds for all its runs together. {alone}"
        )
    if account.used > 1:
        return (
            "all runs together cost more than this cap, so it promises nothing. Whether a larger "
            f"one was promised when they were made, the changes below say. {alone}"
        )
    cap = account.cap
    odds = odds_in_words(cap.epsilon, cap.delta, _one_users_rows(account.corpus.user))
    belief = belief_afterwards(cap.epsilon)
    return f"{odds[0].lower()}{odds[1:]} {belief}, but for that probability (docs/officers.md)."


def _one_users_rows(user: Sequence[str]) -> str:
    if len(user) > 1:
        return "one combination's rows"
    return f"the rows of one value of {user[0]!r} (one person, if each person has one value)"


def _local_epsilon(run: Entry) -> float | None:
    """The epsilon of all reports of one user, against those who collect them; None if the run has
    no reports."""
    costs = [cost.uncharged_epsilon for cost in costs_of(run.events)]
    epsilons = [epsilon for epsilon in costs if epsilon is not None]
    return sum(epsilons) if epsilons else None
