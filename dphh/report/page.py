"""One HTML page of releases for readers, and the card of a release in notebooks.

One template, `page.html`, makes both; it has neither scripts nor addresses. The page's policy lets
it load nothing and run nothing. Every value is escaped, and characters that are invisible or change
the direction of text become visible symbols. So the text of an item is never more than text.

The highest numbers and the changes come first, then all findings; how to read them is folded, and
the promise is below.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from dphh.ledger import Ledger
from dphh.report import plan_lines, sentences
from dphh.report.parts import MOST_FINDINGS, Part, parts_of
from dphh.report.plan_lines import Lines, paying_accounts_lines
from dphh.report.rows import early_day
from dphh.report.sentences import Released, items_line
from dphh.wording.lines import visible_text
from dphh.wording.options import check_whole

if TYPE_CHECKING:
    from jinja2 import Template

#: The most rows of a table that a page folds, beyond those that it shows: browsers handle tens of
#: thousands, not millions.
MOST_FOLDED_ROWS = 5_000
#: The most rows of each table in a notebook's card.
MOST_CARD_ROWS = 5
#: The most groups that are shown side by side; more are shown below one another.
MOST_COLUMNS = 7


def page_of(
    release: Released,
    *,
    title: str | None = None,
    ledger: Ledger | None = None,
    top: int = 25,
    others: Sequence[Released] = (),
    against: Sequence[Released] = (),
) -> str:
    """against: earlier releases; each goes with the first release that it can be compared with."""
    check_whole("top", top)
    parts = parts_of([release, *others], against, top + MOST_FOLDED_ROWS)
    accounts: dict[tuple[str, str], None] = {}
    if ledger is not None:
        for paid in (release, *others):
            accounts |= dict.fromkeys(paying_accounts_lines(ledger, paid))
    heading = title or "What people share"
    return _rendered(parts, heading, [*accounts], top, is_page=True)


def release_card(release: Released) -> str:
    """The card of a release: bars of what was found, and the privacy statement, folded."""
    parts = parts_of([release], [], MOST_CARD_ROWS)
    return _rendered(parts, items_line(release), [], MOST_CARD_ROWS, is_page=False)


def _rendered(
    parts: Sequence[Part], title: str, accounts: Lines, top: int, *, is_page: bool
) -> str:
    return _template().render(
        is_page=is_page, title=title, parts=parts, top=top, accounts=accounts,
        every=[shown for part in parts for shown in (part, part.rest) if shown],
        most_columns=MOST_COLUMNS, most_findings=MOST_FINDINGS,
    )  # fmt: skip


@lru_cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    def unbroken(text: str) -> Markup:
        """The text with each range of numbers kept on one line."""
        span = r'<span class="range">\g<0></span>'
        return Markup(re.sub(r"\(?[\d,]+ to [\d,]+\)?", span, str(escape(text))))

    def with_visible_characters(value: object) -> object:
        if not isinstance(value, str) or hasattr(value, "__html__") or not value:
            return value
        return "\n".join(visible_text(line, 10_000) for line in value.split("\n"))

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=with_visible_characters,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible_text"] = visible_text
    environment.filters["unbroken"] = unbroken
    environment.filters["css_text"] = lambda text: "".join(
        f"\\{ord(character):06x}" for character in text
    )
    environment.filters["promise_in_short"] = sentences.promise_in_short
    environment.globals |= {"say": sentences, "lines": plan_lines, "early_day": early_day}
    text = files("dphh.report").joinpath("page.html").read_text(encoding="utf-8")
    return environment.from_string(text)
