"""Kind: options that cannot be, or that are not for analysts; and JSON packed by hand."""

_ITEMS = "FROM dphh_items('reviews', {})"
_NO_OPTION = "does not support the supplied arguments"
_ASKED = "FROM dphh_asked_{}('{}')"

PASSES = [
    *(
        (_ITEMS.format(options), reason)
        for options, reason in [
            ("epsilon := 'x', delta := 1e-9", "epsilon: found 'x'"),
            ("epsilon := -1, delta := 1e-9", "epsilon: "),
            ("epsilon := 'nan'::DOUBLE, delta := 1e-9", "epsilon"),
            ("epsilon := 'inf'::DOUBLE, delta := 1e-9", "epsilon"),
            ("epsilon := -0.0, delta := 1e-9", "epsilon: "),
            ("epsilon := 1, delta := 2", "delta: "),
            ("epsilon := 1, delta := 0", "delta: "),
            ("epsilon := 1, delta := -1e-9", "delta: "),
            ("epsilon := NULL, delta := NULL", "epsilon"),
            ("epsilon := 0.1", "delta"),
            ("epsilon := [0.1, 0.2], delta := 1e-9", "epsilon: "),
            ("epsilon := {'a': 1}, delta := 1e-9", "epsilon: "),
            ("epsilon := '0.1; SET threads = 1', delta := 1e-9", "epsilon: found"),
            ("epsilon := 0.1, delta := 1e-9, max_items := 0", "max_items: "),
            ("epsilon := 0.1, delta := 1e-9, max_items := -1", "max_items: "),
            ("epsilon := 0.1, delta := 1e-9, max_items := 1.5", "max_items: "),
            ("epsilon := 0.1, delta := 1e-9, method := '../x'", "method: "),
            ("epsilon := 0.1, delta := 1e-9, text_column := 'canary_note'", "owner has declared"),
            ("epsilon := 0.1, delta := 1e-9, user_column := 'body'", "owner has declared"),
            ("epsilon := 0.1, delta := 1e-9, keep := '('", _NO_OPTION),
            ("epsilon := 0.1, delta := 1e-9, split := '.'", "owner has declared"),
            ("epsilon := 0.1, delta := 1e-9, account := 'letters'", "owner has declared"),
            ("epsilon := 0.1, delta := 1e-9, ledger := '{out}/l'", _NO_OPTION),
            ("epsilon := 0.1, delta := 1e-9, randomness := 'test'", _NO_OPTION),
            ("epsilon := 0.1, delta := 1e-9, analyst := 'bob'", _NO_OPTION),
            ("epsilon := 0.1, delta := 1e-9, engine := 'spark'", _NO_OPTION),
            ("epsilon := 0.1, delta := 1e-9, \"connection\" := 'x'", _NO_OPTION),
            ("epsilon := 0.1, delta := 1e-9, run_id := ''", "run_id: "),
            ("epsilon := 0.1, delta := 1e-9, run_id := 'a' || chr(10)", "run_id: "),
            ("epsilon := 0.1, delta := 1e-9, run_id := lpad('', 101, 'a')", "Not authorised"),
            ("epsilon := 0.1, delta := 1e-9, run_id := [1]", "run_id: "),
        ]
    ),
    *(
        (_ASKED.format(verb, text), reason)
        for verb, text, reason in [
            ("items", "", "JSON object"),
            ("items", "nonsense", "JSON object"),
            ("items", "[]", "JSON object"),
            ("items", '"reviews"', "JSON object"),
            ("items", "null", "JSON object"),
            ("items", "{}", "corpus: found None"),
            ("items", '{"corpus": {}}', "give one value"),
            ("items", '{"corpus": [[["reviews"]]]}', "give one value"),
            ("items", '{"corpus": ["reviews"]}', "corpus: found"),
            ("items", '{"corpus": "reviews", "source": "{raw}"}', "JSON object"),
            ("items", '{"corpus": "reviews", "connection": "x"}', "JSON object"),
            ("items", '{"corpus": "reviews", "ledger": "x"}', "JSON object"),
            ("items", '{"corpus": "reviews", "name": "letters"}', "JSON object"),
            ("items", '{"corpus": "reviews", "epsilon": NaN, "delta": 1e-9}', "epsilon: "),
            ("items", '{"corpus": "reviews", "epsilon": 1e999, "delta": 1e-9}', "epsilon: "),
            ("items", '{"corpus": "reviews", "epsilon": true, "delta": 1e-9}', "epsilon: "),
            ("items", '{"corpus": "reviews", "epsilon": ' + "9" * 5000 + "}", "JSON object"),
            (
                "items",
                '{"corpus": "reviews", "epsilon": ' + "9" * 400 + "}",
                "epsilon|delta|options",
            ),
            ("items", '{"corpus": "reviews\\ud800"}', "no corpus"),
            ("items", '{"corpus": "reviews", "run_id": "\\ud800"}', "run_id: "),
            ("items", '{"x": ' + "[" * 900 + "]" * 900 + "}", "JSON object"),
            ("items", '{"x": ' + "[" * 20_000 + "]" * 20_000 + "}", "JSON object"),
            ("items", '{"corpus": "letters", "corpus": "reviews"}', "epsilon"),
            ("release", '{"run_id": [1]}', "no such release"),
            ("release", '{"run_id": true}', "no such release"),
            ("ledger", '{"corpus": "letters"}', "JSON object"),
        ]
    ),
    ("FROM dphh_release('no such run')", "no such release"),
    ("FROM dphh_release('bob/quarterly')", "no such release"),
    ("FROM dphh_release('quarterly')", "no such release"),
    ("FROM dphh_release('../../x')", "no such release"),
    ("FROM dphh_release('%')", "no such release"),
    ("FROM dphh_release('bob/'' OR 1=1 --')", "no such release"),
    ("FROM dphh_release(NULL)", "no such release"),
    (
        "FROM dphh_releases() r, LATERAL (FROM dphh_release('bob/quarterly')) x",
        "no such release",
    ),
]
