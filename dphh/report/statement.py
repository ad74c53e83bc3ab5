"""The statement on an account, for those who check it: its promise in words, what each run was
asked for and by whom, and what its owner changed. It is Markdown that reads well as plain text."""

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
from dphh.report.sentences import odds_in_words, plus, sure_afterwards, times_as_likely
from dphh.wording.lines import numbers_in, visible_text, with_noun, wrapped


def statement_of(book: Ledger, account: str) -> str:
    found, runs = book.status(account), book.runs(account)
    changes = book.history(account)
    promise = [
        f"By dphh {version('dphh')}, from the ledger {book.path}, as of "
        f"{datetime.now(UTC):%Y-%m-%d}, after {with_noun(len(runs), 'run')}.",
        f"Data: {label_of(found.corpus)}; "
        f"what is protected: {unit_and_columns(found.corpus.user)}.",
        *(f"{text[0].upper()}{text[1:]}." for text in account_lines(found)),
        f"In words: {_promise_in_words(found)}",
        "How many people are in the data was not released, so no ledger may say it. On whose "
        "authority something was released is not recorded either: below are who asked for each "
        "run, who decided on the account, and whoever signs.",
        *_conditions(found, runs, changes),
        *(f"{said[0].upper()}{said[1:]}." for said in book.uncapped_runs()),
    ]
    summed = (
        "; the ledger combines them by a sharper rule than addition, so what each took of the cap "
        "does not add up either"
    )
    on_runs = (
        f"Each has an epsilon and a delta of its own{summed * (found.cap.rule == 'divergence')}. A "
        "run that is 'running' or 'failed' did not finish; its price is spent. Names are those of "
        "analysts or of logins on the machine: notes, not proofs. 'By itself' is how much likelier "
        "at most a run alone made what came out with, or without, "
        f"{_one_users_rows(found.corpus.user)} in the data."
    )
    lines = [f"# Statement on the account {found.name}", *_wrapped(*promise)]
    lines += ["", "## What the owner changed"]
    for number, change in enumerate(changes, start=1):
        lines += _wrapped(f"{change}.", first=f"{number}. ")
    lines += ["", "## Runs", *_wrapped(on_runs), *lines_on_runs(runs, found)]
    lines += ["", "## Who has read it", ""]
    but = ", but for the tests'," if found.test_runs else ""
    lines += _wrapped(f"I have read this, and agree / do not agree that these runs{but} leave:")
    lines += [f"{'_' * 70}", "", f"Name: {'_' * 40}", ""]
    lines += [f"Date: {'_' * 14}  Signature: {'_' * 30}"]
    return "\n".join(lines)


def _conditions(
    account: Account, runs: Sequence[Entry], changes: Sequence[Change]
) -> Iterator[str]:
    """On what the promise depends, and why what is left may look like too much."""
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
    """Lines that fit the terminal: of each text the first with `first`, the others as far in."""
    for text in texts:
        yield from wrapped(visible_text(text, 10_000), first, " " * len(first))


def lines_on_runs(runs: Sequence[Entry], payer: Account | None = None) -> Iterator[str]:
    """A numbered paragraph on each run, with the share of the payer's cap that it took."""
    for number, run in enumerate(runs, start=1):
        for place, text in enumerate(_parts(run, payer)):
            mark = f"{number}. "
            yield from _wrapped(text, first=mark if place == 0 else " " * len(mark))


def _parts(run: Entry, payer: Account | None) -> Iterator[str]:
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
    given = run.parameters.items()
    if numbers := [f"{name} {of!r}" for name, value in given for of in numbers_in(value)]:
        yield f"In numbers: {', '.join(numbers)}."
    if (told := _local_epsilon(run)) is not None:
        yield f"To those who get the reports: local epsilon {told:g} a user."
    yield f"Run {run.run_id}" + (f", made with {run.made_with}" if run.made_with else "")
    if run.table_sha256:
        yield f"Its release.json has table_sha256 {run.table_sha256}"
    if payer is not None and why is None:
        yield f"By itself: {times_as_likely(run.epsilon)}{plus(run.delta)}."


def statement_as_json(book: Ledger, account: str | None) -> dict[str, Any]:
    """The accounts, and the runs that none paid for; or an account with its runs and changes."""
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
        accounts = [each.to_json() for each in book.accounts()]
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
    said = odds_in_words(
        account.cap.epsilon, account.cap.delta, _one_users_rows(account.corpus.user)
    )
    sure = sure_afterwards(account.cap.epsilon)
    return f"{said[0].lower()}{said[1:]} {sure}, but for that probability (docs/officers.md)."


def _one_users_rows(user: Sequence[str]) -> str:
    if len(user) > 1:
        return "one combination's rows"
    return f"the rows of one value of {user[0]!r} (one person, if each person has one value)"


def _local_epsilon(run: Entry) -> float | None:
    """The epsilon of all reports of one user, against those who collect them; None if the run has
    no reports."""
    epsilons = [cost.uncharged_epsilon for cost in costs_of(run.events)]
    sent = [epsilon for epsilon in epsilons if epsilon is not None]
    return sum(sent) if sent else None
