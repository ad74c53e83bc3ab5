-- One sequence a user: the one that most of the user's rows hold, the first of equals.
-- In: tokens_of_rows (user_id, tokens). Out: one_each (user_id, tokens).
CREATE TEMP TABLE one_each AS
WITH

rows_of_users AS (
    SELECT
        user_id,
        list_filter(tokens, lambda token: token <> '') AS tokens
    FROM tokens_of_rows
),

local_counts AS (
    SELECT
        user_id,
        tokens,
        count(*) AS appearances
    FROM rows_of_users
    WHERE len(tokens) > 0
    GROUP BY user_id, tokens
)

SELECT
    user_id,
    arg_min(tokens, (-appearances, tokens)) AS tokens
FROM local_counts
GROUP BY user_id;
