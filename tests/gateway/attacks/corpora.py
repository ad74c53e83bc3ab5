"""Kind: paths and other people's corpora as the name of a corpus. They pass the guard."""

PASSES = [
    (f"FROM dphh_{verb}({corpus}, epsilon := 0.01, delta := 1e-9{options})", "no corpus|found")
    for verb, options in [
        ("items", ""),
        ("ngrams", ", max_n := 2"),
        ("trie", ", max_length := 3"),
        ("plan_items", ""),
    ]
    for corpus in [
        "'{raw}'",
        "'*.parquet'",
        "'/etc/passwd'",
        "'../reviews'",
        "'reviews''; --'",
        "'letters'",
        "'REVIEWS '",
        "''",
        "NULL",
        "['reviews', 'letters']",
        "(SELECT 'letters')",
        "'reviews' || chr(0)",
    ]
]
