"""Reads the options `of` and `domain` (a release or a list of items) and `groups` (declared
groups)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dphh.corpus import Corpus
from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.prior import other_tokens
from dphh.public.asked_prior import named_release, with_prior
from dphh.release import Release
from dphh.rows.content import Content

Options = dict[str, Any]


def with_declared(options: Options, ledger: Ledger, name: str | None) -> Options:
    """The options, with the groups that the corpus's owner declared for `by` if none are given."""
    by = options.get("by")
    if name is None or not isinstance(by, str) or options.get("groups"):
        return options
    declared = ledger.declared_groups().get(name, {})
    return {**options, "groups": [*declared[by]]} if by in declared else options


#: Options that name items: a verb has one of them at most.
_OPTIONS_WITH_ITEMS = ("of", "domain")


def with_public(
    options: Options, corpus: Corpus | None, ledger: Ledger | None = None, *, files: bool = True
) -> Options:
    """The options of a verb, with what they name of public knowledge: a prior as its counts, and
    the items of `of` or `domain` as lists of tokens, tokenised as the corpus is. These are a list,
    or the release with that run id in the ledger; if `files` may be read, the release in that
    folder, or the lines of a text file, one item a line."""
    if all(options.get(option) is None for option in (*_OPTIONS_WITH_ITEMS, "prior")):
        return options
    book = ledger or Ledger()
    named = with_prior(options, corpus, book, files=files)
    content = None if corpus is None else corpus.content
    for option in _OPTIONS_WITH_ITEMS:
        of = named.get(option)
        if isinstance(of, (str, Path)):
            of = _read(option, of, book, files=files)
        if isinstance(of, Release):
            named = {**named, option: released_items(option, of, content)}
        elif isinstance(of, Sequence):
            named = {**named, option: [_tokens_of_item(option, item, content) for item in of]}
    return named


def _read(option: str, of: str | Path, ledger: Ledger, *, files: bool) -> Release | list[str]:
    if (release := named_release(of, ledger, files=files)) is not None:
        return release
    if not (files and Path(of).is_file()):
        raise UsageError(
            f"{option}: {of} is neither a release's folder, nor a text file, nor the run id of "
            "a release in the ledger; `dphh ledger show` and FROM dphh_releases() list the run ids"
        )
    try:
        return [line for line in Path(of).read_text(encoding="utf-8").splitlines() if line]
    except (OSError, ValueError) as problem:
        raise UsageError(
            f"{option}: {of} could not be read ({type(problem).__name__}); give a release's folder "
            "or a text file with an item on each line"
        ) from None


def released_items(option: str, release: Release, content: Content | None) -> list[tuple[str, ...]]:
    """The items of a release: the first of each level, then the second of each, and so on, because
    scores do not compare between levels.

    From a trie, only complete sequences; as one token each if the corpus reads items whole.
    """
    made = release.manifest["parameters"]["content"]
    if content is not None and (differ := other_tokens(made, content)):
        raise UsageError(
            f"{option}: the release was made with {differ}, and this corpus is read differently, "
            "so its tokens would differ; read it in the same way, or give the items as lists of "
            "tokens"
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


def _tokens_of_item(option: str, item: Any, content: Content | None) -> Any:
    """Tokenise an item of the analyst's list roughly as the corpus reads a row. The item is not
    cleaned, so it must be written as the corpus's tokens are after cleaning."""
    if not isinstance(item, str):
        return item
    if content is None:
        raise UsageError(
            f"{option}: found texts, but no corpus to say how texts become tokens; pass the corpus "
            "to the verb, or give each item as a list of its tokens"
        )
    if content.reading == "characters":
        return tuple(item)
    return tuple(item.split()) if content.reading == "words" else (item,)
