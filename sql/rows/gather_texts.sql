-- Every text of the corpus, and whose it is, in any order, for one part in $parts of the users:
-- handed to udfs/kernel/gathering.py, which numbers the words and lays out whole users. What
-- stands for a user is a number, or the user's name; or a rank among all, and the name beside
-- (key_of_user).
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
    WHERE
        -- What nobody's rows hold is looked up apart (rows_of_nobody.sql).
        user_id IS NOT NULL
        AND hash(user_id) % CAST($parts AS UBIGINT) = CAST($part AS UBIGINT)
)

SELECT sum(dphh_gathered(user_key, user_name, tokens, group_name)) AS texts
FROM texts;
