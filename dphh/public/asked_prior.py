"""Reads the option `prior=`: a text, a table or an earlier release, before the run pays."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from dphh.corpus import Corpus, replace_corpus
from dphh.errors import CorpusError, LedgerError, NoColumnError, UsageError
from dphh.ledger import Ledger
from dphh.priors.given_prior import GivenPrior
from dphh.priors.prior import Prior
from dphh.private_priors import check_same_tokens, refuse_private, refuse_undeclared
from dphh.public.stored import folder, keep, kept
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
    if column is not None and not isinstance(column, str):
        raise UsageError(f"prior_text: found {column!r}; name the column of the prior's text")
    ledger = ledger or Ledger()
    content = None if corpus is None else corpus.content
    max_n = options.get("max_n")
    longest = max_n if isinstance(max_n, int) and max_n in _ALLOWED_LENGTHS else 1
    if (release := _release_of_prior(prior, ledger, files=files)) is not None:
        if column is not None:
            raise UsageError("prior_text: names a column of raw text, and the prior is a release")
        given = _prior_from_release(release, longest, declared)
    elif not files:
        raise UsageError(
            "prior: give the run id of a release that you may see; FROM dphh_releases() names these"
        )
    else:
        refuse_undeclared(declared)
        given = _prior_from_public(prior, column, content, longest, corpus, ledger)
    if content is not None:
        check_same_tokens(given, content)
    if len(given.prior) == 0:
        raise UsageError(
            "prior: no word is listed: a text lists the words that occur twice (in a large one "
            "three times), a table its items of one token; give a longer text, or leave prior out"
        )
    return {**options, "prior": given, "prior_text": None, "prior_is_public": False}


def _release_of_prior(prior: Any, ledger: Ledger, *, files: bool) -> Release | None:
    if isinstance(prior, Release):
        return prior
    if not isinstance(prior, (str, Path)):
        return None
    if files and (Path(prior) / MANIFEST).is_file():
        return Release.load(prior)
    if files and Path(prior).exists():
        return None
    try:
        manifest, parquet = ledger.release(str(prior))
    except LedgerError:
        return None
    return Release.from_parquet(parquet, manifest)


def _prior_from_release(release: Release, max_n: int, declared: bool) -> GivenPrior:
    from dphh.public.tables import of_release  # an engine

    if (verb := release.manifest["verb"]) not in ("ngrams", "items"):
        raise UsageError(
            f"prior: found a release of {verb}, whose scores are no counts; give one of ngrams"
        )
    if release.is_test:
        refuse_undeclared(declared, "a test's release, which promises nothing")
    return GivenPrior(
        of_release(release, max_n),
        "release",
        release.manifest["parameters"]["content"],
        run_id=release.run_id,
    )


def _prior_from_public(
    prior: Any,
    column: str | None,
    content: Content | None,
    max_n: int,
    corpus: Corpus | None,
    ledger: Ledger,
) -> GivenPrior:
    if isinstance(prior, Corpus):
        if column is not None:
            raise UsageError(
                "prior_text: the prior is a Corpus, which names its text; leave it out"
            )
        text = prior
    elif type(prior).__module__.startswith("pyspark."):
        raise UsageError("prior: found a Spark frame; write it to Parquet, and give its path")
    elif content is None:
        raise UsageError(
            "prior: how its texts become tokens is the corpus's to say; pass the corpus to the "
            "verb, or give the prior as a dphh.Corpus"
        )
    elif column is not None:
        of_text = replace(content, column=column, unit=None, where=None)  # of all its rows
        text = replace_corpus(Corpus(prior, user=column, text=column), content=of_text)
    else:
        from dphh.public.tables import of_table, table_of

        table = table_of(prior)
        refuse_private(table, corpus, ledger)
        return GivenPrior(of_table(table, content, max_n), "table", content.to_json(), table)
    refuse_private(text, corpus, ledger)
    return GivenPrior(_cached_counts(text, max_n), "text", text.content.to_json(), text)


def _cached_counts(text: Corpus, max_n: int) -> Prior:
    """The cached counts if the files are unchanged since they were counted, else new counts."""
    from dphh.public.counted_texts import LARGE_TEXT, LEAST, LEAST_OF_SMALL, SMALL, counted

    rule = [
        _FORMAT_OF_COUNTS,
        LEAST,
        LEAST_OF_SMALL,
        SMALL,
        LARGE_TEXT,
        max_n,
        text.content.to_json(),
    ]
    state = _fingerprint_of_files(text)
    told = json.dumps([rule, state]).encode()
    name = f"{hashlib.sha256(told).hexdigest()}.npz"
    if state and (found := kept(name)) is not None:
        return found
    try:
        prior = counted(text, max_n)
    except CorpusError as problem:
        if isinstance(problem, NoColumnError) and text.user == text.content.column:
            # prior_text names the one column of a text that is not given as a corpus.
            raise NoColumnError("prior_text", f"of the prior, {problem.told}") from None
        raise CorpusError(f"prior: {problem}") from None
    if state and _fingerprint_of_files(text) == state:
        keep(name, prior)
    return prior


def _fingerprint_of_files(text: Corpus) -> str:
    """A hash of the names, sizes and times of local files; '' for other sources."""
    from dphh.ledger.origins import source_of
    from dphh.ledger.sources import files_check, files_state

    source = source_of(text)
    besides = str(folder())
    return files_state(source, besides) if files_check(source, besides) else ""
