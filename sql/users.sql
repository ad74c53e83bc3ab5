-- The corpus, one row a whole user, for one part in $parts of the users: the words of all the
-- user's texts as numbers, -1 after each text (udfs/whole_users.py). Words are made numbers before
-- they are gathered, so that a place takes four bytes.
-- In: tokens_of_rows (user_id, tokens). Out: added to users (lot, codes); lot is what stands for
-- the user where the keys that count are chosen.
INSERT INTO users
WITH

texts AS (
    SELECT
        user_id,
        dphh_codes(tokens) AS codes
    FROM tokens_of_rows
    WHERE hash(user_id) % CAST($parts AS UBIGINT) = CAST($part AS UBIGINT)
),

texts_of_users AS (
    SELECT
        user_id,
        flatten(list(codes)) AS codes
    FROM texts
    -- No text without a word: whoever it is of, there is nothing to bound.
    WHERE len(codes) > 1
    GROUP BY user_id
)

SELECT
    dphh_lot(CAST(user_id AS VARCHAR)) AS lot,
    codes
FROM texts_of_users;
