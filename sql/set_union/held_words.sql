-- The distinct words of each user, found once: every round of set union reads them.
-- In: users (user_hashes, lengths, ids), several short users a row.
-- Out: held_words (user_hashes, words, owners): pairs of a word and the place of its user in the
-- row (udfs/kernel/held.py).
-- DPNE, Algorithm 5: the set U_i of a user's items.
CREATE TEMP TABLE held_words AS
WITH

sets AS (
    SELECT dphh_held_words(user_hashes, lengths, ids) AS held
    FROM users
)

SELECT
    held['user_hashes'] AS user_hashes,
    held['keys'] AS words,
    held['owners'] AS owners
FROM sets;
