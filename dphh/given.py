"""What `counts` is asked about: a release, where one is kept, or the analyst's own list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from dphh.corpus import Content, Corpus
from dphh.errors import LedgerError, UsageError
from dphh.ledger import Ledger
from dphh.release import MANIFEST, Release

Item = tuple[str, ...]
#: A release, its folder, its run id, a text file of one item a line, or a list of items, each a
#: text or a list of its tokens.
Of = Release | str | Path | Sequence[str | Sequence[str]]
#: Where the tokens of a corpus come from does not make them others.
_SAME_TOKENS_ALL_THE_SAME = ("column", "unit")


def given_items(
    of: Of,
    corpus: Corpus | None,
    *,
    top: int | None = None,
    min_length: int = 1,
    ledger: Ledger | str | Path | None = None,
) -> tuple[Item, ...]:
    """The items, each as its tokens, of at least so many; of a release at most `top`.

    A score orders items within a level and no further: so `top` takes the first of each level, then
    the second of each, and so on.
    """
    for name, value in (("top", 1 if top is None else top), ("min_length", min_length)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"{name}: found {value!r}; give a whole number from 1")
    content = None if corpus is None else corpus.content
    found = _found(of, ledger)
    if isinstance(found, Release):
        items = released_items(found, content)
    else:
        items = [_tokens(item, content) for item in found]
    long = (item for item in items if len(item) >= min_length or not item)
    return tuple(islice(long, top))


def _found(of: Of, ledger: Ledger | str | Path | None) -> Release | Iterable[str | Sequence[str]]:
    if not isinstance(of, (str, Path)):
        return of
    path = Path(of)
    try:
        if (path / MANIFEST).is_file():
            return Release.load(path)
        if path.is_file():
            return [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, ValueError) as problem:
        raise UsageError(f"of: {of} cannot be read ({type(problem).__name__})") from None
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    try:
        manifest, parquet = book.release(str(of))
    except LedgerError:
        raise UsageError(
            f"of: {of} is neither a release's folder, nor a text file, nor the run id of a release "
            "in the ledger; `dphh ledger show` and FROM dphh_releases() name these"
        ) from None
    return Release.from_parquet(parquet, manifest)


def released_items(release: Release, content: Content | None) -> list[Item]:
    """The items of a release: the first of each level, then the second of each, and so on.

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
    ranked: list[tuple[int, int, Item]] = []
    for row in release.table.to_pylist():
        if row.get("ended") is False or not row["tokens"]:
            continue
        level = row["level"]
        rank[level] = rank.get(level, 0) + 1
        item = (row["item"],) if joined else tuple(row["tokens"])
        ranked.append((rank[level], level, item))
    return [item for _, _, item in sorted(ranked, key=lambda each: each[:2])]


def _tokens(item: Any, content: Content | None) -> Item:
    """An item of the analyst's own. A text is read as a row of the corpus would be, roughly: it is
    not cleaned, so it must be written as the corpus's tokens are once they are."""
    if not isinstance(item, str):
        return tuple(item) if isinstance(item, Sequence) else (item,)
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
