"""A price: what a verb costs at its parameters, and what it can find. No row is read for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from dphh.columns import COLUMN_MEANINGS
from dphh.counting import FoundCounts
from dphh.level import Level
from dphh.prior import Prior
from dphh.privacy.events import Event, costs_of, events_to_json
from dphh.reader.corpus import PROMISE_CONDITION, Corpus, user_option

#: A parameter's value: JSON's types, with tuples for lists so that plans are hashable.
Parameter = bool | int | float | str | None | tuple[Any, ...]


#: An epsilon above this, and a delta above these, protect little.
LARGE_EPSILON = 10.0
LARGE_DELTA, HUGE_DELTA = 1e-5, 1e-3


@dataclass(frozen=True)
class Privacy:
    """The privacy statement: epsilon and delta, unit, adjacency, and the theorem that proves it."""

    epsilon: float
    delta: float
    unit: str
    adjacency: str
    theorem: str
    #: How delta is divided among purposes: (purpose, amount).
    delta_shares: tuple[tuple[str, float], ...] = ()
    caveats: tuple[str, ...] = ()
    #: For local randomisers: the epsilon of what is published; `epsilon` is that of each report.
    central_epsilon: float | None = None
    #: Where the unit is less than a user: the epsilon for everything that one user contributes.
    user_epsilon: float | None = None
    #: For local randomisers: the epsilon of a report, and of a user, against those who see all
    #: shuffled reports. `central_epsilon` and `user_epsilon` are against those who see sums only.
    shuffled_epsilon: float | None = None
    shuffled_user_epsilon: float | None = None
    #: The kind of the unit: a user; one combination of values of several user columns, of which a
    #: person may have many; or one of a user's contributions.
    protects: Literal["user", "combination", "contribution"] = "user"
    #: The condition of the statement, if the corpus is a frame, a relation or a view; else None.
    provided: str | None = None

    @property
    def relation(self) -> Literal["add or remove", "replace"]:
        """How neighbours differ: by a unit more or less, or by what one unit holds."""
        return "replace" if self.protects == "contribution" else "add or remove"

    @property
    def booked_epsilon(self) -> float:
        """The epsilon that the ledger books: for a whole user, and for what is published."""
        return self.epsilon if self.user_epsilon is None else self.user_epsilon

    @property
    def published_epsilon(self) -> float:
        """The epsilon of what is published, for the unit that the statement names."""
        return self.epsilon if self.central_epsilon is None else self.central_epsilon

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences that say where epsilon or delta is weak, if it is."""
        return warnings_of(self.published_epsilon, self.delta)

    def to_json(self) -> dict[str, Any]:
        """Its fields, without those that are None; and warnings, if there are any."""
        said = {name: value for name, value in vars(self).items() if value is not None}
        said |= {"delta_shares": dict(self.delta_shares), "caveats": list(self.caveats)}
        return said | ({"warnings": list(self.warnings)} if self.warnings else {})

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Privacy:
        return cls(
            **{
                **{name: value for name, value in found.items() if name != "warnings"},
                # A statement without this one is refused, although the field has a default.
                "protects": found["protects"],
                "delta_shares": tuple(found["delta_shares"].items()),
                "caveats": tuple(found["caveats"]),
            }
        )


def warnings_of(epsilon: float, delta: float) -> tuple[str, ...]:
    """A warning if epsilon is above LARGE_EPSILON, and one if delta is above LARGE_DELTA."""
    said = []
    if epsilon > LARGE_EPSILON:
        said.append(
            f"epsilon {epsilon:g} protects almost nothing: an outcome may be e^{epsilon:g} times "
            f"as likely with a user's data as without; give at most {LARGE_EPSILON:g}, better 1 to "
            "4"
        )
    if delta >= HUGE_DELTA:
        said.append(
            f"delta {delta:g} protects almost nothing: with that probability a user's own data may "
            f"be released as they are, for about {delta * 1000:,.0f} of every 1,000 users"
        )
    elif delta > LARGE_DELTA:
        said.append(
            f"delta {delta:g} is large: with that probability a user's own data may be released as "
            f"they are, for about {delta * 100_000:,.0f} of every 100,000 users; give a delta well "
            "below one over the number of users"
        )
    return tuple(said)


