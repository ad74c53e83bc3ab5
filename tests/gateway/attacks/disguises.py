"""Kind: unicode and comments."""

GUARD = [
    "/**/FROM/**/reviews",
    "FROM--x\nreviews",
    "FROM/*'*/reviews",
    "SELECT 1 /* ; */ ; FROM reviews",
    "FROM\xa0reviews",
    "FROM\u2003reviews",
    "\ufeffFROM reviews",
    "\u200bFROM reviews",
    "FROM reviews\x00",
    "SELECT $a$'$a$; FROM reviews",
    "FROM reviews -- \u202e",
    "fRoM rEvIeWs",
    "FROM\treviews",
    "FROM\x0creviews",
    "FROM\rreviews",
    "FROM \"read_parquet\"('{raw}')",
    "FROM ReAd_PaRqUeT('{raw}')",
    "FROM system.main.read_parquet('{raw}')",
]

#: Refused as well, though this DuckDB would not do them.
GUESSES = [
    "FROM revіews",
    "FROM re\u200bviews",
    "FROМ reviews",
    "ＦＲＯＭ reviews",
    'FROM U&"\\0072eviews"',
    "FROM\x0breviews",
    "/* unterminated",
    "SELECT 'unterminated",
    'SELECT "unterminated',
    "FROM read_parquet(chr(47)||'etc')",
    "SELECT read_parquet('{raw}')",
]

#: These only look like two statements.
PASSES = [
    ("SELECT E'\\x27; FROM reviews --'", None),
    ("SELECT $$; FROM reviews$$", None),
    ("SELECT /*/* nested */ 1; FROM reviews --*/ 2", None),
]
