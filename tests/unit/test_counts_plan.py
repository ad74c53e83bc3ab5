"""What `counts` is asked about, what it costs and says before it is paid, and its release; and
`counts=` of other verbs, with one budget for finding and counting."""

from collections import Counter
from dataclasses import replace
from math import sqrt
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from dphh import Corpus, Release, UsageError, counts, items, ngrams, plan_from_json, trie
from dphh.consistency import check_consistency
from dphh.mechanisms.counts import run as run_of_counts
from dphh.mechanisms.counts.of_found import COUNTS_NOTE
from dphh.mechanisms.counts.price import FEWEST_WEIGHED, HELD_SHARE, ROUGH_SHARE
from dphh.privacy.accounting import compose
from dphh.privacy.counts import chosen_intervals
from dphh.privacy.events import DeltaEvent, GaussianEvent, SetUnionEvent
from dphh.privacy.gaussian import compose_sigmas, gaussian_sigma
from dphh.report import phrases
from dphh.testing import SeededRandomness
from dphh.wording.lines import number

BUDGET = {"epsilon": 1.0, "delta": 1e-8}
WORDS = [["a"], ["b"], ["a", "b"]]


def corpus(**options):
    return Corpus("/not/there/*.parquet", user="who", **({"text": "what"} | options))


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.parquet"
    texts = ["new york is big", "york new", "new york new york", "san francisco", "x"]
    rows = [(user, texts[user % 5], ["DE", "FR", None, "IT"][user % 4]) for user in range(400)]
    frame = pl.DataFrame(rows, schema=["who", "what", "country"], orient="row")
    frame.write_parquet(path)
    return Corpus(str(path), user="who", text="what")


@pytest.mark.parametrize("epsilon, delta", [(0.1, 1e-5), (1.0, 1e-8), (8.0, 1e-12)])
@pytest.mark.parametrize("max_held", [1, 2, 100])
def test_one_gaussian_is_all_that_it_costs(epsilon, delta, max_held):
    plan = counts(of=WORDS, epsilon=epsilon, delta=delta, max_held=max_held)
    gaussian, arithmetic = plan.events
    assert isinstance(gaussian, GaussianEvent) and isinstance(arithmetic, DeltaEvent)
    assert arithmetic.delta < delta * 1e-6
    assert gaussian.sigma == pytest.approx(gaussian_sigma(epsilon, delta), rel=1e-6)
    assert compose(plan.events).delta(epsilon) <= delta
    # What is drawn is no less than what is priced, over the norm that whoever comes or goes moves.
    (level,) = plan.levels
    norm = sqrt(min(max_held, 3))
    assert level.sigma >= gaussian.sigma * norm * (1 - 1e-12)
    assert level.sigma <= gaussian.sigma * norm * 1.001 + 0.001


def test_no_more_than_all_items_are_anybodys_so_the_noise_goes_by_them():
    few = counts(of=WORDS, max_held=100, **BUDGET)
    assert few.levels == counts(of=WORDS, max_held=3, **BUDGET).levels
    assert "for less of each" not in repr(few)


@pytest.mark.parametrize("verb, option", [(counts, "of"), (items, "domain")])
def test_items_in_another_order_are_the_same_request(people, ledger, verb, option):
    """One that was killed continues by it, too, so its plan is the same."""
    first, again = (
        verb(people, **{option: listed}, **BUDGET)
        for listed in (["york", "new york", "x"], [["x"], "york", "x", ["new", "york"]])
    )
    assert again == first and again[option] == (("new", "york"), ("x",), ("york",))
    assert again.run(ledger=ledger).run_id == first.run(ledger=ledger).run_id
    assert len(ledger.runs()) == 1


def test_the_first_items_of_a_list_are_taken_before_it_is_sorted():
    assert counts(of=[["z"], ["b"], ["a"]], top=2, **BUDGET)["of"] == (("b",), ("z",))


@pytest.mark.parametrize("groups", [["FR", "DE"], "FR, DE", "DE,FR,DE", ("DE", "FR", "FR")])
def test_groups_are_a_set(groups):
    plan = counts(corpus(), of=WORDS, by="country", groups=["DE", "FR"], **BUDGET)
    assert counts(corpus(), of=WORDS, by="country", groups=groups, **BUDGET) == plan


