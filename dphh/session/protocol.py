"""The interface between the driver and an engine. The driver does not know which engine runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Limits:
    """Limits of an engine: memory in DuckDB's notation ("4GB"), and threads."""

    memory: str | None = None
    threads: int | None = None


class Session(Protocol):
    """One run on one corpus. Everything private stays inside; only released rows come out.

    What is held and drawn is a frozen dataclass, by whose type an engine knows what to do.

    A continued run does not ask for levels that it drew before (`dphh.journal`). So each level gets
    all releases that it depends on, and the session itself finds their positions in the corpus.
    """

    name: str
    version: str

    def has_rows_without_user(self) -> bool:
        """Whether a row has NULL in all of the user's columns, whatever `where` says."""
        ...

    def hold(self, what: object) -> None:
        """Read the corpus once and keep what levels need of it: a `Reading` of whole users' texts,
        `OneSequence` of each user, or users in `Seats`."""
        ...

    def draw(self, asked: object, purpose: str) -> Any:
        """Draw a level: a table of what is released of it. `asked` is the level, or the level and
        the public releases that it stands on, as in `CountsOn`. The purpose identifies the draw.

        The result may be released as it is. Nothing else that a session returns may be."""
        ...

    def forget(self, released: Any, keep_texts: bool = False) -> None:
        """Remove the released words from every user (DP-SIPS); `released` has (key, noisy).

        With `keep_texts`, longer n-grams are still found in the original texts.
        """
        ...

    def close(self) -> None: ...
