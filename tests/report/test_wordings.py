"""One row for what people say in other words around the same core, with a true number."""

from collections import defaultdict
from itertools import compress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphh.report.bar_tables import tables_of
from dphh.report.page import page_of
from dphh.report.phrases import findings_of
from dphh.report.wordings import Grams, Wording, wordings
from tests.report.made import Seen, counted, ladder

COMPLAINTS = {
    "parcel arrived two weeks late": 0.12, "service never called me back": 0.12,
    "app crashes when i log in": 0.1, "zip broke after a week": 0.09,
    "charged twice for shipping": 0.1, "waiting for my refund": 0.12,
    "size runs much too small": 0.09, "colour is different from the picture": 0.1,
    "box was already open": 0.1, "german manual is missing": 0.13,
}  # fmt: skip
LEADS = [
    "", "the", "my", "honestly the", "i hate that the", "so annoying the", "and", "sadly my",
    "bad news my", "what a shame the", "again the", "ok so my", "is it normal that the",
]  # fmt: skip
TAILS = ["", "", "and nobody helps", "again", "lol", "what now", "please fix this", "any ideas"]
WORDS = [*"abcdefgh", "the", "i", "to", "and", "it", "is", "my", "you", "for", "so", "was", "but"]
SIGMA = 15


def said(text):
    return tuple(text.split())


def of_grams(people, sigma=0.0):
    """Wordings of texts with their numbers of people; rows of one token are the tokens'."""
    numbers = {said(text): number for text, number in people.items()}
    parts = {gram[start:end] for gram in numbers for start in range(len(gram))
             for end in range(start + 1, len(gram) + 1) if end - start < len(gram)}  # fmt: skip
    whole = [gram for gram in numbers if len(gram) > 1 and gram not in parts]
    found, loose = wordings(whole, Grams([numbers], sigma), lambda gram: -numbers[gram])
    return {
        " ".join(of.tokens): (" ".join(of.counted), sorted(map(" ".join, of.variations)))
        for of in found
    }, sorted(map(" ".join, loose))


@pytest.fixture(scope="module")
def reviews():
    """A release of what 3,000 made people say, counted with noise; and who says each gram."""
    random = np.random.default_rng(3)
    holders = defaultdict(set)
    chance = 1 / np.arange(1, len(WORDS) + 1)
    plain = random.choice(WORDS, (3_000, 7), p=chance / chance.sum()).tolist()
    says = random.random((3_000, 10)) < [*COMPLAINTS.values()]
    for user, words in enumerate(plain):
        tokens = words
        for complaint in compress(COMPLAINTS, says[user]):
            lead, tail = (those[random.integers(len(those))] for those in (LEADS, TAILS))
            text = f"{lead} {complaint} {tail}".split()
            tokens = text + tokens if random.random() < 0.5 else tokens + text
        for size in range(1, 6):
            for start in range(len(tokens) - size + 1):
                holders[tuple(tokens[start : start + size])].add(user)
    noised = {
        " ".join(gram): round(len(those) + random.normal(0, SIGMA))
        for gram, those in holders.items() if len(those) > 25
    }  # fmt: skip
    margin = 2 * SIGMA
    release = counted({
        text: (number, max(number - margin, 0), number + margin)
        for text, number in noised.items() if number > 60
    })  # fmt: skip
    release.manifest["levels"][0].update(keys=9, max_items=9, grid_bits=0, sigma_grid=SIGMA)
    return release, holders


def whole(row):
    return row.wording.replace("[", "").replace("]", "")


def test_ten_complaints_with_other_words_around_them_are_about_ten_rows(reviews):
    release, holders = reviews
    rows, *_ = tables_of(release, 999)
    ours = set(" ".join(COMPLAINTS).split()) - {*WORDS}
    shown = [row for row in rows.rows if ours & set(whole(row).split())]
    assert len(shown) <= 12
    texts = [whole(row) for row in shown]
    assert len([text for text in COMPLAINTS if any(text in each for each in texts)]) == 10
    assert len(release) > 10 * len(rows.rows)
    for row in shown:  # the number is the released one of the words that are said to have it
        (its,) = (each for each in release if each["item"] == " ".join(row.tokens))
        assert (row.bars[0].value, row.bars[0].low) == (its["users"], its["low"])
        assert abs(its["users"] - len(holders[said(" ".join(row.tokens))])) < 5 * SIGMA
    # Where grams were joined, most of those who say the counted one say all that is shown.
    joined = [(row, said(whole(row))) for row in shown if row.wording.endswith("]")]
    assert joined
    for row, text in joined:
        ends = holders[text[:4]] & holders[text[-4:]]
        assert len(ends) > 0.6 * len(holders[said(" ".join(row.tokens))])


