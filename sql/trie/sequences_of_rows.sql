-- The rows that hold a sequence: of NULLs and empty tokens, or of nothing, none is made.
-- In: tokens_of_rows (user_id, tokens). Out: sequences_of_rows (user_id, tokens), read at each use.
CREATE TEMP VIEW sequences_of_rows AS
WITH

cleaned AS (
    SELECT
        user_id,
        not_empty(tokens) AS tokens
    FROM tokens_of_rows
)

SELECT
    user_id,
    tokens
FROM cleaned
WHERE array_size(tokens) > 0;
