"""Kind: to spend what is not there, or the same twice. Most pass the guard.

`alice` may spend epsilon 1.5 of `reviews`; `None` as a reason says that she gets an answer, for
which she pays as for one run, if at all.
"""

_ITEMS = "dphh_items('reviews', epsilon := {}, delta := {})"


def _items(epsilon: str, delta: str = "1e-9") -> str:
    return _ITEMS.format(epsilon, delta)


_ONE = _items("0.1")

PASSES = [
    (f"FROM {_items('1e9')}", "epsilon: "),
    (f"FROM {_items('100')}", "Refused"),
    (f"FROM {_items('3.9')}", "alice's share"),
    (f"FROM {_items('1e308 * 10')}", "epsilon|range"),
    (f"FROM {_items('1e-300')}", "max_items: "),
    (f"FROM {_items('0.1', '0.99')}", "Refused"),
    (f"FROM {_items('0.1', '1e-300')}", "proved"),
    (f"FROM {_ONE}", None),
    (f"FROM {_ONE} LIMIT 0", None),
    (f"SELECT (SELECT count(*) FROM {_ONE}), (SELECT max(score) FROM {_ONE})", None),
    (f"SELECT r, (SELECT count(*) FROM {_items('0.1 + r * 0')}) FROM range(50) t(r)", None),
    (f"WITH x AS NOT MATERIALIZED (FROM {_ONE}) FROM x UNION ALL FROM x", None),
    (
        f"WITH RECURSIVE w(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM w, (FROM {_ONE} LIMIT 1) "
        "WHERE n < 20) FROM w",
        None,
    ),
    (f"SELECT avg(score) FROM {_ONE}, range(20)", None),
    (f"SELECT count(*) FROM {_items('1e-1')} a JOIN {_ONE} b USING (score)", None),
    (f"SELECT CASE WHEN false THEN (SELECT count(*) FROM {_ONE}) ELSE 0 END", None),
    (f"SELECT 1 WHERE EXISTS (FROM {_ONE}) OR true", None),
    (f"FROM {_ONE[:-1]}, run_id := 'quarterly')", None),
    (f"FROM {_ONE[:-1]}, run_id := 'quarterly', max_items := 7)", "another request"),
    (f"FROM {_items('0.2')[:-1]}, run_id := 'quarterly')", "another request"),
    (f"FROM {_ONE[:-1]}, run_id := '../bob/quarterly')", None),
    (f"FROM range(1, 9) t(r), LATERAL (FROM {_items('0.01 * r + 1')} LIMIT 1) x", "share"),
    (f"FROM {_items('1.2')}", "share"),
    ("FROM dphh_ledger()", None),
    ("FROM dphh_releases()", None),
    ("FROM dphh_plan_items('reviews', epsilon := 1000, delta := 1e-9)", "epsilon: "),
]

GUARD = [
    f"FROM {_items('random()')}",
    f"SELECT (SELECT count(*) FROM {_ONE}) FROM range(3) t(r) TABLESAMPLE 1 ROWS",
    f"PREPARE p AS FROM {_items('$1')}",
    f"DESCRIBE FROM {_ONE}",
    'SELECT dphh_answer_items(\'{"corpus": "reviews", "epsilon": 9, "delta": 1e-9}\', \'1\')',
    "SELECT unnest(dphh_answer_release('{\"run_id\": \"bob/quarterly\"}', '1').rows)",
]

GUESSES = ["FROM dphh_stop() UNION FROM dphh_stop()"]
