"""Every step's text, as Spark reads it: parsed, and its columns found, without a row."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from tests.conftest import HERE

pytest.importorskip("pyspark", reason="needs dphh[spark]")

from dphh.engines.spark.dialect import spark_sql, statements
from dphh.engines.spark.functions import register
from dphh.sql import query_for
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.functions import functions

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.on_spark(every=True)]
BLOCKS = "user_hashes binary, lengths binary"
#: What the steps of Spark's hosts read, as DuckDB's queries name the columns.
TABLES = {
    "users": f"{BLOCKS}, ids binary, words array<string>",
    "counted_users": f"{BLOCKS}, ids binary, words array<string>",
    "positions": f"{BLOCKS}, keys binary, ends binary",
    "asked": "key bigint",
    "listed": "word string, key bigint",
    "other_words": "word string, key bigint",
    "forecasts": "gram bigint, as_first bigint, as_last bigint, expected_first bigint, "
    "expected_last bigint",
    "lifts": "expected bigint, shift bigint",
    "public_grams": "key bigint, class bigint",
    "classes": "class bigint, valid bigint",
    "planned": "class bigint, bin bigint, weight bigint",
    "thresholds": "class bigint, bin bigint, threshold bigint",
    "tokens_of_rows": "user_id string, tokens array<string>",
}
#: Parameters that are no whole numbers.
PARAMETERS: dict[str, Any] = {
    "purpose": "test", "is_test": True, "single": False, "salt": 0, "released": 0, "valid": 0,
    "weighing": 0, "w": None, "g": None, "keys": None, "numerator": Decimal(1),
}  # fmt: skip
#: In the order in which they run: a table that one makes another reads.
STEPS = {
    "words_level": "noised (key, noisy)",
    "released_words": "(noisy, key)",
    "words_of_round": "noised (key, given, noisy)",
    "released_of_round": "(noisy, key)",
    "nothing_told": "told_before (key, told)",
    "told_so_far": "told_so_far (key, told)",
    "weights_of_round": "(key, value)",
    "positions_of_words": "next_positions (user_hashes, lengths, keys, ends)",
    "positions_of_grams": "next_positions (user_hashes, lengths, keys, ends)",
    "grams_level": "noised (key, noisy)",
    "lifted": "lifted (position, key, noisy)",
    "released_grams": "(key, noisy)",
    "other_words": "other_words (word, key)",
    "keys_by_list": "(key, value)",
    "positions_of_listed": "positions (user_hashes, lengths, keys)",
    "forecast_round_1": "plain_sums (key, weight), list_sizes (bin, noisy), noised (key, name, "
    "class, noisy), round_1 (key, name, noisy, class, bin), absent (class, bin, grams)",
    "forecast_rows": "(class, bin, grams)",
    "list_sizes": "(bin, noisy)",
    "forecast_weights": "(key, value)",
    "forecast_round_2": "round_2 (key, class, bin, first, second), absent_signs (class, bin, "
    "grams, negatives)",
    "forecast_signs": "(class, bin, negatives)",
    "forecast_lifted": "lifted (class, position, key, bin, first, second)",
    "forecast_released": "(word, bin, first, second, key)",
    "counts_level": "noised (key, noisy)",
    "counts_drawn": "(key, noisy)",
}
FOLDERS = ("set_union", "ngrams", "counts")
#: For the owner of the data, on DuckDB.
ELSEWHERE = {"exact_counts"}


def test_all_steps_are_here():
    found = {path.stem for folder in FOLDERS for path in (HERE / "sql" / folder).glob("*.sql")}
    assert found - ELSEWHERE == STEPS.keys()


def test_every_step_means_in_spark_what_its_names_say(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    for statement in query_for("spark", "text").strip().split(";\n"):
        session.sql(statement)
    for name, function in functions(SystemRandomness()).items():
        register(session, name, function, [])
    for table, columns in TABLES.items():
        session.createDataFrame([], columns).createOrReplaceTempView(table)
    for step, made in STEPS.items():
        assert list(analysed(session, step)) == re.findall(r"\w* ?\([^)]*\)", made), step


@pytest.mark.parametrize("folder", ["trie", "ldp_trie"])
def test_every_statement_of_a_trie_is_sparks(spark, folder):
    parser = spark._jsparkSession.sessionState().sqlParser()
    steps = {path.stem for path in (HERE / "sql" / folder).glob("*.sql")}
    assert len(steps) > 4
    for step in sorted(steps):
        for _, _, select in statements(step) or [("", "", spark_sql(step))]:
            parser.parsePlan(select)


def analysed(session, step):
    """What a step makes or returns: its name and columns."""
    for _, made, select in statements(step) or [("", "", spark_sql(step))]:
        values = {name: PARAMETERS.get(name, 1) for name in set(re.findall(r":(\w+)", select))}
        rows = session.sql(select, args=values)
        assert rows.isLocal() is not None
        if made:
            session.createDataFrame([], rows.schema).createOrReplaceTempView(made)
        yield f"{made} ({', '.join(rows.columns)})".strip()
