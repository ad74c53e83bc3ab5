"""What rose and what fell: which rows are compared, what is told, and what is refused."""

import polars as pl
import pytest

from dphh import UsageError
from dphh.errors import Notice
from dphh.report.moves import comparison
from dphh.report.phrases import Findings
from dphh.report.sentences import are_periods
from dphh.report.terminal import report_text
from dphh.report.wordings import Wording
from tests.report import made
from tests.report.every import release_of
from tests.report.made import CONTENT, HOSTILE, Release, counted, within_country


def of_run(release, run_id, **more):
    """The release as another run's, with other lines of its manifest."""
    return Release(release.table, {**release.manifest, "run_id": run_id, **more})


def of_rows(where, release):
    """The release as one of the rows that meet this condition."""
    return of_run(release, where, parameters={"content": {**CONTENT, "where": where}})


def told(frame):
    keys = [name for name in ("item", "group_name") if name in frame]
    return {
        row[0] if len(keys) == 1 else row[:2]: row[len(keys) :]
        for row in frame.select(*keys, "difference", "change").iter_rows()
    }


def test_differences_have_intervals_and_what_one_lacks_is_not_compared():
    """Noise of 10 users each, so of sqrt(200) the difference."""
    now = counted({"a": (900, 880, 920), "b": (100, 80, 120), "c": (55, 35, 75), "d": (9, 0, 29)})
    before = counted(
        {"a": (100, 80, 120), "b": (900, 880, 920), "c": (50, 30, 70), "e": (5, 0, 25)}
    )
    found = now.change(of_run(before, "earlier"))
    assert told(found) == {
        "a": (800, "rose"), "b": (-800, "fell"), "c": (5, "no clear change"),
        "d": (None, "no clear change"), "e": (None, "no clear change"),
    }  # fmt: skip
    assert found["item"].to_list() == ["a", "b", "c", "d", "e"]
    assert found["before"].to_list() == [100, 900, 50, None, 5]
    # Two of three differ: so each of their intervals may fail with 0.05 * 2 / 3, the third's with
    # 0.05.
    assert (800 - found["low"][0], found["high"][0] - 800) == (31, 31)
    low, high = found["low"][2], found["high"][2]
    assert (5 - low, high - 5) == (28, 28)
    certain = now.change(of_run(before, "earlier"), confidence=0.9999)
    assert certain["low"][2] < low


def test_a_country_is_compared_with_itself():
    """A join by tokens alone showed one country's November beside another's October."""
    now = within_country({"a": {"DE": (500, 480, 520), "US": (50, 30, 70), "other": (0, 0, 20)}})
    before = within_country({"a": {"DE": (50, 30, 70), "US": (50, 30, 70), "other": (0, 0, 20)}})
    assert told(now.change(of_run(before, "earlier"))) == {
        ("a", "DE"): (450, "rose"), ("a", "US"): (0, "no clear change"),
        ("a", "other"): (0, "no clear change"),
    }  # fmt: skip
    fewer = within_country({"a": {"DE": (50, 30, 70), "other": (0, 0, 20)}}, ["DE"])
    found = told(now.change(of_run(fewer, "earlier")))
    assert found["a", "DE"] == (450, "rose")
    assert found["a", "other"] == (None, "no clear change")  # other groups are in it


def test_items_of_one_text_are_told_apart_by_their_tokens():
    now = release_of(900, "domain")
    found = now.change(of_run(now, "earlier"))
    assert len(found) == len(now) and set(found["difference"]) == {0}


@pytest.mark.parametrize("name", ["counted trie", "grouped ngrams", "at least 5 ngrams"])
def test_a_release_beside_itself_tells_no_change(name):
    now = release_of(900, name)
    found = now.change(of_run(now, "earlier"))
    assert len(found) == now.to_polars()["users"].count()
    assert set(found.drop_nulls("difference")["difference"]) == {0}
    assert set(found["change"]) == {"no clear change"}


def test_weeks_are_compared_with_the_weeks_before():
    weeks = ["2026-W45", "2026-W46", "2026-W47"]
    release = within_country(
        {"a": {weeks[0]: (10, 0, 30), weeks[1]: (20, 0, 40), weeks[2]: (500, 480, 520)}}, weeks
    )
    assert are_periods(release.manifest)
    assert told(release.change()) == {"a": (480, "rose")}
    assert told(release.change(before=weeks[0])) == {"a": (490, "rose")}
    assert told(release.change(group=weeks[1], before=weeks[0])) == {"a": (10, "no clear change")}
    for names in (["DE", "US"], ["2026"], ["2026-11", "2026"], ["2026-11", "DE"]):
        assert not are_periods(within_country({}, names).manifest)
    for names in (["2025", "2026"], ["2026-11-01", "2026-11-02"], ["2026Q1", "2026Q2"]):
        assert are_periods(within_country({}, names).manifest)


def test_a_phrase_that_is_now_folded_with_the_others_changed_once():
    now, before = counted({"cold soup": (900, 880, 920)}), counted({"cold soup": (100, 80, 120)})
    folded = [Wording(("cold", "soup"), ("cold", "soup"))]
    found = Findings([], others=folded, number="users", numbers={("cold", "soup"): 900})
    assert (
        comparison(now, of_run(before, "earlier"), found).beside == {}
        and len(comparison(now, of_run(before, "earlier"), found).moves) == 1
    )


