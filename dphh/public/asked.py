"""Reads the options that name public knowledge: a prior, a list of items, declared groups.

A prior that is a text or a table is declared public by `prior_is_public=True`; no code can prove
that it is. A release needs no declaration. Tokens that differ from the corpus's are an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dphh.columns import interleaved_by_level
from dphh.errors import LedgerError, UsageError
from dphh.files.listed import items_of_file
from dphh.ledger import Ledger
from dphh.prior import Prior, check_same_tokens
from dphh.reader.content import Content
from dphh.reader.corpus import Corpus
from dphh.reader.views import tokens_of_texts
from dphh.release import MANIFEST, Release, stored_release
from dphh.wording.options import shown


def with_public_knowledge(
    options: dict[str, Any],
    corpus: Corpus | None,
    ledger: Ledger | None = None,
    *,
    may_read_files: bool = True,
) -> dict[str, Any]:
    """The options of a verb, in which what `prior`, `of` and `domain` name is read: a prior as
    counts, the others as lists of items, each a list of tokens. If `by` has no `groups`, they are
    those that the account's owner declared in the ledger.

    A text in `prior`, `of` or `domain` is the run id of a release in the ledger; if files may be
    read, also the folder of a release, or a file: of `of`, `domain` and `known` with one item a
    line.
    """
    named, by = dict(options), options.get("by")
    content = None if corpus is None else corpus.content
    account = None if corpus is None else corpus.account
    if isinstance(by, str) and not options.get("groups") and ledger is not None and account:
        named["groups"] = ledger.status(account).groups.get(by, ())
    if isinstance(known := options.get("known"), (str, Path)):
        if not may_read_files:
            raise _unknown_name_error("known", known)
        named["known"] = _lines_of_file("known", known)
    for option in ("prior", "of", "domain"):
        asked = named.get(option)
        if isinstance(asked, (str, Path)):
            release = _named_release(asked, ledger, may_read_files=may_read_files)
            asked = asked if release is None else release
        if option == "prior" and asked is not None and not isinstance(asked, Prior):
            if not (isinstance(asked, Release) or may_read_files):
                raise _unknown_name_error(option, asked)
            prior = _read_prior(asked, named, content)
            named |= {"prior": prior, "prior_text": None, "prior_is_public": False}
        elif isinstance(asked, Release):
            named[option] = _released_items(option, asked, content)
        elif isinstance(asked, (str, Path)):
            if not may_read_files:
                raise _unknown_name_error(option, asked)
            named[option] = _items_as_tokens(option, _lines_of_file(option, asked), content)
        elif isinstance(asked, Sequence):
            named[option] = _items_as_tokens(option, asked, content)
    return named


def _named_release(
    named: str | Path, ledger: Ledger | None, *, may_read_files: bool
) -> Release | None:
    """The release that a folder or a run id names; None if it names none."""
    with suppress(OSError):  # a text may be too long for a file's name
        if may_read_files and Path(named).exists():
            return Release.load(named) if (Path(named) / MANIFEST).is_file() else None
    with suppress(LedgerError):
        return stored_release(ledger or Ledger(), str(named))
    return None


def _lines_of_file(option: str, file: str | Path) -> list[str]:
    try:
        return items_of_file(file)
    except (OSError, ValueError):
        raise _unknown_name_error(option, file) from None


def _released_items(
    option: str, release: Release, content: Content | None
) -> list[tuple[str, ...]]:
    """The items of a release: the first of each level, then the second of each, and so on. Of a
    trie, only complete sequences; an item of a corpus that reads items whole is one token."""
    reading = release.manifest["parameters"]["content"]
    if content is not None:
        check_same_tokens(option, reading, content)
    rows = release.table
    if "ended" in rows.column_names:
        rows = rows.filter(rows.column("ended"))
    rows = rows.take(interleaved_by_level(rows.column("level").to_numpy())).to_pylist()
    are_whole = reading["reading"] == "whole"
    return [(row["item"],) if are_whole else tuple(row["tokens"]) for row in rows if row["tokens"]]


def _items_as_tokens(option: str, items: Sequence[Any], content: Content | None) -> list[Any]:
    """Items as lists of tokens: a text is split as the corpus's rows are, and is an error without
    a corpus; a list stays as it is, and is an error if the corpus's rows have no such token."""
    texts = [item for item in items if isinstance(item, str)]
    if content is None:
        if texts:
            raise _no_corpus_error(option)
        return [*items]
    lists = [item for item in items if isinstance(item, (list, tuple))]
    given = sorted({token for item in lists for token in item if isinstance(token, str) and token})
    for token, tokens in zip(given, tokens_of_texts(given, content), strict=True):
        if tokens != (token,):
            raise UsageError(
                f"{option}: the corpus has no token {shown(token)}; give a text, which is split "
                "as its rows are, or tokens as these have them"
            )
    split = iter(tokens_of_texts(texts, content))
    return [next(split) if isinstance(item, str) else item for item in items]


def _read_prior(source: Any, options: dict[str, Any], content: Content | None) -> Prior:
    """The prior of a release, a table or a text."""
    from dphh.public.texts import prior_of_items, prior_of_table, prior_of_text

    max_n: Any = options.get("max_n")
    longest = int(max_n) if max_n in range(1, 101) else 1  # pricing refuses any other max_n
    column = options.get("prior_text")
    was_paid_for = isinstance(source, Release) and not source.is_test
    if not was_paid_for and options.get("prior_is_public") is not True:
        raise UsageError(
            "prior_is_public: nothing protects the people in a prior that is a text, a table or a "
            "test's release. If nobody in the data contributed to it, or all of it is published "
            "anyway, say prior_is_public=True; if not, leave prior out"
        )
    if isinstance(source, Release):
        verb, method = source.manifest["verb"], source.manifest["method"]
        if verb not in ("ngrams", "items") or method == "domain":
            found = f"{verb} with a domain" if method == "domain" else verb
            raise UsageError(
                f"prior: found a release of {found}; give a release of ngrams, or of items without "
                "a domain, whose scores serve as counts"
            )
        # An item counted in several groups has several rows with one score.
        items = {tuple(row["tokens"]): row["score"] for row in source}
        reading = source.manifest["parameters"]["content"]
        prior = prior_of_items(items, longest, reading=reading, run_id=source.run_id)
    elif content is None:
        raise _no_corpus_error("prior")
    elif type(source).__module__.startswith("pyspark."):
        raise UsageError("prior: found a Spark frame; write it to Parquet, and give its path")
    elif column is None:
        prior = prior_of_table(source, content, longest)
    else:
        prior = prior_of_text(source, column, content, longest)
    if len(prior) == 0:
        raise UsageError(
            "prior: it lists no word: a text lists the words that occur at least twice (a large "
            "one three times), a table its items of one token; give a longer text, or leave prior "
            "out"
        )
    return prior


def _unknown_name_error(option: str, named: object) -> UsageError:
    return UsageError(
        f"{option}: {str(named)[:100]} is neither a release's folder, nor a text file with an item "
        "on each line, nor the run id of a release in the ledger (`dphh ledger show` and FROM "
        "dphh_releases() list run ids); items themselves stand in such a file, or in a list in "
        "Python and in SQL"
    )


def _no_corpus_error(option: str) -> UsageError:
    return UsageError(
        f"{option}: found texts, but no corpus to say how texts become tokens; pass the corpus "
        "to the verb, or give each item as a list of its tokens"
    )
