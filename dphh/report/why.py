"""Explains why a phrase is not in a release, from the release alone. Free: reads no row.

It cannot say how many users hold the phrase, or whether any does: below the threshold both look the
same. That is the privacy guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dphh.errors import UsageError
from dphh.report.counted import is_of_list
from dphh.report.people import Released
from dphh.rows.content import Content
from dphh.wording.lines import plural, shorten

Tokens = tuple[str, ...]
#: The tokens of a text, as engines read it.
Tokenise = Callable[[str, Content], Tokens]
Reason = Literal[
    "released",
    "not so read",
    "not of this length",
    "not asked for",
    "a part was not released",
    "below",
    "left out by top",
]
#: Kinds of levels that grow sequences from their beginning.
_TRIE_LEVEL_KINDS = ("vote", "batch", "local")


@dataclass(frozen=True)
class Why:
    """The reason as one word, the parts that it depends on, and an explaining sentence."""

    tokens: Tokens
    reason: Reason
    #: The shortest parts that were not released, which the phrase needs.
    missing: tuple[Tokens, ...]
    said: str

    def __repr__(self) -> str:
        return self.said


def why(release: Released, phrase: str | Sequence[str], tokens_of: Tokenise) -> Why:
    """Whether a phrase was released and, if not, at which step it was dropped."""
    tokens = _tokens_of_phrase(release, phrase, tokens_of)
    name = _quoted_phrase(release, tokens)
    released = {tuple(row) for row in release.table.column("tokens").to_pylist()}
    most = release.manifest.get("top")
    if most is not None and tokens and tokens not in released:
        return Why(
            tokens, "left out by top", (),
            f"{name} is not among the {most:,} that top({most}) took of a release: ask that one.",
        )  # fmt: skip
    return _why_of_release(release, tokens, name, released)


def _why_of_release(release: Released, tokens: Tokens, name: str, released: set[Tokens]) -> Why:
    if not tokens:
        return Why(
            tokens, "not so read", (),
            "As the corpus is read, nothing of this is left: see how it is split and what is kept.",
        )  # fmt: skip
    by_length = {level["level"]: level for level in release.manifest["levels"]}
    if any(level.get("kind") in _TRIE_LEVEL_KINDS for level in by_length.values()):
        return _why_in_trie(release, tokens, name, max(by_length))
    if tokens in released:
        return Why(tokens, "released", (), f"{name} is in the release.")
    if (reason := _reason_not_considered(release, name, tokens, by_length)) is not None:
        return Why(tokens, reason[0], (), reason[1])
    missing = missing_parts(tokens, released, by_length)
    if missing:
        parts = " and ".join(_quoted_phrase(release, part) for part in missing)
        return Why(
            tokens, "a part was not released", missing,
            f"{name} was not looked at: {parts} "
            f"{'was' if len(missing) == 1 else 'were'} not released, and a phrase is tried only "
            "where its parts were.",
        )  # fmt: skip
    # Only a pruned level requires that the parts were released.
    subject = (
        f"{name}: its parts were released, and it" if _is_pruned(by_length, len(tokens)) else name
    )
    return Why(tokens, "below", (), _threshold_sentence(release, len(tokens), subject))


def _reason_not_considered(
    release: Released, name: str, tokens: Tokens, by_length: dict[int, dict[str, Any]]
) -> tuple[Reason, str] | None:
    length = len(tokens)
    asked = release.manifest.get("parameters", {})
    if [*tokens] in map(list, asked.get("domain") or ()):
        return "below", (
            f"{name} is in the domain, and was left out: the low end of its interval lies below "
            f"min_users, {asked.get('min_users')}."
        )
    if is_of_list(release.manifest) or "domain" in asked:
        return "not asked for", (
            f"{name} is not among the items that were given to be counted; that does not say "
            "whether anybody holds it."
        )
    if length in by_length:
        return None
    longest = max(by_length, default=0)
    return "not of this length", (
        f"{name} has {plural(length, 'token')}; this release looked at "
        f"{'other lengths' if length < longest else f'phrases of up to {longest:,}'}."
    )


def missing_parts(
    tokens: Tokens, released: set[Tokens], by_length: dict[int, dict[str, Any]]
) -> tuple[Tokens, ...]:
    """The shortest parts whose absence kept these tokens from being valid."""
    if not _is_pruned(by_length, len(tokens)):
        return ()
    both = by_length[len(tokens)].get("pruning", "both") == "both"
    found: list[Tokens] = []
    for part in (tokens[:-1], tokens[1:] if both else tokens[-1:]):
        if part not in released:
            found += missing_parts(part, released, by_length) or (part,)
    return tuple(sorted(set(found), key=lambda part: (len(part), tokens.index(part[0]))))


def _is_pruned(by_length: dict[int, dict[str, Any]], length: int) -> bool:
    return length > 1 and "pruning" in by_length.get(length, {})


def _why_in_trie(release: Released, tokens: Tokens, name: str, levels: int) -> Why:
    if (unread := _reason_not_asked(release, tokens)) is not None:
        return Why(tokens, "not so read", (), f"{name} {unread}.")
    ends: dict[Tokens, bool] = {}
    for row in release.table.select(["tokens", "ended"]).to_pylist():
        way = tuple(row["tokens"])
        ends[way] = ends.get(way, False) or bool(row["ended"])
    if ends.get(tokens):
        return Why(tokens, "released", (), f"{name} is in the release, as a whole sequence.")
    if tokens in ends:
        last = (
            "its end would be a level more than this run has"
            if len(tokens) >= levels
            else "that sequences end there was not released"
        )
        return Why(
            tokens, "released", (), f"{name} is in the release as a beginning of sequences; {last}."
        )
    if len(tokens) > levels:
        return Why(
            tokens, "not of this length", (),
            f"{name} has {plural(len(tokens), 'token')}; this run has {plural(levels, 'level')}.",
        )  # fmt: skip
    stopped = next(tokens[:n] for n in range(1, len(tokens) + 1) if tokens[:n] not in ends)
    if len(stopped) < len(tokens):
        return Why(
            tokens, "a part was not released", (stopped,),
            f"{name} was not asked for: its beginning {_quoted_phrase(release, stopped)} was not "
            "released, and sequences grow from beginnings that were.",
        )  # fmt: skip
    subject = f"{name}: its beginning was released, and it" if len(tokens) > 1 else name
    return Why(tokens, "below", (), _threshold_sentence(release, len(tokens), subject))


def _reason_not_asked(release: Released, tokens: Tokens) -> str | None:
    """For `ldp_trie`: words given as known, and words with characters outside the run's set."""
    asked = release.manifest.get("parameters", {})
    if tokens in {tuple(word) for word in asked.get("known", ())}:
        return "was said to be known, so nobody was asked"
    if "character_set" in asked and (strange := set(tokens) - set(asked["character_set"])):
        found = ", ".join(shorten(repr(token)) for token in sorted(strange))
        return f"holds {found}, not in the run's character set"
    return None


def _threshold_sentence(release: Released, length: int, subject: str) -> str:
    finds = release.manifest.get("finds", {})
    users = dict(map(tuple, finds.get("users_by_length", ()))).get(length, finds.get("users"))
    said = (
        f"{subject} stayed below the threshold. That does not say whether anybody holds it: what "
        "few hold looks like what nobody holds."
    )
    if floor := release.manifest.get("counting", {}).get("min_users"):
        said += f" Or its interval began below {floor:,} users (min_users), and it was left out."
    if users is None:
        return said
    return (
        f"{said} At this price, {users:,} people make it found with probability "
        f"{finds['probability']:g} if they hold nothing else; those who hold more count for less."
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
    if written is None or written["reading"] == "list":
        raise UsageError("phrase: found a text, but the corpus had lists; give a list of tokens")
    return tokens_of(phrase, Content(**written))


def _quoted_phrase(release: Released, tokens: Tokens) -> str:
    content = release.manifest.get("parameters", {}).get("content", {})
    joiner = "" if content.get("unit") or content.get("reading") == "characters" else " "
    return f"“{shorten(joiner.join(tokens))}”"
