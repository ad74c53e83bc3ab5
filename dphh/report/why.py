"""Explains why a phrase is not in a release, from the release alone. Free: reads no row.

It cannot say how many users hold the phrase, or whether any does: below the threshold both look the
same. That is the privacy guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dphh.errors import UsageError
from dphh.report.counted import Released, Tokens, is_of_list
from dphh.rows.content import Content
from dphh.wording.lines import plural, shorten

#: The tokens of a text, as engines read it.
Tokenise = Callable[[Sequence[str], Content], list[Tokens]]
Reason = Literal[
    "released",
    "not so read",
    "not of this length",
    "not asked for",
    "a part was not released",
    "below",
    "left out by top",
]
#: A reason, the sentence that explains it, and the parts that were missing.
Found = tuple[Reason, str, tuple[Tokens, ...]]
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
    reason, said, missing = _found(release, tokens)
    return Why(tokens, reason, missing, said)


def _found(release: Released, tokens: Tokens) -> Found:
    if not tokens:
        said = (
            "As the corpus is read, nothing of this is left: see how it is split and what is kept."
        )
        return "not so read", said, ()
    name, most = _quoted(release, tokens), release.manifest.get("top")
    released = {tuple(row) for row in release.table.column("tokens").to_pylist()}
    if most is not None and tokens not in released:
        said = f"{name} is not among the {most:,} that top({most}) took of a release: ask that one."
        return "left out by top", said, ()
    levels = {level["level"]: level for level in release.manifest["levels"]}
    if any(level.get("kind") in _TRIE_LEVEL_KINDS for level in levels.values()):
        # Devices are asked from pairs on: each character is a beginning, and no row of its own.
        local = any(level.get("kind") == "local" for level in levels.values())
        return _found_in_trie(release, tokens, name, max(levels) + local, 2 if local else 1)
    if tokens in released:
        return "released", f"{name} is in the release.", ()
    below = _below_threshold(release, name, tokens, released, levels)
    return _not_considered(release, name, tokens, levels) or below


def _not_considered(
    release: Released, name: str, tokens: Tokens, levels: dict[int, dict[str, Any]]
) -> Found | None:
    asked = release.manifest.get("parameters", {})
    if [*tokens] in map(list, asked.get("domain") or ()):
        floor = asked.get("min_users")
        said = f"the low end of its interval lies below min_users, {floor}"
        return "below", f"{name} is in the domain, and was left out: {said}.", ()
    if is_of_list(release.manifest) or "domain" in asked:
        said = "that does not say whether anybody holds it"
        said = f"{name} is not among the items that were given to be counted; {said}."
        return "not asked for", said, ()
    length, longest = len(tokens), max(levels, default=0)
    if length not in levels:
        looked = "other lengths" if length < longest else f"phrases of up to {longest:,}"
        said = f"{name} has {plural(length, 'token')}; this release looked at {looked}."
        return "not of this length", said, ()
    return None


def _below_threshold(
    release: Released,
    name: str,
    tokens: Tokens,
    released: set[Tokens],
    levels: dict[int, dict[str, Any]],
) -> Found:
    if missing := _missing_parts(tokens, released, levels):
        parts = " and ".join(_quoted(release, part) for part in missing)
        were = "was" if len(missing) == 1 else "were"
        return (
            "a part was not released",
            f"{name} was not looked at: {parts} {were} not released, and a phrase is tried only "
            "where its parts were.",
            missing,
        )
    # Only a pruned level requires that the parts were released.
    pruned = _is_pruned(levels, len(tokens))
    subject = f"{name}: its parts were released, and it" if pruned else name
    return "below", _threshold_sentence(release, len(tokens), subject), ()


def _missing_parts(
    tokens: Tokens, released: set[Tokens], levels: dict[int, dict[str, Any]]
) -> tuple[Tokens, ...]:
    """The shortest parts whose absence kept these tokens from being valid."""
    if not _is_pruned(levels, len(tokens)):
        return ()
    both = levels[len(tokens)].get("pruning", "both") == "both"
    found: list[Tokens] = []
    for part in (tokens[:-1], tokens[1:] if both else tokens[-1:]):
        if part not in released:
            found += _missing_parts(part, released, levels) or (part,)
    return tuple(sorted(set(found), key=lambda part: (len(part), tokens.index(part[0]))))


def _is_pruned(levels: dict[int, dict[str, Any]], length: int) -> bool:
    return length > 1 and "pruning" in levels.get(length, {})


def _found_in_trie(
    release: Released, tokens: Tokens, name: str, longest: int, shortest: int
) -> Found:
    if unread := _not_asked_of_devices(release, tokens):
        return "not so read", f"{name} {unread}.", ()
    ends: dict[Tokens, bool] = {}
    for row in release.table.select(["tokens", "ended"]).to_pylist():
        way = tuple(row["tokens"])
        ends[way] = ends.get(way, False) or bool(row["ended"])
    if ends.get(tokens):
        return "released", f"{name} is in the release, as a whole sequence.", ()
    if tokens in ends:
        last = (
            "its end would be a level more than this run has"
            if len(tokens) >= longest
            else "that sequences end there was not released"
        )
        return "released", f"{name} is in the release as a beginning of sequences; {last}.", ()
    if not shortest <= len(tokens) <= longest:
        looked = f"this run looked at {shortest:,} to {longest:,}"
        return "not of this length", f"{name} has {plural(len(tokens), 'token')}; {looked}.", ()
    stopped = next(tokens[:n] for n in range(shortest, len(tokens) + 1) if tokens[:n] not in ends)
    if len(stopped) < len(tokens):
        return (
            "a part was not released",
            f"{name} was not asked for: its beginning {_quoted(release, stopped)} was not "
            "released, and sequences grow from beginnings that were.",
            (stopped,),
        )
    subject = f"{name}: its beginning was released, and it" if len(tokens) > shortest else name
    return "below", _threshold_sentence(release, len(tokens), subject), ()


def _not_asked_of_devices(release: Released, tokens: Tokens) -> str:
    """For `ldp_trie`: words given as known, and words with characters outside the run's set."""
    asked = release.manifest.get("parameters", {})
    if tokens in {tuple(word) for word in asked.get("known", ())}:
        return "was said to be known, so nobody was asked"
    if "character_set" in asked and (strange := set(tokens) - set(asked["character_set"])):
        found = ", ".join(shorten(repr(token)) for token in sorted(strange))
        return f"holds {found}, not in the run's character set"
    return ""


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
    (tokens,) = tokens_of([phrase], Content(**written))
    return tokens


def _quoted(release: Released, tokens: Tokens) -> str:
    content = release.manifest.get("parameters", {}).get("content", {})
    joiner = "" if content.get("unit") or content.get("reading") == "characters" else " "
    return f"“{shorten(joiner.join(tokens))}”"
