-- The functions of texts and sequences that level queries call, for Spark. How content becomes
-- tokens is defined once, by the macros of ../rows/text.sql: DuckDB makes the tokens on Spark's
-- executors (reader/views.py).

-- Refuses text that is not UTF-8: Spark reads text columns without a look at their bytes.
CREATE OR REPLACE TEMPORARY FUNCTION checked (content STRING) RETURNS STRING
RETURN CASE
    WHEN content IS NULL OR is_valid_utf8(content) THEN content
    ELSE raise_error('dphh: not UTF-8')
END;

CREATE OR REPLACE TEMPORARY FUNCTION all_checked (tokens ARRAY<STRING>) RETURNS ARRAY<STRING>
RETURN CASE
    WHEN exists(tokens, token -> NOT is_valid_utf8(token)) THEN raise_error('dphh: not UTF-8')
    ELSE tokens
END;

-- The tokens without NULLs and empty ones.
CREATE OR REPLACE TEMPORARY FUNCTION not_empty (tokens ARRAY<STRING>) RETURNS ARRAY<STRING>
RETURN filter(tokens, token -> token <> '');

-- The sort key of sequences: first their spelling, which every engine orders alike.
CREATE OR REPLACE TEMPORARY FUNCTION sort_key (tokens ARRAY<STRING>)
RETURNS STRUCT<spelling STRING, number INT, tokens ARRAY<STRING>>
RETURN named_struct(
    'spelling', array_join(tokens, chr(31)), 'number', size(tokens), 'tokens', tokens
);

CREATE OR REPLACE TEMPORARY FUNCTION in_order (sequences ARRAY<ARRAY<STRING>>)
RETURNS ARRAY<ARRAY<STRING>>
RETURN transform(
    array_sort(
        transform(
            sequences, tokens -> struct(array_join(tokens, chr(31)), size(tokens), tokens)
        )
    ),
    spelling -> spelling.tokens
);

-- On Spark a word is its own key, since no process numbers all words.
CREATE OR REPLACE TEMPORARY FUNCTION dphh_spelled (word STRING) RETURNS STRING RETURN word;

-- DuckDB's list_slice: tokens number `first` to number `last`.
CREATE OR REPLACE TEMPORARY FUNCTION dphh_slice (tokens ARRAY<STRING>, first INT, last INT)
RETURNS ARRAY<STRING>
RETURN slice(tokens, first, last - first + 1);
