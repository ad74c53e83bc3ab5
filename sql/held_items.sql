-- What each user holds: the distinct tokens of all their rows.
-- In: tokens_of_rows (user_id, tokens). Out: held (user_id, key).
CREATE TEMP TABLE held AS
WITH

tokens AS (
    SELECT
        user_id,
        explode(tokens) AS key
    FROM tokens_of_rows
)

SELECT DISTINCT
    user_id,
    key
FROM tokens
WHERE key <> '';
