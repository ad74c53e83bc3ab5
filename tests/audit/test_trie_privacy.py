"""What `trie` promises, by experiment, with the operating system's randomness.

Many copies of one small situation stand side by side in one corpus: each is a word of its own, so
its votes are its own, and one run is thousands of independent trials. All bounds are exact
(Clopper-Pearson) and fail a right mechanism with probability below 1e-8. Each claim is also put to
a mechanism that breaks it, and must catch it.
"""

from dataclasses import replace
from math import exp, prod
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from dphh import Plan, trie
from dphh.mechanisms.trie.path import path_guarantee
from dphh.mechanisms.trie.path_bound import removal_epsilon
from tests.audit.corpora import written
from tests.audit.measure import DAILY, between


def plan_of(p: float, theta: int, levels: int, epsilon: float) -> Plan:
    """Priced at this epsilon, whatever delta that takes."""
    delta = path_guarantee(epsilon, p, theta, levels)[1] * 1.001
    return trie(epsilon=epsilon, delta=delta, max_length=levels, theta=theta, p=p)


def holders(k: int, groups: int, rest: str = "[]", name: str = "h", every: int = 1) -> str:
    return (
        f"SELECT g, '{name}' || g || '/' || h AS who, CAST({rest} AS VARCHAR[]) AS rest "
        f"FROM range(0, {groups}, {every}) AS a(g), range({k}) AS b(h)"
    )


# With and without one user: how far the path of their word reaches is all that depends on them.


def audit_neighbours(
    plan: Plan, engine: str, folder: Path, shared: list[int], groups: int = 20_000
) -> None:
    """In every other group one user more, who holds the tokens x, y, ... to the last level.

    shared: how many others share the first, second, ... prefix of that word.
    """
    levels = len(plan.levels)
    word = ["x", "y", "z", "w"][: levels - 1]
    parts = []
    for length, (here, further) in enumerate(zip(shared, [*shared[1:], 0], strict=True)):
        # So many share `length` tokens after the group's and no more: they go on elsewhere.
        rest = word[:length] + ([] if length == levels - 1 else ["else"])
        parts.append(holders(here - further, groups, f"{rest!r}::VARCHAR[]", f"s{length}/"))
    parts.append(holders(1, groups, f"{word!r}::VARCHAR[]", "extra", every=2))
    depth = along_the_word(plan, engine, folder, " UNION ALL ".join(parts), groups, word)
    present, absent = depth[0::2], depth[1::2]

    epsilon, trials = plan.privacy.epsilon, groups // 2
    priced = trie(**dict(plan.parameters)).levels[0]
    coming = going = 0.0
    for level in range(levels + 1):
        for seen, against, way in ((present, absent, "coming"), (absent, present, "going")):
            p_low, _ = between(int((seen == level).sum()), trials, DAILY)
            _, q_high = between(int((against == level).sum()), trials, DAILY)
            bound = epsilon if way == "coming" else removal_epsilon(priced.p)
            more = max(0.0, p_low - exp(bound) * q_high)
            coming, going = (coming + more, going) if way == "coming" else (coming, going + more)
    assert coming <= plan.privacy.delta, "a user who comes shows more than promised"
    assert going == 0, "a user who goes shows more than promised"

    # And exactly as likely as the accountant has it.
    for seen, one_more in ((absent, 0), (present, 1)):
        passes = [binom.sf(priced.theta - 1, k + one_more, priced.p) for k in shared]
        for level in range(1, levels + 1):
            low, high = between(int((seen >= level).sum()), trials, DAILY)
            assert low <= prod(passes[:level]) <= high, "paths survive with another probability"


def along_the_word(
    plan: Plan, engine: str, folder: Path, rows: str, groups: int, word: list[str]
) -> np.ndarray:
    """How many levels the path of each group's word reached. A group's number is the first token.

    rows: a query of (g, who, rest), a user's group, name, and tokens after the first.
    """
    what = "[CAST(g AS VARCHAR)] || rest"
    query = f"SELECT who, {what} AS what FROM ({rows})"
    corpus = written(folder, query, item="what", as_="list")
    table = plan.run(corpus=corpus, engine=engine).to_arrow()
    depth = np.zeros(groups, dtype=np.int64)
    for tokens, ended in zip(table["tokens"].to_pylist(), table["ended"].to_pylist(), strict=True):
        if not ended and tokens[1:] == word[: len(tokens) - 1]:
            depth[int(tokens[0])] = max(depth[int(tokens[0])], len(tokens))
    return depth


@pytest.mark.parametrize("shared", [[2, 2, 2], [8, 4, 2], [3, 3, 3], [12, 2, 0], [6, 6, 6]])
def test_one_user_shows_no_more_than_the_accountant_says(engine, tmp_path, shared):
    audit_neighbours(plan_of(0.5, 3, 3, 1.0), engine, tmp_path, shared)


@pytest.mark.parametrize(
    "changes, shared", [({"theta": 2}, [1, 1, 1]), ({"numerator": int(0.7 * 2.0**64)}, [2, 2, 2])]
)
def test_a_price_that_is_not_that_of_what_is_done_is_caught(engine, tmp_path, changes, shared):
    plan = plan_of(0.5, 3, 3, 1.0)
    levels = tuple(replace(level, **changes) for level in plan.levels)
    plan = replace(plan, price=replace(plan.price, levels=levels))
    with pytest.raises(AssertionError, match="a user who comes shows more than promised"):
        audit_neighbours(plan, engine, tmp_path, shared)
