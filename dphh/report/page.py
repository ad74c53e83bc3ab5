"""One HTML page of a release for readers, and the card of a release in notebooks.

Both are made by one template, `page.html`, which has neither scripts nor addresses. The page's
policy loads nothing and runs nothing; every value is escaped, and characters that are invisible or
turn text around become visible symbols. So the text of an item is never more than text.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from dphh.ledger import Ledger
from dphh.report import plan_lines, sentences
from dphh.report.bar_tables import Table, meaning_of_numbers, tables_of
from dphh.report.plan_lines import Lines, paying_accounts_lines
from dphh.report.sentences import (
    Released,
    holders_line,
    items_line,
    promise_in_words,
    promise_with_unit,
)
from dphh.wording.lines import visible_text
from dphh.wording.options import check_whole

if TYPE_CHECKING:
    from jinja2 import Template

#: The most rows of a table that a page has folded, beyond those it shows: browsers handle tens of
#: thousands, not millions.
MOST_FOLDED_ROWS = 5_000
#: The most rows of each table in a notebook's card.
MOST_CARD_ROWS = 5


def page_of(
    release: Released, *, title: str | None = None, ledger: Ledger | None = None, top: int = 25
) -> str:
    check_whole("top", top)
    tables = tables_of(release, top + MOST_FOLDED_ROWS)
    privacy = release.privacy
    head = [
        ("what", f"{items_line(release)}. {holders_line(release.manifest)}"),
        ("promise", promise_with_unit(privacy)),
        ("in words", promise_in_words(privacy)),
        *(("warning", said) for said in privacy.warnings),
        *([] if ledger is None else paying_accounts_lines(ledger, release)),
    ]
    return _rendered(release, tables, title or "What people share", head, top, is_page=True)


def release_card(release: Released) -> str:
    """The card of a release: bars of what was found, and the privacy statement, folded."""
    tables = tables_of(release, MOST_CARD_ROWS)
    head = [("promise", promise_with_unit(release.privacy)), ("run", release.manifest["run_id"])]
    return _rendered(release, tables, items_line(release), head, MOST_CARD_ROWS, is_page=False)


def _rendered(
    release: Released, tables: list[Table], title: str, head: Lines, top: int, *, is_page: bool
) -> str:
    return _template().render(
        is_page=is_page, title=title, release=release, head=head, top=top, tables=tables,
        meaning=meaning_of_numbers(release, tables),
    )  # fmt: skip


@lru_cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    def with_visible_characters(value: object) -> object:
        if not isinstance(value, str) or hasattr(value, "__html__") or not value:
            return value
        return "\n".join(visible_text(line, 10_000) for line in value.split("\n"))

    made = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=with_visible_characters,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["visible_text"] = visible_text
    made.globals |= {"say": sentences, "lines": plan_lines}
    return made.from_string(files("dphh.report").joinpath("page.html").read_text(encoding="utf-8"))
