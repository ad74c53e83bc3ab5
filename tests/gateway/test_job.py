"""The process that prices and runs: what it says of options that cannot be, and when nothing."""

from __future__ import annotations

import itertools
import math
import random
import secrets
from typing import Any

import pyarrow as pa
import pytest

from dphh import Corpus
from dphh.asking.macros import macros
from dphh.gateway import job
from dphh.ledger import Ledger, source_of


class _Pipe:
    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        self.table: pa.Table | None = None

    def send(self, message: dict[str, Any], table: pa.Table | None = None) -> None:
        self.said, self.table = message, table


@pytest.fixture
def shared(ledger: Ledger) -> Ledger:
    corpus = Corpus("/nowhere/canary.parquet", user="who", text="what")
    ledger.add("reviews", source_of(corpus), 4.0, 1e-5)
    ledger.set_share("reviews", "alice", 4.0, 1e-5)
    return ledger


def ask(ledger: Ledger, what: str, **arguments: Any) -> dict[str, Any]:
    return answered(ledger, what, **arguments).said


def answered(ledger: Ledger, what: str, **arguments: Any) -> _Pipe:
    asked = {**macros()[what].parameters, "corpus": "reviews", **arguments}
    order = {"ledger": str(ledger.path), "analyst": "alice", "what": what, "arguments": asked}
    pipe = _Pipe()
    job.handle(pipe, {**order, "hold": None})  # type: ignore[arg-type]
    return pipe


def test_a_plan_tells_an_analyst_of_their_share_alone(shared: Ledger) -> None:
    shared.set_share("reviews", "alice", 1.0, 1e-6)
    asked = {**macros()["plan_items"].parameters, "corpus": "reviews", "epsilon": 0.5}
    order = {"ledger": str(shared.path), "analyst": "alice", "what": "plan_items", "hold": None}
    plan = job._answer_message({**order, "arguments": {**asked, "delta": 1e-8}})  # type: ignore[typeddict-item]
    assert set(plan.column("section").to_pylist()) == {"privacy", "levels", "finds", "ledger"}
    told = [(row["fact"], row["value"]) for row in plan.to_pylist() if row["section"] == "ledger"]
    assert told == [
        ("yours", "epsilon 1, delta 1e-06"),
        ("used", "nothing of your budget is used; a first run may have epsilon 1 at delta 1e-06"),
        ("this run", "takes 26% of your budget"),
    ]


@pytest.mark.parametrize("of", ["share", "corpus"])
def test_a_plan_says_that_a_run_would_be_refused_as_the_run_does(shared: Ledger, of: str) -> None:
    """The analyst's share refuses, or the cap of the corpus."""
    if of == "share":
        shared.set_share("reviews", "alice", 0.1, 1e-6)
    else:
        shared.set_cap("reviews", 0.1, 1e-6)
    order = {"ledger": str(shared.path), "analyst": "alice", "what": "plan_items", "hold": None}
    asked = {**macros()["plan_items"].parameters, "corpus": "reviews", "epsilon": 2.9}
    plan = job._answer_message({**order, "arguments": {**asked, "delta": 1e-8}})  # type: ignore[typeddict-item]
    said = {row["fact"]: row["value"] for row in plan.to_pylist() if row["section"] == "ledger"}
    assert said["would refuse"].startswith("Refused: the run asks for epsilon 2.9, delta 1e-08")


EDGES = [0.0, -1.0, 5e-324, 1e-300, 1e-17, 0.5, 1e17, 1e308, math.inf, math.nan, 10**400, 2**63]


def test_a_price_at_the_edge_is_priced_or_refused(shared: Ledger) -> None:
    for verb, extra in (("plan_items", {}), ("plan_ngrams", {"max_n": 2})):
        for epsilon, delta in itertools.product(EDGES, [0.0, 5e-324, 1e-9, 1.0, math.nan]):
            said = ask(shared, verb, epsilon=epsilon, delta=delta, **extra)
            assert "failed" not in said, (verb, epsilon, delta, said)


