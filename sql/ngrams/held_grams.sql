-- The distinct valid grams of each user, found once for both rounds of a level of the forecast
-- ladder.
-- In: positions (user_hashes, lengths, keys, words), whole users in batches, where valid grams
-- stand. With a list of words, level 1 is of this form: a word's key is its number there, from
-- $others on of words that it lacks.
-- Out: held_grams (user_hashes, keys, owners): pairs of a gram and the place of its user in the row
-- (udfs/kernel/held.py).
CREATE TEMP TABLE held_grams AS
WITH

sets AS (
    SELECT dphh_held_grams(user_hashes, lengths, keys) AS held
    FROM positions
)

SELECT
    held['user_hashes'] AS user_hashes,
    held['keys'] AS keys,
    held['owners'] AS owners
FROM sets;