def test_the_number_of_a_row_is_of_all_who_complain_whatever_the_words_before(reviews):
    release, holders = reviews
    rows, *_ = tables_of(release, 999)
    held = 0
    for complaint in COMPLAINTS:
        words = said(complaint)
        says = len(holders[words[:5]] & holders[words[-5:]])
        (row,) = (row for row in rows.rows if complaint in whole(row))
        held += row.bars[0].low <= says <= row.bars[0].high
    assert held >= 9


def test_words_that_differ_before_a_complaint_are_not_of_it():
    people = {"the charger gets hot": 254, "my charger gets hot": 131, "charger gets hot": 271,
              "charger gets": 354, "gets hot": 330, "the charger": 249, "my charger": 140,
              "the charger gets": 235, "my charger gets": 135, "the": 3_200, "my": 2_300,
              "charger": 331, "gets": 700, "hot": 400}  # fmt: skip
    inside = sorted(["the charger gets hot", "my charger gets hot"])
    assert of_grams(people, 28) == ({"charger gets hot": ("charger gets hot", inside)}, [])


def test_phrases_and_the_page_have_the_same_rows_in_the_same_order(reviews):
    for release in (reviews[0], ladder()):
        shown = [row for table in tables_of(release, 999) for row in table.rows]
        frame = release.phrases()
        assert frame["item"].to_list() == [" ".join(row.tokens) for row in shown]
        assert frame["phrase"].to_list() == [whole(row) for row in shown]


def test_a_page_says_of_which_words_a_number_is():
    people = dict.fromkeys(["a b c", "b c d", "c d e", "b c", "c d"], (100, 80, 120))
    page = page_of(counted(people | dict.fromkeys("abcde", (100, 80, 120))))
    text = " ".join(Seen(page).text.split())
    assert "a b c [d e] about 100 people (80 to 120)" in text
    assert "Words in [brackets] are not counted: most wrote them, too." in text
    assert Wording(tuple("abcd"), ("b", "c")).name(" ") == "[a] b c [d]"
    alone = page_of(counted({"a b": (100, 80, 120)}))
    assert "brackets]" not in " ".join(Seen(alone).text.split())


def test_grams_that_overlap_are_one_wording_and_the_first_is_counted():
    people = {"a b c": 100, "b c d": 96, "c d e": 104, "b c": 105, "c d": 104}
    assert of_grams(people) == ({"a b c d e": ("a b c", [])}, [])
    # Half of those who say "b c" go on otherwise, and say "b c x".
    people = {"a b c": 200, "b c d": 100, "b c x": 100, "b c": 200}
    wanted = {"a b c": ("a b c", ["b c d", "b c x"])}
    assert of_grams(people)[0] == wanted
    # Without the number of what they share nothing is joined.
    assert of_grams({"a b c": 100, "b c d": 100})[0].keys() == {"a b c", "b c d"}


def test_a_row_has_not_the_number_of_what_others_say_too_and_hides_nothing_of_theirs():
    people = {"had": 7_400, "soup": 3_700, "lentil": 2_930, "miso": 1_100, "today": 7_400,
              "soup today": 3_885, "had lentil": 2_950, "lentil soup": 2_930, "had miso": 1_100,
              "miso soup": 1_105, "had lentil soup": 2_842, "lentil soup today": 2_948,
              "soup today pin": 3_881, "today pin": 7_332, "pin": 7_400, "had miso soup": 1_123,
              "miso soup today": 1_115}  # fmt: skip
    found, _ = of_grams(people, 40)
    assert found["had lentil soup today pin"] == ("lentil soup today", [])
    assert "had miso soup today" in found


def test_what_different_people_say_is_not_joined_where_numbers_are_near_the_noise():
    people = {"a b": 38, "x a b": 20, "a b y": 20}
    assert of_grams(people, 14)[0].keys() == {"x a b", "a b y"}
    assert of_grams(dict.fromkeys(people, 200), 14)[0].keys() == {"x a b y"}


def test_two_complaints_that_end_alike_are_two_rows():
    people = {"parcel came late": 800, "refund came late": 500, "came late": 1_290,
              "the parcel came": 90, "parcel came": 801, "refund came": 500, "the": 3_000,
              "parcel": 850, "refund": 560, "came": 1_400, "late": 1_400}  # fmt: skip
    found, loose = of_grams(people)
    assert found == {
        "parcel came late": ("parcel came late", ["the parcel came"]),
        "refund came late": ("refund came late", []),
    }
    assert loose == []


