"""Looking at saved releases: small ones, whose answers a reader can check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh.columns import GROWN, SCORED

Rows = Callable[..., list[dict[str, Any]]]
Con = duckdb.DuckDBPyConnection

PHRASES = {
    ("see",): 90.0,
    ("you",): 80.0,
    ("me",): 40.0,
    ("Flurble",): 30.0,
    ("see", "you"): 60.0,
    ("see", "me"): 20.0,
    ("you", "see"): 25.0,
    ("see", "you", "see"): 15.0,
}
#: "a" and "ab" are whole sequences; "b" goes on to "bc" only.
WAYS = [("a", False), ("b", False), ("a", True), ("ab", False), ("bc", False), ("ab", True)]


@pytest.fixture
def phrases(tmp_path: Path) -> str:
    path = tmp_path / "phrases.parquet"
    columns = zip(
        *((len(gram), " ".join(gram), gram, s) for gram, s in PHRASES.items()), strict=True
    )
    pq.write_table(pa.table([list(column) for column in columns], schema=SCORED), path)
    return str(path)


@pytest.fixture
def trie(tmp_path: Path) -> str:
    folder = tmp_path / "trie"
    folder.mkdir()
    rows = [(len(way) + ended, way, list(way), None, ended) for way, ended in WAYS]
    columns = [list(column) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(columns, schema=GROWN), folder / "release.parquet")
    return str(folder)


def test_a_release_is_found_by_its_folder(rows: Rows, trie: str) -> None:
    for folder in (trie, trie + "/"):
        assert len(rows("FROM dphh_release_at(?)", folder)) == len(WAYS)


def test_levels_are_summed_up(rows: Rows, phrases: str) -> None:
    found = rows("FROM dphh_levels(?)", phrases)
    assert [(row["level"], row["items"]) for row in found] == [(1, 4), (2, 3), (3, 1)]
    assert found[0]["least_score"], found[0]["most_score"] == (30.0, 90.0)
    assert found[1]["median_score"] == 25.0


def test_one_step_down_a_trie(rows: Rows, trie: str) -> None:
    release = f"{trie}/release.parquet"
    root = rows("FROM dphh_children(?)", release)
    assert [(row["token"], row["ended"]) for row in root] == [("a", True), ("b", False)]
    below = rows("FROM dphh_children(?, prefix := ['a'])", release)
    assert [(row["token"], row["item"], row["ended"]) for row in below] == [("b", "ab", True)]
    assert rows("FROM dphh_children(?, prefix := ['z'])", release) == []


def test_a_trie_as_an_indented_tree(rows: Rows, trie: str, phrases: str) -> None:
    tree = [row["tree"] for row in rows("FROM dphh_tree(?)", f"{trie}/release.parquet")]
    assert tree == ["a", "  b", "b", "  c"]
    below = rows("FROM dphh_tree(?, prefix := ['see'])", phrases)
    assert [row["tree"] for row in below] == ["see", "  me", "  you", "    see"]


def test_a_trees_scores_stand_beside_the_length_that_they_order(rows: Rows, phrases: str) -> None:
    tree = rows("FROM dphh_tree(?, prefix := ['see'])", phrases)
    assert [row["length"] for row in tree] == [1, 2, 2, 3]


def test_completions_go_from_short_to_long(rows: Rows, con: Con, phrases: str) -> None:
    con.execute(f"CREATE OR REPLACE TEMP TABLE heavy AS FROM '{phrases}'")
    con.execute("UPDATE heavy SET score = 1000 WHERE item = 'see you see'")
    assert [row["length"] for row in rows("FROM dphh_completions('heavy', 'see')")] == [1, 2, 2, 3]


def test_completions_of_one_length_have_the_highest_scores_first(rows: Rows, phrases: str) -> None:
    found = rows("FROM dphh_completions(?, 'see y', most := 5)", phrases)
    assert [(row["item"], row["score"]) for row in found] == [
        ("see you", 60.0),
        ("see you see", 15.0),
    ]
    # What is typed is text, not a pattern.
    assert rows("FROM dphh_completions(?, '%')", phrases) == []
    assert len(rows("FROM dphh_completions(?, '', most := 3)", phrases)) == 3


def test_next_words_have_scores_and_no_shares_of_people(rows: Rows, phrases: str) -> None:
    found = rows("FROM dphh_next_words(?, ['see'])", phrases)
    after = {"after": ["see"]}
    assert found == [{"token": "you", "score": 60, **after}, {"token": "me", "score": 20, **after}]


def test_which_parts_of_a_phrase_were_released(rows: Rows, phrases: str) -> None:
    found = rows("FROM dphh_why(?, ['you', 'me', 'you'])", phrases)
    assert [(" ".join(row["part"]), row["released"]) for row in found] == [
        ("you", True), ("me", True), ("you", True), ("you me", False), ("me you", False),
        ("you me you", False),
    ]  # fmt: skip


def test_of_a_sequence_in_a_trie_its_beginnings_count(rows: Rows, trie: str) -> None:
    found = rows("FROM dphh_why(?, ['a', 'b', 'c'])", f"{trie}/release.parquet")
    assert [(row["part"], row["released"]) for row in found] == [
        (["a"], True), (["a", "b"], True), (["a", "b", "c"], False),
    ]  # fmt: skip


def test_next_words_fall_back_to_the_longest_known_ending(rows: Rows, phrases: str) -> None:
    (known,) = rows("FROM dphh_next_words(?, ['see', 'you'])", phrases)
    assert (known["token"], known["after"]) == ("see", ["see", "you"])
    (shorter,) = rows("FROM dphh_next_words(?, ['me', 'you'])", phrases)
    assert (shorter["token"], shorter["after"]) == ("see", ["you"])
    nothing = rows("FROM dphh_next_words(?, ['what', 'ever'])", phrases)
    assert [row["token"] for row in nothing] == ["see", "you", "me", "Flurble"]
    assert {tuple(row["after"]) for row in nothing} == {()}


def test_the_longest_released_beginning(rows: Rows, phrases: str) -> None:
    (found,) = rows("FROM dphh_longest_prefix(?, ['see', 'you', 'soon'])", phrases)
    assert (found["item"], found["length"]) == ("see you", 2)
    assert rows("FROM dphh_longest_prefix(?, ['soon'])", phrases) == []


def test_what_a_public_dictionary_lacks(
    rows: Rows, con: duckdb.DuckDBPyConnection, phrases: str
) -> None:
    con.execute("CREATE OR REPLACE TEMP TABLE words AS SELECT unnest(['See', 'you', 'me']) AS word")
    (found,) = rows("FROM dphh_new_to(?, 'words')", phrases)
    assert (found["item"], found["unknown"]) == ("Flurble", ["Flurble"])


def test_two_releases_compared(rows: Rows, con: duckdb.DuckDBPyConnection, phrases: str) -> None:
    con.execute(
        "CREATE OR REPLACE TEMP TABLE later AS SELECT * REPLACE (score + 1 AS score) "
        f"FROM '{phrases}' WHERE item != 'me' "
        "UNION ALL SELECT 1, 'new', ['new'], 5.0"
    )
    found = rows("FROM dphh_compare(?, 'later')", phrases)
    changed = {row["item"]: row for row in found if row["change"] != "kept"}
    assert {item: row["change"] for item, row in changed.items()} == {"me": "lost", "new": "gained"}
    assert (changed["me"]["score_before"], changed["me"]["score_after"]) == (40.0, None)
    assert {row["score_change"] for row in found if row["change"] == "kept"} == {1.0}


def test_a_release_may_be_named_by_its_folder(rows: Rows, trie: str) -> None:
    of_its_file = rows("FROM dphh_tree(?)", f"{trie}/release.parquet")
    assert of_its_file
    for folder in (trie, f"{trie}/"):
        assert rows("FROM dphh_tree(?)", folder) == of_its_file


def test_a_trie_compared_with_itself_is_all_kept(rows: Rows, trie: str) -> None:
    release = f"{trie}/release.parquet"
    assert {row["change"] for row in rows("FROM dphh_compare(?, ?)", release, release)} == {"kept"}


def test_help_names_every_macro_that_it_says_and_no_other(
    rows: Rows, con: duckdb.DuckDBPyConnection
) -> None:
    there = {
        (row["function_name"], tuple(row["parameters"]))
        for row in rows("FROM duckdb_functions() WHERE function_name LIKE 'dphh_%'")
    }
    for row in rows("FROM dphh_help()"):
        name, _, rest = row["call"].removeprefix("FROM ").partition("(")
        named = tuple(
            part.split(":=")[0].strip() for part in rest.removesuffix(")").split(",") if part
        )
        assert (name, named) in there, row["call"]


def test_nothing_draws_at_random(con: duckdb.DuckDBPyConnection) -> None:
    definitions = con.execute(
        "SELECT macro_definition FROM duckdb_functions() WHERE function_name LIKE 'dphh_%'"
    ).fetchall()
    assert definitions
    for (definition,) in definitions:
        assert not any(word in definition for word in ("random", "setseed", "uuid", "sample"))


def test_numbers_of_people_are_read_by_the_same_macros(rows: Rows, tmp_path: Path) -> None:
    """A release of `counts` has no scores."""
    people = {("see",): 90, ("me",): 40, ("see", "me"): 20}
    table = pa.table(
        {
            "level": [len(gram) for gram in people],
            "item": [" ".join(gram) for gram in people],
            "tokens": list(people),
            "users": list(people.values()),
        }
    )
    path = str(tmp_path / "counts.parquet")
    pq.write_table(table, path)
    tree = [(row["tree"], row["users"], row["score"]) for row in rows("FROM dphh_tree(?)", path)]
    assert tree == [("me", 40, None), ("see", 90, None), ("  me", 20, None)]
    assert [row["users"] for row in rows("FROM dphh_children(?)", path)] == [90, 40]
    assert [row["items"] for row in rows("FROM dphh_levels(?)", path)] == [2, 1]
    assert rows("FROM dphh_next_words(?, ['see'])", path)[0]["token"] == "me"
    assert len(rows("FROM dphh_completions(?, 's')", path)) == 2
    assert rows("FROM dphh_longest_prefix(?, ['see', 'you'])", path)[0]["item"] == "see"
    assert all(row["released"] for row in rows("FROM dphh_why(?, ['see', 'me'])", path))
    assert all(row["change"] == "kept" for row in rows("FROM dphh_compare(?, ?)", path, path))


def test_counts_within_groups_are_of_their_group_and_not_of_all(rows: Rows, tmp_path: Path) -> None:
    told = [("see", "DE", 90), ("see", "US", 700), ("me", "DE", 40), ("me", "US", 5)]
    table = pa.table(
        {
            "level": [1] * 4,
            "item": [item for item, _, _ in told],
            "tokens": [[item] for item, _, _ in told],
            "group": [group for _, group, _ in told],
            "users": [users for _, _, users in told],
            "low": [users - 5 for _, _, users in told],
            "high": [users + 5 for _, _, users in told],
        }
    )
    path = str(tmp_path / "counts.parquet")
    pq.write_table(table, path)
    for macro in ("dphh_tree", "dphh_children"):
        found = rows(f"FROM {macro}(?)", path)
        name = "tree" if macro == "dphh_tree" else "item"
        assert sorted((row[name], row["group"], row["users"]) for row in found) == sorted(told)
        assert all((row["low"], row["high"]) == (row["users"] - 5, row["users"] + 5)
                   for row in found)  # fmt: skip
    assert [row["items"] for row in rows("FROM dphh_levels(?)", path)] == [2]
