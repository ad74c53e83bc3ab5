"""The page for people: one file, no script, no network, and no promise but the made."""

import math
import re
from itertools import pairwise

import pytest
from click.testing import CliRunner

from dphh import UsageError, counts, items, ngrams
from dphh.cli import cli
from dphh.report.bar_tables import groups_in_words, tables_of
from dphh.report.page import page_of
from dphh.report.sentences import promise_in_words
from dphh.report.terminal import report_text
from tests.report import made
from tests.report.made import (
    CONTENT,
    HOSTILE,
    PRIVACY,
    Release,
    Seen,
    counted,
    ladder,
    within_country,
)


def of_run(release, run_id, conditions):
    """The release as another run's, of rows that meet these conditions."""
    asked = {"content": {**CONTENT, "where": " AND ".join(f"({each})" for each in conditions)}}
    return Release(release.table, {**release.manifest, "run_id": run_id, "parameters": asked})


@pytest.mark.parametrize("release", [ladder(), made.items(()), made.trie(), made.items(HOSTILE)])
def test_a_page_runs_nothing_and_asks_no_network(release):
    page = page_of(release)
    seen = Seen(page)
    assert {"html", "main", "h1", "details"} <= set(seen.tags)
    assert not {"script", "img", "link", "iframe", "object", "svg"} & set(seen.tags)
    assert {name for name, _ in seen.attributes} <= {
        "lang", "charset", "http-equiv", "content", "name", "class", "style", "scope", "open",
    }  # fmt: skip
    for name, value in seen.attributes:
        assert name != "style" or re.fullmatch(
            r"(;?(width|left|height|bottom):[0-9.]+%)+|--n:[0-9]+", str(value)
        )
    assert "://" not in page and "url(" not in page and "@import" not in page
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert "default-src 'none'" in policy and "script" not in policy


def test_hostile_values_stay_text_wherever_they_are():
    release = within_country({text: {"<b>": (9, 4, 14)} for text in HOSTILE}, ["<b>", "\x07"])
    release.manifest["parameters"] |= {"by": "<i>", "content": {"where": "a < '<u>'"}}
    release.manifest.update(randomness="<s>", is_test=True, run_id="<hr>")
    for page in (page_of(release, title="\u202e</title><script>"), release._repr_html_()):
        assert not set(page) & set("\x1b\x07\0\u202e\r\uffff")
        seen = Seen(page)
        assert not {"script", "u", "s", "hr"} & set(seen.tags)
        for text in ("<script>alert(1)</script>", "{{ 7 * 7 }}", "<b>", "<s>", "␛[31mred␇"):
            assert text in seen.text
        assert "x" * 301 not in seen.text
    title = '"; } body { display: none'
    (style,) = re.findall("<style>(.*?)</style>", page_of(release, title=title), flags=re.DOTALL)
    assert title not in style
    assert "line␊break␍" in Seen(page_of(made.items(HOSTILE))).text
    assert "⟨U+202E⟩</title><script>" in Seen(page_of(release, title="\u202e</title><script>")).text


def test_the_first_rows_of_a_table_are_open_and_the_rest_is_folded(monkeypatch):
    release = made.items([f"item {n}" for n in range(30)])
    opened, _, folded = page_of(release).partition("<details>")
    assert (opened.count('class="row"'), folded.count('class="row"')) == (25, 5)
    assert "and 5 more" in folded
    assert page_of(release, top=3).partition("<details>")[0].count('class="row"') == 3
    with pytest.raises(UsageError, match="top"):
        page_of(release, top=0)
    monkeypatch.setattr("dphh.report.page.MOST_FOLDED_ROWS", 3)
    assert "and 2 more in the release's table" in Seen(page_of(release)).text


def lines_of(page):
    return Seen(page).lines("The manifest").splitlines()


