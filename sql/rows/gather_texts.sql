-- Passes every text and its user, in any order, to udfs/kernel/gathering.py, which numbers users
-- and words and lays out whole users.
-- In: rows_of_corpus (user_id, content, group_name). Out: handed (texts), and `users` to be made.
CREATE OR REPLACE TEMP TABLE handed AS
WITH

texts AS (
    SELECT
        user_id,
        tokens_of(content) AS tokens,
        group_name
    FROM rows_of_corpus
)

SELECT sum(dphh_gathered(user_id, tokens, group_name)) AS texts
FROM texts;
