"""What a mechanism asks of an engine. A mechanism's `run.py` runs its steps on a host and does not
know which engine that is.

A step is a file of `sql/` by its name: on DuckDB and Spark its text, in Polars the function of the
same name (`engines/polars/steps`). Tables have the names that the texts give them. What a host
keeps is private, but for what `take` returns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dphh.udfs.kernel.gathering import ReadWords
from dphh.udfs.noise.randomness import Randomness

#: A function that draws, for a level or for counts, and returns what is released: an Arrow table.
Draw = Callable[[], Any]
#: A function of a draw's name and a Draw. It returns what was drawn under this name before; if
#: nothing was, it draws. So a run makes each draw once.
DrawOnce = Callable[[str, Draw], Any]


@dataclass(frozen=True, eq=False)
class Lookup:
    """A parameter in which functions look something up: released words or keys, a secret salt. It
    stays out of the query's text, and so out of an engine's plans and logs. A value None is NULL in
    SQL. A value with a method `by_id` knows words by their spelling; functions get it by word id.
    """

    value: Any


class Host(ABC):
    """One run of an engine on one corpus.

    Parameters of a step are numbers, texts, lists, and a `Lookup` for what its functions look up; a
    step takes those that it names. `is_test`, whether the randomness is a test's, is the host's.
    """

    name: str
    version: str
    randomness: Randomness
    #: The text between the tokens of an item of the corpus.
    joiner: str

    @abstractmethod
    def open(self) -> None:
        """Make the corpus's rows available, as rows_of_corpus (user_id, content, group_name).
        Refuses rows with NULL in a user column, whatever `where` says."""

    @abstractmethod
    def digest(self, key: bytes) -> str:
        """The digest of the rows that count, the same on every engine (`reader/identity.py`)."""

    @abstractmethod
    def gather(self, table: str, reading: ReadWords) -> None:
        """Make a table of whole users: (block, user_hashes, lengths, ids, words), each row with
        lists of many users, and no user in two rows. `block` is the row's own number. `ids` are
        what `reading` makes of each position of a user's texts."""

    @abstractmethod
    def run(self, step: str, **parameters: Any) -> None:
        """Run a step and keep the tables that it makes."""

    @abstractmethod
    def put(self, table: str, rows: Any) -> None:
        """Make a table of public rows, given in Arrow."""

    @abstractmethod
    def bring(self, name: str, step: str, to: str, **parameters: Any) -> None:
        """Bring to whole users, by key, a value that a step computes and that is private: steps
        over the table `to` then read it as the parameter `name`, until `to` is replaced."""

    @abstractmethod
    def take(self, step: str, **parameters: Any) -> Any:
        """Run a query, and return its rows as an Arrow table. They may be released as they are;
        nothing else that a host returns may be."""

    @abstractmethod
    def rename_replacing(self, table: str, name: str) -> None:
        """Rename `table` to `name`, and drop the table that had this name before."""

    @abstractmethod
    def drop(self, *tables: str) -> None: ...

    @abstractmethod
    def close(self) -> None: ...