def test_findings_come_first_and_the_promise_last():
    release = of_run(
        counted({"see you": (70, 20, 130), "see": (80, 30, 140)}), "now", ["stars < 3"]
    )
    release.manifest["day"] = "2026-11-28"
    title, again, rows, found, meaning, *_ = said = lines_of(page_of(release, title="Reviews"))
    assert (title, again) == ("Reviews", "Reviews")
    assert rows == "Stars below 3 released on 28 November 2026"
    assert found == "1 phrase see you about 70 people (20 to 130)"
    assert meaning == (
        "Numbers of people; the true one is very likely in the range. The thin line under a bar is "
        "its range. A full bar is 130 people."
    )
    promised = said[said.index("How to read this") - 1]
    assert promised.startswith("What is shown is blurred on purpose")
    promised = " ".join(said[said.index("What is promised, in full") :])
    assert "(1, 1e-08)-differential privacy. Whatever came out, it was at most" in promised
    likely = "2.719 times as likely with one person's rows in the data as without, plus a"
    assert f"{likely} probability of 1e-08 (1 in 100,000,000), and the other way" in promised
    page = page_of(release)
    folded = re.sub("<details.*?</details>", "", page, flags=re.DOTALL)
    assert "theorem" in page and "theorem" not in folded
    missing = "it takes 41 people (1 word), 62 people (2 words) or 77 people (3 words)"
    assert missing in Seen(folded).text


def test_a_promise_to_no_person_is_said_to_be_none():
    weak = {**PRIVACY, "protects": "combination", "unit": "a week of a user; NOT a person"}
    said = Seen(page_of(made.items(privacy=weak))).text
    what, _, _ = said.partition("What is promised, in full")
    assert "Protected is a week of a user; NOT a person." in what


def test_what_rose_is_said_beside_its_bar_and_against_which_rows():
    """Of which rows both are is said once; what differs, where it is compared."""
    now = of_run(
        counted({"cold soup": (900, 880, 920), "hi there": (50, 30, 70), "new soup": (5, 0, 25)}),
        "now",
        ["stars < 3", "date >= '2026-11-01'", "date < '2026-12-01'"],
    )  # fmt: skip
    before = of_run(
        counted({"cold soup": (100, 80, 120), "hi there": (45, 25, 65), "old soup": (7, 0, 27)}),
        "before",
        ["stars < 3", "date >= '2026-10-01'", "date < '2026-11-01'"],
    )  # fmt: skip
    said = Seen(page_of(now, against=[before])).text
    said = " ".join(said.replace("\0", " ").split())
    assert (
        "Stars below 3, November 2026 Compared with October 2026: How many wrote in all is not "
        "published: numbers also rise where more people write. ▲ rose: cold soup (about 100 → "
        "about 900 people) no clear change: 1 phrase; no number for October 2026: 1 "
        "phrase 3 phrases"
    ) in said
    assert "Found in October 2026 alone (it may still be said): old soup (about 7)." in said
    row = r"(\S+) about (\S+ people \S+ to \S+) ((?:▲|▼|no clear change:) .*?) was ([^)]+)"
    assert re.findall(row, said) == [
        (
            "soup",
            "900 people (880 to 920)",
            "▲ rose by about 800 at least 768; it",
            "100 (80 to 120",
        ),
        ("there", "50 people (30 to 70)", "no clear change: 23 fewer to 33 more", "45 (25 to 65"),
    ]
    assert "new soup at most 25 people no number for October 2026 Numbers" in said
    assert "at most 5% is expected not to have" in said
    assert "▲" not in Seen(page_of(now)).text
    alone = of_run(counted({"new soup": (5, 0, 25)}), "alone", ["date >= '2026-11-01'"])
    alone = Seen(page_of(alone, against=[before])).text
    assert "no phrase is in both" in alone
    fell = Seen(page_of(before, against=[now])).text
    assert "no clear change: 1" in fell and "▼ fell: cold soup" in " ".join(fell.split())


