-- The sequences of users' rows: their tokens. A row without a token has none.
-- In: tokens_of_rows (user_id, tokens). Out: sequences_of_rows (user_id, tokens), a view.
CREATE TEMP VIEW sequences_of_rows AS
WITH

sequences AS (
    SELECT user_id, not_empty(tokens) AS tokens
    FROM tokens_of_rows
)

SELECT
    tokens,
    coalesce(user_id, error('dphh: NULL user')) AS user_id
FROM sequences
WHERE user_id IS NULL OR array_size(tokens) > 0;
