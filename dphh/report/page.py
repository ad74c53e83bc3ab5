"""One HTML report for readers: what was found, the privacy statement, and the remaining budget.

It is one file without network access. Its content security policy loads nothing and allows only the
page's own style and script, named by their digests, so the text of an item is never executed.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from dphh.errors import UsageError
from dphh.files.paths import written_here
from dphh.files.whole_files import write_named
from dphh.ledger.shown import account_html
from dphh.report.chart import Chart, chart_html, chart_of, within_groups
from dphh.report.counted import how_many, is_of_list, which_rows
from dphh.report.people import PEOPLE
from dphh.report.phrases import phrases
from dphh.report.promise import in_words, promised
from dphh.report.released import Released
from dphh.report.style import CHART_CSS, PAGE_CSS, PAGE_JS
from dphh.report.total_promise import total_promise
from dphh.report.tree import tree_html, tree_of
from dphh.wording import shown
from dphh.wording.lines import plural

if TYPE_CHECKING:
    from dphh.ledger import Ledger

#: Rows of each length that the tree contains; browsers handle tens of thousands, not millions.
MOST_ITEMS = 5_000
#: Bars of each length, and phrases in the list of the longest phrases.
TOP, LONGEST = 15, 60


def write_page(
    release: Released,
    path: str | Path,
    *,
    title: str | None = None,
    counts: Released | None = None,
    ledger: Ledger | None = None,
) -> Path:
    out = written_here("report", path)
    if out.is_dir():
        raise UsageError(f"report: {out} is a folder; give a file, such as {out / 'report.html'}")
    page = page_of(release, title=title, counts=counts, ledger=ledger)
    write_named("report", out, page.encode(), b"<!doctype html>")
    return out


def page_of(
    release: Released,
    *,
    title: str | None = None,
    counts: Released | None = None,
    ledger: Ledger | None = None,
) -> str:
    """The page as HTML text."""
    _check_counts(release, counts)
    chart = chart_of(release, TOP, counts)
    heading = title or "What many people share"
    style, script = f"{CHART_CSS}\n{PAGE_CSS}", PAGE_JS
    policy = (
        f"default-src 'none'; style-src {_digest_of(style)}; script-src {_digest_of(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    body = "".join(
        [
            _head_html(release, counts, heading),
            _found_html(release, chart),
            _groups_html(within_groups(release, TOP, counts), counts or release),
            "" if chart.of_people else _longest_phrases_html(release),
            _all_items_html(release),
            _promise_html(release, counts),
            "" if ledger is None else _budget_html(ledger, release),
            _manifest_html(release),
        ]
    )
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<meta name='referrer' content='no-referrer'><title>{escape(shown.shown(heading))}</title>"
        f"<style>{style}</style></head>"
        f"<body><main class='dphh'>{body}</main><script>{script}</script></body></html>\n"
    )


def _check_counts(release: Released, counts: Released | None) -> None:
    if counts is None:
        return
    if not hasattr(counts, "manifest"):
        raise UsageError(
            f"counts: found a {type(counts).__name__}; give a release that counts users: a report "
            "may be published, and exact counts may not"
        )
    if missing := [name for name in PEOPLE if name not in counts.table.column_names]:
        raise UsageError(
            f"counts: run {counts.run_id} has no column {', '.join(missing)}; give a release that "
            "counts users"
        )


def _digest_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _head_html(release: Released, counts: Released | None, heading: str) -> str:
    privacy = release.privacy
    together = _promise_together(release, counts)
    warning = ""
    if release.is_test:
        warning = f"<p class='warning'>{escape(release.manifest['randomness'])}</p>"
    return (
        f"<h1>{shown.html(heading)}</h1>{warning}"
        f"<p class='lead'>{_summary_html(release)}, published with "
        f"({promised(privacy):.4g}, {privacy['delta']:g})-differential "
        f"privacy{together}: what that promises each person stands below.</p>"
    )


def _promise_together(release: Released, counts: Released | None) -> str:
    """With the numbers of people from another release, what both promise together."""
    if not _is_another(counts, release):
        return ""
    own = f"({promised(counts.privacy):.4g}, {counts.privacy['delta']:g})"
    total = total_promise([release, counts])
    both = (
        "" if total is None else f"; together ({total[0]:.4g}, {total[1]:.3g}) for who is in both"
    )
    return f", and the numbers of people with {own}{both}"


def _is_another(counts: Released | None, release: Released) -> TypeGuard[Released]:
    return counts is not None and counts.run_id != release.run_id


def _summary_html(release: Released) -> str:
    if is_of_list(release.manifest):
        return how_many(release.table, release.manifest)
    levels = {tuple(tokens) for tokens in release.table.column("tokens").to_pylist() if tokens}
    singles = sum(len(tokens) == 1 for tokens in levels)
    longer = len(levels) - singles
    if "ended" in release.table.column_names:
        ends = sum(bool(ended) for ended in release.table.column("ended").to_pylist())
        return f"{plural(ends, 'sequence')} that many people share"
    if not longer:
        return f"{plural(singles, 'item')} that many people share"
    return f"{plural(singles, 'word')} and {plural(longer, 'longer phrase')} that many people share"


def _found_html(release: Released, chart: Chart) -> str:
    if not len(release):
        return f"<h2>What was found</h2><p>Nothing. {_sight_html(release)}</p>"
    done = "counted" if is_of_list(release.manifest) else "found"
    return f"<h2>What was {done}</h2>{chart_html(chart)}<p class='more'>{_sight_html(release)}</p>"


def _groups_html(chart: Chart | None, counts: Released) -> str:
    """The items with the most users in each group, if users were counted within groups."""
    if chart is None:
        return ""
    by = str(counts.manifest.get("parameters", {}).get("by") or "group")
    return f"<h2>By {shown.html(by)}</h2>{chart_html(chart)}"


def _sight_html(release: Released) -> str:
    """What it means that an item is missing; for `counts`, what a number near 0 means."""
    finds = release.manifest.get("finds")
    if is_of_list(release.manifest):
        return escape(
            "Everything that was asked for is here, whether many hold it or nobody does. "
            + _least_count_sentence(finds)
        )
    said = (
        "What is not here is not thereby absent from the data: what few people hold is kept back, "
        "whether nobody or a few dozen hold it."
    )
    if finds:
        said += (
            f" Held by at least {finds['users']:,} people who "
            f"hold nothing else, an item is found with probability {finds['probability']:g}. "
            "People who hold more count for less, so more of them are needed."
        )
    if chance := _expected_spurious(release):
        be = "is" if chance == 1 else "are"
        of = " of all that was found" if "top" in release.manifest else ""
        said += f" Noise lets in a few that nobody holds: {chance:,}{of} {be} expected at most."
    return escape(said)


def _least_count_sentence(finds: dict[str, Any] | None) -> str:
    if not finds:
        return ""
    return (
        f"A number by itself is told from 0 with probability {finds['probability']:g} where at "
        f"least {finds['users']:,} people hold what it is of: noise hides fewer."
    )


def _expected_spurious(release: Released) -> int:
    """The expected number of spurious n-grams by DPNE's thresholds: a share of the level below."""
    levels = release.manifest["levels"]
    below = {level["level"]: level.get("released", 0) for level in levels}
    expected: float = sum(
        level["spurious"] * below.get(level["level"] - 1, 0)
        for level in levels
        if "spurious" in level
    )
    return ceil(expected)


