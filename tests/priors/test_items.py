"""`items` with public knowledge: a prior's items need no threshold, a domain's are all shown."""

import polars as pl
import pytest

import dphh
from dphh import UsageError
from dphh.engines import ENGINES
from dphh.privacy.accounting import compose
from dphh.privacy.events import DeltaEvent
from dphh.testing import SeededRandomness

ASK = {"epsilon": 2.0, "delta": 1e-8, "max_items": 10}
RARE = [f"rare{word}" for word in range(300)]
OWN = [f"own{word}" for word in range(300)]
TABLE = pl.DataFrame({"item": ["good", *RARE], "count": [300_000, *[30] * len(RARE)]})
PUBLIC = {"prior": TABLE, "prior_is_public": True}


@pytest.fixture
def private(written):
    """300 items of a public list and 300 others, each of 14 users who hold two items."""
    return written(
        [(f"{word}/{user}", f"good {word}") for word in (*RARE, *OWN) for user in range(14)]
    )


@pytest.mark.on_spark
@pytest.mark.parametrize("engine", ENGINES)
def test_items_of_the_list_are_found_where_a_threshold_hides_all_others(private, engine):
    plan = dphh.items(private, **ASK, **PUBLIC)
    seed = SeededRandomness(3)
    release = plan.run(engine=engine, randomness=seed, again=True)
    found = {row["item"] for row in release}
    assert "good" in found and len(found & {*RARE}) > 150 and len(found & {*OWN}) < 25
    words = dphh.ngrams(private, max_n=1, **ASK, **PUBLIC).run(engine=engine, randomness=seed)
    assert [(row["item"], row["score"]) for row in words] == [
        (row["item"], row["score"]) for row in release
    ]  # level 1 of `ngrams`, alone


def test_a_prior_costs_what_set_union_in_two_rounds_costs(private):
    price = dphh.items(private, **ASK, **PUBLIC).price
    assert compose(price.events).delta(2.0) <= 1e-8
    assert "prior.md" in price.privacy.theorem
    assert sum(event.delta for event in price.events if isinstance(event, DeltaEvent)) <= 0.26e-8
    assert "that no user holds" in price.privacy.caveats[-1]


def test_a_prior_is_not_taken_beside_another_method(private):
    with pytest.raises(UsageError, match=r"^prior: cannot be combined with method='sips'"):
        dphh.items(private, method="sips", **ASK, **PUBLIC)


@pytest.mark.on_spark
@pytest.mark.parametrize("engine", ENGINES)
def test_all_of_a_domain_is_shown_and_nothing_else(private, engine):
    """Held or not: what stands in the release says nothing of who is there."""
    asked = ["good", "nobody's", *RARE[:3]]
    plan = dphh.items(private, domain=asked, **ASK)
    release = plan.run(engine=engine, randomness=SeededRandomness(3), again=True)
    users = {row["item"]: (row["low"], row["users"], row["high"]) for row in release}
    assert users.keys() == {*asked}
    assert users["good"][0] < 8_400 < users["good"][2] and users["nobody's"][0] <= 0
    same = dphh.counts(private, of=asked, max_held=10, epsilon=2.0, delta=1e-8)
    assert dphh.items(private, domain=asked, **ASK).price.events == same.price.events


def test_of_a_domain_what_few_hold_may_be_left_out(private):
    release = dphh.items(private, domain=["good", "x", *OWN[:2]], min_users=100, **ASK).run()
    assert [row["item"] for row in release] == ["good"]
    assert release.manifest["levels"][0]["keys"] == 4
    why = release.why("x")
    assert (why.reason, "min_users" in why.said) == ("below", True)
    assert release.why("y").reason == "not asked for"
    with pytest.raises(UsageError, match=r"^min_users: found 0; give a whole number from 1"):
        dphh.items(private, domain=["x"], min_users=0, **ASK)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"counts": 0.3}, "^counts: not possible with domain"),
        ({"method": "sips", **PUBLIC}, "^prior, method: not possible with domain"),
        ({"domain": []}, "^domain: found no items"),
        ({"domain": "no-such"}, "^domain: no-such is neither a release's folder"),
    ],
)
def test_what_does_not_go_with_a_domain_is_refused(private, more, said):
    with pytest.raises(UsageError, match=said):
        dphh.items(private, **{**ASK, "domain": ["good"], **more})


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_words_that_a_short_list_lacks_are_in_none_of_its_rows(engine):
    """Their thresholds were those of the last class, so that its words could not be drawn."""
    rows = [(f"p{user}", "the cat sat") for user in range(60)]
    rows += [("u", " ".join(f"own{word}" for word in range(400)))]
    frame = pl.DataFrame(rows, schema=["who", "what"], orient="row")
    corpus = dphh.Corpus(frame, user="who", text="what")
    held = ["the", "cat", "sat"]
    listed = [*held, *(f"absent{word}" for word in range(40))]
    table = pl.DataFrame({"item": listed, "count": [5] * len(listed)})
    asked = {"max_n": 1, "epsilon": 1.0, "delta": 0.08, "max_items": 30, "prior_is_public": True}
    plan = dphh.ngrams(corpus, prior=table, **asked)
    for _ in range(10):
        found = {row["item"] for row in plan.run(engine=engine, again=True)}
        assert found & {*held}
