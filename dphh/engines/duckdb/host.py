"""DuckDB as a host: a private instance for one run, and its tables. No one else can access them."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any

import duckdb
import pyarrow as pa

from dphh.engines.host import Host, Lookup
from dphh.reader.corpus import Corpus
from dphh.reader.failures import replace_duckdb_errors
from dphh.reader.rows import Limits, Rows, register_arrow
from dphh.sql import query
from dphh.udfs.arrays import one_array
from dphh.udfs.functions import (
    LOOKUP,
    ROW_WORDS,
    ArgumentKind,
    Constant,
    Function,
    functions,
    functions_called_in,
)
from dphh.udfs.kernel.gathering import ReadWords
from dphh.udfs.kernel.positions import WordsWithIds, values_by_key
from dphh.udfs.kernel.vocabulary import Vocabulary
from dphh.udfs.noise.randomness import Randomness

_DUCKDB_TYPES = {
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.decimal128(20, 0): "DECIMAL(20, 0)",
}
#: The statements of each text that a host of this process has run.
_PARSED: dict[str, list[duckdb.Statement]] = {}


class OneProcessHost(Rows, Host):
    """A host in this process, on DuckDB or Polars: the rows, as DuckDB reads them, one vocabulary
    for all words of a run, and functions that look up a brought value in an object."""

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        self.randomness, self.joiner = randomness, corpus.content.joiner
        self.functions = functions(randomness)
        self.words = Vocabulary()
        #: For each brought value, by its name: the table whose users have it, and the value.
        self._brought: dict[str, tuple[str, Any]] = {}
        super().__init__(corpus, limits)

    def bring(self, name: str, step: str, to: str, **parameters: Any) -> None:
        found = self.take(step, **parameters)
        self._brought[name] = to, values_by_key(found, None if to == "positions" else self.words)

    def value_of_lookup(self, parameter: Lookup) -> Any:
        """What functions get for a parameter: its value or, of a value that knows words by their
        spelling, an array by word id."""
        value = parameter.value
        return value.by_id(self.words) if hasattr(value, "by_id") else value

    def forget_brought_values(self, table: str) -> None:
        """Forget the values that were brought to a table that is dropped or replaced."""
        self._brought = {
            name: (to, value) for name, (to, value) in self._brought.items() if to != table
        }


class DuckDBHost(OneProcessHost):
    """A private instance of DuckDB: views of a corpus's rows, and the functions of levels."""

    name = "duckdb"
    version: str = duckdb.__version__

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        super().__init__(corpus, randomness, limits)
        #: Objects that queries pass to functions by their index: parameters of the step, and what
        #: was brought to tables.
        self._objects: list[Any] = []
        # By this pragma, made for tests, DuckDB gives each thread 2,048 rows of a table at a time.
        # By default it gives 122,880: often one thread gets all whole users.
        self.con.execute("PRAGMA verify_parallelism")
        register_arrow(self.con, "spelled", self._words_of_ids, ["BIGINT"], "VARCHAR")
        self._registered = {"spelled"}

    def _words_of_ids(self, word_ids: Any) -> pa.Array:
        """`dphh_spelled(word_id)`, the word that has this id."""
        return self.words.spellings(one_array(word_ids).to_numpy())

    def gather(self, table: str, reading: ReadWords) -> None:
        """The column `words` is NULL, because ids are word ids of the whole run."""
        self.forget_brought_values(table)
        with replace_duckdb_errors("gather_texts"):
            self.con.execute(
                f"CREATE OR REPLACE TEMP TABLE {table} (block BIGINT, user_hashes BIGINT[], "
                "lengths INTEGER[], ids INTEGER[], words VARCHAR[])"
            )
            for rows in self.whole_users(reading, self.words):
                self.memory.update_limit()  # DuckDB may use the memory that the vocabulary frees
                self.con.register("made", rows)
                self.con.execute(f"INSERT INTO {table} SELECT *, NULL FROM made")
                self.con.unregister("made")

    def run(self, step: str, **parameters: Any) -> None:
        """Run the statements of one file of `sql/`, each with the parameters that it names."""
        with replace_duckdb_errors(step):
            self._execute(query(step), parameters)

    def take(self, step: str, **parameters: Any) -> Any:
        """Run a query, and return its rows.

        `con.sql` with parameters holds Python's lock while it waits for its threads. A thread that
        runs a function of `udfs/` would wait for that lock: a deadlock. So functions run in
        `execute`, which releases the lock, and only finished rows are fetched.
        """
        with replace_duckdb_errors(step):
            self._execute(f"CREATE TEMP TABLE answer AS {query(step)}", parameters)
            rows = self.con.table("answer").to_arrow_table()
            self.con.execute("DROP TABLE answer")
            return rows

    def _execute(self, text: str, parameters: dict[str, Any]) -> None:
        """Execute the statements of a step, each with the parameters that it names. An object is
        put into `_objects`, and the statement gets its index."""
        brought = {name: Lookup(value) for name, (_, value) in self._brought.items()}
        own = {"words_of_corpus": len(self.words), "is_test": self.randomness.is_test}
        values = {**brought, **own, **parameters}
        for name, value in values.items():
            if isinstance(value, Lookup):
                values[name] = None if value.value is None else len(self._objects)
                self._objects.append(self.value_of_lookup(value))
        self.define_macros(text)
        for name in functions_called_in(text):
            if name not in self._registered:
                self._registered.add(name)
                register(self.con, name, self.functions[name], self.words, self._objects)
        if text not in _PARSED:
            _PARSED[text] = self.con.extract_statements(text)
        for statement in _PARSED[text]:
            named = {name: values[name] for name in statement.named_parameters}
            self.memory.update_limit()
            self.con.execute(statement, named or None)
        self._objects.clear()

    def put(self, table: str, rows: Any) -> None:
        self.forget_brought_values(table)
        self.con.register("put", rows)
        with replace_duckdb_errors(table):
            self.con.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS FROM put")
        self.con.unregister("put")

    def rename_replacing(self, table: str, name: str) -> None:
        self.drop(name)
        self.con.execute(f"ALTER TABLE {table} RENAME TO {name}")

    def drop(self, *tables: str) -> None:
        for table in tables:
            self.con.execute(f"DROP TABLE IF EXISTS {table}")
            self.forget_brought_values(table)


