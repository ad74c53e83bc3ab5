"""A release that somebody forged is refused when it is loaded, or is shown: nothing in between."""

import random
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Release, UsageError
from dphh.columns import DIGEST_FIELD, digest_of
from dphh.consistency import check_consistency
from dphh.errors import CONTROL_CHARACTERS, DphhError
from dphh.release import MANIFEST, TABLE
from dphh.report.page import page_of
from tests.report.every import release_of

FORGED = [
    "items auto", "grouped items with a prior", "at least 5 dpne", "counted ngrams",
    "grouped domain", "counts together", "grouped trie", "trie of characters", "ldp_trie 2",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, -1, 0, 1, 0.5, 1e-300, 1e300, 2**53, 10**400, float("nan"), "", "x", "\x1b[31m",
    "\ud800", "(", [], [None], ["x"], [[1, 2]], [{}], {}, {"x": None},
]  # fmt: skip


def places(node: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every leaf and every node of a manifest; of a long list the first and the last."""
    yield way
    if isinstance(node, dict):
        for name, value in node.items():
            yield from places(value, (*way, name))
    elif isinstance(node, list):
        for place in sorted({0, len(node) - 1}) if node else ():
            yield from places(node[place], (*way, place))


def edited(manifest: dict[str, Any], way: tuple[Any, ...], value: Any) -> Any:
    if not way:
        return value
    edited = deepcopy(manifest)
    node: Any = edited
    for step in way[:-1]:
        node = node[step]
    if value is KeyError:
        del node[way[-1]]
    else:
        node[way[-1]] = value
    return edited


def is_refused_or_shown(release: Release) -> None:
    try:
        check_consistency(release)
    except DphhError as problem:
        assert str(problem)
        return
    assert page_of(release).encode()
    assert release._repr_html_().encode()
    said = [repr(release)]
    for phrase in (["see"], ["see", "you", "later"], ["never", "seen", "here"], ["s", "e"], ["~"]):
        said.append(repr(release.why(phrase)))
    with suppress(UsageError):  # such as a text where the corpus has lists
        said.append(repr(release.why("see you later")))
    with suppress(UsageError):  # nothing to draw
        release.plot().to_dict()
    assert not CONTROL_CHARACTERS.search("".join(said))


def edits(release: Release) -> list[tuple[tuple[Any, ...], Any]]:
    return [
        (way, value)
        for way in places(release.manifest)
        for value in [*VALUES, *([KeyError] if way else [])]
    ]


def check(release: Release, chosen: list[tuple[tuple[Any, ...], Any]]) -> None:
    for way, value in chosen:
        try:
            is_refused_or_shown(Release(release.table, edited(release.manifest, way, value)))
        except Exception as problem:
            raise AssertionError(f"{way} = {value!r}: {problem!r}") from problem


@pytest.mark.parametrize("name", FORGED)
def test_some_edited_manifests_are_refused_or_shown(name):
    release = release_of(900, name)
    check(release, random.Random(name).sample(edits(release), 12))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGED)
def test_many_edited_manifests_are_refused_or_shown(name):
    """Each time others."""
    release = release_of(900, name)
    seed = random.randrange(2**32)
    print("seed", seed)
    check(release, random.Random(seed).sample(edits(release), 400))


@pytest.mark.parametrize("name", ["grouped items with a prior", "ldp_trie 2"])
def test_every_edited_cell_is_refused_or_shown(name):
    release = release_of(900, name)
    numbers, texts = [None, -(2**31), 2**31 - 1], [None, "", "\x1b[31m", "x" * 10_000]
    for column in release.table.schema:
        for value in {
            pa.list_(pa.string()): [None, [], [None], ["see", None], texts[2:]],
            pa.string(): texts,
            pa.int64(): [*numbers, 2**63 - 1],
            pa.float64(): [None, float("nan"), float("inf"), -1e300],
            pa.bool_(): [None, True, False],
        }.get(column.type, numbers):
            rows = release.table.to_pylist()
            rows[-1][column.name] = value
            table = pa.Table.from_pylist(rows, schema=release.table.schema)
            manifest = {**release.manifest, DIGEST_FIELD: digest_of(table)}
            is_refused_or_shown(Release(table, manifest))


#: What was asked, and what a run drew or decided: no plan tells, but the ledger knows it.
NOT_OF_THE_PLAN = {
    *("parameters", "run_id", "day", "engine", "versions", "released", "valid", "round"),
    *("spurious_words", "within_purses", "lost_grid", "families"),
}


@pytest.mark.parametrize("name", FORGED)
def test_each_word_and_number_of_a_promise_is_what_dphh_writes(name):
    release = release_of(900, name)
    tried = 0
    for way in places(release.manifest):
        if NOT_OF_THE_PLAN & {*way}:
            continue
        value: Any = release.manifest
        for step in way:
            value = value[step]
        if isinstance(value, str):
            other: Any = f"{value}, and more"
        elif isinstance(value, bool):
            other = not value
        elif isinstance(value, (int, float)):
            other = value * 1.001 + isinstance(value, int)
        else:
            continue
        tried += 1
        with pytest.raises(UsageError, match=r"its |it "):
            check_consistency(Release(release.table, edited(release.manifest, way, other)))
    assert tried > 20


NO_RELEASE_HAS = {
    "that JSON cannot have": (("randomness",), "\ud800"),
    "has no levels": (("levels",), []),
    "its field 'run_id' has a value of another type": (("run_id",), 7),
    "its field 'finds' lacks": (("finds", "users"), KeyError),
    "its field 'spurious' is not": (("levels", -1, "spurious"), 0.02),
    "what bounding removed": (("counting", "lost_grid"), [1] * 9),
    "its field 'sigma_grid' has": (("counting", "sigma_grid"), 0),
    "its manifest is not": (("parameters", "content", "more"), 1),
    "its field 'keys' is not": (("counting", "keys"), KeyError),
}


@pytest.mark.parametrize("why", NO_RELEASE_HAS)
def test_what_no_release_has_is_refused_and_named(why):
    release = release_of(900, "counted ngrams")
    forged = Release(release.table, edited(release.manifest, *NO_RELEASE_HAS[why]))
    with pytest.raises(UsageError, match=why):
        check_consistency(forged)


def test_a_promise_on_shuffled_messages_is_for_items_and_users():
    release = release_of(900, "ldp_trie 2")
    way = ("privacy", "shuffled_user_epsilon")
    with pytest.raises(UsageError, match="'shuffled_user_epsilon' is not what dphh writes"):
        check_consistency(Release(release.table, edited(release.manifest, way, KeyError)))


def test_a_forged_manifest_does_not_steer_a_terminal():
    release = release_of(900, "items auto")
    manifest = deepcopy(release.manifest)
    manifest["run_id"] = "\x1b]0;owned\x07"
    forged = Release(release.table, manifest)
    check_consistency(forged)
    manifest["versions"]["dphh"] = "0.0.1"  # then nothing but the table is looked at
    manifest["privacy"]["unit"] = "\x1b[2Jnobody"
    check_consistency(forged)
    assert not CONTROL_CHARACTERS.search(repr(forged)) and "\\x1b[2Jnobody" in repr(forged)


def test_damaged_json_and_doubled_columns_are_refused(tmp_path):
    release = release_of(900, "items auto")
    release.save(tmp_path)
    (tmp_path / MANIFEST).write_text("[" * 100_000)
    with pytest.raises(UsageError, match="is not JSON"):
        Release.load(tmp_path)
    (tmp_path / MANIFEST).write_text(release.dumps())
    doubled = release.table.append_column("score", release.table["score"])
    named = doubled.replace_schema_metadata({"dphh.run_id": release.run_id})
    pq.write_table(named, tmp_path / TABLE)
    with pytest.raises(UsageError, match="cannot be read as a release's table"):
        Release.load(tmp_path)
