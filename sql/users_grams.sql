-- As users.sql, of the n-grams that texts hold, no matter what was released: every run of $shortest
-- to $longest words, spelled out (udfs/whole_grams.py).
-- In: tokens_of_rows (user_id, tokens). Out: added to users (lot, codes).
INSERT INTO users
WITH

grams AS (
    SELECT
        user_id,
        dphh_codes(dphh_grams(tokens, $shortest, $longest)) AS codes
    FROM tokens_of_rows
    WHERE hash(user_id) % CAST($parts AS UBIGINT) = CAST($part AS UBIGINT)
),

grams_of_users AS (
    SELECT
        user_id,
        flatten(list(codes)) AS codes
    FROM grams
    -- No text without a word: whoever it is of, there is nothing to bound.
    WHERE len(codes) > 1
    GROUP BY user_id
)

SELECT
    dphh_lot(CAST(user_id AS VARCHAR)) AS lot,
    codes
FROM grams_of_users;