def register(
    con: duckdb.DuckDBPyConnection,
    name: str,
    function: Function,
    words: WordsWithIds,
    objects: list[Any],
) -> None:
    """Register a function of `udfs/` as `dphh_NAME`. It gets the run's `words` where it takes
    words; queries name an object by its index in `objects`."""

    def argument_from_column(kind: ArgumentKind, column: Any) -> Any:
        if kind == ROW_WORDS:
            return words
        if kind == LOOKUP:
            number = column[0].as_py()
            return None if number is None else objects[number]
        return column[0].as_py() if isinstance(kind, Constant) else column

    def apply_to_columns(*columns: Any) -> pa.Array:
        if not len(columns[0]):
            return pa.array([], function.gives)
        return function.body(*map(argument_from_column, function.takes, columns))

    apply_to_columns.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(f"of_{i}", Parameter.POSITIONAL_ONLY) for i in range(len(function.takes))]
    )
    argument_types = [duckdb_type(kind) for kind in function.takes]
    register_arrow(con, name, apply_to_columns, argument_types, duckdb_type(function.gives))


def duckdb_type(kind: ArgumentKind) -> str:
    """DuckDB's name for the type of an argument or of a function's result."""
    if isinstance(kind, Constant):
        return duckdb_type(kind.kind)
    if isinstance(kind, str):
        return {LOOKUP: "INTEGER", ROW_WORDS: "VARCHAR[]"}[kind]
    if pa.types.is_list(kind):
        return f"{duckdb_type(kind.value_type)}[]"
    if pa.types.is_struct(kind):
        return f"STRUCT({', '.join(f'{field.name} {duckdb_type(field.type)}' for field in kind)})"
    return _DUCKDB_TYPES[kind]
