"""A plan: an immutable, priced description of a run, made before any row is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphh.corpus import Corpus, corpus_from_json
from dphh.errors import UsageError
from dphh.levels import Level, level_from_json
from dphh.privacy.events import Event, event_from_json

if TYPE_CHECKING:
    from dphh.ledger import Ledger
    from dphh.release import Release
    from dphh.udfs.randomness import Randomness

#: A parameter's value: what JSON can say, with lists as tuples so that plans stay hashable.
Parameter = bool | int | float | str | None | tuple[Any, ...]


@dataclass(frozen=True)
class Privacy:
    """What is promised, to whom, and which theorem says so."""

    epsilon: float
    delta: float
    unit: str
    adjacency: str
    theorem: str
    #: How delta is shared out: (what for, how much).
    delta_shares: tuple[tuple[str, float], ...] = ()
    caveats: tuple[str, ...] = ()
    #: Of local randomisers: epsilon is of each report, this of what all reports together publish.
    central_epsilon: float | None = None
    #: Where the unit is less than a user: the same for all that one user adds.
    user_epsilon: float | None = None

    @property
    def price(self) -> float:
        """The epsilon that the ledger books: always of a whole user, and of what is published."""
        return self.epsilon if self.user_epsilon is None else self.user_epsilon

    def to_json(self) -> dict[str, Any]:
        of_locals = {"central_epsilon": self.central_epsilon, "user_epsilon": self.user_epsilon}
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": self.unit,
            "adjacency": self.adjacency,
            "theorem": self.theorem,
            "delta_shares": dict(self.delta_shares),
            "caveats": list(self.caveats),
            **{name: value for name, value in of_locals.items() if value is not None},
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Privacy:
        return cls(
            **{
                **found,
                "delta_shares": tuple(found["delta_shares"].items()),
                "caveats": tuple(found["caveats"]),
            }
        )


@dataclass(frozen=True)
class Finds:
    """The smallest number of users that an item needs to be found with this probability."""

    probability: float
    users: int
    #: The same where each of those users holds t items: (t, users).
    users_by_held: tuple[tuple[int, int], ...] = ()
    #: The same for n-grams of length n: (n, users).
    users_by_length: tuple[tuple[int, int], ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "probability": self.probability,
            "users": self.users,
            "users_by_held": [list(pair) for pair in self.users_by_held],
            "users_by_length": [list(pair) for pair in self.users_by_length],
            "note": self.note,
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Finds:
        return cls(
            found["probability"],
            found["users"],
            tuple((held, users) for held, users in found["users_by_held"]),
            tuple((length, users) for length, users in found["users_by_length"]),
            found["note"],
        )


@dataclass(frozen=True)
class Plan:
    """What would be run, what it costs, and what it will be able to see."""

    verb: str
    method: str
    parameters: tuple[tuple[str, Parameter], ...]
    levels: tuple[Level, ...]
    privacy: Privacy
    finds: Finds
    events: tuple[Event, ...]
    corpus: Corpus | None = field(default=None)

    def __getitem__(self, parameter: str) -> Any:
        return dict(self.parameters)[parameter]

    def run(
        self,
        *,
        corpus: Corpus | None = None,
        ledger: Ledger | str | Path | None = None,
        engine: str | None = None,
        run_id: str | None = None,
        out: str | Path | None = None,
        memory_limit: str | None = None,
        threads: int | None = None,
        progress: Callable[[str], None] | None = None,
        randomness: Randomness | None = None,
    ) -> Release:
        """Spend the price and hand back the release.

        The same `run_id` again costs nothing more, and goes on with a run that was cut short.
        """
        from dphh.run import run

        return run(
            self,
            corpus=corpus,
            ledger=ledger,
            engine=engine,
            run_id=run_id,
            out=out,
            memory_limit=memory_limit,
            threads=threads,
            progress=progress,
            randomness=randomness,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "verb": self.verb,
            "method": self.method,
            "parameters": dict(self.parameters),
            "levels": [level.to_json() for level in self.levels],
            "privacy": self.privacy.to_json(),
            "finds": self.finds.to_json(),
            "events": [event.to_json() for event in self.events],
            "corpus": self.corpus.to_json() if self.corpus else None,
        }

    def dumps(self) -> str:
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False)

    def describe(self, ledger: Ledger | None = None) -> str:
        """The whole plan in words, with what the ledger (by default, your own) has left."""
        from dphh.show import plan_text

        return plan_text(self, ledger)

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        from dphh.show import plan_html

        return plan_html(self)


def plan_from_json(found: dict[str, Any] | str) -> Plan:
    """The plan that `to_json` or `dumps` wrote. A table in memory does not travel: pass it again
    as `run(corpus=...)`."""
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError as problem:
            raise UsageError(f"plan: not JSON ({problem}); pass what Plan.dumps() wrote") from None
    try:
        plan = _as_written(found)
    except UsageError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise UsageError(
            f"plan: {problem} is missing or of another shape; pass what Plan.to_json() gave"
        ) from None
    if _priced_anew(plan) != plan:
        raise UsageError(
            f"plan: its noise, thresholds or prices are not those that this dphh gives "
            f"`{plan.verb}` with its parameters: it was edited, or written by another version; "
            "make it anew"
        )
    return plan


def _as_written(found: Any) -> Plan:
    where = found["corpus"]
    return Plan(
        verb=found["verb"],
        method=found["method"],
        parameters=tuple((k, _frozen(v)) for k, v in found["parameters"].items()),
        levels=tuple(level_from_json(level) for level in found["levels"]),
        privacy=Privacy.from_json(found["privacy"]),
        finds=Finds.from_json(found["finds"]),
        events=tuple(event_from_json(event) for event in found["events"]),
        corpus=(
            corpus_from_json(where, name=where["name"])
            if where and where["kind"] == "path"
            else None
        ),
    )


def _priced_anew(plan: Plan) -> Plan:
    """The plan that its verb makes of its parameters: a file's word for its own price is not it."""
    from dphh import verbs

    verb = getattr(verbs, plan.verb, None)
    if verb is None or getattr(verb, "__module__", None) != verbs.__name__:
        raise UsageError(f"plan: found the verb {plan.verb!r}, which this dphh does not know")
    try:
        made: Plan = verb(plan.corpus, **dict(plan.parameters))
    except TypeError:
        raise UsageError(
            f"plan: `{plan.verb}` has no such parameters as "
            f"{', '.join(name for name, _ in plan.parameters)}; make the plan anew"
        ) from None
    return made


def _frozen(value: Any) -> Parameter:
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value
