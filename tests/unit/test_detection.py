"""What a plan is said to find in text, against runs on corpora made to the profile."""

import numpy as np
import polars as pl
from scipy.stats import binom

import dphh
from dphh import Corpus
from dphh.testing import SeededRandomness


def corpus_of(groups, users, words):
    """Groups of so many users each: all of one hold its word g, and (words - 1) of their own."""
    rows = []
    for group in range(groups):
        for user in range(users):
            texts = [f"g{group}", *(f"{group}_{user}_{word}" for word in range(words - 1))]
            rows.append((f"{group}.{user}", " ".join(texts)))
    return Corpus(pl.DataFrame(rows, schema=["who", "what"], orient="row"), user="who", text="what")


def share_found(plan, groups):
    """Of the groups, those whose word is found."""
    return sum(row["item"].startswith("g") for row in plan.run(again=True)) / groups


def test_words_are_found_from_as_many_users_as_are_said(own_ledger):
    words, max_items, groups = 40, 10, 100
    asked = {"epsilon": 4.0, "delta": 1e-6, "max_items": max_items, "method": "gaussian"}
    ((_, ((_, users),)),) = dphh.items(**asked).detection(dphh.profile(words)).scenarios
    said = share_found(dphh.items(corpus_of(groups, users, words), **asked), groups)
    fewer = round(0.75 * users)
    less = share_found(dphh.items(corpus_of(groups, fewer, words), **asked), groups)
    assert said >= binom.ppf(1e-9, groups, 0.9) / groups
    assert less < 0.8  # it is no number that is safe by being large


def test_words_of_people_who_hold_many_are_found_from_a_number_in_the_range(own_ledger):
    """Words by a power law, of which users hold some 30 each: to within a fifth."""
    people = 3_000
    plan = dphh.ngrams(max_n=3, epsilon=1.0, delta=1e-6)
    held, few, many = plan.finds.users_of_many
    each, sizes = 40, (round(0.8 * few), round(1.2 * many))
    draw = np.random.default_rng(people)
    often = 1 / np.arange(1, 5_001)
    others = draw.choice(5_000, size=(people, 35), p=often / often.sum())
    rows = {(who, f"w{word}") for who in range(people) for word in others[who]}
    assert abs(len(rows) / people - held) < 3
    # The groups' own words come in place of others, so that users hold as many.
    replaced = {f"w{word}" for word in range(4_000, 5_000)}
    rows = {row for row in rows if row[1] not in replaced}
    for size in sizes:
        for number in range(each):
            holders = draw.choice(people, size=size, replace=False).tolist()
            rows |= {(who, f"g{size}x{number}") for who in holders}
    frame = pl.DataFrame(sorted(rows), schema=["who", "what"], orient="row")
    corpus = Corpus(frame, user="who", text="what")
    made = plan.run(corpus=corpus, engine="polars", randomness=SeededRandomness(people))
    found = {row["item"] for row in made}
    less, more = (
        sum(f"g{size}x{number}" in found for number in range(each)) / each for size in sizes
    )
    assert less < 0.9 <= more
    assert f"{few:,} to {many:,}" in plan.describe()
