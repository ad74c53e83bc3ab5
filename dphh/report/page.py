"""One HTML page of a release for readers, and the cards of plans and releases in notebooks.

All are made by one template, `page.html`, which has neither scripts nor addresses. The page's
policy loads nothing and runs nothing; every value is escaped, and characters that are invisible or
turn text around become visible symbols. So the text of an item is never more than text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dphh.corpus import Corpus
from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.price import Price
from dphh.report.bar_tables import Rows, Table, group_tables, people_tables, score_tables, tables_of
from dphh.report.counted import (
    held_by_nobody,
    how_many,
    how_to_read_counts,
    is_of_list,
    meaning_of_numbers,
    what_is_missing,
    which_rows,
)
from dphh.report.people import PEOPLE, Released, people_of
from dphh.report.plan_lines import DETAILS, Lines, asked, paid_lines, plan_sections
from dphh.report.promise import in_words, promised
from dphh.wording.lines import plural
from dphh.wording.options import check_whole
from dphh.wording.shown import shown

if TYPE_CHECKING:
    from jinja2 import Template

#: Rows of a table that are folded; browsers handle tens of thousands, not millions.
MOST_ROWS = 5_000
#: Rows of a table in a notebook's card: FEW if there are several tables, else MANY.
FEW, MANY = 5, 10


@dataclass(frozen=True)
class Section:
    """A part of a page, and below `folded` what a click unfolds."""

    heading: str = ""
    said: Sequence[str] = ()
    tables: Sequence[Table] = ()
    terms: Sequence[tuple[str, str]] = ()
    folded: str = ""
    folded_said: Sequence[str] = ()
    folded_terms: Sequence[tuple[str, str]] = ()
    folded_text: Sequence[str] = ()


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
        sections=[
            *_found(several, Rows(top, MOST_ROWS, min_length)),
            *map(_promise_section, several),
            _origin_section(release),
        ],
    )


def release_card(release: Released) -> str:
    """What was found, as bars, with the privacy statement folded away."""
    manifest = release.manifest
    tables = tables_of(release, Rows(MANY))
    tables = [each.cut(MANY if len(tables) == 1 else FEW) for each in tables]
    return _template().render(
        whole=False,
        title=how_many(release.table, manifest),
        warning=_warning(release),
        head=[("promise", _promise(manifest)), ("run", manifest["run_id"])],
        sections=[
            _table_section(release, "", tables),
            Section(folded="What is promised", folded_terms=in_words(manifest["privacy"])),
        ],
    )


def plan_card(price: Price, corpus: Corpus | None, ledger: Ledger | None = None) -> str:
    """What the plan promises, finds and costs; levels and theorem are folded away."""
    return _template().render(
        whole=False,
        title=f"plan: {price.verb}",
        warning="",
        head=[("options", asked(price))],
        sections=[
            Section(folded=name, folded_terms=lines)
            if name in DETAILS
            else Section(name, terms=lines)
            for name, lines in plan_sections(price, corpus, ledger)
        ],
    )


@lru_cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    def with_symbols(value: object) -> object:
        is_text = isinstance(value, str) and not hasattr(value, "__html__")
        return shown(str(value), 10_000) if is_text and value else value

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


def _head(several: Sequence[Released]) -> Lines:
    """What was found and what is promised, in a few lines."""
    manifests = [each.manifest for each in several]
    given = is_of_list(manifests[0])
    lines = [("counted", how_many(several[0].table, manifests[0]))] if given else [
        ("found", _summary(several[0]))
    ]  # fmt: skip
    lines += [("rows", where) for each in manifests if (where := which_rows(each))]
    lines.append(("promise", _promise(manifests[0])))
    lines.append(("in words", in_words(manifests[0]["privacy"])[0][1]))
    lines += [("of the counts", _promise(each)) for each in manifests[1:]]
    if len({each["privacy"]["unit"] for each in manifests}) < len(manifests):
        epsilon, delta = (
            sum(promised(each["privacy"]) for each in manifests),
            sum(float(each["privacy"]["delta"]) for each in manifests),
        )
        lines.append(("both together", f"({epsilon:.4g}, {delta:.4g}) at most"))
    return lines


def _summary(release: Released) -> str:
    found = {tuple(tokens) for tokens in release.table.column("tokens").to_pylist()}
    longer = sum(len(tokens) > 1 for tokens in found)
    said = plural(len(found), "item")
    if "ended" in release.table.column_names:
        ends = sum(bool(ended) for ended in release.table.column("ended").to_pylist())
        said = plural(ends, "sequence")
    elif longer:
        said = f"{plural(len(found) - longer, 'word')} and {plural(longer, 'longer phrase')}"
    if by_noise := held_by_nobody(release.manifest):
        of = " of all that was found" if "top" in release.manifest else ""
        said += f"; {by_noise:,} at most{of} are expected to be of noise alone, held by nobody"
    return said


def _found(several: Sequence[Released], asked: Rows) -> list[Section]:
    """What was counted, of each release; then what was found and not counted."""
    release = several[0]
    heading = f"What was {'counted' if is_of_list(release.manifest) else 'found'}"
    sections: list[Section] = []
    counted: set[tuple[str, ...]] = set()
    for each in several:
        if not (people := people_of(each)).counts:
            continue
        counted |= people.counts.keys()
        by = "How many people" if people.groups is None else f"By {people.by}"
        tables = people_tables(each, asked)
        sections.append(_table_section(each, by if sections else heading, tables))
        if lists := group_tables(each, asked):
            in_each = f"In each {people.by}, what stands out of the noise"
            sections.append(Section(in_each, (), lists))
    rest = score_tables(release, asked, without=counted)
    if rest or not sections:
        others = "Found, and not counted" if sections else heading
        sections.append(_table_section(release, others, rest))
    return sections


def _table_section(release: Released, heading: str, tables: Sequence[Table]) -> Section:
    """Tables with what their bars are; the rest of how to read them is folded away."""
    manifest = release.manifest
    if not tables:
        return Section(heading, ["Nothing.", what_is_missing(manifest)])
    bars = [bar for table in tables for row in (*table.first, *table.rest) for bar in row.bars]
    people = any(bar.low is not None for bar in bars)
    how = [*(how_to_read_counts(manifest) if people else ()), what_is_missing(manifest)]
    said = []
    if any(bar.value is not None for bar in bars):
        said = [meaning_of_numbers(manifest, people=people, bars=True)]
    return Section(heading, said, tables, folded="How to read this", folded_said=how)


def _promise_section(release: Released) -> Section:
    privacy = release.manifest["privacy"]
    of = "the numbers of people" if release.manifest["verb"] == "counts" else "what was found"
    proof = [
        ("theorem", privacy.get("theorem", "")),
        *(
            ("delta", f"{share:.4g} for {what}")
            for what, share in privacy.get("delta_shares", {}).items()
        ),
        *(("note", caveat) for caveat in privacy.get("caveats", ())),
        *(("warning", warning) for warning in privacy.get("warnings", ())),
    ]
    return Section(
        f"What is promised, of {of}",
        terms=[*in_words(privacy), ("run", release.manifest["run_id"])],
        folded="The theorem, and how delta is shared out",
        folded_terms=proof,
    )


def _origin_section(release: Released) -> Section:
    manifest = release.manifest
    engine = manifest.get("engine", {})
    ran = f", on {engine['name']} {engine['version']}" if engine else ""
    return Section(
        "Where this comes from",
        [f"Run {manifest['run_id']} of {manifest['verb']}{ran}."],
        folded="The manifest",
        folded_text=release.dumps().split("\n"),
    )