def test_a_text_is_read_as_a_row_of_the_corpus_would_be():
    said = ["new york", "a"]
    assert counts(corpus(), of=said, **BUDGET)["of"] == (("a",), ("new", "york"))
    whole = corpus(text=None, item="what")
    assert counts(whole, of=said, **BUDGET)["of"] == (("a",), ("new york",))
    letters = counts(corpus(as_="characters"), of=["né"], **BUDGET)
    assert letters["of"] == (("n", "é"),)


def released(plan, **options):
    return plan.run(randomness=SeededRandomness(5), **options)


def test_of_a_release_the_first_of_each_level_come_first(people):
    found = released(ngrams(people, max_n=2, epsilon=8.0, delta=1e-4))
    by_level = {
        level: [tuple(row["tokens"]) for row in found if row["level"] == level] for level in (1, 2)
    }
    first = counts(people, of=found, top=3, **BUDGET)
    assert set(first["of"]) == {by_level[1][0], by_level[2][0], by_level[1][1]}
    assert set(counts(people, of=found, min_length=2, **BUDGET)["of"]) == set(by_level[2])


def test_a_release_is_named_by_itself_its_folder_or_its_run_id(people, tmp_path, ledger):
    found = released(items(people, epsilon=8.0, delta=1e-4), ledger=ledger)
    found.save(tmp_path / "found")
    plan = counts(people, of=found, **BUDGET)
    assert plan["of"] == tuple(sorted((row["item"],) for row in found))
    assert counts(people, of=tmp_path / "found", **BUDGET) == plan
    assert counts(people, of=str(found.run_id), **BUDGET) == plan
    (tmp_path / "list.txt").write_text("new york\nx\n")
    listed = counts(people, of=str(tmp_path / "list.txt"), **BUDGET)
    assert listed["of"] == (("new", "york"), ("x",))


