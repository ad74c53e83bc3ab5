"""A release that found and one that counted the same rows are shown as one: the list of the first,
the numbers of the second."""

from itertools import permutations

import pytest

from dphh import UsageError
from dphh.report.page import page_of
from dphh.report.parts import parts_of
from dphh.report.terminal import report_text
from tests.report.made import CONTENT, Release, Seen, counted, within_country


def of_run(release, run_id, verb="counts", where="", **more):
    asked = {"content": {**CONTENT, "where": where}, **more}
    parameters = {**release.manifest["parameters"], **asked}
    made = {**release.manifest, "run_id": run_id, "verb": verb, "parameters": parameters}
    return Release(release.table, made)


def around(sizes, reach):
    return counted({text: (n, max(n - reach, 0), n + reach) for text, n in sizes.items()})


#: The run that finds is wrong by up to 60, the count by up to 10.
FOUND = {"the zip broke": 380, "zip broke": 390, "zip": 400, "no refund yet": 420, "so nice": 300}
FOUND_BEFORE = {"the zip broke": 350, "zip broke": 360, "zip": 370}
COUNTED = {"zip broke": 441, "no refund yet": 402, "part is missing": 410}
COUNTED_BEFORE = {"zip broke": 435, "no refund yet": 101, "part is missing": 165}


@pytest.fixture
def november():
    return of_run(around(FOUND, 60), "n", "ngrams"), of_run(around(COUNTED, 10), "nt")


@pytest.fixture
def october():
    return of_run(around(FOUND_BEFORE, 60), "o", "ngrams"), of_run(around(COUNTED_BEFORE, 10), "ot")


def rows_in(part):
    return [(row.wording, " ".join(row.tokens), row.bars[0].value) for row in part.tables[0].rows]


def text_of(page):
    return " ".join(Seen(page).text.replace("\0", " ").split())


def test_the_count_has_the_numbers_and_the_order_of_what_the_other_found(november):
    """Whichever is given first; what only the count has is a row, too."""
    for shown in permutations(november):
        (part,) = parts_of(shown, (), 9)
        assert part.release.manifest["run_id"] == "nt"
        assert rows_in(part) == [
            ("[the] zip broke", "zip broke", 441),
            ("part is missing", "part is missing", 410),
            ("no refund yet", "no refund yet", 402),
        ]
        assert rows_in(part.rest) == [("so nice", "so nice", 300)]


def test_each_number_is_on_the_page_once_and_whose_it_is_is_said(november):
    text, _, _ = text_of(page_of(november[0], others=[november[1]])).partition("{")
    assert "[the] zip broke about 441 people (431 to 451)" in text
    assert (
        "One run found these phrases, another counted them: their numbers are the count’s." in text
    )
    assert "1 further phrase with wider ranges so nice" in text
    assert "about 380" not in text and "about 420" not in text
    assert "Found are phrases down to about 300 people" in text
    for run in ("Run nt of counts", "Run n of ngrams"):
        assert text.count(run) == 1
    alone, _, _ = text_of(page_of(november[1])).partition("{")
    assert "One run found" not in alone


def test_the_change_is_that_of_both_counts(november, october):
    """Also of what the earlier run did not find."""
    page = page_of(november[0], others=[november[1]], against=october)
    text, _, _ = text_of(page).partition("{")
    assert "▲ rose: no refund yet (about 101 → about 402 people)" in text
    assert "[the] zip broke about 441 people (431 to 451) no clear change" in text
    assert "was 435 (425 to 445)" in text and "was 101 (91 to 111)" in text
    assert "so nice about 300 people (240 to 360) not found in" in text
    (part,) = parts_of(november, october, 9)
    said = report_text(november, october, 9)
    assert (
        "101 -> 402  rose by about 301 (at least " in said and "435 -> 441  no clear change" in said
    )
    assert said.count("Compared with") == 1 and "so nice" in said
    # An earlier release of the run that found is compared, if the count has none.
    for earlier, before in ((october[:1], 360), (october[1:], 435)):
        (part,) = parts_of(november, earlier, 9)
        assert part.changes.differences[("zip", "broke"), None]["before"] == before


def test_who_was_listed_after_a_look_at_the_other_numbers_is_one_of_all_of_these(november, october):
    """A list that was chosen from an earlier release has chosen its noise."""
    one = around({"zip broke": 441}, 10)
    of_nine = of_run(around({"zip broke": 360}, 10), "o", "ngrams")
    of_one = of_run(around({"zip broke": 360}, 10), "ot")
    (listed,), (given,) = (
        parts_of([one], [earlier], 9)[0].changes.differences.values()
        for earlier in (of_nine, of_one)
    )
    assert listed["low"] < given["low"]


def test_only_a_count_of_the_same_rows_all_together_is_taken(november):
    found, count = november
    others = [
        of_run(count, "a", where="stars < 3"),
        of_run(count, "b", "ngrams"),
        of_run(within_country({"zip broke": {"DE": (60, 40, 80)}}), "c", where=""),
    ]
    for other in others:
        parts = parts_of([found, other], (), 9)
        assert len(parts) == 2 and parts[0].rest is None
    assert [part.release.manifest["run_id"] for part in parts_of([count, found, count], (), 9)] == [
        "nt",
        "nt",
    ]


def test_a_piece_that_was_counted_is_a_row_if_its_phrase_was_not(november):
    found, _ = november
    count = of_run(around({"zip": 460}, 10), "nt")
    (part,) = parts_of([found, count], (), 9)
    assert rows_in(part) == [("zip", "zip", 460)]
    whole = of_run(around({"the zip broke": 377, "zip": 460}, 10), "nt")
    (part,) = parts_of([found, whole], (), 9)
    assert rows_in(part) == [("the zip broke", "the zip broke", 377)]


def test_groups_follow_the_count_and_what_they_alone_have_comes_last(november):
    found, count = november
    of = {"so nice": 90, "no refund yet": 150, "zip broke": 140}
    grouped = within_country({text: {"DE": (n, n - 9, n + 9)} for text, n in of.items()})
    grouped = of_run(grouped, "c", by="country", groups=["DE", "US"])
    whole, by_country = parts_of([found, count, grouped], (), 9)
    assert by_country.whole is not None and whole.by_groups == [by_country]
    assert [wording for wording, *_ in rows_in(by_country)] == [
        "[the] zip broke",
        "no refund yet",
        "so nice",
    ]


def test_an_earlier_release_belongs_to_the_one_whose_rows_are_others():
    now, before = (of_run(around({"zip": 400}, 10), where, where=where)
                   for where in ("m = 11", "m = 10"))  # fmt: skip
    everything = of_run(around({"zip": 800}, 10), "e", "ngrams", where=None)
    grouped = within_country({"zip": {"DE": (60, 40, 80)}})
    whole, countries, november = parts_of([everything, grouped, now], [before], 9)
    assert whole.changes is countries.changes is None
    assert november.changes.before == "m 10"
    text = text_of(page_of(everything, others=[grouped, now], against=[before]))
    assert text.count("Not compared: no earlier release was given that is of other rows") == 2
    with pytest.raises(UsageError, match="later release is of all rows, the earlier of m 10"):
        page_of(everything, others=[grouped], against=[before])
