-- Where valid grams of two words stand: at each place the key of the pair that begins there, -1 for
-- none. A pair is valid where both words were released; they stand side by side in one text. Places
-- that can be part of none go; but where pruning is on a single side ($single) every place stays,
-- and the released words beside, to be what longer grams end in.
-- DPNE, Algorithm 1, at k = 2: G_k(w_i), the k-grams in a user's text, and of these V_k, the valid
-- ones; where they stand, before each user's are made a set (grams_level.sql).
-- In: users (lots, lengths, codes); the released words, told to dphh_places_of_words.
-- Out: positions (lots, lengths, keys, words); key = left * 2^32 + right, by the numbers of the
-- released.
CREATE TEMP TABLE positions AS
WITH

places AS (
    SELECT
        lots,
        lengths,
        dphh_places_of_words(codes) AS grams
    FROM users
),

places_and_words AS (
    SELECT
        lots,
        lengths,
        grams,
        CASE WHEN $single THEN grams ELSE [] END AS words
    FROM places
),

candidates AS (
    SELECT
        lots,
        dphh_pairs(lengths, grams, words, 1) AS pairs,
        words
    FROM places_and_words
)

SELECT
    lots,
    pairs['lengths'] AS lengths,
    pairs['keys'] AS keys,
    words
FROM candidates;
