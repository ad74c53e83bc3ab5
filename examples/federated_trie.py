"""A collection from devices, rehearsed on one machine: processes that share nothing but files.

    python examples/federated_trie.py rehearse FOLDER [--devices 4000] [--shares 1]

runs what a real collection would run in three places, each as a process of its own:

    python examples/federated_trie.py open FOLDER            the coordinator: prints the ballot
    python examples/federated_trie.py vote BALLOT WORDS OUT   a device (here: a file of them)
    python examples/federated_trie.py close FOLDER VOTES     the coordinator: counts and grows

until the trie is done, and prints the release. WORDS is a text file, a device's word a line.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dphh import trie
from dphh.collecting import Collection, read_ballot, vote

WORDS = ["to", "at", "an", "a"]


def open_round(folder: Path) -> None:
    print(Collection.load(folder, ledger=folder / "ledger.sqlite").open_round() or "")


def cast(ballot: Path, words: Path, out: Path) -> None:
    """Every line is a device: it tosses its own coin, and its vote goes out or it is silent."""
    asked = read_ballot(ballot)
    pq.write_table(
        pa.concat_tables([vote(asked, [*word]) for word in words.read_text().split()]), out
    )


def close_round(folder: Path, votes: str) -> None:
    Collection.load(folder, ledger=folder / "ledger.sqlite").close_round(votes)


def step(*arguments: object) -> str:
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def rehearse(folder: Path, devices: int, shares: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    plan = trie(epsilon=4, delta=1e-6, max_length=3)
    Collection.begin(folder, plan, devices="a rehearsal", ledger=folder / "ledger.sqlite")
    for share in range(shares):
        own = [WORDS[device % len(WORDS)] for device in range(share, devices, shares)]
        (folder / f"devices-{share}.txt").write_text("\n".join(own))
    while ballot := step("open", folder):
        level = Path(ballot).parent
        for share in range(shares):
            step("vote", ballot, folder / f"devices-{share}.txt", level / f"votes-{share}.out")
        step("close", folder, level / "votes-*.out")
    release = Collection.load(folder, ledger=folder / "ledger.sqlite").release()
    for row in release.to_arrow().to_pylist():
        print(row["level"], row["item"] + ("." if row["ended"] else "..."))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    does = parser.add_subparsers(dest="does", required=True)
    whole = does.add_parser("rehearse")
    whole.add_argument("folder", type=Path)
    whole.add_argument("--devices", type=int, default=4000)
    whole.add_argument("--shares", type=int, default=1)
    does.add_parser("open").add_argument("folder", type=Path)
    voting = does.add_parser("vote")
    for name in ("ballot", "words", "out"):
        voting.add_argument(name, type=Path)
    closing = does.add_parser("close")
    closing.add_argument("folder", type=Path)
    closing.add_argument("votes")
    asked = parser.parse_args()
    if asked.does == "rehearse":
        rehearse(asked.folder, asked.devices, asked.shares)
    elif asked.does == "open":
        open_round(asked.folder)
    elif asked.does == "vote":
        cast(asked.ballot, asked.words, asked.out)
    else:
        close_round(asked.folder, asked.votes)


if __name__ == "__main__":
    main()
