"""A release of every verb and option is saved, loaded, verified, shown, explained and used."""

from contextlib import nullcontext
from itertools import chain

import polars as pl
import pytest

from dphh import Release, UsageError, counts, items, ngrams
from dphh.consistency import check_consistency
from dphh.report.phrases import findings_of
from dphh.report.terminal import release_text
from dphh.report.wordings import runs
from dphh.wording.lines import terminal_columns
from tests.report.every import BUDGET, EVERY, NAMES, READINGS, corpus_of, release_of
from tests.report.made import Seen


@pytest.mark.parametrize("users, name", EVERY, ids=[f"{name}: {NAMES[n]}" for n, name in EVERY])
def test_every_release_passes_through_every_door(users, name, tmp_path):
    made = release_of(users, name)
    release = Release.load(made.save(tmp_path / "out"))
    assert release.table.equals(made.table, check_metadata=True)
    assert release.manifest == made.manifest
    assert {"table", "promise", "rows"} <= dict(check_consistency(release)).keys()

    assert all(len(line) <= terminal_columns() for line in release_text(release).split("\n"))
    Seen(release._repr_html_())
    seen = Seen(release.report(tmp_path / "page.html").read_text())
    assert "Nothing." in seen.text or len(release)
    frame = release.to_polars()
    numbers = chain(*(frame[name] for name in ("users", "score") if name in frame))
    has_numbers = any(number is not None for number in numbers)
    if has_numbers:
        release.plot().to_dict()
    else:
        with pytest.raises(UsageError, match="neither counts nor scores"):
            release.plot()
    assert _shown_or_folded(release) == {tuple(row["tokens"]) for row in frame.to_dicts()}
    shown = release.phrases().drop("phrase")
    assert shown.columns == frame.columns and len(shown) <= len(frame)

    for row in release:
        assert release.why(row["tokens"]).reason == "released"
    for phrase in (["never", "seen"], ["q", "x"], [str(place) for place in range(40)]):
        assert release.why(phrase).reason != "released"

    complete = frame.filter("ended") if "ended" in frame else frame
    with _used_or_refused("of: found no items", is_used=len(complete) > 0):
        counts(_reading(release), of=release, **BUDGET)
    is_scored = len(frame) > 0 and "score" in frame and "ended" not in frame
    with _used_or_refused("prior: (found a release of|it lists no word)", is_used=is_scored):
        ngrams(_reading(release), max_n=2, prior=release, prior_is_public=True, **BUDGET)


def _shown_or_folded(release):
    """The released items that are a row, or a variation or a piece of one."""
    found, frame = findings_of(release), release.to_polars()
    if "ended" in frame:  # a beginning of a longer sequence is shown by it
        whole = {of.tokens for of in found.phrases}
        assert whole <= {*map(tuple, frame["tokens"].to_list())}
        return {way[:size] for way in whole for size in range(1, len(way) + 1)} & {
            *map(tuple, frame["tokens"].to_list())
        }
    every = {
        shown for of in (*found.phrases, *found.words, *found.others)
        for shown in (of.tokens, *of.variations)
    }  # fmt: skip
    every |= {run for of in every for run in runs(of, range(1, len(of)))}
    return every & {*map(tuple, frame["tokens"].to_list())}


def _reading(release):
    """A corpus that is read as the release's was."""
    return corpus_of(0, **READINGS[release.manifest["parameters"]["content"]["reading"]])


def _used_or_refused(refusal, *, is_used):
    return nullcontext() if is_used else pytest.raises(UsageError, match=refusal)


def test_a_release_over_a_domain_is_no_prior():
    with pytest.raises(UsageError, match="prior: found a release of items with a domain"):
        items(corpus_of(0), prior=release_of(900, "domain"), prior_is_public=True, **BUDGET)


def test_an_item_is_its_tokens_and_not_its_text():
    release = release_of(900, "domain")
    texts = [row["item"] for row in release]
    assert len(texts) == 5 and len(set(texts)) == 4
    assert repr(release).splitlines()[0].endswith("5 items counted")
    for page in (repr(release), release._repr_html_()):
        assert "new york → city" in page and "new → york city" in page, "borders are shown"
    grouped = release_of(900, "grouped domain")
    assert repr(grouped).splitlines()[0].endswith("DE, other") and "5 items" in repr(grouped)


def test_what_a_level_is_holds_of_every_release():
    for users, name in EVERY:
        release = release_of(users, name)
        said = release.manifest["columns"]["level"]
        assert said == release.table.schema.field("level").metadata[b"description"].decode()
        frame = release.to_polars().with_columns(length=pl.col("tokens").list.len())
        if "ended" not in frame:
            assert "how many tokens the item has unless" in said
            assert (frame["level"] == frame["length"]).all()
