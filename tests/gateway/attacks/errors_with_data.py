"""Kind: errors that would quote a row."""

GUARD = [
    "SELECT CAST(body AS INTEGER) FROM reviews",
    "SELECT error(body) FROM reviews",
    "SELECT error(string_agg(body, ' ')) FROM reviews",
    "SELECT CAST((SELECT max(body) FROM reviews) AS INT)",
    "SELECT strptime(body, '%Y') FROM reviews",
    "SELECT TRY_CAST(body AS INT) FROM reviews",
    "SELECT list_extract([1], author::INT) FROM reviews",
    "SELECT body::DATE FROM reviews",
    "SELECT body::JSON FROM reviews",
    "SELECT body::UUID FROM reviews",
    "SELECT json_extract(body::JSON, '$.a') FROM reviews",
    "SELECT regexp_matches('a', body || '(') FROM reviews",
    "SELECT body::BLOB::VARCHAR FROM reviews",
    "SELECT list_value(body)::INT[] FROM reviews",
    "SELECT struct_pack(a := body)::STRUCT(a INT) FROM reviews",
    "SELECT 1 // (CASE WHEN body > 'm' THEN 0 ELSE 1 END) FROM reviews",
    "SELECT * FROM reviews WHERE body::INT > 1",
    "SELECT * FROM range(1) WHERE error((SELECT first(body) FROM reviews)) IS NULL",
    "FROM generate_series(1, (SELECT max(body) FROM reviews)::INT)",
]

#: Refused as well, though this DuckDB would not do them.
GUESSES = [
    "SELECT try(error(body)) FROM reviews",
    "SELECT (SELECT body FROM reviews)",
    "SELECT canary FROM reviews",
    "SELECT DATE (SELECT max(body) FROM reviews)",
]

#: What was released, or what was asked, may be quoted: it is the analyst's already.
PASSES = [
    ("SELECT error(string_agg(corpus, ',')) FROM dphh_ledger()", "reviews"),
    ("SELECT corpus::INT FROM dphh_ledger()", "Could not convert"),
    ("SELECT value::INT FROM dphh_plan_items('reviews', epsilon := 1, delta := 1e-9)", "convert"),
    ("SELECT error(run_id) FROM dphh_releases()", "alice|bob"),
    ("SELECT no_such_column FROM dphh_ledger()", "not found"),
    ("FROM dphh_no_such_macro()", "Not authorised"),
]
