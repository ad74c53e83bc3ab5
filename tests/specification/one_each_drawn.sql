-- One sequence a user for the whole run (Zhu et al. 2020 draw it anew at each level, Algorithm 3):
-- a random row of the user, by one random word a user. (The remainder favours some rows by less
-- than 2^-32; privacy does not depend on which row it is.)
-- In: texts (user_id, tokens). Out: one_sequence_each (user_id, tokens).
CREATE OR REPLACE TEMP TABLE one_sequence_each AS
WITH

draws AS MATERIALIZED (
    SELECT
        user_id,
        count(*) AS sequences,
        dphh_word(CAST(user_id AS VARCHAR), $purpose) AS draw
    FROM texts
    WHERE len(tokens) > 0
    GROUP BY user_id
),

numbered AS (
    SELECT
        user_id,
        tokens,
        row_number() OVER (
            PARTITION BY user_id
            ORDER BY array_to_string(tokens, chr(31)), len(tokens), tokens
        ) - 1 AS number
    FROM texts
    WHERE len(tokens) > 0
)

SELECT numbered.user_id, numbered.tokens
FROM numbered
INNER JOIN draws ON numbered.user_id = draws.user_id
WHERE numbered.number = draws.draw % draws.sequences;
