"""Texts that come in any order, in tables that end anywhere, become rows of whole users."""

import os
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dphh.errors import EngineOutOfResources
from dphh.udfs.arrays import hash_texts
from dphh.udfs.kernel import contributions, spilled_texts
from dphh.udfs.kernel import gathering as module
from dphh.udfs.kernel.gathering import Gathering, ReadWords, TextReader, rows_of_users
from dphh.udfs.kernel.vocabulary import Vocabulary

Text = tuple[int, list[str]]
TEXTS = st.lists(
    st.tuples(st.integers(0, 5), st.lists(st.sampled_from(["a", "b", "é", ""]), max_size=3))
)
CUTS = st.lists(st.integers(0, 20), max_size=3)


def named(user: int) -> str:
    return "é" * user  # one has the empty name


def gathered(
    texts: list[Text], cuts: list[int], read: TextReader, most: int | None, distinct: bool
) -> list[tuple[int, list[int]]]:
    """(user_hash, ids) of each user."""
    columns = (
        pa.array([named(user) for user, _ in texts], pa.string()),
        pa.array([tokens for _, tokens in texts], pa.list_(pa.string())),
        pa.nulls(len(texts), pa.string()),
    )
    with tempfile.TemporaryDirectory() as folder:
        spilled = None if most is None else spilled_texts.SpilledTexts(folder, most)
        gathering = Gathering(read, spilled, distinct=distinct)
        for start, end in pairwise([0, *sorted(min(cut, len(texts)) for cut in cuts), len(texts)]):
            gathering.add(*(column.slice(start, end - start) for column in columns))
        gathering.finish_adding()
        tables = list(gathering.rows())
        assert not list(Path(folder).iterdir())
    found = []
    for table in tables:
        for row in table.to_pylist():
            assert sum(row["lengths"]) == len(row["ids"])
            ends = np.cumsum([0, *row["lengths"]]).tolist()
            users_ids = [row["ids"][start:end] for start, end in pairwise(ends)]
            found += zip(row["user_hashes"], users_ids, strict=True)
    return found  # type: ignore[return-value]


@settings(deadline=None, max_examples=80)
@given(
    texts=TEXTS,
    cuts=CUTS,
    few=st.booleans(),
    most=st.sampled_from([None, 0, 200]),
    distinct=st.booleans(),
)
@example(texts=[(1, ["a", "b"])] * 5, cuts=[], few=True, most=None, distinct=False)
@example(texts=[(1, ["a", "b"])] * 5, cuts=[], few=True, most=None, distinct=True)
def test_a_users_texts_are_theirs_alone_in_whatever_order_they_come(
    texts, cuts, few, most, distinct
):
    with pytest.MonkeyPatch.context() as patch:
        if few:  # bytes that are read, and positions that are laid out, at a time
            patch.setattr(module, "BATCH_BYTES", 50)
            patch.setattr(module, "FOUR_BYTE_POSITIONS", 0)
            patch.setattr(module, "TEXTS_AT_ONCE", 2)
            patch.setattr(spilled_texts, "POSITIONS_AT_ONCE", 4)
            patch.setattr(module, "POSITIONS_PER_ROW", 3)
            patch.setattr(contributions, "DISTINCT_AT_ONCE", 3)
        vocabulary = Vocabulary()
        found = gathered(texts, cuts, ReadWords().reader(vocabulary), most, distinct)
    words: dict[int, list[str]] = {}
    for user, tokens in texts:
        words[user] = sorted([*words.get(user, []), *filter(None, tokens)])
    spelled = [sorted(vocabulary.spellings(ids).to_pylist()) for _, ids in found]
    expected = [sorted({*held}) if distinct else held for held in words.values() if held]
    assert sorted(spelled) == sorted(expected)
    # What stands for a user depends on the name alone; who holds one word needs none.
    user_hashes = [
        hash_texts(pa.array([named(user)])).view(np.int64).item() if len(held) > 1 else 0
        for user, held in words.items()
        if held
    ]
    assert sorted(user_hash for user_hash, _ in found) == sorted(user_hashes)


