"""Counts users of the items of a list, or of what a run found: one level of noised sums, and the
intervals that follow from these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import (
    COUNT_COLUMNS,
    COUNTS_SCHEMA,
    GROUP_COUNTS_SCHEMA,
    OTHER_GROUP,
    interleaved_by_level,
)
from dphh.counting import CountsLevel, Family, FoundCounts
from dphh.engines.host import DrawOnce, Host, Lookup
from dphh.mechanisms.running import GATHER, Draws, LevelDone, Step, integer_columns, renamed
from dphh.price import Price
from dphh.privacy.counts import MOST_KEYS, chosen_intervals, count_intervals
from dphh.udfs.arrays import Integers
from dphh.udfs.kernel.gathering import ReadWords
from dphh.udfs.rules.counts import END_OF_TEXT, Contributions, GivenGrams

Item = Sequence[str]


def counts_levels(price: Price, host: Host, once: DrawOnce) -> Iterator[LevelDone]:
    yield from count_listed_items(price["of"], price, host, once)


def count_listed_items(
    listed: Sequence[Item], price: Price, host: Host, once: DrawOnce
) -> Iterator[LevelDone]:
    """Count the users of every item of the list, held or not, within the price's groups. What
    `min_users` leaves out has no row."""
    (level,) = price.levels
    assert isinstance(level, CountsLevel)
    names = (*price["groups"], OTHER_GROUP) if price["by"] is not None else (None,)
    # A run that was cut short between its draws reads the texts again for the next.
    find = cache(partial(find_listed_items, host, level, listed, price["groups"]))

    def draw(noised: Callable[[Host, CountsLevel], Any], level: CountsLevel) -> Any:
        find()
        return noised(host, level)

    if level.rough_sigma:
        rough = once("rough", partial(draw, noised_rough_counts, level))
        level = level.weighed_by(noised_by_key(rough))
    if level.held_sigma:
        held = once("held", partial(draw, noised_histogram, level))
        level = level.chosen_by(noised_by_key(held))
    drawn = once("counts", partial(draw, noised_counts, level))
    done, counted = counts_with_intervals(drawn, level, listed, price["groups"])
    items = pa.array(listed, pa.list_(pa.string()))
    tokens = items.take(pa.array(np.repeat(np.arange(len(items)), len(names))))
    groups = pa.array(names * len(items), pa.string())
    columns = {
        "level": pc.list_value_length(tokens).cast(pa.int32()),
        "item": pc.binary_join(tokens, host.joiner),
        "tokens": tokens,
        "group_name": groups,
        **counted,
    }
    schema = COUNTS_SCHEMA if price["by"] is None else GROUP_COUNTS_SCHEMA
    rows = pa.table([columns[name] for name in schema.names], schema=schema)
    yield LevelDone(done, rows.filter(pc.is_valid(rows.column("low"))))


def counts_with_intervals(
    drawn: Any, level: CountsLevel, items: Sequence[Item], groups: Sequence[str]
) -> tuple[CountsLevel, dict[str, Any]]:
    """The level as it was run; and `COUNT_COLUMNS`, with a row for each item and group, which
    has NULLs if `min_users` leaves it out."""
    counts, lost = np.split(noised_by_key(drawn), [level.keys])
    done = replace(level, lost_grid=tuple(lost.tolist()))
    drawn_with = counts, lost, level.weighing, level.sigma_grid, level.confidence
    place = np.arange(level.keys)
    if level.min_users:
        families = _families(items, groups, level.groups_of_item)
        numbers = [number for _, number in families]
        shown, found = chosen_intervals(*drawn_with, level.min_users, numbers)
        done = replace(done, families=tuple(_with_kept(families, shown)))
        place = np.full(level.keys, -1)
        place[shown] = np.arange(len(shown))
    else:
        found = count_intervals(*drawn_with, keys=place, simultaneous=level.simultaneous)
    places = pa.array(place, mask=place < 0)
    estimate, *ends = found
    columns = (np.maximum(estimate, 0), *ends, estimate)
    taken = (pa.array(column, pa.int64()).take(places) for column in columns)
    return done, dict(zip(COUNT_COLUMNS, taken, strict=True))


def _families(
    items: Sequence[Item], groups: Sequence[str], groups_of_item: int
) -> list[tuple[Sequence[Mapping[str, Any]], Integers]]:
    """Three divisions of all counts into families: none, by length, and by group. Each as the names
    of its families, and the number of each count's family."""
    lengths, length = np.unique([len(item) for item in items], return_inverse=True)
    named = [{"length": tokens} for tokens in lengths.tolist()]
    divisions: list[tuple[Sequence[Mapping[str, Any]], Integers]] = [
        ([{}], np.zeros(len(items) * groups_of_item, np.int64)),
        (named, np.repeat(length, groups_of_item)),
    ]
    if groups_of_item > 1:
        names = [{"group": group} for group in (*groups, OTHER_GROUP)]
        divisions.append((names, np.tile(np.arange(groups_of_item), len(items))))
    return divisions