def test_several_releases_are_on_one_page_and_their_account_is_said_once(ledger, written):
    corpus = written([(who, "hello you") for who in range(900)])
    ledger.add("survey", corpus, 3.0, 1e-6)
    found = items(corpus, epsilon=1.0, delta=1e-8, counts=0.5).run(ledger=ledger)
    listed = {"of": found, "by": "what", "groups": ["x"], "epsilon": 1.0, "delta": 1e-8}
    grouped = counts(corpus, **listed).run(ledger=ledger)
    page = page_of(found, others=[grouped], ledger=ledger)
    seen = Seen(page)
    assert seen.tags.count("h2") == 2 and seen.tags.count("main") == 1
    assert "All rows, by what" in seen.text
    assert seen.text.count("survey: ") == 1
    order = ("by what ↓", "All rows, by what", "How to read", "-differential")
    places = [seen.text.index(each) for each in order]
    assert places == sorted(places)
    assert seen.text.count(found.run_id) and seen.text.count(grouped.run_id)


def test_each_release_of_a_page_has_its_earlier_one_and_one_order_of_rows():
    now, before = (of_run(counted(sizes), run, []) for run, sizes in (
        ("now", {"cold soup": (900, 880, 920), "late bus": (50, 30, 70)}),
        ("before", {"cold soup": (100, 80, 120), "late bus": (45, 25, 65)}),
    ))  # fmt: skip
    of_groups, groups_before = (of_run(within_country(sizes), run, []) for run, sizes in (
        ("g", {"late bus": {"DE": (500, 480, 520)}, "cold soup": {"DE": (400, 380, 420)}}),
        ("h", {"late bus": {"DE": (90, 70, 110)}, "cold soup": {"DE": (401, 381, 421)}}),
    ))  # fmt: skip
    for release in (of_groups, groups_before):
        release.manifest["parameters"] |= {"by": "country", "groups": ["DE", "US"]}
    said = page_of(now, others=[of_groups], against=[before, groups_before])
    text = " ".join(Seen(said).text.replace("\0", " ").split())
    first, _, second = text.partition(", by country ")
    assert "▲ rose: cold soup (about 100 → about 900 people) no clear change: 1 phrase" in first
    assert "▲ rose: late bus (DE) all else: ? (not sure)." in second
    assert "DE: 400 (380 to 420) ? was 401 (381 to 421)" in second
    assert "DE: 500 (480 to 520) ▲ rose was 90 (70 to 110)" in second
    assert second.index("cold soup DE:") < second.index("late bus DE:")
    with pytest.raises(UsageError, match="against: found 2 releases for 1"):
        page_of(now, against=[before, groups_before])


