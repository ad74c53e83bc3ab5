-- Passes every text and its user, in any order, to udfs/kernel/gathering.py, which numbers the
-- words and lays out whole users. A user is a number, a name, or a rank among all users with the
-- name beside it (key_of_user).
-- In: rows_of_corpus (user_id, content, group_name). Out: handed (texts), and `users` to be made.
CREATE OR REPLACE TEMP TABLE handed AS
WITH

texts AS (
    SELECT
        key_of_user(user_id) AS user_key,
        name_of_user(user_id) AS user_name,
        tokens_of(content) AS tokens,
        group_name
    FROM rows_of_corpus
    -- rows_of_null_users.sql looks at rows with a NULL user id.
    WHERE user_id IS NOT NULL
)

SELECT sum(dphh_gathered(user_key, user_name, tokens, group_name)) AS texts
FROM texts;
