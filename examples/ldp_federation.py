"""LDP TrieHH with a server and devices that share nothing but files.

    python examples/ldp_federation.py server FOLDER --plan plan.json     # the first broadcast
    python examples/ldp_federation.py devices FOLDER WORDS --local-epsilon 8 --contributions 1
    python examples/ldp_federation.py server FOLDER                      # counts, broadcasts anew

and so on in turn, with other devices each time, until the server says that it is done; words found
are in `found.json`. `plan.json` is what `dphh.ldp_trie(...).dumps()` gives. WORDS is a Parquet file
(user, word) that stands for the devices that check in at this round, one for each user; a real
device has its own words, and `dphh.devices.reports.device.answer`. The devices write one Parquet
file of messages into FOLDER, as a shuffler would that has collected them: in an order that says
nothing, under names that are drawn for this round.
"""

from __future__ import annotations

import argparse
import json
import os
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.devices.reports.device import answer
from dphh.devices.reports.round import broadcast_from_json, decoded
from dphh.levels.ldp_trie import LocalLevel
from dphh.mechanisms.ldp_trie.collector import (
    MESSAGES,
    broadcast,
    grown,
    growth_from_json,
    planted,
    tally,
)
from dphh.plan import Plan, plan_from_json


def devices(folder: Path, words: Path, local_epsilon: float, contributions: int) -> None:
    said = broadcast_from_json((folder / "broadcast.json").read_text(encoding="utf-8"))
    rows = sorted(zip(*pq.read_table(words).to_pydict().values(), strict=True))
    messages = []
    for _, held in groupby(rows, key=lambda row: row[0]):
        name = os.urandom(16).hex()
        subsets = answer(
            said,
            [list(word) for _, word in held],
            local_epsilon=local_epsilon,
            contributions=contributions,
        )
        messages += [
            {"client": name, "round": said.round, "report": report, "subset": subset.tolist()}
            for report, subset in enumerate(subsets, start=1)
        ]
    messages.sort(key=lambda message: message["client"])
    inbox = folder / "messages"
    inbox.mkdir(exist_ok=True)
    table = pa.Table.from_pylist(messages, schema=MESSAGES)
    pq.write_table(table, inbox / f"{os.urandom(8).hex()}.parquet")


def server(folder: Path, plan: Path | None) -> None:
    if plan is not None:
        (folder / "plan.json").write_text(plan.read_text(encoding="utf-8"), encoding="utf-8")
    made = plan_from_json((folder / "plan.json").read_text(encoding="utf-8"))
    levels = local_levels(made)
    memory, said_last = folder / "growth.json", folder / "broadcast.json"
    if not memory.exists():
        growth = planted(made.price, run=os.urandom(8).hex())
    else:
        growth = growth_from_json(memory.read_text(encoding="utf-8"))
        said = broadcast_from_json(said_last.read_text(encoding="utf-8"))
        level = levels[growth.done]
        counted = tally(folder / "messages", said, level)
        print(f"{said.round}: {counted.accepted:,} reports counted, left out {counted.rejected}")
        growth, steps = grown(growth, levels, counted.kept)
        found = folder / "found.json"
        before = json.loads(found.read_text(encoding="utf-8")) if found.exists() else []
        words = before + ["".join(step.tokens) for step in steps if step.ended]
        found.write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
        for file in (folder / "messages").iterdir():  # counted: nobody needs them any more
            file.unlink()
    memory.write_text(growth.dumps(), encoding="utf-8")
    if growth.done < len(levels):
        coming = broadcast(growth, levels[growth.done])
        said_last.write_text(coming.dumps(), encoding="utf-8")
        some = [("".join(decoded(prefix, growth.characters))) for prefix in growth.prefixes[:5]]
        print(f"{coming.round}: {len(growth.prefixes):,} prefixes, such as {some}")
    else:
        said_last.unlink()
        print("done")


def local_levels(plan: Plan) -> list[LocalLevel]:
    return [level for level in plan.levels if isinstance(level, LocalLevel)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    of_server = parts.add_parser("server")
    of_server.add_argument("folder", type=Path)
    of_server.add_argument("--plan", type=Path)
    of_devices = parts.add_parser("devices")
    of_devices.add_argument("folder", type=Path)
    of_devices.add_argument("words", type=Path)
    of_devices.add_argument("--local-epsilon", type=float, required=True)
    of_devices.add_argument("--contributions", type=int, required=True)
    asked = parser.parse_args()
    if asked.part == "server":
        server(asked.folder, asked.plan)
    else:
        devices(asked.folder, asked.words, asked.local_epsilon, asked.contributions)


if __name__ == "__main__":
    main()