def _longest_phrases_html(release: Released) -> str:
    """Phrases that are part of no longer phrase; a part says little if the longer one is shown."""
    frame = phrases(release)
    long = frame.filter(frame["tokens"].list.len() > 1)
    if not len(long) or "ended" in frame.columns:
        return ""
    lines = "".join(f"<li>{shown.html(item)}</li>" for item in long["item"].head(LONGEST))
    more = len(long) - LONGEST
    return (
        "<h2>The longest phrases</h2>"
        "<p>Each is inside no longer phrase of this release; the longest first.</p>"
        f"<ul class='longest'>{lines}</ul>"
        + (f"<p class='more'>and {more:,} more, below</p>" if more > 0 else "")
    )


def _all_items_html(release: Released) -> str:
    if not len(release):
        return ""
    tree = tree_html(tree_of(release, most=MOST_ITEMS))
    left_out = sum(
        max(0, level["released"] - MOST_ITEMS)
        for level in release.manifest["levels"]
        if "released" in level
    )
    note = (
        f"<p class='more'>The first {MOST_ITEMS:,} of each length are here; {left_out:,} more "
        "are in the "
        "release's table.</p>"
        if left_out
        else ""
    )
    return (
        "<h2>All of it</h2><p>Each line unfolds to what goes on from it. "
        f"{_order_advice(release)}</p>"
        "<div class='find' hidden><input type='search' placeholder='Search' "
        "aria-label='Search what was found'><button type='button'>Unfold or fold all</button>"
        f"<output aria-live='polite'></output></div>{note}<div class='scroll'>{tree}</div>"
        "<p class='paper'>On paper the first lines alone are shown; the file has all.</p>"
    )