def _with_kept(
    divisions: Sequence[tuple[Sequence[Mapping[str, Any]], Integers]], shown: Integers
) -> Iterator[Family]:
    for names, number in divisions:
        counted = np.bincount(number).tolist()
        kept = np.bincount(number[shown], minlength=len(names)).tolist()
        for name, all_of_it, some in zip(names, counted, kept, strict=True):
            yield Family(counted=all_of_it, kept=some, **name)


def noised_by_key(drawn: Any) -> Integers:
    """The noised sums of a table (key, noisy), in the order of keys."""
    keys, noisy = integer_columns(drawn, "key", "noisy")
    sums: Integers = noisy[np.argsort(keys)]
    return sums


def find_listed_items(
    host: Host, level: CountsLevel, items: Sequence[Item], groups: Sequence[str]
) -> None:
    """Gather texts, of whose words only those of the items matter, and find the items in them."""
    words = sorted({word for item in items for word in item} - {END_OF_TEXT})
    host.gather("users", ReadWords(marks_ends=True, groups=groups, only=words))
    # users (block, user_hashes, lengths, ids, words)
    find_items(host, level, items)


def find_items(host: Host, level: CountsLevel, items: Sequence[Item]) -> None:
    """Find the items that `users` hold, in each group and outside all groups."""
    given = GivenGrams(items, level.groups_of_item, beginnings=level.beginnings)
    host.run("counted_users", given=Lookup(given))
    host.drop("users")
    # counted_users (block, lengths, ids, caps): an id is the key of an item in a group


def cap_by_purses(host: Host, level: CountsLevel, sigma_of_purses: int) -> None:
    """Give `counted_users` what is left of the purses of the table `purses` as caps.
    `sigma_of_purses`: the sigma, in grid units, of the noise for which purses have paid."""
    host.run("counts_within_purses", scale=(level.sigma_grid / sigma_of_purses) ** 2)
    host.rename_replacing("capped_users", "counted_users")


#: What `find_items`, `cap_by_purses` and `noised_counts` ask.
COUNTS_WITHIN_PURSES: tuple[Step, ...] = (
    ("counted_users", {}),
    ("counts_within_purses", {}),
    (renamed("capped_users", "counted_users"), {}),
    ("counts_level", {"purpose": "counts"}),
    ("counts_drawn", {}),
)


def noised_rough_counts(host: Host, level: CountsLevel) -> Any:
    """The noised rough counts (key, noisy) of the keys of `counted_users`."""
    return _noised_sums(host, level.rough_weights, level.rough_sigma, "rough")


def noised_histogram(host: Host, level: CountsLevel) -> Any:
    """The noised histogram (key, noisy) of what users of `counted_users` hold."""
    return _noised_sums(host, level.histogram, level.held_sigma, "held")


def noised_counts(host: Host, level: CountsLevel) -> Any:
    """The noised sums (key, noisy) of `counted_users` (block, lengths, ids, caps): the keys that
    users hold and, where users have caps of their own, these, in squares of grid units. A sum for
    each key, then the loss, what bounding removed."""
    drawn = _noised_sums(host, level.weighing, level.sigma_grid, "counts")
    host.drop("counted_users")
    return drawn


def _noised_sums(host: Host, rule: Contributions, sigma: int, purpose: str) -> Any:
    host.put("asked", pa.table({"key": np.arange(rule.coordinates)}))
    host.run("counts_level", rule=Lookup(rule), sigma=sigma, purpose=purpose)
    # noised (key, noisy): a row for every coordinate
    drawn = host.take("counts_drawn")
    host.drop("noised", "asked")
    return drawn


