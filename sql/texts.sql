-- The corpus, tokenised once: one row a text. A text is cut after 2^26 - 1 tokens, so that a
-- position fits its row's number and a place within the row (candidates_of_words.sql).
-- In: tokens_of_rows (user_id, tokens). Out: texts (user_id, tokens).
CREATE TEMP TABLE texts AS
WITH

cleaned AS (
    SELECT
        user_id,
        CASE
            -- NULLs go too: no token is one.
            WHEN list_contains(tokens, '') OR list_count(tokens) < len(tokens)
                THEN list_filter(tokens, lambda token: token <> '')
            ELSE tokens
        END AS tokens
    FROM tokens_of_rows
)

SELECT
    user_id,
    CASE WHEN len(tokens) < 1 << 26 THEN tokens ELSE tokens[1:(1 << 26) - 1] END AS tokens
FROM cleaned
WHERE len(tokens) > 0;
