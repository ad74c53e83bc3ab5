"""Of which rows a release is, in words: what is put in words means what the condition means."""

import pytest

from dphh.reader.conditions import combined_condition
from dphh.report.rows import may_share_rows, rows_line

NOVEMBER = {"since": "date=2026-11-01", "until": "date=2026-12-01"}
SAID = [
    ({}, ""),
    (NOVEMBER, "November 2026"),
    ({**NOVEMBER, "where": "stars IN (1, 2)"}, "stars 1 or 2, November 2026"),
    ({"since": "day=2026-11-09", "until": "day=2026-11-16"}, "9 to 15 November 2026"),
    ({"since": "day=2026-11-30", "until": "day=2026-12-02"}, "30 November 2026 to 1 December 2026"),
    ({"since": "day=2026-11-30", "until": "day=2026-12-01"}, "30 November 2026"),
    ({"since": "day=2026-01-01", "until": "day=2027-01-01"}, "2026"),
    ({"since": "day=2025-12-01", "until": "day=2026-03-01"}, "December 2025 to February 2026"),
    ({"since": "day=2026-11-09"}, "day from 9 November 2026"),
    ({"since": "n=5"}, "n at least 5"),
    ({"until": "a=2026-12-01", "since": "b=2026-11-01"},
     "b from 1 November 2026, a before 1 December 2026"),
    ({"where": "stars <= 2 AND (country = 'D''E')"}, "stars at most 2, country D'E"),
    ({"where": "stars BETWEEN 1 AND 2 and x <> 3"}, "stars 1 to 2, x not 3"),
    ({"where": "a = 1 AND b = 2 OR c = 3"}, "rows where a = 1 AND b = 2 OR c = 3"),
    ({"where": "(a = 1 OR b = 2) AND c = 3"}, "rows where (a = 1 OR b = 2) AND c = 3"),
    ({"where": "(a = 1) OR (b = 2)"}, "rows where (a = 1) OR (b = 2)"),
    ({"where": "a = 1 AND b = CASE WHEN c AND d THEN 1 END"},
     "rows where a = 1 AND b = CASE WHEN c AND d THEN 1 END"),
    ({"where": "a = 'x AND y'"}, "a x AND y"),
    ({"where": "lower(a) = 'b'"}, "rows where lower(a) = 'b'"),
]  # fmt: skip


@pytest.mark.parametrize("asked, said", SAID)
def test_conditions_are_said_in_words_or_as_they_were_written(asked, said):
    where = combined_condition(**asked)
    assert rows_line({"parameters": {"content": {"where": where} if where else {}}}) == said


@pytest.mark.parametrize("where", ["'", "a = 1)", "((", "a = 1 -- b AND\n AND c", "", "$$ AND $$"])
def test_what_somebody_wrote_into_a_manifest_is_shown_as_it_is(where):
    said = rows_line({"parameters": {"content": {"where": where}}})
    assert said == f"rows where {' '.join(where.split())}"


NOVEMBER_SAYS = "day >= '2026-11-01' AND day < '2026-12-01'"


@pytest.mark.parametrize(
    "one, other, shared",
    [
        ("", "", False),
        ("", "a = 1", True),
        (NOVEMBER_SAYS, "day >= '2026-10-01' AND day < '2026-11-01'", False),
        (NOVEMBER_SAYS, "day >= '2026-10-01' AND day < '2026-11-02'", True),
        (NOVEMBER_SAYS, "day >= '2026-11-09' AND day < '2026-11-10'", True),
        (NOVEMBER_SAYS, "day >= '2026-12-01'", False),
        (NOVEMBER_SAYS, "day <= '2026-11-01'", True),
        (NOVEMBER_SAYS, """("Day" < '2026-11-01'\n)""", False),
        (NOVEMBER_SAYS, "stars = 1", True),
        (f"{NOVEMBER_SAYS} AND stars = 1", f"stars = 2 AND {NOVEMBER_SAYS}", False),
        ("week >= '9' AND week < '10'", "week >= '10' AND week < '11'", False),
        ("stars < 3", "stars >= 10", False),
        ("stars IN (1, 2)", "stars IN (3, 4)", False),
        ("stars IN (1, 2)", "stars IN (2, 3)", True),
        ("stars BETWEEN 1 AND 2", "stars > 2", False),
        ("country = 'DE'", "country <> 'DE'", False),
        ("country = 'DE'", "country != 'FR'", True),
        ("a = 1 OR b = 2", "a = 3", None),
        (NOVEMBER_SAYS, "date_trunc('month', day) = '2026-10-01'", None),
    ],
)
def test_whether_rows_meet_two_conditions(one, other, shared):
    manifests = [{"parameters": {"content": {"where": where}}} for where in (one, other)]
    assert may_share_rows(*manifests) is may_share_rows(*manifests[::-1]) is shared
