-- One sequence a user: the one in most of the user's rows, the first of those if several tie.
-- In: choices (user_id, tokens), users' rows. Out: one_each (user_id, tokens).
CREATE TEMP TABLE one_each AS
WITH

local_counts AS (
    SELECT
        user_id,
        tokens,
        count(*) AS appearances
    FROM choices
    GROUP BY user_id, tokens
)

SELECT
    user_id,
    min_by(tokens, (-appearances, spelled(tokens))) AS tokens
FROM local_counts
GROUP BY user_id;
