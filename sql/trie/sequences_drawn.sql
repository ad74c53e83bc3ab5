-- One sequence a user, for the whole run: one of the user's rows, so that a sequence is drawn in
-- proportion to its local frequency. The draw hangs on the user and one word alone, so whoever
-- draws again by the same word draws the same. (The remainder favours some rows by less than 2^-32.
-- No privacy hangs on that: a user's draw may have any law, docs/path-accountant.md.)
-- In: choices (user_id, tokens), users' rows; $purpose, by which a run draws once.
-- Out: one_each (user_id, tokens).
CREATE TEMP TABLE one_each AS
WITH

sequences_of_users AS (
    SELECT
        user_id,
        array_agg(tokens) AS sequences
    FROM choices
    GROUP BY user_id
)

SELECT
    user_id,
    CASE
        WHEN array_size(sequences) = 1 THEN try_element_at(sequences, 1)
        ELSE
            try_element_at(in_order(sequences), 1 + CAST(
                dphh_word(CAST(user_id AS STRING), $purpose) % array_size(sequences)
                AS INT
            ))
    END AS tokens
FROM sequences_of_users;
