"""Hashes of spellings, against a loop over the bytes; and the words of a run, numbered."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from dphh.udfs.arrays import hash_texts
from dphh.udfs.kernel import vocabulary
from dphh.udfs.kernel.vocabulary import Vocabulary

WORDS = ["", "a", "é", "日本", "\0", "\0\0", "12345678", "123456789", "x" * 1000, "x" * 1001]
MASK = 2**64 - 1


def mixed(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def one_by_one(text: str) -> int:
    spelled = text.encode()
    hashed = mixed(len(spelled))
    for start in range(0, len(spelled), 8):
        hashed = mixed(hashed ^ int.from_bytes(spelled[start : start + 8], "little"))
    return hashed


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_a_hash_is_that_of_the_bytes_wherever_the_text_stands(kind):
    texts = pa.array(WORDS, kind)
    assert hash_texts(texts).tolist() == [one_by_one(word) for word in WORDS]
    assert hash_texts(texts[3:7]).tolist() == [one_by_one(word) for word in WORDS[3:7]]
    assert len(hash_texts(texts[:0])) == 0


def test_words_come_back_from_their_numbers_and_nothing_has_none():
    words = Vocabulary()
    assert words.ids(pa.array(["b", "", "a", None, "b"])).tolist() == [0, -1, 1, -1, 0]
    assert words.ids(pa.array(["c", "a"])).tolist() == [2, 1]
    assert words.spellings([2, 0, 1]).to_pylist() == ["c", "b", "a"]
    assert len(words) == 3
    assert words.hashes()[:3].tolist() == [one_by_one(word) for word in "bac"]
    words.ids(pa.array(["d"]))
    assert words.hashes()[:4].tolist() == [one_by_one(word) for word in "bacd"]


def test_words_behind_2_gib_of_text_are_numbered():
    """Arrow's string views point no farther, and a corpus of long texts may have that in a call."""
    text, (one, other) = np.zeros(2**31 + 2, dtype=np.uint8), b"ab"  # memory that nothing touches
    text[2**31 :] = one, other
    ends = np.array([2**31, 2**31 + 1, 2**31 + 2])
    words = pa.Array.from_buffers(
        pa.large_string(), 2, [None, pa.py_buffer(ends), pa.py_buffer(text)]
    )
    assert Vocabulary().ids(words).tolist() == [0, 1]


def test_a_closed_vocabulary_says_the_same_and_opens_again(monkeypatch):
    monkeypatch.setattr(vocabulary, "SPELLED_AT_ONCE", 3)
    words, same = Vocabulary(), Vocabulary()
    for _ in range(2):
        for each in (words, same):
            each.ids(pa.array([*WORDS, "b", "c"]))
        words.close()
        words.close()
        asked = ["c", "", None, "x" * 1000, "new", "c", "newer", "new", "é"]
        for kind in (pa.string(), pa.large_string(), pa.string_view()):
            array = pa.array(asked, kind)
            assert words.ids(array).tolist() == same.ids(array).tolist()
        assert len(words.ids(pa.array([], pa.string()))) == 0
        assert len(words) == len(same)
        ids = [*range(len(words))]
        assert words.spellings(ids).to_pylist() == same.spellings(ids).to_pylist()
        assert words.hashes().tolist() == same.hashes().tolist()
        words.open()


def test_a_closed_vocabulary_tells_words_of_one_hash_apart(monkeypatch):
    monkeypatch.setattr(vocabulary, "hash_texts", lambda words: np.full(len(words), 7, np.uint64))
    words = Vocabulary()
    words.ids(pa.array(["a", "b"]))
    words.close()
    assert words.ids(pa.array(["b", "c", "a"])).tolist() == [1, 2, 0]


def test_words_that_are_met_again_have_the_numbers_that_they_had():
    words, number = Vocabulary(), {}
    rng = np.random.default_rng(2)
    spellings = [
        *WORDS,
        *("x" * n for n in range(11, 15)),
        *("x" * n + "\0" for n in range(11, 15)),
    ]
    for batch in range(30):
        met = [spellings[n] for n in rng.integers(0, len(spellings), 40)]
        kind = [pa.string(), pa.large_string(), pa.string_view()][batch % 3]
        array = pa.array([*met, *[None] * (batch % 2)], kind)[batch % 4 :]
        for word, word_id in zip(array.to_pylist(), words.ids(array).tolist(), strict=True):
            assert number.setdefault(word or "", word_id) == word_id
    assert number.pop("") == -1
    assert sorted(number.values()) == list(range(len(spellings) - 1))
    assert words.spellings([*number.values()]).to_pylist() == [*number]


def test_threads_that_meet_the_same_words_give_them_the_same_numbers():
    words = Vocabulary()
    rng = np.random.default_rng(1)
    lists = [[f"w{n}" for n in rng.integers(0, 3000, 2000)] for _ in range(40)]
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda texts: words.ids(pa.array(texts)), lists))
    number = {}
    for texts, found in zip(lists, ids, strict=True):
        for word, word_id in zip(texts, found.tolist(), strict=True):
            assert number.setdefault(word, word_id) == word_id
    assert sorted(number.values()) == list(range(len(number))) == list(range(len(words)))
