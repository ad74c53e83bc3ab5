-- One sequence a user: the one in most of the user's rows, the first of those if several tie.
-- In: sequences_of_rows (user_id, tokens), of users of several rows. Out: chosen (user_id, tokens).
CREATE TEMP TABLE chosen AS
WITH

local_counts AS (
    SELECT user_id, tokens, count(*) AS appearances
    FROM sequences_of_rows
    GROUP BY user_id, tokens
)

SELECT
    user_id,
    min_by(tokens, (-appearances, sort_key(tokens))) AS tokens
FROM local_counts
GROUP BY user_id;