def _order_advice(release: Released) -> str:
    if "ended" in release.table.column_names:
        return "Sequences end where a dot is."
    return "Of what goes on from the same words, the higher score comes first."


def _rows_sentence(release: Released) -> str:
    """A page of a part of the data says so."""
    where = which_rows(release.manifest)
    return "" if where is None else f"<p>{shown.html(where, 10_000)}.</p>"


def _promise_html(release: Released, counts: Released | None) -> str:
    privacy = release.privacy
    folded = [("theorem", privacy.get("theorem", ""))]
    folded += [("delta", f"{share:.4g} for {what}")
               for what, share in privacy.get("delta_shares", {}).items()]  # fmt: skip
    folded += [("note", caveat) for caveat in privacy.get("caveats", ())]
    folded += [("WARNING", warning) for warning in privacy.get("warnings", ())]
    of_counts = (
        f"<h3>Of the numbers of people</h3>{_terms_html(in_words(counts.privacy))}"
        f"{_rows_sentence(counts)}"
        f"<p>They are another release, run <code>{escape(counts.run_id)}</code>; both add up.</p>"
        if _is_another(counts, release)
        else ""
    )
    return (
        f"<h2>What is promised</h2>{_rows_sentence(release)}{_terms_html(in_words(privacy))}"
        "<details class='folded'><summary>The theorem, and how delta is shared out</summary>"
        f"{_terms_html(folded)}</details>{of_counts}"
    )


def _terms_html(lines: list[tuple[str, str]]) -> str:
    return (
        "<dl>"
        + "".join(f"<dt>{escape(term)}</dt><dd>{escape(said)}</dd>" for term, said in lines if said)
        + "</dl>"
    )


def _budget_html(ledger: Ledger, release: Released) -> str:
    """The accounts that paid for this run, if the ledger knows it."""
    paid = [run.accounts for run in ledger.runs() if run.run_id == release.run_id]
    labels = {label for accounts in paid for label in accounts}
    accounts = [each for each in ledger.accounts() if each.label in labels]
    if not accounts:
        return "<h2>Budget</h2><p>The ledger that was given does not know this run.</p>"
    return "<h2>Budget</h2>" + "".join(account_html(account) for account in accounts)


def _manifest_html(release: Released) -> str:
    engine = release.manifest.get("engine", {})
    ran = f", on {engine['name']} {engine['version']}" if engine else ""
    lines = release.dumps().split("\n")
    said = "\n".join(escape(shown.shown(each, 10_000)) if each.strip() else each for each in lines)
    return (
        f"<h2>Where this comes from</h2><p>Run <code>{escape(shown.shown(release.run_id))}</code> "
        f"of <code>{escape(release.manifest['verb'])}</code>{escape(ran)}.</p>"
        "<details class='folded'><summary>The manifest</summary>"
        f"<pre>{said}</pre></details>"
    )
