"""Caps of a corpus whose unit is a user in one period: each period's, and a person's."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dphh.errors import BudgetRefused, UsageError
from dphh.ledger import Ledger, Request, Source
from dphh.ledger.exact import allowed
from dphh.ledger.wording import guarantee_sentence, usage_phrase
from dphh.privacy.accounting import compose
from dphh.privacy.events import EpsilonDeltaEvent, GaussianEvent
from dphh.privacy.gaussian import gaussian_delta
from dphh.rows.period import PeriodColumn
from tests.ledger.asked import ask, items_price, tampered
from tests.ledger.test_ledger_older import BACK_TO_SCHEMA_7

WEEKS = Source("path", ("/data/weeks.parquet",), "author", period=PeriodColumn("date", "week"))


def of(*spans: tuple[int, int]) -> Source:
    return replace(WEEKS, periods=spans)


def granted(book: Ledger, run_id: str, source: Source, *price: float, **asked: object) -> bool:
    try:
        ask(book, run_id, source, *price, **asked)  # type: ignore[arg-type]
    except BudgetRefused:
        return False
    return True


def test_each_period_has_the_whole_cap(book: Ledger) -> None:
    book.add("weeks", WEEKS, 1.0, 1e-6)
    for week in range(10):
        assert granted(book, f"first of {week}", of((week, week)), 0.6)
        assert not granted(book, f"too much of {week}", of((week, week)), 0.6)
        assert granted(book, f"the rest of {week}", of((week, week)), 0.4)
    assert not granted(book, "any more", of((3, 3)), 0.01)
    assert granted(book, "another week", of((10, 10)), 1.0)


def test_a_run_over_several_periods_is_charged_to_each_of_them(book: Ledger) -> None:
    book.add("weeks", WEEKS, 1.0, 1e-6)
    ask(book, "weeks 3 to 5", of((3, 5)), 0.7)
    for week, fits in ((2, True), (3, False), (4, False), (5, False), (6, True)):
        assert granted(book, f"{week}", of((week, week)), 0.7) == fits
    assert not granted(book, "one of them is full", of((0, 1), (5, 5), (8, 9)), 0.7)
    assert granted(book, "none of them is", of((0, 1), (7, 9)), 0.7)
    assert not granted(book, "all", WEEKS, 0.7)
    assert granted(book, "all, for less", WEEKS, 0.3)
    assert not granted(book, "nothing is left of these", of((3, 3)), 0.01)
    assert granted(book, "and this is left of others", of((100, 100)), 0.7)


SIGMAS = st.sampled_from([6.0, 9.0, 14.0, 30.0])
SPANS = st.tuples(st.integers(0, 5), st.integers(0, 2)).map(lambda at: (at[0], at[0] + at[1]))


@given(runs=st.lists(st.tuples(SPANS, SIGMAS), min_size=1, max_size=12), person=st.booleans())
@example(runs=[((0, 2), 9.0), ((1, 1), 9.0), ((0, 0), 9.0), ((1, 3), 9.0)], person=False)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_is_granted_is_an_independent_sum(
    tmp_path_factory: pytest.TempPathFactory,
    runs: list[tuple[tuple[int, int], float]],
    person: bool,
) -> None:
    """Of each period by itself: every 1 / sigma^2 and every delta, week by week."""
    book = Ledger(tmp_path_factory.mktemp("book") / "ledger.sqlite")
    cap, whole = (1.0, 1e-6), (2.0, 3e-6)
    book.add("weeks", WEEKS, *cap, "divergence", whole if person else None)
    most, persons = allowed(*cap), allowed(*whole)
    noise: dict[int, Fraction] = defaultdict(Fraction)
    drawn = [Fraction(), Fraction()]  # of a person: divergence, delta
    for number, ((first, last), sigma) in enumerate(runs):
        epsilon = next(e / 64 for e in range(1, 640) if gaussian_delta(e / 64, sigma) <= 1e-8)
        of_one = Fraction(1 / sigma**2)
        weeks = range(first, last + 1)
        fits = all((noise[week] + of_one) * Fraction(most.order / 2) <= Fraction(most.divergence)
                   or (noise[week] == 0 and epsilon <= cap[0]) for week in weeks)  # fmt: skip
        step = [of_one * Fraction(persons.order / 2), Fraction()]
        if len(weeks) > 1:  # a group of so many units
            k, r = len(weeks), persons.order
            sums = sum(math.exp(epsilon * j) for j in range(k))
            p = 1 / (1 + math.exp(-epsilon * k))
            mean = p**r * (1 - p) ** (1 - r) + (1 - p) ** r * p ** (1 - r)
            step = [Fraction(math.log(mean) / (r - 1)), Fraction(1e-8 * sums)]
        if person:
            after = [have + more for have, more in zip(drawn, step, strict=True)]
            alone = number == 0 or not any(drawn)
            within = after[0] <= Fraction(persons.divergence) and after[1] <= persons.delta
            if len(weeks) > 1:
                alone = alone and epsilon * len(weeks) <= whole[0]
            fits = fits and (within or alone)
        asked = granted(
            book, f"{number}", of((first, last)), epsilon, 1e-8, events=[GaussianEvent(sigma)]
        )
        assert asked == fits, (number, first, last, sigma)
        if fits:
            drawn = [have + more for have, more in zip(drawn, step, strict=True)]
            for week in weeks:
                noise[week] += of_one


def test_what_counts_users_otherwise_is_refused_both_ways(book: Ledger) -> None:
    book.add("weeks", WEEKS, 1.0, 1e-6)
    others = [
        replace(WEEKS, period=None),
        replace(WEEKS, period=PeriodColumn("date", "month")),
        replace(WEEKS, period=PeriodColumn("date", "week", "Europe/Berlin")),
        replace(WEEKS, user="email"),
    ]
    for other in others:
        with pytest.raises(BudgetRefused, match="does not protect them"):
            ask(book, "other", other, 0.1)
    users = Source("path", ("/data/users.parquet",), "author")
    book.add("users", users, 1.0, 1e-6)
    with pytest.raises(BudgetRefused, match=r"counts them by user='author', period='date by week'"):
        ask(book, "weeks of users", replace(users, period=WEEKS.period), 0.1)
    assert book.runs() == []


def test_a_person_is_charged_with_what_was_drawn_of_all_periods(book: Ledger) -> None:
    book.add("weeks", WEEKS, 1.0, 1e-6, person=(2.0, 1e-5))
    for week in (0, 1):
        ask(book, f"{week}", of((week, week)), 1.0)
    with pytest.raises(BudgetRefused, match="'weeks', of a person over all periods, whose cap is"):
        ask(book, "2", of((2, 2)), 0.01)
    account = book.status("weeks")
    assert account.person is not None
    assert account.person.left.epsilon == 0
    book.set_cap("weeks", 1.0, 1e-6, person=(2.5, 1e-5))
    assert granted(book, "2", of((2, 2)), 0.5)
    assert book.set_cap("weeks", 0.5, 1e-6).person == book.status("weeks").person  # it stays


def test_gaussian_runs_of_one_period_each_compose_for_a_person(book: Ledger) -> None:
    """52 weeks of epsilon 0.5 fit a cap of 8, by far, where the sum is 26; and the exact
    composition of what was drawn stands beside it."""
    book.add("weeks", WEEKS, 1.0, 1e-7, person=(8.0, 1e-5))
    price = items_price(0.5, 1e-7)
    for week in range(52):
        ask(book, f"{week}", of((week, week)), 0.5, 1e-7, events=price)
    account = book.status("weeks")
    assert [each.periods for each in account.together] == [1, 4, 52, 52]
    expected = compose(price * 52).epsilon(52e-7)
    assert account.together[2].epsilon == pytest.approx(expected, rel=1e-4)
    assert account.together[3].epsilon == pytest.approx(expected, rel=1e-4)
    assert expected < 5


def test_a_run_over_several_periods_costs_a_person_as_many_units(book: Ledger) -> None:
    book.add("weeks", WEEKS, 1.0, 1e-6, person=(3.0, 1e-5))
    assert not granted(book, "four", of((1, 4)), 1.0, 1e-7)
    # (3, 1e-7 (1 + e + e^2)), with events of its own beside it
    assert granted(book, "three", of((1, 3)), 1.0, 1e-7)
    account = book.status("weeks")
    assert account.person is not None
    assert account.person.spent is not None
    assert account.person.spent.epsilon == pytest.approx(3.0, rel=1e-4)
    assert account.together[-1].delta == pytest.approx(1e-7 * sum(math.exp(j) for j in range(3)))
    for many in (of((5, 100)), of((5, 50_000))):
        with pytest.raises(BudgetRefused, match="Read one period at a time"):
            ask(book, "many", many, 0.9, 1e-7)


def test_a_persons_cap_that_comes_after_a_run_over_all_periods_is_kept_by_refusing(
    book: Ledger,
) -> None:
    book.add("weeks", WEEKS, 1.0, 1e-6)
    ask(book, "all", WEEKS, 0.5, 1e-7)
    account = book.set_cap("weeks", 1.0, 1e-6, person=(8.0, 1e-5))
    assert account.person is not None
    assert account.person.spent is None
    assert "nothing of it is kept" in " ".join(repr(account).split())
    assert not granted(book, "one", of((1, 1)), 0.1, 1e-8)


@pytest.mark.parametrize("person", [(0.5, 1e-5), (8.0, 1e-7), (-1.0, 1e-5), (8.0, 2.0)])
def test_a_persons_cap_that_cannot_be_is_refused(book: Ledger, person: tuple[float, float]) -> None:
    with pytest.raises(UsageError):
        book.add("weeks", WEEKS, 1.0, 1e-6, person=person)
    with pytest.raises(UsageError, match="goes with a corpus whose unit is a user in one period"):
        book.add("users", replace(WEEKS, period=None), 1.0, 1e-6, person=(8.0, 1e-5))
    with pytest.raises(UsageError, match="an account is of all periods"):
        book.add("week", of((1, 1)), 1.0, 1e-6)
    assert book.accounts() == []


def test_the_same_request_of_the_same_periods_is_the_same_run(book: Ledger) -> None:
    book.add("weeks", WEEKS, 1.0, 1e-6)

    def request(*spans: tuple[int, int]) -> Request:
        return Request(of(*spans), "items", {}, [EpsilonDeltaEvent(0.9, 0.0)], 0.9, 0.0)

    for week in (1, 2):
        book.reserve(f"{week}", request((week, week)), files="beef")
    assert book.reserve("x", request((1, 1)), files="beef", once=True).run_id == "1"
    assert book.reserve("y", request((2, 2)), files="beef", once=True).run_id == "2"
    with pytest.raises(BudgetRefused):
        book.reserve("z", request((1, 1)), files="cafe", once=True)  # other rows
    with pytest.raises(UsageError, match="with another request"):
        book.reserve("1", request((3, 3)))


def test_what_was_not_drawn_comes_back_to_its_periods_and_to_the_person(book: Ledger) -> None:
    sigma = 1.0001 * math.sqrt(4) * allowed(1.0, 1e-6).sigma
    book.add("weeks", WEEKS, 1.0, 1e-6, "divergence", (1.0, 1e-6))
    booked = [GaussianEvent(sigma)] * 4
    for number in range(3):
        week = of((number, number))
        hold = ask(book, f"{number}", week, 1.0, 1e-6, events=booked[: 4 - number]).hold
        book.begin(hold)
        book.settle(hold, {}, b"rows", booked[:1])
    # Of a person's four, three are drawn.
    assert not granted(book, "two", of((9, 9)), 1.0, 1e-6, events=booked[:2])
    book.set_cap("weeks", 1.0, 1e-6, "divergence", (1.1, 1e-6))
    assert granted(book, "one", of((9, 9)), 1.0, 1e-6, events=booked[:1])
    assert book.status("weeks").person.left.epsilon > 0
    lowered = book.set_cap("weeks", 0.99, 1e-6, "divergence", (0.99, 1e-6))
    assert lowered.person.left.epsilon == 0  # what was reserved under a larger cap counts whole


def test_runs_from_before_it_was_named_count_in_all_periods(book: Ledger) -> None:
    ask(book, "of users", replace(WEEKS, period=None), 0.6)
    ask(
        book,
        "of a month",
        replace(WEEKS, period=PeriodColumn("date", "month"), periods=((5, 5),)),
        0.1,
    )
    ask(book, "of a week", of((7, 7)), 0.2)
    book.add("weeks", WEEKS, 1.0, 1e-6)
    assert not granted(book, "week 7", of((7, 7)), 0.2)
    assert granted(book, "week 8", of((8, 8)), 0.3)
    assert not granted(book, "more of week 8", of((8, 8)), 0.01)


def test_a_ledger_of_schema_7_is_read_as_it_is_and_takes_periods_when_it_is_written(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    price = items_price(0.3, 1e-7)
    hold = ask(book, "a", reviews, 0.3, 1e-7, events=price).hold
    book.begin(hold)
    book.settle(hold, {}, b"rows")
    for statement in BACK_TO_SCHEMA_7.split(";"):
        tampered(book, statement)
    before = book.status("reviews"), book.runs()
    assert tampered(book, "PRAGMA user_version") == [(7,)]
    book.add("weeks", WEEKS, 1.0, 1e-6, person=(8.0, 1e-5))
    assert tampered(book, "PRAGMA user_version") == [(8,)]
    assert (book.status("reviews"), book.runs()) == before
    assert granted(book, "b", of((1, 1)), 0.5)
    repeated = Request(reviews, "items", {}, price, 0.3, 1e-7)
    assert book.reserve("a", repeated).release is not None  # its digest is what it was
    assert granted(book, "c", reviews, 0.3, 1e-7, events=price)


def test_a_cap_of_a_person_cannot_be_changed_by_hand(book: Ledger) -> None:
    book.add("weeks", WEEKS, 1.0, 1e-6, person=(8.0, 1e-5))
    with pytest.raises(Exception, match="a cap of the ledger cannot be changed"):
        tampered(book, "UPDATE caps SET person_epsilon = 80")


def test_an_analysts_share_is_of_each_period(tmp_path: Path) -> None:
    owner = Ledger(tmp_path / "ledger.sqlite")
    owner.add("weeks", WEEKS, 1.0, 1e-6)
    owner.set_share("weeks", "ann", 0.5, 1e-6)
    book = Ledger(owner.path, analyst="ann")
    for week in (1, 2):
        assert granted(book, f"{week}", of((week, week)), 0.5, account="weeks")
        assert not granted(book, f"more of {week}", of((week, week)), 0.1, account="weeks")
    with pytest.raises(BudgetRefused, match=r"ann's share of weeks"):
        ask(book, "both", of((2, 3)), 0.1, account="weeks")


def test_a_period_is_said_to_be_used_by_its_own_runs(book: Ledger) -> None:
    """It said "65% of it is used, by 4 runs", and "no run may follow" where another week's did."""
    book.add("weeks", WEEKS, 1.0, 1e-6, "sums")
    book.set_share("weeks", "ann", 1.0, 1e-6)
    ann = Ledger(book.path, analyst="ann")
    for week in (2965, 2966, 2967, 2968):
        ask(ann, f"run of {week}", of((week, week)), 0.65, 1e-7, account="weeks")
    far = "of 2026-W44, the fullest, 65% is used, by 1 run, of 4 in all; one more of it may have"
    assert far in usage_phrase(book.status("weeks"))
    assert far in usage_phrase(book.shares("ann")[0])
    lower = book.set_cap("weeks", 0.5, 1e-6, "sums")
    assert guarantee_sentence(lower) == (
        "the cap of (0.5, 1e-06) does not hold: of 2026-W44, the fullest, 130% is used, by 1 run, "
        "of 4 in all; no run of 2026-W44..2026-W47 may follow; each other ISO week has a cap of "
        "its own"
    )
    assert lower.to_json()["without_room"] == ["2026-W44..2026-W47"]
    assert granted(book, "the next week", of((2969, 2969)), 0.4, account="weeks")
    nothing = book.set_cap("weeks", 0.0, 0.0, "sums")
    assert guarantee_sentence(nothing).endswith("; no run may follow")


def test_what_an_account_says_is_of_the_period_of_which_most_was_drawn(book: Ledger) -> None:
    book.add("weeks", WEEKS, 1.0, 1e-6)
    ask(book, "a", of((2961, 2961)), 0.2, 1e-7)
    ask(book, "b", of((2968, 2968)), 0.7, 1e-7)
    account = book.status("weeks")
    assert (account.fullest, account.runs) == ("2026-W47", 2)
    assert account.left is not None
    assert account.left.epsilon == pytest.approx(0.3)
    here = book.status("weeks", ((2961, 2961),)).left
    assert here is not None
    assert here.epsilon == pytest.approx(0.8)
    said = " ".join(repr(account).split())
    assert "2026-W47 is the ISO week of which most was drawn" in said
    assert "NOT a promise to a person over all periods: nothing caps that" in said
    assert "k = 1: (0.7, 1e-07), 4: (2.8, 4e-07), 52: (36.39, 5.2e-06)" in said
    assert "in all that were read, k = 2: (0.9" in said
    assert account.to_json()["a_user_in_periods"][0] == {
        "periods": 1, "epsilon": 0.7, "delta": 1e-7
    }  # fmt: skip