def changes_in(now, before, top):
    """What a terminal says below the release."""
    return report_text([now], [before] if before else [], top).partition("\n\n")[2]


def test_a_terminal_says_what_rose_and_what_fell(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    now = counted({"cold soup": (900, 880, 920), "soup": (950, 930, 970), "日本": (7, 0, 27)})
    before = of_run(counted({"cold soup": (100, 80, 120), "soup": (150, 130, 170)}), "earlier")
    said = changes_in(now, before, 25).splitlines()
    assert said[0] == "Compared with the earlier release: rose: 1 phrase."
    assert "at most 5% is expected not to have" in " ".join(" ".join(said).split())
    row = said[-1]
    assert " ".join(row.split()) == "cold soup 100 -> 900 rose by about 800 (at least 772)"
    assert changes_in(now, before, 1) == "\n".join(said)
    assert changes_in(now, None, 25) == ""  # nothing to compare it with
    weeks = ["2026-W46", "2026-W47"]
    people = {"a b": {weeks[0]: (9, 0, 29), weeks[1]: (99, 79, 119)}}
    said = changes_in(within_country(people, weeks), None, 25)
    assert said.startswith("Compared with 2026-W46: rose: 1 phrase.")
    assert said.endswith("9 -> 99  rose by about 90 (at least 62)")
    country = within_country({"a b": {"\x1b[31m": (9, 0, 29)}}, ["\x1b[31m"])
    assert "\x1b" not in changes_in(country, of_run(country, "earlier"), 25)


def test_after_min_users_the_candidates_are_what_was_counted():
    """Of 9 counts one is shown: its difference has the interval of one of nine."""
    now = counted({"a": (100, 30, 170)})
    chosen = {"counting": {**made.TOGETHER, "min_users": 20}, "levels": []}
    before = of_run(counted({"a": (60, 20, 100)}), "earlier")
    width, of_nine, of_list = (
        each["high"][0] - each["low"][0]
        for each in (
            now.change(before),
            of_run(now, "now", **chosen).change(before),
            now.change(of_run(before, "earlier", **chosen)),
        )
    )
    assert of_nine == of_list > 1.3 * width


@pytest.mark.parametrize(
    "earlier, why",
    [
        ({"run_id": "run-of-counts"}, "change: found one run twice"),
        ({"levels": []}, "change: release earlier has no numbers of users; count"),
        ({"privacy": {**made.PRIVACY, "unit": "a week"}}, "protects a user.*, the earlier a week"),
        ({"parameters": {"content": CONTENT, "by": "x", "groups": ["y"]}}, "groups by null"),
        ({"parameters": {"content": {**CONTENT, "lower": False}}}, "reads texts by"),
    ],
)
def test_what_does_not_compare_is_refused(earlier, why):
    now = counted({"a": (5, 1, 9)})
    with pytest.raises(UsageError, match=why):
        now.change(of_run(now, **{"run_id": "earlier", **earlier}))


def test_groups_that_do_not_compare_are_refused():
    countries = within_country({"a": {"DE": (5, 1, 9)}})
    for asked, why in (
        ({"group": "FR"}, "group: found 'FR'; the groups of this release: DE, US, other"),
        ({"before": "US"}, "before: found 'US', the same group"),
    ):
        with pytest.raises(UsageError, match=why):
            countries.change(**asked)
    with pytest.raises(UsageError, match="group: two releases are compared group by group"):
        countries.change(of_run(countries, "earlier"), group="DE")
    with pytest.raises(UsageError, match="have none in common"):
        countries.change(of_run(within_country({}, ["FR"]), "earlier"))
    with pytest.raises(UsageError, match="without two groups to compare"):
        counted({"a": (5, 1, 9)}).change()
    with pytest.raises(UsageError, match="confidence"):
        countries.change(confidence=1)


def test_other_rows_are_another_where_and_control_characters_are_escaped():
    now = of_rows("a = 2", counted({text: (5, 1, 9) for text in HOSTILE if text.split()}))
    found = now.change(of_rows("a = 1", now))
    assert len(found) == len(now)
    assert "\\x1b[31mred\\x07" in found["item"]
    assert found.schema["tokens"] == pl.List(pl.String)


def test_a_period_is_not_compared_with_one_that_has_rows_of_it():
    of = counted({"a": (5, 1, 9)})
    year = "day >= '2026-01-01' AND day < '2027-01-01'"
    november = "day >= '2026-11-01' AND day < '2026-12-01'"
    for later, earlier in (("", november), (november, ""), (year, november), (november, "b = 1")):
        with pytest.raises(UsageError, match="rows may be in both"):
            of_rows(later, of).change(of_rows(earlier, of))
    of_rows(november, of).change(of_run(of_rows(november, of), "another state of the table"))


def test_conditions_that_cannot_be_told_apart_are_said_to_be(recwarn):
    november, odd = (of_rows(where, counted({"a": (5, 1, 9)})) for where in ("m = 11", "m % 2 = 1"))
    november.change(odd)
    assert "Whether some rows are in both cannot be told" in str(recwarn.pop(Notice).message)
    said = " ".join(changes_in(november, odd, 9).split())
    assert "expected not to have. Whether some rows are in both cannot be told" in said
    assert "Whether some rows" not in changes_in(november, of_rows("m = 10", odd), 9)
