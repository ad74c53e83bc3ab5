"""A host of plain Python and NumPy, for one step: what a new engine has to bring, and no more.

It runs `items` with method "gaussian". Another method needs the steps of its queries; nothing else
of dphh knows an engine.
"""

from collections import Counter
from inspect import signature
from typing import Any

import pyarrow as pa

from dphh import Corpus, items
from dphh.engines.host import Host, Lookup
from dphh.registry import run_levels
from dphh.run import release_of
from dphh.testing import SeededRandomness
from dphh.udfs.functions import functions
from dphh.udfs.kernel.gathering import Gathering, ReadWords
from dphh.udfs.kernel.vocabulary import Vocabulary
from tests.engines.levels import unstored

Rows = list[tuple[int, list[str]]]


class SmallHost(Host):
    """Tables are dictionaries of columns, and steps are methods of their names."""

    name, version, joiner = "small", "1", " "

    def __init__(self, rows: Rows, randomness: SeededRandomness) -> None:
        self.rows, self.randomness = rows, randomness
        self.functions = functions(randomness)
        self.words = Vocabulary()
        self.tables: dict[str, Any] = {}

    def open(self) -> None:
        users, tokens = zip(*self.rows, strict=True)
        names = pa.array([str(user) for user in users])
        texts = pa.array(tokens, pa.list_(pa.string()))
        self.tables["tokens_of_rows"] = names, texts, pa.nulls(len(names), pa.string())

    def digest(self, key: bytes) -> str:
        raise NotImplementedError("no ledger is asked here")

    def gather(self, table: str, reading: ReadWords) -> None:
        self.open()
        gathering = Gathering(reading.reader(self.words), distinct=not reading.marks_ends)
        gathering.add(*self.tables["tokens_of_rows"])
        gathering.finish_adding()
        self.words.close()
        self.tables[table] = pa.concat_tables(gathering.rows())

    def run(self, step: str, **parameters: Any) -> None:
        self.take(step, **parameters)

    def take(self, step: str, **parameters: Any) -> Any:
        """A step gets the parameters that it names."""

        def of(value: Any) -> Any:
            value = value.value if isinstance(value, Lookup) else value
            return value.by_id(self.words) if hasattr(value, "by_id") else value

        body = getattr(self, step)
        return body(**{name: of(parameters[name]) for name in signature(body).parameters})

    def put(self, table: str, rows: Any) -> None:
        self.tables[table] = rows

    def bring(self, name: str, step: str, to: str, **parameters: Any) -> None:
        raise NotImplementedError("method gaussian brings nothing")

    def rename_replacing(self, table: str, name: str) -> None:
        self.tables[name] = self.tables.pop(table)

    def drop(self, *tables: str) -> None:
        for table in tables:
            self.tables.pop(table, None)

    def close(self) -> None:
        self.tables.clear()

    # The two steps.

    def words_of_round(
        self, released: Any, w: Any, max_items: int, grid_bits: int, salt: int, sigma: int,
        purpose: str,
    ) -> None:  # fmt: skip
        users = self.tables["users"]
        contributed = self.functions["contributions_of_words"].body(
            users.column("user_hashes"), users.column("lengths"), users.column("ids"), self.words,
            released, max_items, grid_bits, salt, w,
        )  # fmt: skip
        sums: Counter[int] = Counter()
        for pair in contributed.flatten().to_pylist():
            sums[pair["key"]] += pair["weight"]
        sums = +sums  # no later round needs the words that nobody keeps
        many = len(sums)
        names = self.words.spellings(pa.array([*sums]))
        noise = self.functions["noise"].body(
            names, pa.array([sigma] * many), pa.array([purpose] * many)
        )
        self.tables["noised"] = dict(
            zip(sums, map(sum, zip(sums.values(), noise.to_pylist(), strict=True)), strict=True)
        )

    def released_words(self, threshold: int) -> pa.Table:
        passed = {key: noisy for key, noisy in self.tables["noised"].items() if noisy >= threshold}
        keys = self.words.spellings(pa.array([*passed], pa.int32()))
        return pa.table({"key": keys, "noisy": pa.array(passed.values(), pa.int64())})


def test_a_host_in_plain_python_releases_what_duckdb_does(written: Any) -> None:
    rows = [(user, [f"w{user % n}" for n in range(1, 12)]) for user in range(600)]
    corpus: Corpus = written(rows, text="what", as_="list")
    plan = items(corpus, epsilon=4, delta=1e-4, max_items=4, method="gaussian", counts=0)
    host = SmallHost(rows, SeededRandomness(7))
    found = run_levels(plan.price, host, unstored, lambda _: None)
    small = release_of(found, plan.price, corpus, host, "one", host.randomness)
    release = plan.run(engine="duckdb", randomness=SeededRandomness(7))
    assert len(release) > 10
    assert small.table.equals(release.table)
    assert small.manifest["levels"] == release.manifest["levels"]
