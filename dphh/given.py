"""What is counted, and within which groups: a release, a list of one's own; declared groups."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dphh.content import Content
from dphh.corpus import Corpus
from dphh.errors import LedgerError, UsageError
from dphh.ledger import Ledger
from dphh.release import MANIFEST, Release

#: Where the tokens of a corpus come from, and of which rows, does not make them others.
_SAME_TOKENS_ALL_THE_SAME = ("column", "unit", "where")
Options = dict[str, Any]


def with_declared(options: Options, ledger: Ledger, name: str | None) -> Options:
    """The options, with the groups that the corpus's owner has declared of `by`, where none are
    asked for."""
    by = options.get("by")
    if name is None or not isinstance(by, str) or options.get("groups"):
        return options
    declared = ledger.declared_groups().get(name, {})
    return {**options, "groups": [*declared[by]]} if by in declared else options


def with_release(options: Options, ledger: Ledger, *, files: bool) -> Options:
    """The options, with the release that `of` names by its run id in this ledger; where `files` may
    be read, by its folder; or with the lines of a text file, an item each."""
    of = options.get("of")
    if not isinstance(of, (str, Path)):
        return options
    return {**options, "of": (_in_files(of) if files else None) or _in_ledger(str(of), ledger)}


def _in_files(of: str | Path) -> Release | list[str] | None:
    path = Path(of)
    try:
        if (path / MANIFEST).is_file():
            return Release.load(path)
        if path.is_file():
            return [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, ValueError) as problem:
        raise UsageError(f"of: {of} cannot be read ({type(problem).__name__})") from None
    return None


def _in_ledger(run_id: str, ledger: Ledger) -> Release:
    try:
        manifest, parquet = ledger.release(run_id)
    except LedgerError:
        raise UsageError(
            f"of: {run_id} is neither a release's folder, nor a text file, nor the run id of a "
            "release in the ledger; `dphh ledger show` and FROM dphh_releases() name these"
        ) from None
    return Release.from_parquet(parquet, manifest)


def with_items(options: Options, corpus: Corpus | None) -> Options:
    """The options, with the items of `of` as lists of tokens, as this corpus reads them."""
    of = with_release(options, Ledger(), files=True)["of"]
    content = None if corpus is None else corpus.content
    if isinstance(of, Release):
        return {**options, "of": released_items(of, content)}
    if not isinstance(of, Sequence):
        return options
    return {**options, "of": [_tokens(item, content) for item in of]}


def released_items(release: Release, content: Content | None) -> list[tuple[str, ...]]:
    """The items of a release: the first of each level, then the second of each, and so on, for a
    score orders items within a level and no further.

    Of a trie's, the sequences that are whole; as one token where the corpus reads items whole.
    """
    made = release.manifest["parameters"]["content"]
    if content is not None:
        differ = [
            name
            for name, value in content.to_json().items()
            if name not in _SAME_TOKENS_ALL_THE_SAME and made.get(name) != value
        ]
        if differ:
            said = ", ".join(f"{name}={made.get(name)!r}" for name in differ)
            raise UsageError(
                f"of: the release was made with {said}, and the corpus is read otherwise, so its "
                "items would not be the same; read it alike, or give the items as lists of tokens"
            )
    joined = made["reading"] == "whole"
    rank: dict[int, int] = {}
    ranked: list[tuple[int, int, tuple[str, ...]]] = []
    for row in release.table.to_pylist():
        if row.get("ended") is False or not row["tokens"]:
            continue
        level = row["level"]
        rank[level] = rank.get(level, 0) + 1
        item = (row["item"],) if joined else tuple(row["tokens"])
        ranked.append((rank[level], level, item))
    return [item for _, _, item in sorted(ranked, key=lambda each: each[:2])]


def _tokens(item: Any, content: Content | None) -> Any:
    """An item of the analyst's own. A text is read as a row of the corpus would be, roughly: it is
    not cleaned, so it must be written as the corpus's tokens are once they are."""
    if not isinstance(item, str):
        return item
    if content is None:
        raise UsageError(
            "of: how a text becomes tokens is the corpus's to say; pass the corpus to the verb, or "
            "give each item as a list of its tokens"
        )
    if content.reading == "characters":
        if content.characters != "code points":
            raise UsageError(
                f"of: give items as lists of tokens where characters={content.characters!r}"
            )
        return tuple(item)
    return tuple(item.split()) if content.reading == "words" else (item,)
