"""Kind: names and texts that become SQL when DuckDB writes the checked tree without quotes.

The name before a star is one (found by this suite; the guard reads what it wrote once more).
"""

_EVIL = [
    "1 FROM read_text('{secret}') --",
    "body FROM reviews --",
    "current_setting('threads') --",
    "1; SELECT 2 --",
    "(SELECT name FROM duckdb_settings() LIMIT 1) --",
    "1 UNION ALL SELECT content FROM read_text('{secret}') --",
]

GUARD = [f'SELECT "{evil}".* FROM range(1) AS t' for evil in _EVIL]

#: Texts and names that DuckDB does quote: they come back as what they are.
PASSES = [
    (
        shape.replace("@name", evil.replace('"', '""')).replace("@text", evil.replace("'", "''")),
        None,
    )
    for evil in [
        "x\" FROM read_text('{secret}') --",
        "x' FROM read_text('{secret}') --",
        "x; FROM reviews",
    ]
    for shape in [
        'SELECT 1 AS "@name"',
        "SELECT '@text'",
        'SELECT "@name" FROM range(1) AS t("@name")',
        'SELECT "@name".a FROM range(1) AS "@name"(a)',
        'SELECT * FROM range(1) a("@name") JOIN range(1) b("@name") USING ("@name")',
        'SELECT * EXCLUDE ("@name"), 1 FROM range(1) t("@name")',
        'SELECT * REPLACE (2 AS "@name") FROM range(1) t("@name")',
        'SELECT * RENAME ("@name" AS b) FROM range(1) t("@name")',
        "SELECT {'@text': 1}",
        'SELECT struct_pack("@name" := 1)',
        'SELECT list_transform([1], lambda "@name": "@name" + 1)',
        'SELECT NULL::STRUCT("@name" INTEGER)',
        "SELECT string_agg(a::VARCHAR, '@text' ORDER BY a) FROM range(2) t(a)",
        'WITH t("@name") AS (SELECT 1) FROM t',
        "SELECT MAP {'@text': 1}",
        "SELECT COLUMNS(lambda c: c <> '@text') FROM range(1) t(a)",
    ]
]
