-- Where valid grams of two words stand: at each place the key of the pair that begins there, -1 for
-- none. A pair is valid where both words were released; they stand side by side in one text. Places
-- that can be part of none go; but where pruning is on a single side ($single) every place stays,
-- and the released words beside, to be what longer grams end in.
-- In: users (lot, codes); the released words, told to dphh_places_of_words.
-- Out: positions (lot, keys, words); key = left * 2^32 + right, by the numbers of the released.
CREATE TEMP TABLE positions AS
WITH

places AS (
    SELECT
        lot,
        dphh_places_of_words(codes) AS grams
    FROM users
),

places_and_words AS (
    SELECT
        lot,
        grams,
        CASE WHEN $single THEN grams ELSE [] END AS words
    FROM places
),

candidates AS (
    SELECT
        lot,
        dphh_pairs(grams, words, 1) AS keys,
        words
    FROM places_and_words
)

SELECT
    lot,
    keys,
    words
FROM candidates
WHERE len(keys) > 0;
