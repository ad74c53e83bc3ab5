-- The corpus, tokenised once: one row a text, its tokens in order. A text is cut after 2^26 - 1
-- tokens, as DuckDB cuts it.
-- In: tokens_of_rows (user_id, tokens). Out: texts (user_id, tokens).
CREATE TABLE texts AS
WITH

cleaned AS (
    SELECT
        user_id,
        not_empty(tokens) AS tokens
    FROM tokens_of_rows
)

SELECT
    user_id,
    slice(tokens, 1, (1 << 26) - 1) AS tokens
FROM cleaned
WHERE size(tokens) > 0;