def test_a_user_of_many_words_has_each_once():
    rng = np.random.default_rng(1)
    lengths = np.array([0, 4_000, 3, 90_000, 5_000, 4_000, 0])
    ids = (rng.random(lengths.sum()) ** 4 * 5_000).astype(np.int32)
    counts, found = contributions.distinct_of_users(lengths, ids)
    users = [np.split(each, np.cumsum(of)[:-1]) for each, of in ((ids, lengths), (found, counts))]
    for held, distinct in zip(*users, strict=True):
        assert sorted(distinct.tolist()) == sorted({*held.tolist()})


def test_a_user_of_more_words_than_a_list_may_hold_is_told_and_not_turned_around():
    """Numbers of four bytes would say that the row has less than no position."""
    with pytest.raises(EngineOutOfResources, match="cannot be divided"):
        rows_of_users(np.arange(2), np.array([5, 2**31]), np.empty(0, dtype=np.int32))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("texts", [1, 20_000])
def test_a_disk_without_room_ends_the_gathering(tmp_path, texts):
    spilled = spilled_texts.SpilledTexts(str(tmp_path), 0)
    spilled._files = dict.fromkeys(spilled._files, Path("/dev/full"))
    gathering = Gathering(ReadWords().reader(Vocabulary()), spilled)
    taken = [(pa.array([f"{i}"]), pa.array([["a"]]), pa.nulls(1, pa.string()))
             for i in range(texts)]  # fmt: skip
    gathering.add(*(pa.concat_arrays(column) for column in zip(*taken, strict=True)))
    with pytest.raises(OSError, match="No space left"):
        gathering.finish_adding()
    assert gathering.disk_error is not None


@pytest.mark.parametrize("name", ["users", "lengths", "positions"])
def test_a_file_that_lacks_its_end_ends_the_gathering(tmp_path, name):
    """One number that was left became the user of all texts."""
    gathering = Gathering(
        ReadWords().reader(Vocabulary()), spilled_texts.SpilledTexts(str(tmp_path), 0)
    )
    nulls = pa.nulls(2, pa.string())
    gathering.add(pa.array(["1", "2"]), pa.array([["a"], ["b"]]), nulls)
    gathering.finish_adding()
    file = tmp_path / f"gathered_{name}"
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(OSError, match="shorter"):
        list(gathering.rows())
    assert gathering.disk_error is not None


def test_long_texts_become_tokens_some_bytes_at_a_time(monkeypatch):
    """A function is handed 2,048 rows at once, however long their texts are."""
    monkeypatch.setattr(module, "BATCH_BYTES", 1_000)
    sizes, texts = [], ["a" * 900, "b", "c" * 5_000, *["d" * 300] * 20, "e"]

    def tokens(contents: pa.Array) -> pa.Array:
        sizes.append((len(contents), contents.nbytes))
        return pa.array([[text] for text in contents.to_pylist()])

    words = Vocabulary()
    gathering = Gathering(ReadWords().reader(words), tokens=tokens)
    users, nothing = pa.array([str(user) for user in range(len(texts))]), pa.nulls(len(texts))
    none = nothing.cast(pa.list_(pa.string()))
    gathering.add(users, none, nothing.cast(pa.string()), pa.array(texts))
    assert sum(len(waiting) for waiting, *_ in gathering._waiting) == 0  # nor what holds them
    gathering.finish_adding()
    assert sum(rows for rows, _ in sizes) == len(texts)
    assert all(size <= 2_000 for rows, size in sizes if rows > 1)
    (table,) = gathering.rows()
    assert sum(map(len, table.column("ids").to_pylist())) == len(texts)


def test_words_that_do_not_matter_keep_those_that_do_apart():
    """Also at the beginning and the end of a text; what is no word keeps nothing apart."""
    words = Vocabulary()
    read = ReadWords(marks_ends=True, only=["a", "b"]).reader(words)
    texts = [["a", "x", "b"], ["x", "y", "z", "a", "", None, "b", "x"], ["a", "x", "y", "z", "b"]]
    tokens = pa.array(texts, pa.list_(pa.string()))
    lengths, ids = read(pa.table({"tokens": tokens}))
    spelled = words.spellings(np.maximum(ids, 0)).to_pylist()
    marked = [word if word in "ab" else "-" for word in spelled]
    shown = [mark if at >= 0 else "," for at, mark in zip(ids, marked, strict=True)]
    assert "".join(shown) == "a-b,--ab-,a--b,"
    assert lengths.tolist() == [4, 6, 5]
