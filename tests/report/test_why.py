"""Why a phrase is not there: as far as the release says, and never more."""

from __future__ import annotations

import pytest

from dphh import Corpus, UsageError, ngrams
from dphh.testing import SeededRandomness
from tests.report.made import CONTENT, items, ladder, trie


def test_a_released_phrase_is_read_as_the_corpus_was():
    assert ladder().why("See you, LATER!").reason == "released"
    assert ladder().why(["see", "you"]).reason == "released"
    assert ladder().why(["See", "you"]).reason == "a part was not released"


def test_a_part_that_was_not_released_is_named_and_no_longer_one():
    told = ladder().why("see you again")
    assert (told.reason, told.missing) == ("a part was not released", (("again",),))
    assert "“again” was not released" in repr(told)
    told = ladder().why("later see you")
    assert told.missing == (("later", "see"),)
    assert ladder().why("some thing").missing == (("some",), ("thing",))


def test_on_a_single_side_the_beginning_and_the_last_token_count():
    assert ladder("single").why("me see you").missing == (("me", "see"),)
    assert ladder("both").why("see you me").reason == "below"
    assert ladder("single").why("see me you").reason == "below"
    assert ladder("both").why("see me you").missing == (("me", "you"),)


def test_what_stayed_below_is_not_said_to_be_held_by_anybody():
    told = ladder().why("me later")
    assert told.reason == "below"
    assert "does not say whether anybody holds it" in repr(told)
    assert "62 people" in repr(told)
    assert items().why("zzz").reason == "below"


def test_lengths_that_were_not_looked_at():
    assert ladder().why("see you later see").reason == "not of this length"
    assert "up to 3" in repr(ladder().why("see you later see"))
    assert items().why("see you").reason == "not of this length"


def test_what_the_corpus_reading_leaves_nothing_of():
    assert ladder().why("...").reason == "not so read"
    assert ladder().why("").reason == "not so read"


def test_baselines_look_at_whole_phrases_so_parts_are_no_reason():
    made = ladder()
    for level in made.manifest["levels"]:
        level.pop("pruning", None)
        level["kind"] = "set_union"
    assert made.why("some thing").reason == "below"


def test_a_trie_stops_where_a_beginning_was_not_released():
    assert trie().why("ab").reason == "released"
    assert "whole sequence" in repr(trie().why("ab"))
    assert "beginning of sequences" in repr(trie().why("b"))
    assert trie().why("acd").missing == (("a", "c"),)
    assert trie().why("az").reason == "below"
    assert trie().why("abcdef").reason == "not of this length"
    assert "a level more" in repr(trie(max_length=3).why("bcd"))


def test_a_local_trie_knows_its_characters_and_its_known_words():
    made = trie()
    made.manifest["parameters"] |= {"character_set": "abc", "known": ["cab"]}
    assert "'d'" in repr(made.why("bd"))
    assert made.why("cab").reason == "not so read"


def test_devices_are_asked_from_pairs_on_so_no_single_character_is_missing():
    made = trie(max_length=2)
    for level in made.manifest["levels"]:
        level["kind"] = "local"
    assert made.why("cd").reason == "below"
    assert made.why("cde").missing == (("c", "d"),)
    assert "2 to 3" in repr(made.why("c"))
    assert made.why("c").reason == "not of this length"


def test_a_phrase_is_text_or_a_list_of_tokens():
    with pytest.raises(UsageError, match="list of tokens"):
        ladder().why([1, 2])
    listed = items()
    listed.manifest["parameters"]["content"] = {**CONTENT, "reading": "list"}
    with pytest.raises(UsageError, match="the corpus had lists"):
        listed.why("a")


def test_a_run_of_its_own_explains_itself(written):
    rows = [(person, "see you later" + " maybe" * (person < 3)) for person in range(400)]
    corpus: Corpus = written(rows)
    release = ngrams(corpus, max_n=3, epsilon=1.0, delta=1e-6, max_items=5).run(
        randomness=SeededRandomness(1)
    )
    assert release.why("see you later").reason == "released"
    assert release.why("later maybe").missing == (("maybe",),)
    assert release.why("maybe").reason == "below"


def test_what_a_floor_may_have_left_out_is_told():
    release = items()
    release.manifest["counting"] = {"min_users": 20}
    assert "below 20 users (min_users)" in repr(release.why("zzz"))


@pytest.mark.parametrize("release", [ladder(), items()])
def test_what_top_left_out_is_said_to_be_left_out_by_it(release):
    first = release.top(1)
    (kept,) = [tuple(row["tokens"]) for row in first]
    assert first.why(list(kept)).reason == "released"
    for row in release:
        if tuple(row["tokens"]) != kept:
            why = first.why(row["tokens"])
            assert why.reason == "left out by top"
            assert "not released" not in why.said
