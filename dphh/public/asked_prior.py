"""Reads the option `prior=`: a text, a table or an earlier release, before the run pays.

A text or a table is declared public by `prior_is_public=True`; no code can prove that it is. A
release needs no declaration. Tokens that differ from the corpus's are an error.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dphh.corpus import Corpus, replace_corpus
from dphh.errors import CorpusError, LedgerError, NoColumnError, UsageError
from dphh.ledger import Ledger
from dphh.prior import GivenPrior, Prior, check_same_tokens
from dphh.public.cache import keep, kept, name_of
from dphh.release import MANIFEST, Release
from dphh.rows.content import Content

Options = dict[str, Any]
#: The version of the counting queries; a cached prior of another version is not used.
_FORMAT_OF_COUNTS = 1
#: The values that `ngrams` accepts for `max_n`; it refuses others itself.
_ALLOWED_LENGTHS = range(1, 101)


def with_prior(
    options: Options, corpus: Corpus | None, ledger: Ledger | None = None, *, files: bool = True
) -> Options:
    """The options of `ngrams` or `items`, with the prior that they name replaced by its counts. If
    no `files` may be read, the prior must be a release in the ledger."""
    prior, column = options.get("prior"), options.get("prior_text")
    declared = options.get("prior_is_public") or False
    if prior is None or isinstance(prior, GivenPrior):
        return options
    if options.get("method") not in (None, "forecast", "auto"):
        return options  # refused when it is priced
    if not isinstance(declared, bool):
        raise UsageError(f"prior_is_public: found {declared!r}; it is True or False")
    content = None if corpus is None else corpus.content
    max_n = options.get("max_n")
    longest = max_n if isinstance(max_n, int) and max_n in _ALLOWED_LENGTHS else 1
    if (release := named_release(prior, ledger or Ledger(), files=files)) is not None:
        if column is not None:
            raise UsageError("prior_text: names a column of raw text, and the prior is a release")
        given = _of_release(release, longest, declared)
    elif not files:
        raise UsageError(
            "prior: give the run id of a release that you may see; FROM dphh_releases() names these"
        )
    else:
        _refuse_undeclared(declared)
        given = _of_text_or_table(prior, column, content, longest)
    if content is not None:
        check_same_tokens(given, content)
    if len(given.prior) == 0:
        raise UsageError(
            "prior: no word is listed: a text lists the words that occur twice (in a large one "
            "three times), a table its items of one token; give a longer text, or leave prior out"
        )
    return {**options, "prior": given, "prior_text": None, "prior_is_public": False}


def _refuse_undeclared(declared: bool, what: str = "a text or a table of your own") -> None:
    if not declared:
        raise UsageError(
            f"prior_is_public: the prior is {what}, and nothing protects who is in it. If nobody "
            "in the data contributed to it, or all of it is published anyway, say "
            "prior_is_public=True (--prior-is-public); if not, leave prior out"
        )


def named_release(named: Any, ledger: Ledger, *, files: bool) -> Release | None:
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


def _of_release(release: Release, max_n: int, declared: bool) -> GivenPrior:
    from dphh.public.counted_texts import of_release  # an engine

    if (verb := release.manifest["verb"]) not in ("ngrams", "items"):
        raise UsageError(
            f"prior: found a release of {verb}, whose scores are no counts; give one of ngrams"
        )
    if release.is_test:
        _refuse_undeclared(declared, "a test's release, which promises nothing")
    reading = release.manifest["parameters"]["content"]
    return GivenPrior(of_release(release, max_n), "release", reading, release.run_id)


def _of_text_or_table(
    prior: Any, column: str | None, content: Content | None, max_n: int
) -> GivenPrior:
    if isinstance(prior, Corpus):
        if column is not None:
            raise UsageError(
                "prior_text: the prior is a Corpus, which names its text; leave it out"
            )
        return GivenPrior(_counted_text(prior, max_n), "text", prior.content.to_json())
    if type(prior).__module__.startswith("pyspark."):
        raise UsageError("prior: found a Spark frame; write it to Parquet, and give its path")
    if content is None:
        raise UsageError(
            "prior: how its texts become tokens is the corpus's to say; pass the corpus to the "
            "verb, or give the prior as a dphh.Corpus"
        )
    if column is None:
        from dphh.public.counted_texts import of_table

        return GivenPrior(of_table(prior, content, max_n), "table", content.to_json())
    of_text = replace(content, column=column, unit=None, where=None)  # of all its rows
    text = replace_corpus(Corpus(prior, user=column, text=column), content=of_text)
    return GivenPrior(_counted_text(text, max_n), "text", of_text.to_json())


def _counted_text(text: Corpus, max_n: int) -> Prior:
    """The cached counts if the files are unchanged since they were counted, else new counts."""
    from dphh.public import counted_texts as texts

    rule = [_FORMAT_OF_COUNTS, texts.LEAST, texts.LEAST_OF_SMALL, texts.SMALL, texts.LARGE_TEXT]
    name = name_of(text, [*rule, max_n])
    if name is not None and (found := kept(name)) is not None:
        return found
    try:
        prior = texts.of_text(text, max_n)
    except CorpusError as problem:
        if isinstance(problem, NoColumnError) and text.user == text.content.column:
            # prior_text names the one column of a text that is not given as a corpus.
            raise NoColumnError("prior_text", f"of the prior, {problem.told}") from None
        raise CorpusError(f"prior: {problem}") from None
    if name is not None and name_of(text, [*rule, max_n]) == name:
        keep(name, prior)
    return prior
