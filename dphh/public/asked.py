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
from dphh.corpus import Corpus
from dphh.engines import tokens_of
from dphh.errors import LedgerError, UsageError
from dphh.ledger import Ledger
from dphh.prior import Prior, check_same_tokens
from dphh.release import MANIFEST, Release
from dphh.rows.content import Content

Options = dict[str, Any]


def with_public(
    options: Options, corpus: Corpus | None, ledger: Ledger | None = None, *, files: bool = True
) -> Options:
    """The options of a verb, with what they name of public knowledge: a prior as its counts; the
    items of `of` or `domain` as lists of tokens, tokenised as the corpus is; and, of a ledger that
    is given, the groups that the account's owner declared for `by`, if none are given.

    A list, or the release with that run id in the ledger; if `files` may be read, the release in
    that folder, or the lines of a text file, one item a line.
    """
    named, by = dict(options), options.get("by")
    content = None if corpus is None else corpus.content
    account = None if corpus is None else corpus.account
    if isinstance(by, str) and not options.get("groups") and ledger is not None and account:
        declared = ledger.status(account).groups
        named["groups"] = [*declared[by]] if by in declared else None
    for option in ("prior", "of", "domain"):
        asked = named.get(option)
        if isinstance(asked, (str, Path)):
            asked = _named_release(asked, ledger, files=files) or asked
        if option == "prior" and asked is not None and not isinstance(asked, Prior):
            prior = _prior(asked, named, content, files=files)
            named |= {"prior": prior, "prior_text": None, "prior_is_public": False}
        elif isinstance(asked, Release):
            named[option] = _released_items(option, asked, content)
        elif isinstance(asked, (str, Path)):
            named[option] = _items_as_read(option, _lines(option, asked, files=files), content)
        elif isinstance(asked, Sequence):
            named[option] = _items_as_read(option, asked, content)
    return named


def _named_release(named: str | Path, ledger: Ledger | None, *, files: bool) -> Release | None:
    """The release that a folder or a run id names; None if it names none."""
    if files and (Path(named) / MANIFEST).is_file():
        return Release.load(named)
    if not (files and Path(named).exists()):
        with suppress(LedgerError):
            manifest, parquet = (ledger or Ledger()).release(str(named))
            return Release.from_parquet(parquet, manifest)
    return None


def _lines(option: str, of: str | Path, *, files: bool) -> list[str]:
    with suppress(OSError, ValueError):
        if files:
            return [line for line in Path(of).read_text(encoding="utf-8").splitlines() if line]
    raise _unknown(option, of)


def _released_items(
    option: str, release: Release, content: Content | None
) -> list[tuple[str, ...]]:
    """The items of a release: the first of each level, then the second of each, and so on. From a
    trie, only complete sequences; as one token each if the corpus reads items whole."""
    made = release.manifest["parameters"]["content"]
    if content is not None:
        check_same_tokens(option, made, content)
    rows = release.table
    if "ended" in rows.column_names:
        rows = rows.filter(rows.column("ended"))
    rows = rows.take(interleaved_by_level(rows.column("level").to_numpy())).to_pylist()
    are_whole = made["reading"] == "whole"
    return [(row["item"],) if are_whole else tuple(row["tokens"]) for row in rows if row["tokens"]]


def _items_as_read(option: str, items: Sequence[Any], content: Content | None) -> list[Any]:
    """The items of a list: texts as the corpus reads its rows, and others as they are."""
    texts = [item for item in items if isinstance(item, str)]
    if not texts:
        return [*items]
    if content is None:
        raise _without_corpus(option)
    if content.reading == "list":
        return [(item,) if isinstance(item, str) else item for item in items]
    tokens = iter(tokens_of(texts, content))
    return [next(tokens) if isinstance(item, str) else item for item in items]


def _prior(asked: Any, options: Options, content: Content | None, *, files: bool) -> Prior:
    """The counts of what a prior names. If no `files` may be read, it must be a release."""
    from dphh.public.counting import of_table, of_text, prior_of_items

    max_n: Any = options.get("max_n")
    longest = int(max_n) if max_n in range(1, 101) else 1  # others are refused when it is priced
    column = options.get("prior_text")
    is_output = isinstance(asked, Release) and not asked.is_test
    if not (isinstance(asked, Release) or files):
        raise _unknown("prior", asked)
    if not is_output and options.get("prior_is_public") is not True:
        raise UsageError(
            "prior_is_public: nothing protects who is in a prior that is a text, a table or a "
            "test's release. If nobody in the data contributed to it, or all of it is published "
            "anyway, say prior_is_public=True; if not, leave prior out"
        )
    if isinstance(asked, Release):
        if (verb := asked.manifest["verb"]) not in ("ngrams", "items"):
            raise UsageError(
                f"prior: found a release of {verb}, whose scores are no counts; give one of ngrams"
            )
        # An item counted in several groups has several rows with one score.
        items = {tuple(row["tokens"]): row["score"] for row in asked}
        reading = asked.manifest["parameters"]["content"]
        prior = prior_of_items(items, longest, reading=reading, run_id=asked.run_id)
    elif content is None:
        raise _without_corpus("prior")
    elif type(asked).__module__.startswith("pyspark."):
        raise UsageError("prior: found a Spark frame; write it to Parquet, and give its path")
    elif column is None:
        prior = of_table(asked, content, longest)
    else:
        prior = of_text(asked, column, content, longest)
    if len(prior) == 0:
        raise UsageError(
            "prior: no word is listed: a text lists the words that occur twice (in a large one "
            "three times), a table its items of one token; give a longer text, or leave prior out"
        )
    return prior


def _unknown(option: str, named: object) -> UsageError:
    return UsageError(
        f"{option}: {named} is neither a release's folder, nor a text file, nor the run id of "
        "a release in the ledger; `dphh ledger show` and FROM dphh_releases() list the run ids"
    )


def _without_corpus(option: str) -> UsageError:
    return UsageError(
        f"{option}: found texts, but no corpus to say how texts become tokens; pass the corpus "
        "to the verb, or give each item as a list of its tokens"
    )
