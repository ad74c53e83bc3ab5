"""The table of prices that a shell without Python looks up: the numbers of plans, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

import dphh
from dphh.cli import cli
from dphh.errors import UsageError
from dphh.planning.prices import MOST_PRICES, price_table

ASKED = "--epsilon 0.5 --epsilon 1 --delta 1e-7 --max-items 10 --max-items 20 --length 3 --length 4"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prices") / "prices.parquet"
    done = CliRunner().invoke(cli, ["sql", "--prices", str(path), *ASKED.split()])
    assert done.exit_code == 0, done.output
    assert done.output == ""
    return path


def looked_up(file: Path, columns: str, where: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as con:
        order = "ORDER BY level, round"
        return con.execute(f"SELECT {columns} FROM '{file}' WHERE {where} {order}").fetchall()


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("most", [10, 20])
@pytest.mark.parametrize("method", ["gaussian", "sips"])
def test_items_are_those_of_the_plan(file: Path, epsilon: float, most: int, method: Any) -> None:
    plan = dphh.items(None, epsilon=epsilon, delta=1e-7, max_items=most, method=method)
    found = looked_up(
        file,
        "sigma_grid, threshold_grid, users_needed, users_needed_if_full",
        f"verb = 'items' AND epsilon = {epsilon} AND max_items = {most} AND method = '{method}'",
    )
    levels = [level.to_json() for level in plan.levels]
    users = (plan.finds.users, dict(plan.finds.users_by_held)[most])
    assert found == [(each["sigma_grid"], each["threshold_grid"], *users) for each in levels]


def test_each_length_has_its_number_of_users(file: Path) -> None:
    plan = dphh.ngrams(None, max_n=4, epsilon=1.0, delta=1e-7, max_items=10, method="dpne")
    found = looked_up(
        file,
        "level, users_needed",
        "verb = 'ngrams' AND method = 'dpne' AND epsilon = 1 AND max_items = 10 AND max_length = 4",
    )
    assert found == list(plan.finds.users_by_length)
    assert len({users for _, users in found}) == 4


def test_what_a_run_decides_is_null(file: Path) -> None:
    found = looked_up(
        file,
        "level, users_needed IS NULL, sigma IS NULL, threshold IS NULL",
        "verb = 'ngrams' AND method = 'forecast' AND epsilon = 1 AND max_items = 10 "
        "AND max_length = 3",
    )
    words, longer = (False, False, False), (True, True, True)
    assert found == [(1, *words)] * 3 + [(2, *longer), (3, *longer)]


def test_a_trie_has_theta_and_p(file: Path) -> None:
    plan = dphh.trie(None, epsilon=1.0, delta=1e-7, max_length=4)
    found = looked_up(
        file, "theta, p, users_needed", "verb = 'trie' AND epsilon = 1 AND max_length = 4"
    )
    levels = [level.to_json() for level in plan.levels]
    assert found == [(each["theta"], each["p"], plan.finds.users) for each in levels]


def test_too_many_prices_are_refused_before_any_is_made() -> None:
    with pytest.raises(UsageError, match=f"at most {MOST_PRICES:,}"):
        price_table(epsilons=[1.0] * MOST_PRICES)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--epsilon", "1"], "apply only to --prices"),
        (["--prices", "no/such/folder/prices.parquet", *ASKED.split()], "cannot write"),
        (["--prices", "prices.parquet", "--epsilon", "-1"], "epsilon"),
    ],
)
def test_what_cannot_be_is_said(
    asked: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["sql", *asked])
    assert done.exit_code != 0
    assert said in str(done.exception) + done.output
    assert not list(tmp_path.iterdir())