def privacy_of_corpus(price: Price, corpus: Corpus | None) -> Privacy:
    """The privacy statement of a price for a corpus, if there is one. With several user columns the
    unit is less than a user. Of a table in memory, the statement has a condition on its rows."""
    privacy = price.privacy
    if corpus is None:
        return privacy
    if corpus.kind != "path":
        caveats = (f"provided that {PROMISE_CONDITION}", *privacy.caveats)
        privacy = replace(privacy, provided=PROMISE_CONDITION, caveats=caveats)
    if len(corpus.user) == 1:
        return privacy
    columns = " and ".join(corpus.user)
    if privacy.protects == "user":
        unit = f"one combination of values of {columns}, with all rows that share it; NOT a person"
        privacy = replace(privacy, unit=unit, protects="combination")
    caveat = (
        f"NOT a promise to a person as a whole: 'user', also in numbers of users, means one "
        f"combination of {columns}. A person with rows in k combinations is k such users; for the "
        "person epsilon is up to k times as large, and delta more than k times"
    )
    if ("counts", 0.0) in price.parameters:
        caveat += ". How many hold an item is not counted: a combination is no person"
    return replace(privacy, caveats=(caveat, *privacy.caveats))


@dataclass(frozen=True)
class Finds:
    """The smallest number of users that an item needs to be found with this probability."""

    probability: float
    users: int
    #: How many users are needed if each of them holds t items: (t, users).
    users_by_held: tuple[tuple[int, int], ...] = ()
    #: How many users an n-gram of length n needs: (n, users).
    users_by_length: tuple[tuple[int, int], ...] = ()
    #: If each of the users holds many words: (words of each, least users, most users). How many of
    #: these words are found in earlier rounds decides how many users are needed.
    users_of_many: tuple[int, int, int] | None = None
    note: str = ""
    #: What has this probability, in words.
    what: str = "an item is found"

    def to_json(self) -> dict[str, Any]:
        said = asdict(self)
        for pairs in ("users_by_held", "users_by_length"):
            said[pairs] = [list(pair) for pair in said[pairs]]
        many = said.pop("users_of_many")
        return said if many is None else {**said, "users_of_many": list(many)}


@dataclass(frozen=True)
class Price:
    """What a mechanism derives from its parameters alone, without a corpus."""

    verb: str
    #: The verb's method, such as 'dpne' or 'triehh'; options choose it where a verb has several.
    method: str
    parameters: tuple[tuple[str, Parameter], ...]
    levels: tuple[Level, ...]
    privacy: Privacy
    finds: Finds
    events: tuple[Event, ...]
    #: How users are counted for what was found, after all levels; None if they are not.
    counting: FoundCounts | None = None
    #: The prior, if there is one. Prices are compared by its digest, which is in `parameters`.
    prior: Prior | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        costs_of(self.events)

    def __getitem__(self, parameter: str) -> Any:
        return dict(self.parameters)[parameter]

    def to_json(self) -> dict[str, Any]:
        return {
            "verb": self.verb,
            "method": self.method,
            "parameters": dict(self.parameters),
            "levels": [level.to_json() for level in self.levels],
            "privacy": self.privacy.to_json(),
            "finds": self.finds.to_json(),
            "events": events_to_json(self.events),
            **({} if self.counting is None else {"counting": self.counting.to_json()}),
            **({} if self.prior is None else {"prior": self.prior.to_json()}),
        }


def parameters_asked(price: Price, corpus: Corpus) -> dict[str, Any]:
    """All parameters of a run: the price's, and how the corpus is read."""
    of_corpus = {"user": user_option(corpus.user), "content": corpus.content.to_json()}
    return {**dict(price.parameters), **of_corpus}


def manifest_before_run(
    price: Price, corpus: Corpus, columns: Sequence[str], *, is_test: bool
) -> dict[str, Any]:
    """What the manifest of a release says that follows from what was asked, and from no draw. Its
    levels and its counting are those of the plan."""
    return {
        **price.to_json(),
        "parameters": parameters_asked(price, corpus),
        "privacy": privacy_of_corpus(price, corpus).to_json(),
        "is_test": is_test,
        "randomness": (
            "a test's seed: this release is NOT private" if is_test else "operating system"
        ),
        "columns": {name: said for name, said in COLUMN_MEANINGS.items() if name in columns},
    }
