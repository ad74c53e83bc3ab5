"""One HTML page of a release for readers, and the card of a release in notebooks.

Both are made by one template, `page.html`, which has neither scripts nor addresses. The page's
policy loads nothing and runs nothing; every value is escaped, and characters that are invisible or
turn text around become visible symbols. So the text of an item is never more than text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.report.bar_tables import (
    Rows,
    Table,
    counted_columns,
    people_tables,
    score_tables,
    tables_of,
)
from dphh.report.counted import (
    PEOPLE,
    Released,
    counting_of,
    held_by_nobody,
    how_many,
    how_to_read_counts,
    is_of_list,
    may_bind,
    meaning_of_numbers,
    what_is_missing,
    which_rows,
)
from dphh.report.plan_lines import Lines, paid_lines
from dphh.report.promise import in_full, in_words, promised
from dphh.wording.lines import plural
from dphh.wording.options import check_whole
from dphh.wording.shown import shown

if TYPE_CHECKING:
    from jinja2 import Template

#: Folded rows of a table; browsers handle tens of thousands, not millions.
MOST_ROWS = 5_000
#: Rows of a table in a notebook's card: FEW if there are several tables, else MANY.
FEW, MANY = 5, 10
#: An epsilon and a delta, which no line end should divide.
_PAIR = re.compile(r"\([\d.]+, [\d.e-]+\)-?\w*")


@dataclass(frozen=True)
class Section:
    """Tables, what their numbers are, and below `how` what a click unfolds."""

    heading: str
    said: Sequence[str]
    tables: Sequence[Table] = ()
    how: Sequence[str] = ()


def page_of(
    release: Released,
    *,
    title: str | None = None,
    counts: Released | None = None,
    ledger: Ledger | None = None,
    top: int = 25,
    min_length: int = 1,
) -> str:
    check_whole("top", top)
    check_whole("min_length", min_length)
    several = [release]
    if counts is not None:
        if not hasattr(counts, "manifest") or not {*PEOPLE} <= {*counts.table.column_names}:
            raise UsageError(
                f"counts: found a {type(counts).__name__} without the columns users, low and high; "
                "give a release that counts users: a page may be published, and exact counts may "
                "not"
            )
        if counts.manifest["run_id"] != release.manifest["run_id"]:
            several.append(counts)
    return _template().render(
        whole=True,
        title=title or "What people share",
        warning=_warning(release),
        head=[*_head(several), *(() if ledger is None else paid_lines(ledger, several))],
        sections=_sections(several, Rows(top, top + MOST_ROWS, min_length)),
        promises=[_promise_in_full(each.manifest) for each in several],
        manifests=[each.dumps() for each in several],
    )


def release_card(release: Released) -> str:
    """What was found, as bars, with the privacy statement folded away."""
    manifest = release.manifest
    tables = tables_of(release, Rows(MANY, MANY))
    if len(tables) > 1:
        tables = tables_of(release, Rows(FEW, FEW))
    return _template().render(
        whole=False,
        title=how_many(release.table, manifest),
        warning=_warning(release),
        head=[("promise", _promise(manifest)), ("run", manifest["run_id"])],
        sections=[_section([release], "", tables)],
        promises=[[("epsilon", in_words(manifest["privacy"])), *_promise_in_full(manifest)]],
        manifests=[],
    )


@lru_cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    def with_symbols(value: object) -> object:
        if not isinstance(value, str) or hasattr(value, "__html__") or not value:
            return value
        escape, safe = made.filters["escape"], made.filters["safe"]
        text = str(escape("\n".join(shown(line, 10_000) for line in value.split("\n"))))
        return safe(_PAIR.sub(r'<span class="pair">\g<0></span>', text))

    made = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=with_symbols,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = shown
    return made.from_string(files("dphh.report").joinpath("page.html").read_text(encoding="utf-8"))


def _warning(release: Released) -> str:
    return str(release.manifest["randomness"]) if release.manifest.get("is_test") else ""


def _promise(manifest: dict[str, Any]) -> str:
    privacy = manifest["privacy"]
    epsilon, delta = promised(privacy), privacy["delta"]
    return f"({epsilon:.4g}, {delta:g})-differential privacy for {privacy['unit']}"


def _promise_in_full(manifest: dict[str, Any]) -> Lines:
    engine = manifest.get("engine", {})
    ran = f" on {engine['name']} {engine['version']}" if engine else ""
    return [
        ("run", f"{manifest['run_id']} of {manifest['verb']}{ran}"),
        *in_full(manifest["privacy"]),
    ]


def _head(several: Sequence[Released]) -> Lines:
    """What was found and what is promised, in a few lines."""
    manifests = [each.manifest for each in several]
    release, manifest = several[0], manifests[0]
    if is_of_list(manifest):
        lines = [("counted", how_many(release.table, manifest))]
    else:
        lines = [("found", _summary(release))]
    lines += [("rows", where) for each in manifests if (where := which_rows(each))]
    lines.append(("promise", _promise(manifest)))
    lines += [("of the counts", _promise(each)) for each in manifests[1:]]
    if len({each["privacy"]["unit"] for each in manifests}) < len(manifests):
        epsilon, delta = (
            sum(promised(each["privacy"]) for each in manifests),
            sum(float(each["privacy"]["delta"]) for each in manifests),
        )
        lines.append(("both together", f"({epsilon:.4g}, {delta:.4g}) at most"))
    lines.append(("in words", in_words(manifest["privacy"])))
    return [
        *lines,
        *(("warning", said) for each in manifests for said in each["privacy"].get("warnings", ())),
    ]


def _summary(release: Released) -> str:
    found = {tuple(tokens) for tokens in release.table.column("tokens").to_pylist()}
    longer = sum(len(tokens) > 1 for tokens in found)
    said = plural(len(found), "item")
    if "ended" in release.table.column_names:
        ends = sum(bool(ended) for ended in release.table.column("ended").to_pylist())
        said = plural(ends, "sequence")
    elif longer:
        said = f"{plural(len(found) - longer, 'word')} and {plural(longer, 'longer phrase')}"
    if floor := release.manifest.get("counting", {}).get("min_users"):
        return f"{said}; each held by {floor:,} people or more, as far as its interval shows"
    if by_noise := held_by_nobody(release.manifest):
        of = "all that was found" if "top" in release.manifest else "them"
        said += f"; up to {by_noise:,} of {of}, as expected, may be held by few or nobody"
    return said


def _sections(several: Sequence[Released], asked: Rows) -> list[Section]:
    """What was counted, all of it in one place; then what was found and not counted."""
    release = several[0]
    heading = f"What was {'counted' if is_of_list(release.manifest) else 'found'}"
    counted = {of for each in several for _, bars in counted_columns(each) for of in bars}
    sections = [_section(several, heading, people_tables(several, asked))] if counted else []
    rest = score_tables(release, asked, without=counted)
    if rest or not sections:
        others = "Found, and not counted" if sections else heading
        sections.append(_section([release], others, rest))
    return sections


def _section(several: Sequence[Released], heading: str, tables: Sequence[Table]) -> Section:
    """Tables with what their bars are; the rest of how to read them is folded away."""
    missing = what_is_missing(several[0].manifest)
    if not tables:
        return Section(heading, ["Nothing.", missing])
    bars = [bar for table in tables for row in table.rows for bar in row.bars]
    counted = [each.manifest for each in several if counting_of(each.manifest)]
    if people := any(bar.low is not None for bar in bars):
        how = [said for each in counted for said in how_to_read_counts(each)]
        binding = max(counted, key=may_bind)
        said = [meaning_of_numbers(binding, people=people, bars=True, runs=len(counted))]
    else:
        how = []
        said = [meaning_of_numbers(several[0].manifest, people=False)]
    if not any(bar.value is not None for bar in bars):
        said = []
    return Section(heading, said, tables, [*dict.fromkeys(how), missing])