def test_a_part_by_groups_says_nothing_twice_that_the_part_of_all_says():
    """It has the words, the counted ones and the order of that part; and that has where it is."""
    pieces = {"c d": (910, 890, 930), "b c": (900, 880, 920), "d": (920, 900, 940)}
    alone = {"late bus": (50, 30, 70), "hello": (40, 20, 60)}
    now = of_run(counted({"b c d": (900, 880, 920), **pieces, **alone}), "n", [])
    before = of_run(counted({"b c d": (100, 80, 120), "late bus": (60, 40, 80)}), "m", [])
    sizes = {
        "a b c d": {"DE": (500, 480, 520), "US": (450, 430, 470), "other": (0, 0, 20)},
        "b c d": {"DE": (510, 490, 530), "US": (440, 420, 460), "other": (0, 0, 20)},
        "late bus": {"DE": (800, 780, 820), "US": (9, 0, 29), "other": (0, 0, 20)},
        "hello": {"DE": (20, 0, 40), "US": (20, 0, 40), "other": (0, 0, 20)},
        "http com p": {"DE": (300, 280, 320), "US": (290, 270, 310), "other": (0, 0, 20)},
    }
    fewer = {text: of | {"DE": (100, 80, 120)} for text, of in sizes.items() if text != "late bus"}
    noise = {"simultaneous": False}
    grouped, groups_before = (
        of_run(within_country(of, noise=noise), run, []) for run, of in (("g", sizes), ("h", fewer))
    )
    for release in (grouped, groups_before):
        release.manifest["parameters"] |= {"by": "country", "groups": ["DE", "US"]}
    page = page_of(now, others=[grouped], against=[before, groups_before])
    said = " ".join(Seen(page).text.replace("\0", " ").split())
    first, _, second = said.partition(", by country ")
    assert "▲ rose: b c d (about 100 → about 900 people; surest in DE) no clear" in first
    assert "late bus about 50 people (30 to 70)" not in first
    assert ("b c d ◆ mostly in DE: 510 about 900 people (880 to 920)") in first
    assert "late bus ◆ mostly in DE: 800 about 50 people" in first
    assert (
        "b c d DE: 510 (490 to 530) ▲ rose was 100 (80 to 120) US: 440 (420 to 460) ? was "
        "440 (420 to 460)"
    ) in second
    assert second.index("b c d DE:") < second.index("late bus DE: 800 (780 to 820)")
    assert "all together" not in second and "a b c d DE:" not in second
    assert said.count("1 single word, in no phrase") == 1
    # What is no phrase of all is none by groups: "http com p".
    assert "http" not in second.partition("{")[0]
    # Of other rows, or read in another way, it is no part of that.
    grouped.manifest["parameters"]["content"] = {**CONTENT, "lower": False}
    assert "all together" in Seen(page_of(now, others=[grouped])).text


def test_a_phrase_is_said_to_be_mostly_in_a_group_where_that_is_clear():
    """Noise of 10 users: of a difference from the three others 50 at 0.05 / 8."""
    groups = ("DE", "US", "FR")
    for numbers, place in (
        ((500, 400, 40), "DE"), ((500, 400, 60), ""), ((40, 500, 40), "US"), ((9, 9, 9), ""),
    ):  # fmt: skip
        ends = {name: (users, max(users - 20, 0), users + 20)
                for name, users in zip(groups, numbers, strict=True)}  # fmt: skip
        release = within_country(
            {"a b c d": ends | {"other": (0, 0, 20)}}, groups, {"simultaneous": False}
        )
        ((row,),) = (table.rows for table in tables_of(release, 9))
        assert row.place == place


def test_a_group_may_simply_have_more_people():
    noise, rest = {"simultaneous": False}, {"US": (6, 0, 26), "other": (0, 0, 20)}
    usual = {f"{word} soup here": rest | {"DE": (900, 880, 920)} for word in ("cold", "no", "thin")}
    other = {"pay customs at": {"DE": (9, 0, 29), "US": (300, 280, 320), "other": (0, 0, 20)}}
    page = page_of(within_country(usual | other, noise=noise))
    text = " ".join(Seen(page).text.replace("\0", " ").split())
    assert text.count("◆ mostly in DE") == 3
    assert text.count("One group may simply have more people than another") == 1


def test_the_highest_numbers_of_each_group_come_first():
    people = {f"{word} soup here": {"DE": (100 + at, 80, 120), "US": (90 - at, 70, 110)}
              for at, word in enumerate(("cold", "no", "thin", "old"))}  # fmt: skip
    people |= {f"{word} soup here": {"DE": (100, 80, 120), "US": (9, 0, 29)} for word in "abcd"}
    people["cold soup here"] |= {"DE": (900, 0, 930)}  # whose range begins at 0
    people["new soup here"] = {"DE": (101, 99, 102), "US": (50, 40, 60)}
    people["thin soup here"] |= {"US": (88, 70, 100)}
    text = " ".join(Seen(page_of(within_country(people))).text.replace("\0", " ").split())
    assert (
        "and others: too close to say which is first US: cold soup here (90), no soup here (89), "
        "thin soup here (88), old soup here (87) 9 phrases"
    ) in text


