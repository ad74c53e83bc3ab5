"""The server's side of LDP TrieHH: receives messages, counts them, makes the next broadcast.

`Growth` is all that a server keeps between rounds. It is public, since it is computed from reports
that were randomised before the server saw them. `broadcast` makes a round's broadcast, `tally`
counts a table of messages, `grown` returns the state of the next round.

A simulated run (`dphh.ldp_trie`) uses this side, with engines that simulate all devices.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dphh.devices.reports.round import Broadcast, coded, decoded, numbers, of_fields
from dphh.errors import UsageError
from dphh.levels.ldp_trie import LocalLevel
from dphh.price import Price
from dphh.sources.quiet import without_bar
from dphh.sql import query

#: One row for each report: its sender (a name for the round, dropped after duplicates are removed),
#: the number of the sender's report, from 1, and the set.
MESSAGES = pa.schema(
    [
        ("client", pa.string()),
        ("round", pa.string()),
        ("report", pa.int64()),
        ("subset", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True)
class Growth:
    """The state of a run before a round: what the rounds so far found. Words are coded."""

    #: The run's name, with which the names of rounds begin.
    run: str
    characters: tuple[str, ...]
    #: How many of the plan's levels are done.
    done: int
    prefixes: tuple[str, ...]
    known: tuple[str, ...]
    #: The words that this pass has found; the next pass treats them as known.
    found: tuple[str, ...] = ()

    def dumps(self) -> str:
        return json.dumps(asdict(self))


def growth_from_json(text: str) -> Growth:
    """The growth that `dumps` wrote."""
    return Growth(**of_fields(Growth, json.loads(text)))


@dataclass(frozen=True)
class Grown:
    """The characters of a prefix that was kept or, if `ended`, of a word that was found."""

    tokens: tuple[str, ...]
    ended: bool
    reports: int


def planted(price: Price, run: str = "ldp_trie") -> Growth:
    """The state before the first round: each character is a prefix (P_0 = X), and the plan's known
    words are known."""
    characters = tuple(price["character_set"])
    number = numbers(characters)
    known = (coded(tuple(word), number) for word in price["known"])
    return Growth(
        run=run,
        characters=characters,
        done=0,
        prefixes=_coded_characters(characters),
        known=tuple(sorted({word for word in known if word})),
    )


def broadcast(growth: Growth, level: LocalLevel) -> Broadcast:
    """The broadcast for the devices of the next round."""
    return Broadcast(
        round=f"{growth.run}/pass {level.pass_number}/level {level.level}",
        level=level.level,
        characters=growth.characters,
        prefixes=growth.prefixes,
        known=growth.known,
        contributions=level.contributions,
        sampling=level.sampling,
        domain=level.domain,
        size=level.size,
        numerator=level.numerator,
    )


def grown(growth: Growth, levels: Sequence[LocalLevel], kept: Any) -> tuple[Growth, list[Grown]]:
    """After a round: the new state, and what grew.

    `kept` is an Arrow table (value, reports): the values in the most reports, at most `keep`.
    """
    width = len(growth.characters) + 1
    prefixes: list[str] = []
    found: list[str] = []
    steps: list[Grown] = []
    rows = zip(kept.column("value").to_pylist(), kept.column("reports").to_pylist(), strict=True)
    for value, reports in sorted(rows):
        below, character = growth.prefixes[value // width], value % width
        ended = character == width - 1
        word = below if ended else below + chr(character + 1)
        (found if ended else prefixes).append(word)
        steps.append(Grown(tuple(decoded(word, growth.characters)), ended, reports))
    done = growth.done + 1
    now = replace(growth, done=done, prefixes=tuple(prefixes), found=(*growth.found, *found))
    if done < len(levels) and levels[done].pass_number > levels[done - 1].pass_number:
        known = tuple(sorted({*now.known, *now.found}))
        now = replace(now, prefixes=_coded_characters(growth.characters), known=known, found=())
    return now, steps


def _coded_characters(characters: Sequence[str]) -> tuple[str, ...]:
    return tuple(chr(number + 1) for number in range(len(characters)))


@dataclass(frozen=True)
class Tally:
    """One round's messages, counted: (value, reports) of the kept values, and rejected messages.

    The numbers of accepted and rejected messages depend on the senders and must not be published,
    so `repr` does not show them.
    """

    kept: Any = field(repr=False)
    accepted: int = field(repr=False)
    rejected: dict[str, int] = field(repr=False)


def tally(
    messages: str | Path | pa.Table,
    said: Broadcast,
    level: LocalLevel,
    *,
    at_least: int | None = None,
) -> Tally:
    """Count the messages of a round: an Arrow table, a Parquet file, or a folder of them.

    Messages that are malformed, out of range, repeated or of another round are rejected and
    counted; so are files that are no tables of messages. No client can stop a round, and a client
    adds at most 1 to each of `size` values, `contributions` times.

    Refuses a round with fewer accepted reports than the plan's price assumes, because reports hide
    among one another: wait for more messages, or plan for fewer users. `at_least` sets another
    minimum, for a caller who publishes none of the counts or has a price for fewer reports.
    """
    tables, unreadable = [], 0
    for part in _tables_of_messages(messages):
        try:
            found = pq.read_table(part) if isinstance(part, Path) else part
            tables.append(found.select(MESSAGES.names).cast(MESSAGES))
        except (pa.ArrowException, OSError, KeyError):
            unreadable += 1
    everything = pa.concat_tables([MESSAGES.empty_table(), *tables])
    with duckdb.connect() as con:
        without_bar(con)
        con.register("messages", everything)
        con.execute(
            query("ldp_verdicts"),
            {
                "round": said.round,
                "contributions": said.contributions,
                "domain": said.domain,
                "size": said.size,
            },
        )
        con.execute(query("ldp_tally"))
        kept = con.sql(
            query("ldp_kept"), params={"values": said.values, "keep": level.keep}
        ).to_arrow_table()
        verdicts = dict(
            con.execute("SELECT verdict, count(*) FROM verdicts GROUP BY verdict").fetchall()
        )
    accepted = verdicts.pop("accepted", 0)
    if unreadable:
        verdicts["unreadable file"] = unreadable
    if accepted < (level.reports if at_least is None else at_least):
        raise UsageError(
            "messages: fewer reports than the plan is priced for, "
            f"{level.reports:,} a level; wait for more messages, or plan for fewer users_per_level"
        )
    return Tally(kept, accepted, verdicts)


def _tables_of_messages(messages: str | Path | pa.Table) -> list[Any]:
    if not isinstance(messages, (str, Path)):
        return [messages]
    where = Path(messages)
    if not where.exists():
        raise UsageError(f"messages: {where} is not there; give a Parquet file or a folder of them")
    return sorted(where.glob("*.parquet")) if where.is_dir() else [where]