def to_count(
    found_rows: Any, counting: FoundCounts
) -> tuple[Integers, Sequence[Item], CountsLevel | None]:
    """What is counted of the rows that a run found, in order of level and score: the indices of
    these rows, their items, and the level that counts them. Of a trie only leaves and, if there are
    more than MOST_KEYS, the first row of each level, then the second, and so on."""
    leaf = leaf_indices(found_rows) if counting.beginnings else np.arange(found_rows.num_rows)
    levels = found_rows.column("level").to_numpy()[leaf]
    chosen = leaf[np.sort(interleaved_by_level(levels)[: MOST_KEYS // len(counting.names)])]
    rows = found_rows.take(pa.array(chosen))
    items = _sequences_of_rows(rows) if counting.beginnings else rows.column("tokens").to_pylist()
    return chosen, items, counting.level(len(chosen)) if len(chosen) else None


def count_found_items(
    found_rows: Any, counting: FoundCounts, host: Host, once: DrawOnce, drawn: Any = None
) -> tuple[dict[str, Any], Any]:
    """The manifest of the counts of what a run found, and the found rows with count columns.
    `drawn`: the noised counts, if they were drawn with what was found.

    Rows that are not counted have NULLs. With groups, a counted row becomes one row for each group.
    """
    names = counting.names
    chosen, items, level = to_count(found_rows, counting)
    said = {**counting.to_json(), "counted": len(chosen)}
    columns = {name: pa.array([], pa.int64()) for name in COUNT_COLUMNS}
    if level is not None:
        if drawn is None:

            def draw() -> Any:
                if counting.beginnings:  # a trie has chosen one sequence of each user
                    find_listed_items(host, level, items, counting.groups)
                else:
                    find_items(host, level, items)
                return noised_counts(host, level)

            drawn = once("counts", draw)
        done, columns = counts_with_intervals(drawn, level, items, counting.groups)
        said |= done.to_json()
    # For each found row, the index of its count in the first group, which its counts in the other
    # groups follow; -1 if it was not counted.
    place = np.full(found_rows.num_rows, -1, np.int64)
    place[chosen] = np.arange(len(chosen)) * len(names)
    rows = np.repeat(np.arange(found_rows.num_rows), np.where(place < 0, 1, len(names)))
    group = np.arange(len(rows)) - np.searchsorted(rows, rows)
    place = np.where(place[rows] < 0, -1, place[rows] + group)
    places = pa.array(place, mask=place < 0)
    found_rows = found_rows.take(pa.array(rows))
    if counting.by is not None:
        named = pa.array(names, pa.string()).take(pa.array(group, mask=place < 0))
        found_rows = found_rows.append_column("group_name", named)
    for name, column in columns.items():
        found_rows = found_rows.append_column(name, column.take(places))
    if counting.min_users:  # what it leaves out has NULLs, as has what was not counted
        found_rows = found_rows.filter(pc.is_valid(found_rows.column("low")))
        said |= {"passes_below": counting.chance_below_min_users}
    return said, found_rows


def leaf_indices(found_rows: Any) -> Any:
    """The indices of the rows that are leaves of the trie: ended sequences, and prefixes that no
    other row extends.

    No leaf is a prefix of another, so each row of the corpus counts for at most one leaf.
    """
    ways = _sequences_of_rows(found_rows)
    above = {way[:-1] for way in ways}
    return np.array([place for place, way in enumerate(ways) if way not in above], np.int64)


def _sequences_of_rows(found_rows: Any) -> list[Item]:
    """The tokens of each row, followed by `END_OF_TEXT` if the sequence ends there."""
    columns = (found_rows.column(name).to_pylist() for name in ("tokens", "ended"))
    rows = zip(*columns, strict=True)
    return [(*tokens, END_OF_TEXT) if ended else tuple(tokens) for tokens, ended in rows]


def counts_draws(price: Price) -> Draws:
    """What `counts_levels` and `count_found_items` ask. The noise of counts follows from what was
    found, and from K, where the run chooses it."""
    known: dict[str, Any] = {"purpose": "counts"}
    if price.counting is not None and price.counting.within_purses:
        return  # they are part of the draw that finds
    drawn: Step = ("counts_drawn", {})
    found: list[Step] = [("counted_users", {})]
    if price.counting is None or price.counting.beginnings:
        found = [*GATHER, *found]
    if price.counting is None:
        (level,) = price.levels
        assert isinstance(level, CountsLevel)
        for purpose, what, sigma in (
            ("rough", "rough counts", level.rough_sigma),
            ("held", "how many of the counts users hold", level.held_sigma),
        ):
            if sigma:
                asked = {"purpose": purpose, "sigma": sigma}
                yield what, [*found, ("counts_level", asked), drawn]
                found = []
        if not level.held_sigma:
            known["sigma"] = level.sigma_grid
    yield "counts", [*found, ("counts_level", known), drawn]
