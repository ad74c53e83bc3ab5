"""Tables of people: in which order; and an item has one interval, wherever it is shown."""

import pyarrow as pa
import pytest

from dphh.release import Release
from dphh.report.bar_tables import tables_of
from dphh.report.page import page_of, release_card
from dphh.report.sentences import range_in_words
from dphh.report.terminal import release_text
from tests.report.every import COUNTED, release_of
from tests.report.made import Seen, counted, within_country

SHOWN = {
    "terminal": release_text,
    "page": lambda release: Seen(page_of(release)).text.replace("\0", "\n"),
    "card": lambda release: Seen(release_card(release)).text.replace("\0", "\n"),
}


@pytest.mark.parametrize("how", [how for how in COUNTED if how])
@pytest.mark.parametrize("where", SHOWN)
def test_an_item_has_one_interval_wherever_it_is_shown(how, where):
    release = release_of(900, f"{how}ngrams")
    said = SHOWN[where](release)
    tables = tables_of(release, 99)
    shown = [
        (" ".join(row.tokens), group, bar)
        for table in tables
        for row in table.rows
        for group, bar in zip(table.groups, row.bars, strict=True)
        if bar.value is not None and (group is not None or len(row.bars) == 1)
    ]
    found = {(row["item"], row.get("group_name")): row for row in release}
    for item, group, bar in shown:
        row = found[item, group]
        assert (bar.value, bar.low, bar.high) == (row["users"], row["low"], row["high"])
    _, _, first = shown[0]
    assert first.interval_text in said or range_in_words(first.low, first.high) in said
    if where == "page":
        assert all(range_in_words(bar.low, bar.high) in said for _, _, bar in shown)


def test_people_are_in_the_order_of_their_numbers_on_one_scale():
    noise = {f"word {n}": (90 + n, 0, 200) for n in range(9)}
    people = {"see": (200, 150, 260), "you": (900, 850, 960), "my order": (80, 20, 140), **noise}
    phrases, words = tables_of(counted(people), 4)
    assert (phrases.title, words.title) == ("phrases", "single words")
    assert (phrases.scale, words.scale, words.is_aside) == (200, 960, True)
    assert [" ".join(row.tokens) for row in words.rows] == ["you", "see"]
    assert [" ".join(row.tokens) for row in phrases.rows] == [
        "word 8",
        "word 7",
        "word 6",
        "word 5",
    ]
    assert (phrases.count, phrases.kind, words.kind) == (10, "phrases", "single words")


def test_phrases_go_by_their_numbers_and_those_without_words_of_their_own_are_folded():
    people = {
        "a b c d": (80, 70, 90), "e f g h": (90, 10, 170), "i j": (500, 480, 520),
        "i": (900, 880, 920), "j": (750, 730, 770),
    }  # fmt: skip
    release = counted(people)
    # What was read off before it was made to agree with others is not shown, and orders nothing.
    estimates = pa.array([95, 90, 500, 900, 750], release.table["estimate"].type)
    at = release.table.column_names.index("estimate")
    table = release.table.set_column(at, release.table.schema.field("estimate"), estimates)
    phrases, others = tables_of(Release(table, release.manifest), 9)
    assert [" ".join(row.tokens) for row in phrases.rows] == ["e f g h", "a b c d"]
    assert (phrases.kind, others.kind, others.is_aside) == ("phrases", "other common phrase", True)
    assert others.scale == 520 and "1 other common phrase, short or" in page_of(release)
    # A word of which a little more of its people say the phrase.
    del people["a b c d"], people["e f g h"], people["j"]
    (phrases,) = tables_of(counted(people), 9)
    assert [" ".join(row.tokens) for row in phrases.rows] == ["i j"]


def test_a_phrase_has_one_row_and_its_pieces_have_none():
    people = {
        "a b c": (90, 80, 100), "a b": (95, 85, 105), "b c": (96, 86, 106), "a": (99, 89, 109),
        "b": (400, 390, 410), "c": (310, 300, 320), "b d": (50, 40, 60), "d": (55, 45, 65),
        "e": (500, 490, 510), "f": (60, 50, 70),
    }  # fmt: skip
    phrases, words = tables_of(counted(people), 99)
    assert [" ".join(row.tokens) for row in phrases.rows] == ["a b c", "b d"]
    assert [" ".join(row.tokens) for row in words.rows] == ["e", "f"]
    seen = Seen(page_of(counted(people))).text
    assert seen.index("a b c") < seen.index("b d") < seen.index("2 single words, in no phrase")
    assert "b c" not in seen.replace("a b c", "").partition("{")[0]


def test_other_is_left_out_where_it_is_noise_or_no_time():
    noise = {"a": {"DE": (500, 480, 520), "other": (25, 5, 45)}}  # begins above 0, by luck
    assert tables_of(within_country(noise, ["DE"]), 9)[0].groups == ("DE",)
    held = {"a": {"DE": (500, 480, 520), "other": (50, 30, 70)}}
    assert tables_of(within_country(held, ["DE"]), 9)[0].groups == ("DE", "other")
    weeks = {"a": {"2026-W46": (9, 0, 29), "2026-W47": (9, 0, 29), "other": (500, 480, 520)}}
    assert tables_of(within_country(weeks, ["2026-W46", "2026-W47"]), 9)[0].groups == (
        "2026-W46", "2026-W47",
    )  # fmt: skip


def test_all_together_is_a_sum_where_all_that_was_counted_is_shown():
    noise = {"simultaneous": False}
    people = {
        "a b a b": {"DE": (500, 480, 520), "US": (10, 0, 30)},
        "c d c d": {"DE": (40, 20, 60), "US": (10, 0, 30)},
        "e f e f": {"DE": (40, 20, 60), "US": (25, 5, 45)},
    }
    groups = {text: {**each, "other": (0, 0, 20)} for text, each in people.items()}
    release = within_country(groups, noise=noise)
    (table,) = tables_of(release, 9)
    assert table.names == ("all together", "DE", "US")
    # Noise of 10 users in each of three groups, and what was rounded.
    assert [(row.bars[0].value, row.bars[0].interval_text) for row in table.rows] == [
        (510, "475–545"), (65, "30–100"), (50, "15–85"),
    ]  # fmt: skip
    assert "several times in “all together”" in Seen(page_of(release)).text
    for name in ("tokens", "all together"):  # groups are called as their owner likes
        held = {"a b c d": {name: (90, 70, 110), "other": (0, 0, 20)}}
        odd = tables_of(within_country(held, [name], noise), 9)[0]
        assert odd.names == ("all together", name)
    chosen = within_country(people, noise={**noise, "min_users": 5})
    assert tables_of(chosen, 9)[0].groups == ("DE", "US")


def test_rows_by_country_go_by_the_sum_and_what_a_country_lacks_is_blank():
    noise = dict.fromkeys(("DE", "US", "other"), (390, 0, 800))
    release = within_country(
        {
            "in please": noise,
            "my order": {"DE": (600, 200, 1_000), "US": (390, 0, 800)},
            "hello you": noise | {"DE": (510, 110, 910), "US": (510, 110, 910)},
        }
    )
    (table,) = tables_of(release, 99)
    assert [" ".join(row.tokens) for row in table.rows] == ["hello you", "in please", "my order"]
    assert (table.title, table.groups) == ("phrases, by country", ("DE", "US"))
    assert [bar.number_text for bar in table.rows[2].bars] == ["600", "390"]