def test_a_phrase_has_its_highest_groups_beside_it_or_that_with_most():
    """Of those that are clearly above 0, three; and of the first table by groups."""
    places = {"DE": (90, 70, 110), "US": (19, 0, 39), "FR": (80, 60, 100), "UK": (99, 79, 119),
              "IT": (70, 50, 90)}  # fmt: skip
    people = {"old soup": places, "new soup": dict.fromkeys(places, (9, 0, 29))}
    people["thin soup"] = dict.fromkeys(places, (9, 0, 29)) | {"FR": (500, 480, 520)}
    people = {text: of | {"other": (0, 0, 20)} for text, of in people.items()}
    now = of_run(counted(dict.fromkeys(people, (90, 70, 110))), "n", [])
    grouped, again = (
        of_run(within_country(people, [*places], {"simultaneous": False}), run, []) for run in "gh"
    )
    for each, by in ((grouped, "country"), (again, "shop")):
        each.manifest["parameters"] |= {"by": by, "groups": [*places]}
    text = " ".join(Seen(page_of(now, others=[grouped, again])).text.replace("\0", " ").split())
    assert "old soup ◆ UK: 99, DE: 90, FR: 80 · UK: 99, DE: 90 about 90 people" in text
    assert "thin soup ◆ mostly in FR: 500 · mostly in FR: 500 about 90 people" in text
    assert "new soup about 90 people" in text
    assert "◆ are the highest numbers by country and by shop: close ones may be in" in text


def test_a_phrase_that_was_not_found_before_is_said_to_be_missed_or_rare():
    now, before = (of_run(counted({text: (90, 70, 110)}), run, [])
                   for text, run in (("cold soup", "n"), ("late bus", "m")))  # fmt: skip
    for verb, said in (("ngrams", "not found in"), ("counts", "no number for")):
        before.manifest["verb"] = verb
        text = " ".join(Seen(page_of(now, against=[before])).text.split())
        assert f"{said} rows where : 1 phrase" in text
        assert ("few said it, or it was missed" in text) == (verb == "ngrams")


def test_a_release_that_was_made_before_its_period_ended_is_said_to_be():
    for day, said in (
        ("2026-11-30", "released on 30 November 2026, before this period ended"),
        ("2026-12-01", "released on 1 December 2026"),
    ):
        november = ["date >= '2026-11-01'", "date < '2026-12-01'"]
        now, before = (
            of_run(counted({"cold soup": (9, 8, 10)}), run, rows)
            for run, rows in (("now", ["date >= '2026-12-01'"]), ("before", november))
        )
        before.manifest["day"] = day
        assert f"November 2026 {said}" in lines_of(page_of(before))
        against = Seen(page_of(now, against=[before])).text
        assert (
            "November 2026 is not complete: it was read on 30 November 2026. How many"
            in " ".join(against.split())
        ) == ("before" in said)


def test_a_period_so_far_is_compared_with_all_of_the_one_before():
    days = [f"2026-{month:02}-01" for month in (10, 11, 12)]
    before, now = (
        of_run(counted({"cold soup": (9, 8, 10)}), first, [f"date >= '{first}'", f"date < '{end}'"])
        for first, end in pairwise(days)
    )
    now.manifest["day"], before.manifest["day"] = "2026-11-28", "2026-11-01"
    said = "November 2026 so far (read on 28 November 2026) against all of October 2026: falls may"
    assert said in " ".join(Seen(page_of(now, against=[before])).text.split())
    before.manifest["day"] = "2026-10-30"
    said = "October 2026 is not complete: it was read on 30 October 2026, and November 2026 on 28"
    assert said in " ".join(Seen(page_of(now, against=[before])).text.split())


def test_phrases_that_no_further_table_counts_stand_aside():
    now = of_run(counted({"cold soup": (90, 70, 110), "nice day": (95, 75, 115)}), "n", [])
    grouped = of_run(within_country({"cold soup": {"DE": (60, 40, 80)}}), "g", [])
    grouped.manifest["parameters"] |= {"by": "country", "groups": ["DE", "US"]}
    text = " ".join(Seen(page_of(now, others=[grouped])).text.replace("\0", " ").split())
    first, _, further = text.partition("1 further phrase not counted by groups")
    assert "cold soup ◆ DE: 60 about 90" in first and "nice day" not in first
    assert "nice day about 95" in further
    assert "further" not in page_of(now)


