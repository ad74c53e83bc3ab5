"""One HTML page of a release for readers, and the card of a release in notebooks.

Both are made by one template, `page.html`, which has neither scripts nor addresses. The page's
policy loads nothing and runs nothing; every value is escaped, and characters that are invisible or
turn text around become visible symbols. So the text of an item is never more than text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.report import plan_lines, sentences
from dphh.report.bar_tables import counted_columns, people_tables, score_tables
from dphh.report.plan_lines import Lines, paid_lines
from dphh.report.sentences import Released, held_by_few, how_many, promise, promise_in_words
from dphh.wording.lines import shown
from dphh.wording.options import check_whole

if TYPE_CHECKING:
    from jinja2 import Template

#: Folded rows of a table; browsers handle tens of thousands, not millions.
MOST_ROWS = 5_000
#: Rows of each table in a notebook's card.
ROWS_OF_CARD = 5
#: An epsilon and a delta, which no line end should divide.
_PAIR = re.compile(r"\([\d.]+, [\d.e-]+\)-?\w*")


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
        if not hasattr(counts, "manifest") or "users" not in counts.table.column_names:
            raise UsageError(
                f"counts: found a {type(counts).__name__} without the columns users, low and high; "
                "give a release that counts users: a page may be published, and exact counts may "
                "not"
            )
        several.append(counts)
    most = top + MOST_ROWS
    counted = {of for each in several for bars in counted_columns(each).values() for of in bars}
    return _template().render(
        whole=True,
        title=title or "What people share",
        several=several,
        head=[*_head(several), *([] if ledger is None else paid_lines(ledger, several))],
        top=top,
        people=people_tables(several, most, min_length),
        scores=score_tables(release, most, min_length, without=counted),
    )


def release_card(release: Released) -> str:
    """What was found, as bars, with the privacy statement folded away."""
    people = people_tables([release], ROWS_OF_CARD)
    return _template().render(
        whole=False,
        title=how_many(release),
        several=[release],
        head=[("promise", promise_of(release)), ("run", release.manifest["run_id"])],
        top=ROWS_OF_CARD,
        people=people,
        scores=[] if people else score_tables(release, ROWS_OF_CARD),
    )


def promise_of(release: Released) -> str:
    return f"{promise(release.privacy)} for {release.privacy.unit}"


def _head(several: Sequence[Released]) -> Lines:
    """What was found and what is promised, in a few lines."""
    release, all_privacy = several[0], [each.privacy for each in several]
    lines = [("what", f"{how_many(release)}. {held_by_few(release.manifest)}")]
    lines += [("promise", promise_of(each)) for each in several]
    if len({privacy.unit for privacy in all_privacy}) < len(several):
        epsilon = sum(privacy.published_epsilon for privacy in all_privacy)
        delta = sum(privacy.delta for privacy in all_privacy)
        lines.append(("together", f"({epsilon:.4g}, {delta:.4g}) at most"))
    lines.append(("in words", promise_in_words(release.privacy)))
    return lines + [("warning", said) for each in all_privacy for said in each.warnings]


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
    made.globals |= {"say": sentences, "lines": plan_lines}
    return made.from_string(files("dphh.report").joinpath("page.html").read_text(encoding="utf-8"))
