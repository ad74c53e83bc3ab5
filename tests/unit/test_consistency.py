"""A release that was edited is refused: it contradicts itself, or what the ledger has stored."""

import json
import shutil

import polars as pl
import pyarrow as pa
import pytest

from dphh import Corpus, Ledger, Release, UsageError, counts, items, ldp_trie, ngrams, trie, verify
from dphh.columns import DIGEST_FIELD, digest_of
from dphh.consistency import check_consistency

TEXTS = [(who, "see you later my friend") for who in range(900)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The ledger of a run, and the run's folder."""
    folder = tmp_path_factory.mktemp("saved")
    corpus = Corpus(pl.DataFrame(TEXTS, ["who", "what"], orient="row"), user="who", text="what")
    plan = ngrams(corpus, max_n=3, epsilon=1.0, delta=1e-6, counts=0.3)
    plan.run(ledger=Ledger(folder / "ledger", create=True), out=folder / "out")
    return folder


@pytest.fixture
def made(saved, ledger, tmp_path):
    ledger.path.parent.mkdir(parents=True)
    shutil.copy(saved / "ledger", ledger.path)
    return Release.load(shutil.copytree(saved / "out", tmp_path / "out"))


def each_verb(corpus):
    budget = {"epsilon": 1.0, "delta": 1e-6}
    yield ngrams(corpus, max_n=3, **budget)
    yield ngrams(corpus, max_n=3, method="dpne", counts=0.3, min_users=5, **budget)
    yield ngrams(corpus, max_n=2, counts=0.3, by="what", groups=["x"], **budget)
    yield items(corpus, counts=0.3, **budget)
    yield items(corpus, domain=[["see"], ["never"]], **budget)
    yield counts(corpus, of=["see you", "never"], by="what", groups=["x"], **budget)
    yield trie(corpus, max_length=5, counts=0.3, **budget)
    yield ldp_trie(corpus, local_epsilon=8.0, delta=1e-6, users_per_level=100, contributions=1,
                   max_length=3, keep=10)  # fmt: skip


def with_row(release, tokens):
    """The release with one row more, and its hash computed anew, as by somebody who knows how."""
    row = {**next(iter(release)), "tokens": tokens, "item": " ".join(tokens), "level": len(tokens)}
    table = pa.concat_tables(
        [release.table, pa.Table.from_pylist([row], schema=release.table.schema)]
    )
    return Release(table, {**release.manifest, DIGEST_FIELD: digest_of(table)})


EDITS = {
    "field 'epsilon' is not what dphh writes": lambda m: m["privacy"].update(epsilon=0.1),
    "is not what dphh writes of what was asked": lambda m: m["parameters"].update(delta=1e-9),
    "hash": lambda m: m.pop(DIGEST_FIELD),
    "field 'events'": lambda m: m.pop("events"),
    "level 2 has": lambda m: m["levels"][-2].update(released=m["levels"][-2]["released"] + 1),
    "field 'randomness'": lambda m: m.update(is_test=not m["is_test"]),
    "its verb is none of items, .*the dphh that made it": lambda m: m.update(verb="census"),
    "its engine is none of duckdb, ": lambda m: m["engine"].update(name="datafusion"),
    "field 'note'": lambda m: m.update(note="by hand"),
}


@pytest.mark.parametrize("why", EDITS)
def test_an_edited_manifest_is_refused(made, tmp_path, why):
    manifest = json.loads((tmp_path / "out" / "release.json").read_text())
    EDITS[why](manifest)
    (tmp_path / "out" / "release.json").write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match=why):
        Release.load(tmp_path / "out")


def test_a_row_that_was_added_is_refused(made, tmp_path):
    added = with_row(made, ["john", "has", "it"])
    with pytest.raises(UsageError, match="level 3 has"):
        check_consistency(added)
    added.manifest["levels"][-1]["released"] += 1
    with pytest.raises(UsageError, match="parts were not found"):
        check_consistency(added)
    with pytest.raises(UsageError, match="whose hash"):
        check_consistency(Release(added.table, made.manifest))


def test_what_a_folder_cannot_show_the_ledger_does(made, ledger, tmp_path):
    """An edit that computes all anew agrees with itself: only the ledger has what was made."""
    added = with_row(made, ["you", "my"])
    added.manifest["levels"] = [dict(each) for each in made.manifest["levels"]]
    next(each for each in added.manifest["levels"] if each["level"] == 2)["released"] += 1
    check_consistency(added)
    with pytest.raises(UsageError, match="has another content"):
        verify(added.save(tmp_path / "added"), ledger=ledger)


@pytest.mark.parametrize("how", [{}, {"min_users": 5}, {"by": "what", "groups": ["x"]}])
def test_intervals_of_other_noise_are_refused(written, ledger, how):
    plan = ngrams(written(TEXTS), max_n=3, epsilon=8.0, delta=1e-6, counts=0.3, **how)
    made = plan.run(ledger=ledger, engine="polars")
    first = next(iter(made))
    for other in ({"low": first["low"] + 2}, {"high": first["high"] - 2}):
        rows = [{**first, **other}, *list(made)[1:]]
        table = pa.Table.from_pylist(rows, schema=made.table.schema)
        edited = Release(table, {**made.manifest, DIGEST_FIELD: digest_of(table)})
        with pytest.raises(UsageError, match="its intervals are not those of its noise"):
            check_consistency(edited)
    for other in ({"users": first["users"] + 1}, {"estimate": first["estimate"] - 1}):
        table = pa.Table.from_pylist([{**first, **other}], schema=made.table.schema)
        with pytest.raises(UsageError, match="is not its estimate, cut at 0"):
            check_consistency(Release(table, made.manifest))
    for name in ("users", "low", "estimate"):
        with pytest.raises(UsageError, match=f"its field {name!r} is not what dphh writes"):
            check_consistency(Release(made.table.drop_columns([name]), made.manifest))
    manifest = json.loads(made.dumps())
    if "min_users" in how:
        del manifest["counting"]["families"][0:]
        with pytest.raises(UsageError, match="of how many counts it shows how many"):
            check_consistency(Release(made.table, manifest))


def test_given_items_are_all_there(written, ledger):
    plan = counts(written(TEXTS), of=["see", "you", "never"], epsilon=1.0, delta=1e-6)
    made = plan.run(ledger=ledger, engine="polars")
    fewer = made.table.slice(1)
    lacking = Release(fewer, {**made.manifest, DIGEST_FIELD: digest_of(fewer)})
    with pytest.raises(UsageError, match="lacks an item that it was asked to count"):
        check_consistency(lacking)
    with pytest.raises(UsageError, match="other items than it was asked to count"):
        check_consistency(with_row(made, ["you", "my"]))
    with pytest.raises(UsageError, match="other items than it was asked to count"):
        check_consistency(with_row(made, ["you"]))