def test_options_at_the_edge_are_priced_or_refused(shared: Ledger) -> None:
    """A fixed number, of a new seed each time."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    options = {
        "plan_items": ["max_items"],
        "plan_ngrams": ["max_n", "max_items", "spurious", "decay", "method"],
        "plan_trie": ["max_length", "unit", "users"],
    }
    edges = [*EDGES, 1, 2, 3, -7, "1", True, [], [1, 2], "both", "dpne"]
    for _ in range(60):
        verb = chance.choice(list(options))
        arguments = {name: chance.choice(edges) for name in options[verb] if chance.random() < 0.5}
        said = ask(shared, verb, **{"epsilon": 0.5, "delta": 1e-9, "max_n": 2, **arguments})
        assert "failed" not in said, (seed, verb, arguments, said)


def test_what_names_a_place_is_for_the_owner(
    shared: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("/nowhere/canary.parquet", str(shared.path)):

        def refuses(*_: object, place: str = place) -> None:
            raise job.UsageError(f"name: the account is of {place}")

        monkeypatch.setattr(job, "_answer_message", refuses)
        assert "refused" not in ask(shared, "plan_items", epsilon=0.5, delta=1e-9)


def test_the_queries_of_a_plan_say_nothing_of_where_the_corpus_lies(shared: Ledger) -> None:
    found = answered(shared, "sql_items", epsilon=0.5, delta=1e-9)
    assert not found.said
    assert found.table is not None
    text = "\n".join(found.table.column("sql").to_pylist())
    assert "sql/set_union/words_level.sql" in text
    assert not [named for named in ("canary", '"who"', '"what"') if named in text]


COUNTED = {"of": ["a"], "by": "country", "epsilon": 0.5, "delta": 1e-8}


@pytest.mark.parametrize("what", ["plan_counts", "plan_items"])
def test_analysts_count_within_declared_groups_alone(shared: Ledger, what: str) -> None:
    """That there is such a column would be told by how a run ends, unless its owner has said it."""
    counted = COUNTED if what == "plan_counts" else {**COUNTED, "of": None, "counts": 0.3}
    asked = {name: value for name, value in counted.items() if name in macros()[what].parameters}
    none = "by: the corpus's owner has declared no groups of 'country'. Declared are none."
    assert ask(shared, what, **asked, groups=["DE"])["refused"].startswith(none)
    shared.declare_groups("reviews", "country", "DE, US")
    assert ask(shared, what, **asked, groups=["DE", "US"]) == {}
    assert ask(shared, what, **asked, groups="DE") == {}
    said = ask(shared, what, **asked, groups=["DE", "AT"])["refused"]
    assert said == "groups: AT is not declared; declared are DE, US. Nothing was spent"
    shared.declare_groups("reviews", "country", ())
    assert ask(shared, what, **asked, groups=["DE"])["refused"].startswith(none)


def test_an_undeclared_column_is_refused_before_groups_are_asked_for(shared: Ledger) -> None:
    """The message is the same whether the corpus has the column or not."""
    shared.declare_groups("reviews", "country", "DE, US")
    asked = {name: value for name, value in COUNTED.items() if name != "by"}
    for groups in ((), ["1"], 5):
        said = ask(shared, "counts", **asked, by="sent", groups=groups)["refused"]
        assert said == (
            "by: the corpus's owner has declared no groups of 'sent'. Declared are country: DE, "
            "US. Nothing was spent; name a declared column, or ask the owner to declare the groups"
        )


def test_groups_without_counts_are_told_of_the_option_by_its_name(shared: Ledger) -> None:
    shared.declare_groups("reviews", "country", "DE, US")
    asked = {"epsilon": 0.5, "delta": 1e-8, "by": "country", "groups": ["DE"]}
    said = ask(shared, "plan_items", **asked)["refused"]
    assert said.endswith("the option counts: the share of the budget for counting, such as 0.3")
