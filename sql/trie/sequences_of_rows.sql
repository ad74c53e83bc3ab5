-- The rows that hold a sequence, without NULLs and empty tokens; rows with no other token are left
-- out.
-- In: tokens_of_rows (user_id, tokens). Out: sequences_of_rows (user_id, tokens), a view.
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
