-- One sequence a user, for the whole run: one of the user's rows, each as likely as any other, so
-- that a sequence is drawn in proportion to its local frequency. The draw is the system's. (A
-- test's gives equal rows of a user equal lots, so it draws from the user's distinct sequences.)
-- In: tokens_of_rows (user_id, tokens). Out: one_each (user_id, tokens).
CREATE TEMP TABLE one_each AS
WITH

rows_of_users AS (
    SELECT
        user_id,
        list_filter(tokens, lambda token: token <> '') AS tokens
    FROM tokens_of_rows
),

several AS (
    SELECT
        user_id,
        tokens,
        dphh_word(
            CAST(user_id AS VARCHAR) || chr(31) || CAST(tokens AS VARCHAR), 'one sequence a user'
        ) AS lot
    FROM rows_of_users
    WHERE len(tokens) > 0
)

SELECT
    user_id,
    arg_min(tokens, lot) AS tokens
FROM several
GROUP BY user_id;