def test_what_stands_side_by_side_by_chance_is_no_phrase():
    people = {"for with": 80, "for": 900, "with": 800, "good morning": 90, "morning": 100,
              "good": 500}  # fmt: skip
    assert of_grams(people) == ({"good morning": ("good morning", [])}, ["for with"])


def test_loose_ends_are_cut_until_the_core():
    people = {"so the zip broke": 90, "my zip broke": 150, "the zip broke": 300, "so the zip": 95,
              "the zip": 310, "my zip": 155, "zip broke": 500, "so the": 700, "so": 2_000,
              "the": 3_000, "my": 2_000, "zip": 520, "broke": 560}  # fmt: skip
    found, _ = of_grams(people)
    assert found == {"zip broke": ("zip broke", ["my zip broke", "so the zip broke"])}


def test_a_chain_ends_where_its_grams_end():
    assert of_grams({"a a a": 9, "a a": 9, "a": 9})[0] == {"a a a": ("a a a", [])}
    people = dict.fromkeys(["a b", "b a", "a", "b"], 9)
    assert of_grams(people)[0].keys() in ({"a b a"}, {"b a b"})


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_no_more_are_said_to_hold_both_than_do(people):
    """Everybody holds what both share."""
    one, other, shared = ("a", "b"), ("b", "c"), ("b",)
    numbers = {one: sum(a for a, _ in people), other: sum(c for _, c in people),
               shared: len(people)}  # fmt: skip
    both = sum(a and c for a, c in people)
    assert Grams([numbers], 0).held_with(one, other, shared) <= both


def test_of_two_releases_an_item_is_counted_that_both_have_if_as_many_hold_it():
    people = {"a b c d": (100, 80, 120), "b c": (104, 84, 124), "c d": (300, 280, 320),
              "a b c": (100, 80, 120), "b c d": (101, 81, 121), "a": (100, 80, 120),
              "b": (110, 90, 130), "c": (320, 300, 340), "d": (900, 880, 920)}  # fmt: skip

    def counted_beside(*texts):
        earlier = counted({text: people[text] for text in texts})
        (of,) = findings_of(counted(people), earlier).phrases
        return " ".join(of.counted)

    assert counted_beside("a b c d", "b c") == "a b c d"
    assert counted_beside("b c", "c d", "d") == "b c"
    assert counted_beside("c d", "d") == "a b c d"  # many say it otherwise


def test_which_number_a_row_has_does_not_depend_on_the_numbers():
    """A low one that was picked among several would say too few, and a high one too many."""
    texts = "a b c d", "a b c", "b c d"
    for numbers in ((100, 120, 110), (110, 100, 120), (120, 110, 100)):
        of_text = zip(texts, numbers, strict=True)
        now = {text: (users, users - 20, users + 20) for text, users in of_text}
        (of,) = findings_of(counted(now)).phrases
        assert of.counted == said("a b c d")
    of_both = {text: ends for text, ends in now.items() if text != "a b c d"}
    (of,) = findings_of(counted(now), counted(of_both)).phrases
    assert of.counted == said("a b c")


def test_a_row_is_of_the_words_that_clearly_more_people_say():
    people = {"service never answered my emails": 200, "service never answered my": 230,
              "never answered my emails": 210, "service never answered": 390, "answered my": 240,
              "never answered my": 240, "answered my emails": 210, "never answered": 400,
              "service never": 395, "my emails": 215, "service": 420, "never": 700,
              "answered": 410, "my": 3_000, "emails": 230}  # fmt: skip
    found, _ = of_grams(people, 10)
    inside = ["service never answered my emails"]
    assert found == {"service never answered": ("service never answered", inside)}
    # Where these go on in two ways, they are two complaints.
    people |= {"service never answered calls": 150, "answered calls": 150, "calls": 160,
               "never answered calls": 150}  # fmt: skip
    assert "service never answered my emails" in of_grams(people, 10)[0]


def test_wordings_of_equal_numbers_have_one_order_in_each_process():
    grams = {said(f"{word} {word}s"): 100.0 for text in COMPLAINTS for word in text.split()}
    found, _ = wordings([*grams], Grams([grams], 0), lambda gram: -grams[gram])
    assert [of.tokens for of in found] == sorted(grams)
