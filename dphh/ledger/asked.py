"""What auditors read of a ledger: what a run was asked for and what a corpus was changed to, in
words; and every run as one table in a file."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dphh.errors import UsageError
from dphh.files.whole_files import write_unless_other_file
from dphh.ledger.entries import Entry
from dphh.ledger.paying import label_of
from dphh.privacy.events import events_to_json
from dphh.reader.conditions import rows_in_words
from dphh.reader.content import Content
from dphh.reader.corpus import Corpus, as_recorded, unit_and_columns
from dphh.reader.paths import local_path_to_write
from dphh.wording.cells import csv_of
from dphh.wording.lines import one_line, with_noun

#: A list of given items is shown up to so many; `dphh ledger export` has all.
MOST_ITEMS_SHOWN = 3
_TOKENS = {"words": "words", "characters": "characters", "whole": "values", "list": "elements"}


def asked_in_words(run: Entry, of_account: Corpus | None = None) -> str:
    """What a run was asked for: which items, of which rows, in which groups; of which data and
    users, if these are not those of the account whose runs are listed."""
    return "; ".join(_parts(run.verb, run.parameters, run.corpus, of_account))


def _parts(
    verb: str, asked: dict[str, Any], corpus: Corpus, of_account: Corpus | None
) -> Iterator[str]:
    content = corpus.content
    yield _items_in_words(verb, asked, content)
    if asked.get("counts"):
        yield f"how many people hold each, for {100 * asked['counts']:.3g}% of its budget"
    if (least := asked.get("min_users")) is not None:
        yield f"only what {least:,} people or more hold, as far as intervals show"
    if asked.get("by"):
        yield f"people are counted by {asked['by']}: {', '.join(asked['groups'])}, and all others"
    if asked.get("prior"):
        yield f"with a public prior, hash {asked['prior'][:12]}"
    yield _rows_in_words(content.where)
    for say in (label_of, lambda each: unit_and_columns(each.user)):
        if of_account is None or say(corpus) != say(of_account):
            yield f"of {say(corpus)}"


def _items_in_words(verb: str, asked: dict[str, Any], content: Content) -> str:
    tokens, column = _TOKENS[content.reading], f"the column {content.column!r}"
    if (given := asked.get("of", asked.get("domain"))) is not None:
        named = ", ".join(repr(one_line(" ".join(each))) for each in given[:MOST_ITEMS_SHOWN])
        more = ", ..." if len(given) > MOST_ITEMS_SHOWN else ""
        what = "how many people hold each" if verb == "counts" else "which people share"
        return f"{what} of {with_noun(len(given), 'given item')} ({named}{more}) in {column}"
    if "max_n" in asked:
        return f"runs of up to {asked['max_n']} {tokens} of {column} that people share"
    if "max_length" not in asked:
        return f"{tokens} of {column} that people share"
    pieces = tokens
    if content.unit is not None:
        pieces = "characters" if content.unit == 1 else f"pieces of {content.unit} characters"
    how = "randomised reports" if verb == "ldp_trie" else "sampled votes"
    return f"sequences of up to {asked['max_length']} {pieces} of {column}, from {how}"


def _rows_in_words(where: str | None) -> str:
    return "all rows" if where is None else f"rows where {rows_in_words(where)}"


def corpus_in_words(corpus: Corpus) -> str:
    said = f"{label_of(corpus)}, {unit_and_columns(corpus.user)}"
    where = corpus.content.where
    return said if where is None else f"{said}, {_rows_in_words(where)}"


def corpus_change(was: Corpus, now: Corpus) -> tuple[str, str] | None:
    """What differs between two corpora of one account, before and after; None if nothing does."""
    both = [_described(each) for each in (was, now)]
    changed = [name for name in both[0] if both[0][name] != both[1][name]]
    before, after = (", ".join(each[name] for name in changed) for each in both)
    return (before, after) if changed else None


def _described(corpus: Corpus) -> dict[str, str]:
    """Each part of what a ledger records of a corpus, in words."""
    return {
        "data": label_of(corpus),
        "user": unit_and_columns(corpus.user),
        **{name: f"{name} {value!r}" for name, value in corpus.content.to_json().items()},
        "where": _rows_in_words(corpus.content.where),
    }


# Every run as one table.

_COLUMNS = (
    "sequence", "run_id", "accounts", "source", "verb", "parameters", "events", "epsilon", "delta",
    "state", "booked", "changed", "who", "analyst",
)  # fmt: skip


def write_runs(runs: Sequence[Entry], path: str | Path, *, replace: bool) -> None:
    import polars as pl

    target, written = local_path_to_write("export", path), io.BytesIO()
    if target.suffix not in (".parquet", ".csv"):
        raise UsageError(f"The ledger exports to .parquet or .csv, not to {target.name!r}.")
    numbers = {"sequence": pl.Int64, "epsilon": pl.Float64, "delta": pl.Float64}
    schema = {column: numbers.get(column, pl.String) for column in _COLUMNS}
    table = pl.from_dicts([_row(run) for run in runs], schema)
    if target.suffix == ".parquet":
        table.write_parquet(written)
    else:  # callers choose run ids, and a spreadsheet must not compute one as a formula
        written.write(csv_of(table))
    write_unless_other_file("export", target, written.getvalue(), replace=replace)


def _row(run: Entry) -> dict[str, Any]:
    """The run's values for `_COLUMNS`, among others."""
    return {
        **vars(run),
        "accounts": json.dumps(run.accounts),
        "source": json.dumps(as_recorded(run.corpus)),
        "parameters": json.dumps(run.parameters),
        "events": json.dumps(events_to_json(run.events)),
        "booked": run.when.isoformat(),
        "changed": run.changed.isoformat(),
    }
