"""Reads the options that name public knowledge: a prior, a list of items, declared groups.

A prior that is a text or a table is declared public by `prior_is_public=True`; no code can prove
that it is. A release needs no declaration. Tokens that differ from the corpus's are an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dphh.columns import interleaved_by_level
from dphh.corpus import Corpus, replace_corpus
from dphh.engines import tokens_of
from dphh.errors import CorpusError, LedgerError, NoColumnError, UsageError
from dphh.ledger import Ledger
from dphh.prior import Prior, check_same_tokens, other_tokens
from dphh.release import MANIFEST, Release
from dphh.rows.content import Content

Options = dict[str, Any]
#: The values that `ngrams` accepts for `max_n`; it refuses others itself.
_ALLOWED_LENGTHS = range(1, 101)
#: Options that name items: a verb has one of them at most.
_OPTIONS_WITH_ITEMS = ("of", "domain")


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
    account = None if corpus is None else corpus.account
    if isinstance(by, str) and not options.get("groups") and ledger is not None and account:
        declared = ledger.status(account).groups
        named["groups"] = [*declared[by]] if by in declared else None
    if all(named.get(option) is None for option in (*_OPTIONS_WITH_ITEMS, "prior")):
        return named
    book = ledger or Ledger()
    content = None if corpus is None else corpus.content
    named = _with_prior(named, content, book, files=files)
    for option in _OPTIONS_WITH_ITEMS:
        of = named.get(option)
        if isinstance(of, (str, Path)):
            of = _named_release(of, book, files=files) or _lines(option, of, files=files)
        if isinstance(of, Release):
            named[option] = _released_items(option, of, content)
        elif isinstance(of, Sequence):
            named[option] = _items_as_read(option, of, content)
    return named


def _named_release(named: Any, ledger: Ledger, *, files: bool) -> Release | None:
    """The release that is given, or that a folder or a run id names; None if it is none."""
    if isinstance(named, Release):
        return named
    if not isinstance(named, (str, Path)):
        return None
    if files and (Path(named) / MANIFEST).is_file():
        return Release.load(named)
    if files and Path(named).exists():
        return None
    try:
        manifest, parquet = ledger.release(str(named))
    except LedgerError:
        return None
    return Release.from_parquet(parquet, manifest)


def _lines(option: str, of: str | Path, *, files: bool) -> list[str]:
    try:
        text = Path(of).read_text(encoding="utf-8") if files else None
    except (OSError, ValueError):
        text = None
    if text is None:
        raise UsageError(
            f"{option}: {of} is neither a release's folder, nor a text file, nor the run id of "
            "a release in the ledger; `dphh ledger show` and FROM dphh_releases() list the run ids"
        )
    return [line for line in text.splitlines() if line]


def _released_items(
    option: str, release: Release, content: Content | None
) -> list[tuple[str, ...]]:
    """The items of a release: the first of each level, then the second of each, and so on. From a
    trie, only complete sequences; as one token each if the corpus reads items whole."""
    made = release.manifest["parameters"]["content"]
    if content is not None and (differ := other_tokens(made, content)):
        raise UsageError(
            f"{option}: the release was made with {differ}, and this corpus is read differently, "
            "so its tokens would differ; read it in the same way, or give the items as lists of "
            "tokens"
        )
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
        raise UsageError(
            f"{option}: found texts, but no corpus to say how texts become tokens; pass the corpus "
            "to the verb, or give each item as a list of its tokens"
        )
    if content.reading == "list":
        return [(item,) if isinstance(item, str) else item for item in items]
    tokens = iter(tokens_of(texts, content))
    return [next(tokens) if isinstance(item, str) else item for item in items]


def _with_prior(
    options: Options, content: Content | None, ledger: Ledger, *, files: bool
) -> Options:
    """The options of `ngrams` or `items`, with the prior that they name replaced by its counts. If
    no `files` may be read, the prior must be a release in the ledger."""
    asked, column = options.get("prior"), options.get("prior_text")
    if asked is None or isinstance(asked, Prior):
        return options
    if options.get("method") not in (None, "forecast", "auto"):
        return options  # refused when it is priced
    max_n = options.get("max_n")
    longest = max_n if isinstance(max_n, int) and max_n in _ALLOWED_LENGTHS else 1
    declared = options.get("prior_is_public") is True
    if (release := _named_release(asked, ledger, files=files)) is not None:
        if column is not None:
            raise UsageError("prior_text: names a column of raw text, and the prior is a release")
        prior = _of_release(release, longest, declared)
    elif not files:
        raise UsageError(
            "prior: give the run id of a release that you may see; FROM dphh_releases() names these"
        )
    else:
        _refuse_undeclared(declared, "a text or a table of your own")
        prior = _of_text_or_table(asked, column, content, longest)
    if content is not None:
        check_same_tokens(prior, content)
    if len(prior) == 0:
        raise UsageError(
            "prior: no word is listed: a text lists the words that occur twice (in a large one "
            "three times), a table its items of one token; give a longer text, or leave prior out"
        )
    return {**options, "prior": prior, "prior_text": None, "prior_is_public": False}


def _refuse_undeclared(declared: bool, what: str) -> None:
    if not declared:
        raise UsageError(
            f"prior_is_public: the prior is {what}, and nothing protects who is in it. If nobody "
            "in the data contributed to it, or all of it is published anyway, say "
            "prior_is_public=True; if not, leave prior out"
        )


def _of_release(release: Release, max_n: int, declared: bool) -> Prior:
    from dphh.public.counting import of_release

    if (verb := release.manifest["verb"]) not in ("ngrams", "items"):
        raise UsageError(
            f"prior: found a release of {verb}, whose scores are no counts; give one of ngrams"
        )
    if release.is_test:
        _refuse_undeclared(declared, "a test's release, which promises nothing")
    reading = release.manifest["parameters"]["content"]
    prior = of_release(release, max_n)
    return replace(prior, kind="release", reading=reading, run_id=release.run_id)


def _of_text_or_table(asked: Any, column: str | None, content: Content | None, max_n: int) -> Prior:
    from dphh.public.counting import of_table, of_text

    if type(asked).__module__.startswith("pyspark."):
        raise UsageError("prior: found a Spark frame; write it to Parquet, and give its path")
    if isinstance(asked, Corpus):
        if column is not None:
            raise UsageError(
                "prior_text: the prior is a Corpus, which names its text; leave it out"
            )
        text = asked
    elif content is None:
        raise UsageError(
            "prior: the corpus decides how its texts become tokens; pass the corpus to the "
            "verb, or give the prior as a dphh.Corpus"
        )
    elif column is None:
        return replace(of_table(asked, content, max_n), kind="table", reading=content.to_json())
    else:
        of_all_rows = replace(content, column=column, unit=None, where=None)
        text = replace_corpus(Corpus(asked, user=column, text=column), content=of_all_rows)
    try:
        prior = of_text(text, max_n)
    except CorpusError as problem:
        if column is not None and isinstance(problem, NoColumnError):
            raise NoColumnError("prior_text", f"of the prior, {problem.told}") from None
        raise CorpusError(f"prior: {problem}") from None
    return replace(prior, kind="text", reading=text.content.to_json())