def test_more_than_three_that_the_earlier_release_has_alone_are_folded():
    sizes = {"hi there": (50, 30, 70)}
    now = of_run(counted(sizes), "now", [])
    for count, folds in ((3, 0), (4, 1)):
        old = {f"old soup{n}": (5, 0, 25) for n in range(count)}
        page = page_of(now, against=[of_run(counted(sizes | old), "before", [])])
        folded = re.sub("<details.*?</details>", "", page, flags=re.DOTALL)
        assert page.count("(each may still be said)</summary>") == folds
        assert ("may still be said" in folded) == (not folds)


def test_a_cell_that_may_be_nobodys_says_at_most():
    """Or nearly nobody's: a range that begins at 4 is as wide as one that begins at 0."""
    for low, high, said in ((0, 30, "at most 30"), (4, 41, "at most 41"), (5, 41, "20 (5 to 41)")):
        people = {"a b c d": {"DE": (500, 480, 520), "US": (20, low, high)}}
        page = page_of(within_country(people))
        text = " ".join(Seen(page).text.replace("\0", " ").split())
        assert f"DE: 500 (480 to 520) US: {said}" in text


def test_the_rarest_phrase_that_was_found_is_said():
    assert "Found are" not in page_of(ladder())  # its numbers are not of people
    people = {"a b c d": (90, 80, 100), "e f g h": (60, 50, 70), "i j": (60, 50, 70)}
    release = counted(people)
    assert "Found are" not in page_of(release)  # of what was asked for, nothing is missing
    release.manifest["verb"] = "ngrams"
    assert "Found are phrases down to about 60 people: what" in page_of(release)


def test_groups_are_side_by_side_and_what_is_not_shown_is_said():
    people = {"a b": {"DE": (90, 60, 120)}, "c d": {"DE": (80, 50, 110), "US": (70, 50, 90)}}
    release = within_country(people)
    release.manifest["counting"] = {**made.TOGETHER, "min_users": 50}
    release.manifest["levels"] = [{"level": 1, "kind": "set_union"}]
    page = page_of(release)
    text = " ".join(Seen(page).text.replace("\0", " ").split())
    assert "a b DE: 90 (60 to 120) US: may be under 50" in text
    assert "DE: 80 (50 to 110) US: 70 (50 to 90)" in text
    assert "its range begins below 50, so its number is not shown" in text
    assert "No number of “other”, for all other values, stands out of the noise" in text
    assert 'style="--n:2"' in page
    many = [f"c{n}" for n in range(9)]
    lines = page_of(within_country({"a": dict.fromkeys(many, (90, 60, 120))}, many))
    assert 'class="found groups many"' in lines


def test_weeks_are_steps_in_their_order_with_bands():
    weeks = ["2026-W45", "2026-W46", "2026-W47"]
    people = {weeks[0]: (10, 0, 30), weeks[1]: (20, 0, 40), weeks[2]: (500, 480, 520)}
    page = page_of(within_country({"a b": people | {"other": (300, 280, 320)}}, weeks))
    step = r'bottom:([0-9.]+)%;height:([0-9.]+)%"></b><i style="bottom:([0-9.]+)'
    assert [[*map(float, found)] for found in re.findall(step, page)] == [
        [0, 5.77, 1.92], [0, 7.69, 3.85], [92.31, 7.69, 96.15],
    ]  # fmt: skip
    text = " ".join(Seen(page).text.replace("\0", " ").split())
    assert "people write. ▲ rose: a b (at most 40 → about 500 people) 1 phrase" in text
    assert (
        "about 500 people (480 to 520) ▲ rose by about 480 at least 452; it was at most 40" in text
    )
    assert "300" not in text.partition("The manifest")[0]


