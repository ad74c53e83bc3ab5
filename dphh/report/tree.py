"""A release as a tree: each phrase is below its longest proper prefix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from dphh.errors import UsageError
from dphh.report.released import Released
from dphh.wording import shown

#: Lines that a printed tree has at most.
SHOWN_LINES = 40


@dataclass
class Node:
    """One phrase. `item` is None for a prefix that was not released itself."""

    token: str
    item: str | None = None
    score: float | None = None
    #: For tries: whether a sequence ends here.
    ended: bool | None = None
    below: dict[str, Node] = field(default_factory=dict)

    def children(self) -> list[Node]:
        """Children by score; siblings have one length, so their scores compare."""
        return sorted(
            self.below.values(), key=lambda node: (-(node.score or 0.0), node.item or node.token)
        )


@dataclass(frozen=True)
class Tree:
    """The phrases that begin with a prefix; prints indented, and unfolds in a notebook."""

    root: Node
    prefix: tuple[str, ...]
    #: The text between tokens: a space, or nothing between characters.
    joiner: str = " "

    def __iter__(self) -> Iterator[tuple[int, Node]]:
        """Each node with its depth, parents before children."""
        todo = [(0, node) for node in reversed(self.root.children())]
        while todo:
            depth, node = todo.pop()
            yield depth, node
            todo += [(depth + 1, child) for child in reversed(node.children())]

    def __len__(self) -> int:
        return sum(node.item is not None for _, node in self)

    def __repr__(self) -> str:
        lines: list[str] = []
        for depth, node in self:
            if len(lines) == SHOWN_LINES:
                lines.append(f"... and {len(self) - SHOWN_LINES:,} more")
                break
            end = " •" if node.ended else ""
            lines.append("  " * depth + shown.shown(node.token, 60) + end)
        return "\n".join(lines) or "nothing was released below this beginning"

    def _repr_html_(self) -> str:
        return f"<div class='dphh'>{tree_html(self)}</div>"


def tree_of(release: Released, prefix: Sequence[str] = (), most: int | None = None) -> Tree:
    """The tree of a release, or of its first `most` rows of each length."""
    if isinstance(prefix, str):
        raise UsageError(f"prefix: found the text {prefix!r}; give a list of tokens")
    begin = tuple(prefix)
    root = Node("")
    columns = [name for name in ("tokens", "item", "score", "ended", "level")
               if name in release.table.column_names]  # fmt: skip
    seen: dict[int, int] = {}
    for row in release.table.select(columns).to_pylist():
        tokens = tuple(row["tokens"])
        seen[row["level"]] = seen.get(row["level"], 0) + 1
        if tokens[: len(begin)] != begin or (most is not None and seen[row["level"]] > most):
            continue
        node = root
        for token in tokens[max(0, len(begin) - 1) :]:
            node = node.below.setdefault(token, Node(token))
        node.item = row["item"]
        if (score := row.get("score")) is not None:
            node.score = score if node.score is None else max(node.score, score)
        if (ended := row.get("ended")) is not None:
            node.ended = bool(node.ended) or ended
    return Tree(root, begin, joiner_of(release))


def joiner_of(release: Released) -> str:
    content = release.manifest.get("parameters", {}).get("content", {})
    return "" if content.get("unit") or content.get("reading") == "characters" else " "


def tree_html(tree: Tree) -> str:
    """Nested lists that fold; each line contains its whole phrase, so that a search finds it."""
    joiner = tree.joiner
    before = "".join(shown.shown(token) + joiner for token in tree.prefix[:-1])
    lines = ["<ul class='tree'>"]
    # A stack instead of recursion: sequences may be longer than Python's recursion limit.
    todo: list[str | tuple[Node, str]] = [(node, before) for node in reversed(tree.root.children())]
    while todo:
        if isinstance(step := todo.pop(), str):
            lines.append(step)
            continue
        node, before = step
        token, node = _merge_single_children(node, joiner)
        said = f"<bdi><i>{escape(before)}</i>{escape(token)}</bdi>"
        if node.ended:
            said += " <b title='sequences end here'>•</b>"
        if not node.below:
            lines.append(f"<li>{said}</li>")
            continue
        lines.append(
            f"<li><details><summary>{said} <small>+{len(node.below):,}</small></summary><ul>"
        )
        todo.append("</ul></details></li>")
        todo += [(child, before + token + joiner) for child in reversed(node.children())]
    return "".join([*lines, "</ul>"])


def _merge_single_children(node: Node, joiner: str) -> tuple[str, Node]:
    """Merge a trie's prefix with its only continuation, so that both share one line."""
    token = shown.shown(node.token)
    while node.ended is False and len(node.below) == 1:
        (node,) = node.below.values()
        token += joiner + shown.shown(node.token)
    return token, node
