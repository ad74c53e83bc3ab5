"""What is spent and left, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dphh.ledger.budget import (
    Budget,
    Cap,
    GivenBack,
    four_digits_down,
    percent,
    promise,
    rule_in_words,
)
from dphh.ledger.by_period import PersonBudget, names_of
from dphh.privacy.weak import warnings
from dphh.rows.period import PeriodColumn, Spans
from dphh.rows.user import UserColumns, whom
from dphh.together import Together
from dphh.wording import shown
from dphh.wording.lines import plural, wrapped

#: How many stretches of periods a sentence names at most.
_LISTED = 4


class Spent(Protocol):
    """The fields of an account or a share that are shown."""

    @property
    def label(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def user(self) -> UserColumns: ...
    @property
    def period(self) -> PeriodColumn | None: ...
    @property
    def runs(self) -> int: ...
    @property
    def cap(self) -> Cap | None: ...
    @property
    def spent(self) -> Budget: ...
    @property
    def left(self) -> Budget | None: ...
    @property
    def given_back(self) -> GivenBack | None: ...
    @property
    def used(self) -> float | None: ...
    @property
    def fullest(self) -> str: ...
    @property
    def fullest_runs(self) -> int: ...
    @property
    def without_room(self) -> Spans: ...


class SpentByPeriod(Spent, Protocol):
    """The further fields of an account whose unit is a user in one period."""

    @property
    def person(self) -> PersonBudget | None: ...
    @property
    def together(self) -> tuple[Together, ...]: ...


def account_lines(account: Spent) -> list[tuple[str, str]]:
    lines = [(shown.shown(account.label, 10_000), guarantee_sentence(account))]
    if account.cap is not None:
        lines.append(("", f"kept: {rule_in_words(account.cap)}"))
        if account.given_back is not None:
            whose = f" of {account.fullest}" if account.fullest else ""
            lines.append(("", f"given back{whose}: {account.given_back}"))
        weak = warnings(account.cap.epsilon, account.cap.delta)
        lines += [("", f"warning: {warning}") for warning in weak]
    return lines


def guarantee_sentence(account: Spent) -> str:
    """A sentence with the guarantee, the share of it that is used, and what is left for one more
    run."""
    if account.cap is None:
        said = f"{account.spent} is spent, by {plural(account.runs, 'run')}"
        return f"no cap: {said if account.runs else 'nothing is spent'}"
    if account.used is not None and account.used > 1:
        cap = f"the cap of ({account.cap.epsilon:g}, {account.cap.delta:g}) does not hold"
        if account.fullest:
            return f"{cap}: {_far(account, 'it')}; {_none_may_follow(account)}"
        runs = plural(account.fullest_runs, "run")
        return f"{cap}: {runs} used {percent(account.used)} of it; {_none_may_follow(account)}"
    who = whom(account.user)
    return f"promised to {who}: {promise(account.cap)}; {usage_phrase(account)}"


def usage_phrase(account: Spent, of: str = "it") -> str:
    """A phrase with the share of a cap that is used, and what is left for one more run. `of` names
    the cap where no sentence before has."""
    assert account.used is not None
    assert account.left is not None
    more = account.left
    epsilon, delta = four_digits_down(more.epsilon), four_digits_down(more.delta)
    may_have = f"may have epsilon {epsilon} at delta {delta}"
    far = _far(account, of) if account.runs else f"nothing of {of} is used"
    if more.epsilon == 0:
        return f"{far}; {_none_may_follow(account)}"
    if not account.runs:
        return f"{far}; a first run {may_have}"
    noised = account.cap is not None and account.cap.kept == "divergence"
    whose = " of it" if account.fullest else ""
    return f"{far}; one more{whose}{' of items, ngrams or counts' if noised else ''} {may_have}"


def _far(account: Spent, of: str) -> str:
    """How much of a cap is used, by how many runs. A cap for each period is used by the runs that
    read the period, so the fullest period's runs are counted, and all runs beside them."""
    assert account.used is not None
    by = f"is used, by {plural(account.fullest_runs, 'run')}"
    if not account.fullest:
        return f"{percent(account.used)} of {of} {by}"
    whose = "" if of == "it" else f" of {of}"
    far = f"of {account.fullest}, the fullest, {percent(account.used)}{whose} {by}"
    return far if account.fullest_runs == account.runs else f"{far}, of {account.runs:,} in all"


def _none_may_follow(account: Spent) -> str:
    """Which periods may have no more runs; without periods, or if it is all, no run may follow."""
    spans, period = account.without_room, account.period
    names = names_of(period, spans)
    if period is None or not names:
        return "no run may follow"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    listed = ", ".join(names[:_LISTED]) + more
    return f"no run of {listed} may follow; each other {period.noun} has a cap of its own"


def period_lines(account: SpentByPeriod) -> list[tuple[str, str]]:
    """The lines of an account by periods. They are always shown, because spent and left are of one
    period."""
    if account.period is None:
        return []
    noun, lines = account.period.noun, []
    if account.fullest:
        lines.append(
            f"{account.fullest} is the {noun} of which most was drawn; each other one has the cap "
            "for itself, less what was drawn of it"
        )
    if account.together:
        *alike, everything = map(str, account.together)
        lines.append(
            f"of a user in k periods, drawn so far: in k as full as this, k = {', '.join(alike)}; "
            f"in all that were read, k = {everything}: the exact composition"
        )
    if (person := account.person) is None:
        lines.append(
            "NOT a promise to a person over all periods: nothing caps that (--person-epsilon, "
            "--person-delta do)"
        )
    else:
        drawn = "nothing of it is kept" if person.spent is None else f"spent {person.spent}"
        if person.spent is not None and person.spent.epsilon == 0:
            drawn = "nothing of it is used"
        lines.append(
            f"a person over all periods: cap {person.cap}; {drawn}; left {person.left}; promised: "
            f"{promise(person.cap)}"
        )
    return [("", line) for line in lines]


def missing_files_text(account: Spent, where: Sequence[str]) -> str:
    """The message about an account none of whose files exist any more."""
    label = shown.shown(account.label, 10_000)
    return (
        f"no file of the account {label!r} is at {', '.join(where)} any more. Where they were "
        f"moved, `dphh ledger move {label} PATH` says where they lie now; where they were written "
        "anew, the ledger does not know them, and their cap does not hold for them; where they "
        f"are deleted, `dphh ledger move {label} --deleted` says so, and this is said no more"
    )


def accounts_text(accounts: Sequence[SpentByPeriod]) -> str:
    """What `dphh ledger show` prints."""
    if not accounts:
        return "The ledger is empty: `dphh ledger add NAME CORPUS ...` names and caps a corpus."
    lines = []
    for account in accounts:
        lines += [
            shown.shown(account.label, 10_000) + ("" if account.name else "  (no name, no cap)")
        ]
        for _, text in [*account_lines(account), *period_lines(account)]:
            lines += wrapped(text, "   ", "      ")
    return "\n".join(lines)