def test_weeks_of_which_nothing_is_told_have_a_page():
    weeks = ["2026-W46", "2026-W47"]
    empty = within_country({}, weeks)
    empty.manifest["levels"] = [{"level": 1, "kind": "set_union"}]
    assert "Compared with 2026-W46" not in page_of(empty)
    assert "Compared with 2026-W46" not in empty._repr_html_()
    assert "Compared with 2026-W46" not in report_text([empty], [], 9)


def test_the_ledgers_line_is_of_the_accounts_that_paid(ledger, written):
    corpus = written([(who, "hello") for who in range(90)])
    uncapped = items(corpus, epsilon=0.5, delta=1e-8).run(ledger=ledger)
    assert "no account holds this corpus" in page_of(uncapped, ledger=ledger)
    ledger.add("survey", corpus, 2.0, 1e-6)
    release = items(corpus, epsilon=1.0, delta=1e-8).run(ledger=ledger)
    said = Seen(page_of(release, ledger=ledger)).text
    assert "survey: " in said and "(2, 1e-06), whatever is asked" in said
    assert "does not know this run" in page_of(ladder(), ledger=ledger)


def test_the_factor_is_never_rounded_down():
    for epsilon in (0.001, 0.1, 0.5, 1.0, 2.0, 2.5, 8.0, 15.0):
        said = promise_in_words(made.items(privacy={**PRIVACY, "epsilon": epsilon}).privacy)
        factor = float(re.findall(r"at most ([0-9.,]+) times", said)[0].replace(",", ""))
        assert math.exp(epsilon) <= factor <= math.exp(epsilon) * 1.001


def test_a_saved_release_becomes_a_page(written, ledger, tmp_path):
    corpus = written([(who, "see you later") for who in range(900)])
    ngrams(corpus, max_n=3, epsilon=4.0, delta=1e-6).run(ledger=ledger, out=tmp_path / "out")
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        cli,
        [
            *("report", str(tmp_path / "out"), "-o", str(page), "--title", "Farewells"),
            *("--csv", str(tmp_path / "table.csv"), "--top", "2"),
        ],
    )
    assert done.exit_code == 0, done.output
    assert "Farewells" in page.read_text(encoding="utf-8")
    assert "see you later" in (tmp_path / "table.csv").read_text(encoding="utf-8")
    shown = CliRunner().invoke(cli, ["report", str(tmp_path / "out")])
    assert shown.exit_code == 0 and "see you later" in shown.output
    with pytest.raises(UsageError, match=r"could not be written .Is a directory."):
        made.items().report(tmp_path)
    for path in (tmp_path / "no" / "page.html", "."):
        with pytest.raises(UsageError, match="could not be written"):
            made.items().report(path)


def test_groups_that_are_numbers_have_their_columns_name():
    numbers = within_country({"a b c d": {"1": (90, 60, 120), "2": (80, 50, 110)}}, ["1", "2"])
    (table,) = tables_of(numbers, 9)
    assert table.names == ("country 1", "country 2")
    assert groups_in_words("stars", ["1", "2", "3"]) == "stars 1, 2, 3"
    assert groups_in_words("country", ["DE", "1"]) == "DE, 1"


def test_the_first_of_what_rose_is_said_first():
    sizes = {f"{word} soup here": (900 - at, 800, 950) for at, word in enumerate("abcde")}
    before = dict.fromkeys(sizes, (90, 70, 110))
    said = Seen(page_of(counted(sizes), against=[of_run(counted(before), "before", [])])).text
    first, _, below = said.partition("\0" + "5 phrases")
    names = [f"{word} soup here (about 90 → about {900 - at} people)"
             for at, word in enumerate("abc")]  # fmt: skip
    assert f"▲ rose: {', '.join(names)} and 2 more" in " ".join(first.split())
    assert below.partition("The manifest")[0].count("▲ rose") == 5
