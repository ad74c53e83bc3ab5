"""Explains why a phrase is not in a release, from the release alone. This is free and reads no row.

It cannot say how many users hold the phrase, or whether any does: below the threshold, few holders
look like none. That is the privacy guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from dphh.errors import UsageError
from dphh.reader.content import Content
from dphh.report.sentences import Released, has_every_given_item, joiner_of
from dphh.report.wordings import Tokens
from dphh.wording.lines import one_line, with_noun
from dphh.wording.notebook import InNotebooks

#: A function of texts and of how they are read: the tokens of each text, as engines make them.
Tokenise = Callable[[Sequence[str], Content], list[Tokens]]
Reason = Literal[
    "released",
    "not so read",
    "not of this length",
    "not asked for",
    "a part was not released",
    "below",
]
#: A level as a manifest describes it.
ManifestLevel = dict[str, Any]


@dataclass(frozen=True)
class Why(InNotebooks):
    """Why a phrase is not in a release: a `Reason`, and a sentence for people."""

    tokens: Tokens
    reason: Reason
    said: str

    def __repr__(self) -> str:
        return self.said

    def _rows(self) -> list[tuple[str, ...]]:
        return [(self.reason, self.said)]


def why(release: Released, phrase: str | Sequence[str], tokens_of: Tokenise) -> Why:
    """Whether a phrase was released and, if not, at which step it was dropped."""
    tokens = _tokens_of_phrase(release, phrase, tokens_of)
    return Why(tokens, *next(_reasons(release, tokens)))


def _reasons(release: Released, tokens: Tokens) -> Iterator[tuple[Reason, str]]:
    """The reasons that apply to a phrase, the decisive one first, each with a sentence."""
    manifest, name = release.manifest, _quoted(release, tokens)
    parameters, levels = manifest.get("parameters", {}), manifest["levels"]
    if not tokens:
        text = "No token is left of this: see how texts are split and which tokens are kept."
        yield "not so read", text
    if tokens in {tuple(word) for word in parameters.get("known", ())}:
        yield "not so read", f"{name} was given as known, so no user was asked about it."
    if unknown := set(tokens) - set(parameters.get("character_set", tokens)):
        characters = ", ".join(one_line(repr(token)) for token in sorted(unknown))
        yield "not so read", f"{name} contains {characters}, which the run's character set lacks."
    complete = _released_of_these_tokens(release, tokens)
    if tokens in complete:
        only = "" if complete[tokens] else " as a prefix only: it was not released as complete"
        yield "released", f"{name} is in the release{only}."
    if [*tokens] in map(list, parameters.get("domain") or ()):
        least = parameters.get("min_users")
        yield "below", f"{name} was left out: its interval begins below {least} users (min_users)."
    if has_every_given_item(manifest) or "domain" in parameters:
        text = f"{name} is not among the given items; that does not say whether anybody "
        yield "not asked for", f"{text}holds it."
    lengths = _lengths_of(levels)
    if len(tokens) not in lengths:
        range_of_lengths = f"items of {min(lengths):,} to {max(lengths):,} tokens"
        text = f"{name} has {with_noun(len(tokens), 'token')}; this release looked at "
        yield "not of this length", f"{text}{range_of_lengths}."
    if missing := _missing_parts(tokens, complete, levels):
        parts = " and ".join(_quoted(release, part) for part in missing)
        text = f"{name} was not looked at: {parts} {'was' if len(missing) == 1 else 'were'} not "
        text += "released, and a phrase is tried only where its parts were."
        yield "a part was not released", text
    subject = f"{name}: its parts were released, and it" if needed_parts(tokens, levels) else name
    yield "below", _below_threshold_sentence(release, len(tokens), subject)


def _lengths_of(levels: Sequence[ManifestLevel]) -> set[int]:
    """The lengths, in tokens, of the items that a run looked at."""
    # `ldp_trie` begins with pairs of characters: its level n has sequences of n + 1.
    return {level["level"] + (level["kind"] == "local") for level in levels}


def needed_parts(tokens: Tokens, levels: Sequence[ManifestLevel]) -> list[Tokens]:
    """The parts of a phrase that must be released before the phrase can be."""
    return [tokens[part] for part in needed_slices(len(tokens), levels)]


def needed_slices(length: int, levels: Sequence[ManifestLevel]) -> list[slice]:
    """Where the parts of `needed_parts` are in a phrase of `length` tokens."""
    begins = slice(0, length - 1)
    is_trie = any(level["kind"] in ("vote", "local") for level in levels)
    if is_trie:
        return [begins] if length > min(_lengths_of(levels)) else []
    has_parts = any(
        level["level"] == length > 1 and level["kind"] in ("pruned", "forecast") for level in levels
    )
    return [begins, slice(1, length)] if has_parts else []


def _released_of_these_tokens(release: Released, tokens: Tokens) -> dict[Tokens, bool]:
    """The released sequences that only these tokens occur in, so also a phrase and its parts; for
    each, whether it was released as complete and not only as a prefix."""
    frame = release.to_polars()
    frame = frame.filter(pl.col("tokens").list.eval(pl.element().is_in(tokens)).list.all())
    ends = frame["ended"] if "ended" in frame else [True] * len(frame)
    complete: dict[Tokens, bool] = {}
    for sequence, ended in zip(map(tuple, frame["tokens"].to_list()), ends, strict=True):
        complete[sequence] = complete.get(sequence, False) or bool(ended)
    return complete


def _missing_parts(
    tokens: Tokens, released: Collection[Tokens], levels: Sequence[ManifestLevel]
) -> list[Tokens]:
    """The shortest parts of a phrase that were not released, so that it was not looked at."""
    # Each part is visited once: parts overlap, so there are few of them but many paths to each.
    shortest, seen, waiting = set(), {tokens}, [tokens]
    while waiting:
        part = waiting.pop()
        missing = {shorter for shorter in needed_parts(part, levels) if shorter not in released}
        if not missing and part != tokens:
            shortest.add(part)
        waiting += missing - seen
        seen |= missing
    return sorted(shortest, key=lambda part: (len(part), tokens.index(part[0]), part))


def _below_threshold_sentence(release: Released, length: int, subject: str) -> str:
    finds = release.manifest["finds"]
    users = dict(map(tuple, finds["users_by_length"])).get(length, finds["users"])
    text = (
        f"{subject} stayed below the threshold. That does not say whether anybody holds it: what "
        "few hold looks like what nobody holds."
    )
    if floor := release.manifest.get("counting", {}).get("min_users"):
        text += f" Or its interval began below {floor:,} users (min_users), and it was left out."
    more = "more are needed if they hold other items"
    if many := finds.get("users_of_many"):
        held, few, most = many
        more = f"of people with {held} different words, as most have, it takes {few:,} to {most:,}"
    return (
        f"{text} At this price it is found with probability {finds['probability']:g} if {users:,} "
        f"people hold it and nothing else; {more}."
    )


def _tokens_of_phrase(
    release: Released, phrase: str | Sequence[str], tokens_of: Tokenise
) -> Tokens:
    """The phrase's tokens, tokenised as the corpus was; a list is used as it is."""
    if not isinstance(phrase, str):
        tokens = tuple(phrase)
        if not all(isinstance(token, str) for token in tokens):
            raise UsageError("phrase: give a text, or a list of tokens")
        return tokens
    written = release.manifest.get("parameters", {}).get("content")
    if written is None:
        raise UsageError("phrase: found a text, but the run had no corpus; give a list of tokens")
    (tokens,) = tokens_of([phrase], Content(**written))
    return tokens


def _quoted(release: Released, tokens: Tokens) -> str:
    return f"“{one_line(joiner_of(release.manifest).join(tokens))}”"