def test_a_list_in_a_file_has_no_mark_of_windows_and_no_blanks_around_items(people, tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_bytes("\ufeffsoup\r\nrye bread \t\r\n\r\n  x\u2028y\x0bz\r\n \n".encode())
    whole = Corpus(people.where[0], user="who", item="what")
    asked = {("soup",), ("rye bread",), ("x\u2028y\x0bz",)}
    assert {*counts(whole, of=listed, **BUDGET)["of"]} == asked


def test_items_that_were_read_otherwise_than_the_corpus_are_refused(people):
    found = released(items(people, epsilon=8.0, delta=1e-4))
    written = Corpus(people.where[0], user="who", text="what", lower=False)
    with pytest.raises(UsageError, match="read with lower=True"):
        counts(written, of=found, **BUDGET)
    as_given = counts(written, of=[row["tokens"] for row in found], **BUDGET)
    assert len(as_given["of"]) == len(found)


def test_of_a_trie_the_whole_sequences_are_counted(people, tmp_path):
    whole = Corpus(people.where[0], user="who", item="what")
    found = released(trie(whole, epsilon=8.0, delta=1e-3, max_length=20))
    ended = {row["item"] for row in found if row["ended"]}
    assert ended and len(ended) < len(found)
    counted = released(counts(whole, of=found, epsilon=8.0, delta=1e-3))
    assert {row["item"] for row in counted} == ended
    (big,) = [row for row in counted if row["item"] == "new york is big"]
    assert big["low"] <= 80 <= big["high"]


def test_the_histogram_by_which_a_run_chooses_is_an_event_of_its_own():
    words = [[f"w{n}"] for n in range(30)]
    plan, given = counts(of=words, **BUDGET), counts(of=words, max_held=30, **BUDGET)
    held, of_counts, _ = plan.events
    assert plan["max_held"] is None and len(given.events) == 2
    assert held.sigma**-2 / (held.sigma**-2 + of_counts.sigma**-2) == pytest.approx(HELD_SHARE)
    assert compose_sigmas([held.sigma, of_counts.sigma]) == pytest.approx(given.events[0].sigma)
    assert compose(plan.events).delta(1.0) <= BUDGET["delta"]
    (level,) = plan.levels
    assert held.sigma <= level.held_sigma < held.sigma + 1
    assert "the run chooses K" in " ".join(level.in_words())
    assert "earlier Gaussian release" in plan.privacy.theorem
    few = counts(of=words[:4], **BUDGET)  # so few count in full, whatever users hold
    assert few.levels == counts(of=words[:4], max_held=4, **BUDGET).levels and len(few.events) == 2


def test_the_rough_counts_by_which_a_run_weighs_are_an_event_of_their_own():
    words = [[f"w{n}"] for n in range(FEWEST_WEIGHED)]
    plan, given = counts(of=words, **BUDGET), counts(of=words, max_held=30, **BUDGET)
    rough, held, *_ = plan.events
    of_all = given.events[0].sigma ** -2
    assert rough.sigma**-2 == pytest.approx(ROUGH_SHARE * of_all)
    assert held.sigma**-2 == pytest.approx(HELD_SHARE * of_all)
    assert compose(plan.events).delta(1.0) <= BUDGET["delta"]
    (level,) = plan.levels
    drawn = level.rough_sigma / 2**level.rough_bits
    assert rough.sigma <= drawn < rough.sigma * 1.001
    assert "rarer items get less noise" in " ".join(level.in_words())
    assert "weights of items" in plan.privacy.theorem
    fewer = counts(of=words[1:], **BUDGET)  # so few, or so much noise, and all are weighed alike
    noisy = counts(of=words, epsilon=0.001, delta=1e-8)
    assert len(fewer.events) == len(noisy.events) == 3


def test_rarer_items_have_narrower_intervals_which_hold(tmp_path):
    """Sixty words by Zipf's law; some users hold nearly all."""
    random = np.random.default_rng(4)
    chance = np.append(np.full(200, 30.0), np.full(9_800, 1.0))[:, None] / (1 + np.arange(60.0))
    holds = random.random((10_000, 60)) < np.minimum(chance, 0.9)
    texts = [" ".join(f"w{word}" for word in np.flatnonzero(row)) for row in holds]
    pl.DataFrame({"who": range(10_000), "what": texts}).write_parquet(tmp_path / "people.parquet")
    corpus = Corpus(str(tmp_path / "people.parquet"), user="who", text="what")
    truth = {f"w{word}": users for word, users in enumerate(holds.sum(0).tolist())}
    release = released(counts(corpus, of=[*truth], **BUDGET))
    (level,) = release.manifest["levels"]
    assert len(level["rough_grid"]) == 60 and check_consistency(release)
    with patch.object(phrases, "Grams", wraps=phrases.Grams) as grams:
        phrases.findings_of(release)
    assert grams.call_args.args[1] == pytest.approx(level["sigma"])
    widths = {row["item"]: row["high"] - row["low"] for row in release}
    assert widths["w59"] < 0.8 * widths["w0"]
    inside = [row["low"] <= truth[row["item"]] <= row["high"] for row in release]
    assert sum(inside) >= 54
    # The intervals are those of each item's own factor.
    forged = {**release.manifest, "levels": [{**level, "rough_grid": level["rough_grid"][::-1]}]}
    with pytest.raises(UsageError, match=r"max_items does not follow|its noise"):
        check_consistency(Release(release.table, forged))
    shorter = {**release.manifest, "levels": [{**level, "rough_grid": level["rough_grid"][1:]}]}
    with pytest.raises(UsageError, match=r"one rough count for each|field 'sigma' is not"):
        check_consistency(Release(release.table, shorter))


def test_by_groups_a_run_bounds_users_by_what_they_hold_and_not_by_all_groups(tmp_path):
    """Four items in six groups are 24 counts; nobody holds more than four."""
    places = ["DE", "FR", "IT", "ES", "PT", "other"]
    rows = [(user, "a b c d"[: 1 + user % 4 * 2], places[user % 6]) for user in range(6_000)]
    frame = pl.DataFrame(rows, schema=["who", "what", "country"], orient="row")
    frame.write_parquet(tmp_path / "people.parquet")
    corpus = Corpus(str(tmp_path / "people.parquet"), user="who", text="what")
    plan = counts(corpus, of=list("abcd"), by="country", groups=places[:-1], **BUDGET)
    release = released(plan)
    (level,) = release.manifest["levels"]
    assert level["max_items"] == 4
    assert level["sigma"] < 2.1 * 5.2
    assert level["groups_of_item"] == 6 and len(level["lost_grid"]) == 7
    truth = Counter((item, place) for _, text, place in rows for item in text.split())
    inside = [r["low"] <= truth[r["item"], r["group_name"]] <= r["high"] for r in release]
    assert len(inside) == 24 and sum(inside) >= 21
    assert check_consistency(release)
    fits_three = replace(plan.levels[0], max_items=3).to_json()
    of_three = {name: value for name, value in fits_three.items() if value is not None}
    for more, why in (
        ({"max_items": 3}, "'sigma_grid' is not what dphh writes"),
        (of_three, "max_items does not follow"),
        ({"lost_grid": [0, 0, 0]}, "what bounding removed"),
        ({"groups_of_item": 7}, "field 'groups_of_item' is not"),
        ({"held_grid": level["held_grid"][1:]}, "other bins"),
    ):
        forged = {**release.manifest, "levels": [{**level, **more}]}
        with pytest.raises(UsageError, match=why):
            check_consistency(Release(release.table, forged))


LITTLE_NOISE = {"epsilon": 8.0, "delta": 1e-8}  # little noise: its tables are quickly made
VERBS = {
    "items": lambda **asked: items(max_items=3, method="gaussian", **asked),
    "sips": lambda **asked: items(max_items=3, method="sips", **asked),
    "dpne": lambda **asked: ngrams(max_n=3, max_items=3, method="dpne", **asked),
    "by shares": lambda **asked: ngrams(
        max_n=2, max_items=3, shares=(2, 3), method="dpne", **asked
    ),
    "words": lambda **asked: ngrams(max_n=1, max_items=3, method="forecast", **asked),
}


def noise_of(plan, *, counting):
    """What the plan's Gaussian releases of counts, or of finding, come to."""
    return compose_sigmas(
        event.sigma
        for event in plan.events
        if isinstance(event, (GaussianEvent, SetUnionEvent))
        and (event.note == COUNTS_NOTE) == counting
    )


@pytest.mark.parametrize("how", VERBS)
@pytest.mark.parametrize("counts", [0.05, 0.3, 0.9])
def test_finding_and_counting_come_to_the_budget_and_no_more(how, counts):
    plan, alone = (VERBS[how](counts=share, **LITTLE_NOISE) for share in (counts, 0))
    assert compose(plan.events).delta(8.0) <= 1e-8
    finding, counting = noise_of(plan, counting=False), noise_of(plan, counting=True)
    both, before = compose_sigmas([finding, counting]), noise_of(alone, counting=False)
    # Of `items`, where counts take nearly all, new items and noise have half of delta each.
    assert before * 0.998 < both < before * (1.03 if how == "items" else 1.002)
    assert (finding / counting) ** 2 == pytest.approx(counts / (1 - counts), rel=4e-3)
    assert plan.counting.relative_sigma == counting


@pytest.mark.parametrize("counts", [0.05, 0.3, 0.9])
def test_the_ladder_counts_by_what_finding_leaves_of_one_budget(counts):
    ladder = {"max_n": 3, "max_items": 3, **LITTLE_NOISE}
    plan, alone = (ngrams(counts=share, **ladder) for share in (counts, 0))
    assert plan.events == alone.events
    assert compose(plan.events).delta(8.0) <= 1e-8
    counting, budget = plan.counting, noise_of(plan, counting=False) ** -2
    of_one_count = 1 / (counting.relative_sigma**2 * counting.max_items)
    # Who spends nothing else is counted in full for no more than the whole budget pays for, and
    # for 40 finds by the share; what everybody keeps is a small part of it.
    assert budget * 0.9 < counting.within_purses * of_one_count <= budget
    assert 40 * of_one_count == pytest.approx(counts * budget)
    assert counting.max_items * of_one_count < budget / 5


@pytest.mark.parametrize(
    "plan, share",
    [
        (ngrams(max_n=2, **BUDGET), 0.3),
        (ngrams(max_n=1, **BUDGET), 0.1),
        (ngrams(max_n=2, method="dpne", **BUDGET), 0.1),
        (items(**BUDGET), 0.1),
        (items(method="gaussian", **BUDGET), 0.1),
    ],
)
def test_without_being_asked_a_run_counts_whom_it_finds(plan, share):
    assert plan["counts"] == share
    asked = {name: value for name, value in plan.parameters if name in ("max_n", "method")}
    verb = {"items": items, "ngrams": ngrams}[plan.verb]
    assert plan == verb(**asked, counts=share, **BUDGET)
    assert "intervals" in repr(plan)
    without = verb(**asked, counts=0, **BUDGET)
    assert without["counts"] == 0 and without.counting is None
    assert "intervals" not in repr(without)
    assert trie(max_length=5, **BUDGET).counting is None


@pytest.mark.parametrize("epsilon, delta", [(4.0, 1e-5), (8.0, 1e-12), (2.0, 0.3), (1.0, 0.05)])
@pytest.mark.parametrize("counts", [0.02, 0.5, 0.99])
def test_whoever_holds_new_items_alone_pays_for_the_counts_too(epsilon, delta, counts):
    plan = items(epsilon=epsilon, delta=delta, max_items=2, counts=counts, method="gaussian")
    assert compose(plan.events).delta(epsilon) <= delta
    # Priced as if new items and counts had nothing to do with each other, it may be too much: then
    # both have half, and no less.
    (new,) = (event.delta for event in plan.events if isinstance(event, SetUnionEvent))
    assert new > 0.45 * delta


TRIES = {
    "path": {"max_length": 6},
    "by hand": {"max_length": 6, "theta": 60, "p": 0.2},
}


@pytest.mark.parametrize("how", TRIES)
@pytest.mark.parametrize("counts", [0.05, 0.3, 0.9])
def test_a_trie_and_its_counts_come_to_the_budget_and_no_more(how, counts):
    plan = trie(counts=counts, max_items=4, **LITTLE_NOISE, **TRIES[how])
    growing, counting, _ = plan.events
    assert 0.9999e-8 < compose(plan.events).delta(8.0) <= 1e-8
    assert growing.kind == "approximate"
    alone = trie(epsilon=growing.epsilon, delta=growing.delta, **TRIES[how])
    assert plan.levels == alone.levels  # grown for just what is charged for it
    share = 1 - counts
    assert (growing.epsilon, growing.delta) == pytest.approx((8 * share, 1e-8 * share))
    assert (plan.privacy.epsilon, plan.privacy.delta) == (8.0, 1e-8)
    assert sum(each for _, each in plan.privacy.delta_shares) == pytest.approx(1e-8)
    assert plan.counting.relative_sigma == counting.sigma and counting.note == COUNTS_NOTE
    # No more noise than if nothing were gained by looking at both together.
    assert counting.sigma < gaussian_sigma(8 * counts, 1e-8 * counts) * 1.001
    assert plan_from_json(plan.dumps()) == plan
    said = " ".join(plan.describe().split())
    assert "for up to 4 of complete sequences, and prefixes that no released sequence" in said
    assert f"{number(plan.counting.noisiest_level.half_width)} users to either side" in said


def test_who_holds_what_alone_is_shown_of_a_list_is_as_many_as_the_plan_says():
    plan = items(corpus(), domain=[f"w{n}" for n in range(60)], min_users=50, **BUDGET)
    assert plan_from_json(plan.dumps()) == plan
    (level,), users, random = plan.levels, plan.finds.users, np.random.default_rng(2)
    noise = np.rint(random.normal(0, level.sigma_grid, (2_000, 60))).astype(np.int64)
    noise[:, 0] += users * level.weighing.unit
    families = [np.zeros(60, np.int64)]
    shown = [
        0
        in chosen_intervals(
            noised, np.zeros(0, np.int64), level.weighing, level.sigma_grid, 0.95, 50, families
        )[0]
        for noised in noise
    ]
    assert abs(np.mean(shown) - 0.9) < 3 * sqrt(0.09 / 2_000)


def test_no_number_of_finds_has_more_noise_than_the_plan_says():
    counting = items(max_items=10, counts=0.3, **LITTLE_NOISE).counting
    most = counting.noisiest_level.sigma
    noise = [counting.level(found).sigma for found in (1, 5, 10, 11, 1_000, 100_000)]
    assert max(noise) <= most * 1.001
    assert noise[0] == pytest.approx(counting.relative_sigma, rel=0.01)


def test_a_run_cut_short_after_its_histogram_goes_on_with_what_it_drew(people, ledger, monkeypatch):
    asked = {"of": ["new", "york", "is", "big", "x", "san"], **BUDGET}
    whole = released(counts(people, **asked))

    def cut(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(run_of_counts, "noised_counts", cut)
        with pytest.raises(KeyboardInterrupt):
            released(counts(people, **asked), ledger=ledger, run_id="one")
    with monkeypatch.context() as patched:
        patched.setattr(run_of_counts, "noised_histogram", cut)  # it is stored
        again = released(counts(people, **asked), ledger=ledger, run_id="one")
    assert again.to_arrow().equals(whole.to_arrow())
    levels = (release.manifest["levels"] for release in (again, whole))
    assert next(levels) == next(levels)


def test_a_plan_says_what_becomes_of_who_holds_more_than_max_held():
    for max_held, said in ((2, True), (3, False), (None, False)):
        note = counts(corpus(), of=WORDS, max_held=max_held, **BUDGET).finds.note
        assert ("users who hold more than 2 of these count for less in each" in note) == said
